"""The programs under benchmarks/, which lie outside the package, as verbs of the command line."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType

from r2d3.errors import UserError


def load_benchmark(name: str) -> ModuleType:
    """benchmarks/NAME.py of this checkout, with its `add_arguments` and `run`."""
    qualified = f"r2d3_benchmark_{name}"
    if qualified in sys.modules:
        return sys.modules[qualified]
    path = pathlib.Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    if not path.exists():
        raise UserError(f"{path} is not there: benchmarks come with a checkout, not with the wheel")
    spec = importlib.util.spec_from_file_location(qualified, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = module
    spec.loader.exec_module(module)
    return module
