"""Networks of platforms over a void, joined by drawbridges, where nobody may fall."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .looks import Look
from .native.constants import SENSOR_CONSUMES
from .parts import Drawbridge, Sensor, Thing
from .parts_void import Gate, barrier
from .placing import Spot
from .rooms import ceiling, wall

if TYPE_CHECKING:
    from .world import World

Extent = tuple[float, float]
BRIDGE_WIDTH, BRIDGE_SECONDS = 1.0, 0.7
RAIL, RAIL_HEIGHT = 0.1, 0.3  # thickness, height: no apple hides behind it
DEPTH = 4.0  # m that the outer walls go down into the void


class Platform(NamedTuple):
    x: Extent
    y: Extent


class Way(NamedTuple):
    """A bridge, straight east at `y`, from a platform to one of the next layer."""

    start: str
    end: str
    y: float
    post_side: int  # 1: the post stands north (+y) of it, -1: south

    @property
    def name(self) -> str:
        return f"{self.start}_to_{self.end}"


class Network(NamedTuple):
    """Platforms in layers from west to east, within a layer from south to north."""

    platforms: dict[str, Platform]
    ways: tuple[Way, ...]

    def onward(self, platform: str) -> list[Way]:
        return [way for way in self.ways if way.start == platform]

    def inward(self, platform: str) -> list[Way]:
        return [way for way in self.ways if way.end == platform]

    def routes(self, start: str) -> list[tuple[str, ...]]:
        """All ways on from a platform, as the platforms one comes by."""
        onward = self.onward(start)
        if not onward:
            return [(start,)]
        return [(start, *rest) for way in onward for rest in self.routes(way.end)]

    def post_spot(self, way: Way) -> Spot:
        """Beside the bridge, within reach."""
        aside = way.post_side * (BRIDGE_WIDTH / 2 + 0.25)
        return self.platforms[way.start].x[1] - 0.3, way.y + aside


def add_way(
    world: World, network: Network, way: Way, key: Thing, post_look: Look, bridge_look: Look
) -> None:
    """A bridge, the post beside it that takes the key, and a gate where one could step into it."""
    near, far = network.platforms[way.start].x[1], network.platforms[way.end].x[0]
    name = way.name
    post = (*network.post_spot(way), 0.3)
    size = (0.12, 0.12, 0.3)  # low, so that it hides no apples
    sensor = world.add(Sensor(f"post_{name}", post, size, post_look, [key], SENSOR_CONSUMES))
    deck = Drawbridge(
        f"bridge_{name}", (near, way.y, 0.0), 0.0, far - near, BRIDGE_WIDTH, [sensor], bridge_look,
        seconds=BRIDGE_SECONDS,
    )  # fmt: skip
    world.add(deck)
    if len(network.inward(way.end)) > 1:  # else nobody is there before this bridge is down
        gate = Gate(
            f"gate_{name}", (far + RAIL / 2, way.y, 0.0), "y", [sensor], width=BRIDGE_WIDTH,
            look=bridge_look, seconds=BRIDGE_SECONDS,
        )  # fmt: skip
        world.add(gate)


def hall(world: World, network: Network, top: float) -> None:
    """Outer walls down into the void, and what keeps the avatar from it: rails, unseen barriers."""
    platforms = list(network.platforms.values())
    x = platforms[0].x[0], platforms[-1].x[1]
    y = min(p.y[0] for p in platforms), max(p.y[1] for p in platforms)
    for at in (y[0] - 0.1, y[1] + 0.1):
        wall(world, "x", at, (x[0] - 0.2, x[1] + 0.2), height=top + DEPTH, bottom=-DEPTH)
    for at in (x[0] - 0.1, x[1] + 0.1):
        wall(world, "y", at, y, height=top + DEPTH, bottom=-DEPTH)
    ceiling(world, x, y, top)

    half = BRIDGE_WIDTH / 2
    layers = sorted({p.x for p in platforms})
    for near, far in pairwise(layers):
        decks = sorted(way.y for way in network.ways if network.platforms[way.start].x == near)
        for low, high in pairwise([y[0] - half, *decks, y[1] + half]):
            between = (low + half, high - half)
            if between[1] - between[0] > 0.01:  # not where a bridge runs along the wall
                barrier(world, (near[1], far[0]), between, top)
                _rail(world, (near[1] - RAIL, near[1]), between)
                _rail(world, (far[0], far[0] + RAIL), between)
    for one, other in pairwise(platforms):
        if one.x == other.x:
            barrier(world, one.x, (one.y[1], other.y[0]), top)
            inner = (one.x[0] + RAIL, one.x[1] - RAIL)
            _rail(world, inner, (one.y[1] - RAIL, one.y[1]))
            _rail(world, inner, (other.y[0], other.y[0] + RAIL))


def _rail(world: World, x: Extent, y: Extent) -> None:
    world.solid(x, y, (0.0, RAIL_HEIGHT), world.surroundings.wall)
