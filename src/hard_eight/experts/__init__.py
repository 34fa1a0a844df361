"""Scripted demonstrators, one file a task, written in the skills of `player.py`."""

from importlib import import_module

from hard_eight.task import find_task

from .player import Player


def make(task: str, seed: int = 0, skill: float = 1.0) -> Player:
    """The demonstrator of a task: an object with `reset(env)` and `act(env) -> int`."""
    name = find_task(task).name
    return import_module(f"{__name__}.{name}").Expert(seed=seed, skill=skill)
