"""`r2d3 bench replay`: runs benchmarks/replay.py, whose page says what is measured and how."""

from __future__ import annotations

import argparse

from r2d3.cli.benchmarks import load_benchmark

HELP = "how fast the replay samples and decodes, and how many bytes a step takes"
EPILOG = """examples:
  taskset -c 1 r2d3 bench replay
  r2d3 bench replay --json replay.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    load_benchmark("replay").add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    status: int = load_benchmark("replay").run(args)
    return status
