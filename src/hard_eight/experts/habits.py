"""What makes demonstrators differ from one another, and what makes them err.

A demonstrator's plan says what to do; its habits say how: where it pauses, how finely it starts,
how often it turns too far or presses the wrong key, and when it has had enough. Habits only delay,
add or coarsen actions. They never touch the world, so every failure is one of acting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hard_eight.actions import ACTION_INDEX, ACTIONS
from hard_eight.errors import HardEightError

NEVER = float("inf")


@dataclass(frozen=True)
class Habits:
    """Chances are per decision, or per change from one kind of action to another."""

    name: str = "plain"
    turning_side: str | None = None  # where it turns to search; None: either
    survey: int = 0  # most decisions of looking round before it begins
    hesitation: float = 0.0  # chance to pause at a change of action
    pause: tuple[int, int] = (1, 3)  # shortest and longest pause, decisions
    rest: float = 0.0  # chance to stand still for one decision
    fine_start: float = 0.0  # chance to begin a walk or a turn by fine steps
    overshoot: float = 0.0  # chance to turn one decision too far
    wandering: float = 0.0  # chance to look aside and back on setting out with empty hands
    slip: float = 0.0  # chance to press a wrong key for a moment
    lateness: float = 0.0  # chance to let go too late
    patience: float = NEVER  # median time after which it gives up, s
    patience_spread: float = 0.0  # deviation of the logarithm of that time


PLAIN = Habits()
DEMONSTRATORS = {
    habits.name: habits
    for habits in (
        Habits(
            "brisk", turning_side="left", hesitation=0.03, pause=(1, 2), rest=0.005, overshoot=0.06
        ),
        Habits(
            "careful", turning_side="right", survey=4, hesitation=0.08, pause=(1, 3), rest=0.01,
            fine_start=0.25, overshoot=0.01,
        ),
        Habits(
            "curious", survey=10, hesitation=0.05, pause=(1, 3), rest=0.01, fine_start=0.08,
            overshoot=0.03, wandering=0.08,
        ),
    )
}  # fmt: skip

# What a person with no skill at all adds to these habits; the share of it is 1 - skill.
LACK = {
    "hesitation": 0.4, "rest": 0.15, "overshoot": 0.4, "slip": 0.2, "lateness": 0.9,
}  # fmt: skip


@dataclass(frozen=True)
class Person:
    """How well, and for how long, the paper's people played a task."""

    skill: float
    patience: float  # median, s
    patience_spread: float = 0.35
    lateness: float = 0.0  # chance to let go too late, beyond that lack of skill


# Calibrated task by task with benchmarks/people.py, which shows how near they come to the paper.
PEOPLE = {
    "baseball": Person(0.99, 46.0, 0.8),
    "drawbridge": Person(1.0, 75.0, 0.6),
    "navigate_cubes": Person(0.52, 34.0, 0.3),
    "push_blocks": Person(0.86, 75.0, 0.5),
    "remember_sensor": Person(0.99, 91.0, 0.4),
    "throw_across": Person(0.995, 28.0, 0.8, lateness=0.15),
    "wall_sensor": Person(0.98, 34.0, 0.8),
    "wall_sensor_stack": Person(0.995, 61.0, 0.8),
}
ANYONE = Person(0.95, 45.0)  # a task that the paper does not have

HEART = 0.5  # of its patience is left to a person who is stuck

HUMAN = "human"
Skill = float | str  # 0 to 1, or HUMAN


def demonstrator_of(seed: int) -> str:
    """Whose turn an episode is: a third of the seeds each."""
    return list(DEMONSTRATORS)[seed % len(DEMONSTRATORS)]


def with_skill(habits: Habits, skill: float) -> Habits:
    """The same person, less skilled: 1 leaves the habits as they are."""
    if isinstance(skill, bool) or not isinstance(skill, int | float) or not 0 <= skill <= 1:
        raise HardEightError(f"skill is {skill!r}; it must be from 0 to 1, or '{HUMAN}'")
    more = {name: getattr(habits, name) + (1 - skill) * most for name, most in LACK.items()}
    return replace(habits, **more)


