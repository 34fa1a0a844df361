"""The benchmark of random play, reduced: 3000 decisions a task instead of 200 000."""

import importlib.util
import sys
from pathlib import Path

import pytest

from hard_eight.task import all_tasks

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "random_play.py"
SMALL = {"height": 8, "width": 8, "time_limit": 8.0}


@pytest.fixture(scope="module")
def random_play():
    if not PROGRAM.exists():
        pytest.skip("the benchmarks are not in this copy")  # the sdist leaves them out
    spec = importlib.util.spec_from_file_location("random_play", PROGRAM)
    module = sys.modules["random_play"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("task", [task.name for task in all_tasks()])
def test_nothing_breaks_leaves_grows_or_succeeds_by_chance(random_play, task):
    outcome = random_play.play(task, 3000, batch=16, **SMALL)
    assert outcome.faults == []
    assert outcome.decisions >= 2900
    assert outcome.episodes >= 16
