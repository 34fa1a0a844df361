"""Gymnasium ids. Importing this is cheap: MuJoCo and numba load with the first environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium

if TYPE_CHECKING:
    from .task import Task


def gym_id(name: str) -> str:
    """wall_sensor -> HardEight/WallSensor-v0"""
    return f"HardEight/{''.join(word.capitalize() for word in name.split('_'))}-v0"


def _register(name: str) -> None:
    if gym_id(name) in gymnasium.registry:
        return
    gymnasium.register(
        id=gym_id(name),
        entry_point="hard_eight.env:HardEightEnv",
        vector_entry_point="hard_eight.vector:HardEightVectorEnv",
        kwargs={"task": name},
    )


def register_builtin() -> None:
    """Register the ids of all task files, by their names alone."""
    for path in sorted((Path(__file__).parent / "tasks").glob("*.py")):
        if not path.name.startswith("_"):
            _register(path.stem)


def register_task(task: Task) -> None:
    _register(task.name)


def unregister_task(task: Task) -> None:
    gymnasium.registry.pop(task.gym_id, None)