def habits_of(task: str, skill: Skill, demonstrator: str) -> Habits:
    """How a demonstrator plays a task at a skill."""
    if demonstrator not in DEMONSTRATORS:
        raise HardEightError(
            f"no demonstrator {demonstrator!r}; there are {', '.join(DEMONSTRATORS)}"
        )
    habits = DEMONSTRATORS[demonstrator]
    if isinstance(skill, str) and skill == HUMAN:
        person = PEOPLE.get(task, ANYONE)
        less_skilled = with_skill(habits, person.skill)
        return replace(
            less_skilled,
            lateness=less_skilled.lateness + person.lateness,
            patience=person.patience,
            patience_spread=person.patience_spread,
        )
    return with_skill(habits, skill)  # type: ignore[arg-type]


class Manner:
    """Turns what is planned into what is done, by one person's habits."""

    def __init__(self, habits: Habits, seed: int) -> None:
        self.habits = habits
        # Its own stream: what is planned does not depend on how it is done.
        self._random = np.random.default_rng((seed, 8))
        self.patience = habits.patience * float(
            np.exp(habits.patience_spread * self._random.standard_normal())
        )
        self._todo: deque[tuple[str, bool]] = deque()  # actions, and whether they let go
        self._last = "noop"
        if habits.survey:
            look = f"look_{self.side()}"
            self._put(look, int(self._random.integers(habits.survey // 2, habits.survey + 1)))

    def side(self) -> str:
        """The side it turns to."""
        drawn = "left" if self._random.random() < 0.5 else "right"
        return self.habits.turning_side or drawn

    def lose_heart(self, now: float) -> None:
        """Something has gone wrong at this time (s): what is left of its patience shrinks."""
        if self.patience < NEVER:
            self.patience = now + HEART * (self.patience - now)

    def next_action(
        self, plan: Callable[[], str], letting_go: Callable[[], bool], holding: bool
    ) -> str:
        """The name of the action to take; `plan` gives the one that would be right."""
        if not self._todo:
            if self._chance(self.habits.slip):
                return self._slip()
            if self._last in ("forward", "back") and self._chance(self.habits.rest):
                self._put("pause")
            else:
                self._consider(plan(), letting_go())
        name, lets_go = self._todo.popleft()
        if name == "pause":
            return "grasp" if holding else "noop"
        self._last = name
        grasping = name + "_grasp"
        return grasping if holding and not lets_go and grasping in ACTION_INDEX else name

    def _consider(self, planned: str, letting_go: bool) -> None:
        """Put what is planned on the list, with what habit adds to it."""
        habits, last = self.habits, self._last
        if letting_go:
            if self._chance(habits.lateness):
                self._put(last, self._between(1, 4))
        elif planned.removesuffix("_fine") != last.removesuffix("_fine"):
            if last in ("look_left", "look_right") and self._chance(habits.overshoot):
                self._put(last)
            if self._chance(habits.hesitation):
                self._put("pause", self._between(*habits.pause))
            if planned == "forward" and self._chance(habits.wandering):
                self._look_aside()
            if planned + "_fine" in ACTION_INDEX and self._chance(habits.fine_start):
                planned += "_fine"
        self._todo.append((planned, letting_go))

    def _look_aside(self) -> None:
        side, steps = self.side(), self._between(2, 4)
        self._put(f"look_{side}", steps)
        self._put("look_left" if side == "right" else "look_right", steps)

    def _slip(self) -> str:
        """A wrong key, held for a moment; in the hand or out of it."""
        name = ACTIONS[int(self._random.integers(len(ACTIONS)))].name
        self._todo.extend([(name, True)] * (self._between(1, 4) - 1))
        return name

    def _put(self, name: str, times: int = 1) -> None:
        self._todo.extend([(name, False)] * times)

    def _chance(self, chance: float) -> bool:
        return chance > 0 and bool(self._random.random() < chance)

    def _between(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))
