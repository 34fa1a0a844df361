"""Milestones: the steps of a task, in the order in which they must be reached, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .native import constants as c

if TYPE_CHECKING:
    from .parts import Apple, Sensor, Thing

Row = tuple[Sequence[int], Sequence[float]]
FAR = 1e6


def bits(things: Sequence[Thing]) -> int:
    """A set of movable things as bits of their indices."""
    return sum(1 << thing.index for thing in things)


class Milestone(Protocol):
    def row(self) -> Row: ...


class Held:
    """One of the things has been in the hand."""

    def __init__(self, *things: Thing) -> None:
        self.things = things

    def row(self) -> Row:
        return (c.MILESTONE_HELD, bits(self.things)), ()


class On:
    """The sensor has been on."""

    def __init__(self, sensor: Sensor) -> None:
        self.sensor = sensor

    def row(self) -> Row:
        return (c.MILESTONE_SIGNAL, self.sensor.signal), ()


class _Inside:
    def __init__(
        self,
        x: Sequence[float] = (-FAR, FAR),
        y: Sequence[float] = (-FAR, FAR),
        z: Sequence[float] = (-FAR, FAR),
    ) -> None:
        self.box = (*x, *y, *z)


class AvatarIn(_Inside):
    """The middle of the avatar's body has been inside a box."""

    def row(self) -> Row:
        return (c.MILESTONE_AVATAR_IN, 0), self.box


class ThingIn(_Inside):
    """The middle of one of the things has been inside a box."""

    def __init__(self, *things: Thing, **box: Sequence[float]) -> None:
        super().__init__(**box)
        self.things = things

    def row(self) -> Row:
        return (c.MILESTONE_THING_IN, bits(self.things)), self.box


class ThingOut(ThingIn):
    """The middle of one of the things has been outside a box."""

    def row(self) -> Row:
        return (c.MILESTONE_THING_OUT, bits(self.things)), self.box


class Collected:
    """The apple has been collected."""

    def __init__(self, apple: Apple) -> None:
        self.apple = apple

    def row(self) -> Row:
        return (c.MILESTONE_COLLECTED, self.apple.rule_index), ()
