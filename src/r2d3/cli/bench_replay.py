"""`r2d3 bench replay`: runs benchmarks/replay.py, whose page says what is measured and how."""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
from types import ModuleType

from r2d3.errors import UserError

HELP = "how fast the replay samples and decodes, and how many bytes a step takes"
EPILOG = """examples:
  taskset -c 1 r2d3 bench replay
  r2d3 bench replay --json results/bench/replay.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _benchmark().add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    status: int = _benchmark().run(args)
    return status


def _benchmark() -> ModuleType:
    """The benchmark lies outside the package, beside the others, in a checkout."""
    name = "r2d3_benchmark_replay"
    if name in sys.modules:
        return sys.modules[name]
    path = pathlib.Path(__file__).parents[3] / "benchmarks" / "replay.py"
    if not path.exists():
        raise UserError(f"{path} is not there: benchmarks come with a checkout, not with the wheel")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
