"""A grating: bars over the void that bear the avatar, and let every loose thing fall through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .looks import Look
from .native import constants as c
from .native.raster import FLOOR, VISIBLE
from .parts import Part, Rule
from .world import AVATAR_ONLY, GHOST

if TYPE_CHECKING:
    from .world import World

Span = Sequence[float]
STEEL = Look((185, 190, 200))
BAR, GAP = 0.07, 0.44  # m: a key of 0.4 m is seen to fit between the bars
DECK = 0.5  # m, the unseen deck that the avatar walks on
# N. With its own 10 N a loose key of 1 kg is then more than the grip's 60 N can bear, so that none
# comes over stacked on one that is held, or squeezed against it.
UNDERTOW = 55.0
PULLS_FROM, PULLS_TO = -3.0, 5.0  # m from the bars: deep enough to be out of sight


class Grating(Part):
    """Bars along the axis 'x' or 'y' over a rectangle of void."""

    def __init__(
        self, name: str, x: Span, y: Span, bars_along: str, top: float = 0.0, look: Look = STEEL
    ) -> None:
        super().__init__(name)
        self.x, self.y, self.bars_along, self.top, self.look = x, y, bars_along, top, look

    def build(self, world: World) -> None:
        top = self.top
        world.solid(self.x, self.y, (top - DECK, top), None, collide=AVATAR_ONLY)
        start, end = self.y if self.bars_along == "x" else self.x
        count = max(2, round((end - start) / (BAR + GAP)) + 1)
        pitch = (end - start - BAR) / (count - 1)
        for i in range(count):
            bar = (start + i * pitch, start + i * pitch + BAR)
            x, y = (self.x, bar) if self.bars_along == "x" else (bar, self.y)
            # The bars are only seen: a thing that met one would balance on it.
            self.geom = world.solid(
                x, y, (top - 0.06, top), self.look, collide=GHOST, flags=VISIBLE | FLOOR
            )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        box = (*self.x, *self.y, self.top + PULLS_FROM, self.top + PULLS_TO)
        return (c.RULE_UNDERTOW,), (*box, UNDERTOW), (0.0,)
