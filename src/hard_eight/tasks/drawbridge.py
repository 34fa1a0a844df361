"""Drawbridge: platforms over a void, one key on each, every key good for one bridge."""

from itertools import pairwise
from typing import NamedTuple

from numpy.random import Generator

from hard_eight.looks import (
    CEILING_RGBS,
    FLOOR_TEXTURES,
    WALL_RGBS,
    Look,
    draw_colours,
    draw_surroundings,
    draw_thing_look,
    pick,
)
from hard_eight.milestones import AvatarIn, Collected, Held
from hard_eight.native.constants import SENSOR_CONSUMES
from hard_eight.parts import Apple, Drawbridge, Sensor, Thing, key
from hard_eight.parts_void import Gate, barrier
from hard_eight.placing import Spot, scatter
from hard_eight.rooms import ceiling, floor, wall
from hard_eight.task import Human, task
from hard_eight.world import World

HALF_WIDTH, TOP = 4.8, 5.0  # of the hall, m
LAYERS_X = ((0.0, 3.0), (4.5, 7.5), (9.0, 12.0), (13.5, 16.5))
BRIDGE_WIDTH, BRIDGE_SECONDS = 1.0, 0.7
RAIL, RAIL_HEIGHT = 0.1, 0.3  # thickness, height: no apple hides behind it


class Platform(NamedTuple):
    layer: int
    y: tuple[float, float]

    @property
    def x(self) -> tuple[float, float]:
        return LAYERS_X[self.layer]


class Way(NamedTuple):
    """A bridge, straight ahead at `y`."""

    start: str
    end: str
    y: float
    post_side: int  # 1: the post stands north (+y) of it, -1: south

    @property
    def name(self) -> str:
        return f"{self.start}_to_{self.end}"


PLATFORMS = {
    "start": Platform(0, (-HALF_WIDTH, HALF_WIDTH)),
    "right": Platform(1, (-HALF_WIDTH, -2.4)),
    "middle": Platform(1, (-2.0, 2.0)),
    "left": Platform(1, (2.4, HALF_WIDTH)),
    "far_right": Platform(2, (-HALF_WIDTH, -0.4)),
    "far_left": Platform(2, (0.4, HALF_WIDTH)),
    "end": Platform(3, (-HALF_WIDTH, HALF_WIDTH)),
}
BY_WALL = HALF_WIDTH - BRIDGE_WIDTH / 2
WAYS = (
    Way("start", "right", -3.4, 1),
    Way("start", "middle", 0.0, 1),
    Way("start", "left", 3.4, -1),
    Way("right", "far_right", -BY_WALL, 1),
    Way("middle", "far_right", -0.95, -1),
    Way("middle", "far_left", 0.95, 1),
    Way("left", "far_left", BY_WALL, -1),
    Way("far_right", "end", -2.5, 1),
    Way("far_left", "end", 2.5, -1),
)
WITH_APPLES = ("right", "middle", "left", "far_right", "far_left")
MOST_ON_ONE, FEWEST_ON_BEST, MOST_IN_ALL = 2, 3, 6


def routes(start: str = "start") -> list[tuple[str, ...]]:
    """All ways through the network, as the platforms one comes by."""
    if start == "end":
        return [("end",)]
    onward = [way.end for way in WAYS if way.start == start]
    return [(start, *rest) for end in onward for rest in routes(end)]


@task(
    "drawbridge",
    level="drawbridge_max3fork_safe_randomwall",
    summary="Platforms over a void: touch a platform's only key to a bridge's post to lower the "
    "bridge; the key is gone. Take the way with the most small apples to the large one.",
    varies=(
        "avatar's position and orientation",
        "wall, floor and ceiling materials and colours",
        "materials and colours of keys, posts and bridges",
        "positions of the small apples",
        "positions of the keys",
    ),
    human=Human(12.3, 2.5, 641, 137),
)
def drawbridge(world: World) -> None:
    draw, looks = world.draw.layout, world.draw.looks
    roof = Look(pick(looks, CEILING_RGBS), pick(looks, FLOOR_TEXTURES))
    world.surroundings = draw_surroundings(looks)._replace(ceiling=roof)
    key_colour, post_colour = draw_colours(looks, 2)
    key_look, post_look = draw_thing_look(looks, key_colour), draw_thing_look(looks, post_colour)
    bridge_look = Look(pick(looks, WALL_RGBS), pick(looks, FLOOR_TEXTURES))
    _hall(world)

    apples = _draw_apples(draw)
    keys = {}
    for name, platform in PLATFORMS.items():
        floor(world, platform.x, platform.y, thickness=0.5)
        if name == "end":
            continue
        spot = _key_spot(draw, name)
        cube = key(f"key_{name}", (*spot, 0.2), key_look, yaw=draw.uniform(0, 1.57))
        keys[name] = world.add(cube)
        if name == "start":
            ((x, y),) = scatter(draw, platform.x, platform.y, [0.6], 0.0, [(*spot, 0.9)])
            world.start_avatar(x, y, yaw=draw.uniform(-3.14, 3.14))
            continue
        for i, (x, y) in enumerate(_apple_spots(draw, name, apples[name], spot)):
            world.add(Apple(f"apple_{name}_{i}", (x, y, 0.0), large=False))
    for way in WAYS:
        _add_way(world, way, keys[way.start], post_look, bridge_look)
    ahead = (LAYERS_X[3][0] + 1.9, draw.uniform(-1.5, 1.5), 0.0)
    apple = world.add(Apple("apple", ahead, large=True))

    crossed = [AvatarIn(x=(layer[0] + 0.3, 99.0)) for layer in LAYERS_X[1:]]
    world.milestones = {
        "key_held": Held(*keys.values()),
        "first_bridge_crossed": crossed[0],
        "second_bridge_crossed": crossed[1],
        "third_bridge_crossed": crossed[2],
        "apple": Collected(apple),
    }


