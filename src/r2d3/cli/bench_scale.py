"""`r2d3 bench scale`: runs benchmarks/scale.py, whose page says what is measured and how."""

from __future__ import annotations

import argparse

from r2d3.cli.benchmarks import load_benchmark

HELP = "what each stage costs alone, and the whole under Ray with more and more processes"
EPILOG = """examples:
  r2d3 bench scale --json scale.json
  r2d3 bench scale --processes 1,2 --stubs 100 --seconds 10"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    load_benchmark("scale").add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    status: int = load_benchmark("scale").run(args)
    return status
