"""Scripted demonstrators, one file a task, written in the skills of `player.py`.

What they do is written in the tasks' files, how they do it in `habits.py`.
"""

from importlib import import_module

from hard_eight.task import find_task

from .habits import Skill, demonstrator_of, habits_of
from .player import Player


def make(task: str, seed: int = 0, skill: Skill = 1.0, demonstrator: str | None = None) -> Player:
    """The demonstrator of a task: an object with `reset(env)` and `act(env) -> int`.

    Skill is from 0 to 1, or "human": as well as the people of the paper. One of three people of
    different habits plays; the seed says whose turn it is, unless one is named.
    """
    name = find_task(task).name
    habits = habits_of(name, skill, demonstrator or demonstrator_of(seed))
    return import_module(f"{__name__}.{name}").Expert(seed=seed, habits=habits)
