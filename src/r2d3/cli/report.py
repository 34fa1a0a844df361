"""`r2d3 report`: a run's page, from what lies in its folder."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = """\
Write a run's report.html: learning curves beside people and demonstrators, milestones, speeds, a
video of the newest weights beside a demonstration, maps, settings. One file that needs no other.
`r2d3 train` does this by itself, and while it runs.
"""
EPILOG = """\
examples:
  r2d3 report runs/wall
  r2d3 report runs/*            several"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder")


def run(args: argparse.Namespace) -> int:
    from studio.report import write_report

    for folder in args.runs:
        print(write_report(Path(folder)))
    return 0
