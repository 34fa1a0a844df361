"""What a task is, and the registry that everything else (ids, levels, tables, docs) follows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .errors import HardEightError
from .floats import StandardFloats
from .world import World


class Human(NamedTuple):
    """The paper's table of human demonstrations: mean and deviation, lengths in frames."""

    score: float
    score_deviation: float
    length: float
    length_deviation: float


@dataclass(frozen=True)
class Task:
    """One task: how an episode is laid out, and what people call it."""

    name: str  # wall_sensor
    level: str  # the original release's level name
    summary: str
    varies: tuple[str, ...]
    layout: Callable[[World], None]
    human: Human | None = None

    @property
    def title(self) -> str:
        """WallSensor"""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def gym_id(self) -> str:
        return f"HardEight/{self.title}-v0"

    @property
    def human_return(self) -> str | None:
        return f"{self.human.score} ± {self.human.score_deviation}" if self.human else None

    @property
    def human_length(self) -> str | None:
        if self.human is None:
            return None
        return f"{self.human.length:.0f} ± {self.human.length_deviation:.0f}"

    @cached_property
    def milestones(self) -> tuple[str, ...]:
        """The milestones' names, in order."""
        return tuple(self.build(0).milestones)

    def build(self, seed: int) -> World:
        """The world of the episode with this seed."""
        with StandardFloats():
            world = World(seed)
            self.layout(world)
            return world.finish()


_TASKS: dict[str, Task] = {}


def task(
    name: str,
    *,
    level: str,
    summary: str,
    varies: Iterable[str],
    human: Human | None = None,
) -> Callable[[Callable[[World], None]], Task]:
    """Register the layout function below as a task, with all that follows from it."""

    def register(layout: Callable[[World], None]) -> Task:
        from .registration import register_task

        if name in _TASKS:
            raise HardEightError(f"a task named {name!r} exists already; choose another name")
        made = Task(name, level, summary, tuple(varies), layout, human)
        _TASKS[name] = made
        register_task(made)
        return made

    return register


def unregister(name: str) -> None:
    """Forget a task that was added at run time."""
    from .registration import unregister_task

    unregister_task(_TASKS.pop(name))


def _load_builtin() -> None:
    from . import tasks  # noqa: F401  each file registers itself


def all_tasks() -> list[Task]:
    _load_builtin()
    return sorted(_TASKS.values(), key=lambda task: task.name)


def find_task(name: str) -> Task:
    """A task by its name, Gymnasium id or original level name; a near miss is guessed."""
    _load_builtin()
    for made in _TASKS.values():
        if name in (made.name, made.gym_id, made.level, made.title):
            return made
    names = sorted(_TASKS)
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    raise HardEightError(f"no task {name!r}{guess} There are: {', '.join(names)}")
