"""Parts for worlds over a void, where nobody may fall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .looks import Look
from .native import constants as c
from .parts import Door, Rule, Sensor
from .world import AVATAR_ONLY, Vector

if TYPE_CHECKING:
    from .world import World


class Gate(Door):
    """A gate at the far end of a bridge, low enough to look over; it lifts as the bridge comes
    down, so that nobody steps from the far side into the gap of a bridge that is still up."""

    LIFT = 2.4  # m; the avatar walks below

    def __init__(
        self,
        name: str,
        at: Vector,
        along: str,
        opened_by: Sequence[Sensor],
        *,
        width: float,
        look: Look,
        seconds: float,
    ) -> None:
        super().__init__(
            name, at, along, opened_by, width=width, height=0.45, look=look, seconds_up=seconds
        )

    def rule(self) -> Rule:
        ints, (shut, *_), state = super().rule()
        speed = self.LIFT / self.seconds_up
        return ints, (shut, shut + self.LIFT, speed, speed), state

    @property
    def openness(self) -> float:
        return super().openness * self.height / self.LIFT


def barrier(world: World, x: Vector, y: Vector, top: float) -> None:
    """Unseen: stops the avatar where the void begins; things fall through."""
    world.solid(x, y, (-c.BODY_BOTTOM, top), None, collide=AVATAR_ONLY)
