"""`r2d3 bench learner`: runs benchmarks/learner.py, whose page says what is measured and how."""

from __future__ import annotations

import argparse

from r2d3.cli.benchmarks import load_benchmark

HELP = "how fast the learner is: frames a second, share of the peak, against the plain way"
EPILOG = """examples:
  taskset -c 1 r2d3 bench learner
  r2d3 bench learner --json learner.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    load_benchmark("learner").add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    status: int = load_benchmark("learner").run(args)
    return status