def _draw_apples(draw: Generator) -> dict[str, int]:
    """How many small apples lie on each platform; exactly one route has the most."""
    while True:
        counts = draw.integers(MOST_ON_ONE + 1, size=len(WITH_APPLES))
        apples = dict(zip(WITH_APPLES, map(int, counts), strict=True))
        second, best = sorted(sum(apples.get(p, 0) for p in route) for route in routes())[-2:]
        if best > second and best >= FEWEST_ON_BEST and sum(counts) <= MOST_IN_ALL:
            return apples


def _key_spot(draw: Generator, name: str) -> Spot:
    """Some steps in, and clear of the posts, which it might touch."""
    x, y = PLATFORMS[name].x, PLATFORMS[name].y
    clear = [(*_post_spot(way), 1.1) for way in WAYS if way.start == name]
    return scatter(draw, (x[0] + 0.6, x[1]), y, [0.6], 0.0, clear)[0]


def _apple_spots(draw: Generator, name: str, count: int, key_spot: Spot) -> list[Spot]:
    """Where they can be seen from the start platform: not close behind the raised bridges."""
    x, y = PLATFORMS[name].x, PLATFORMS[name].y
    hidden = 1.0 if PLATFORMS[name].layer == 1 else 1.6
    clear = [(x[0], way.y, hidden) for way in WAYS if way.end == name] + [(*key_spot, 0.7)]
    return scatter(draw, x, y, [0.5] * count, 0.8, clear)


def _post_spot(way: Way) -> Spot:
    """Beside the bridge, within reach."""
    return PLATFORMS[way.start].x[1] - 0.3, way.y + way.post_side * (BRIDGE_WIDTH / 2 + 0.25)


def _add_way(world: World, way: Way, cube: Thing, post_look: Look, bridge_look: Look) -> None:
    """A bridge, the post beside it that takes the key, and a gate where one could step into it."""
    near, far = PLATFORMS[way.start].x[1], PLATFORMS[way.end].x[0]
    post = (*_post_spot(way), 0.3)
    size = (0.12, 0.12, 0.3)  # low, so that it hides no apples
    name = way.name
    sensor = world.add(Sensor(f"post_{name}", post, size, post_look, [cube], SENSOR_CONSUMES))
    hinge = (near, way.y, 0.0)
    deck = Drawbridge(
        f"bridge_{name}", hinge, 0.0, far - near, BRIDGE_WIDTH, [sensor], bridge_look,
        seconds=BRIDGE_SECONDS,
    )  # fmt: skip
    world.add(deck)
    if sum(other.end == way.end for other in WAYS) > 1:
        at = (far + RAIL / 2, way.y, 0.0)
        gate = Gate(
            f"gate_{name}", at, "y", [sensor], width=BRIDGE_WIDTH, look=bridge_look,
            seconds=BRIDGE_SECONDS,
        )  # fmt: skip
        world.add(gate)


def _hall(world: World) -> None:
    """Outer walls down into the void, and what keeps the avatar from it: rails, unseen barriers."""
    x, y = (LAYERS_X[0][0], LAYERS_X[-1][1]), (-HALF_WIDTH, HALF_WIDTH)
    depth = 4.0
    for along, at, span in (
        ("x", y[0] - 0.1, (x[0] - 0.2, x[1] + 0.2)),
        ("x", y[1] + 0.1, (x[0] - 0.2, x[1] + 0.2)),
        ("y", x[0] - 0.1, y),
        ("y", x[1] + 0.1, y),
    ):
        wall(world, along, at, span, height=TOP + depth, bottom=-depth)
    ceiling(world, x, y, TOP)

    for near, far in pairwise(LAYERS_X):
        decks = sorted(way.y for way in WAYS if PLATFORMS[way.start].x == near)
        half = BRIDGE_WIDTH / 2
        for low, high in pairwise([-HALF_WIDTH - half, *decks, HALF_WIDTH + half]):
            between = (low + half, high - half)
            if between[1] - between[0] > 0.01:
                barrier(world, (near[1], far[0]), between, TOP)
                _rail(world, (near[1] - RAIL, near[1]), between)
                _rail(world, (far[0], far[0] + RAIL), between)
    for one, other in pairwise(PLATFORMS.values()):
        if one.layer == other.layer:
            barrier(world, one.x, (one.y[1], other.y[0]), TOP)
            inner = (one.x[0] + RAIL, one.x[1] - RAIL)
            _rail(world, inner, (one.y[1] - RAIL, one.y[1]))
            _rail(world, inner, (other.y[0], other.y[0] + RAIL))


def _rail(world: World, x: tuple[float, float], y: tuple[float, float]) -> None:
    world.solid(x, y, (0.0, RAIL_HEIGHT), world.surroundings.wall)
