"""Drawbridge: platforms over a void, one key on each, every key good for one bridge."""

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
from hard_eight.parts import Apple, key
from hard_eight.placing import Spot, scatter
from hard_eight.platforms import BRIDGE_WIDTH, Network, Platform, Way, add_way, hall
from hard_eight.rooms import floor
from hard_eight.task import Human, task
from hard_eight.world import World

HALF_WIDTH, TOP = 4.8, 5.0  # of the hall, m
LAYERS_X = ((0.0, 3.0), (4.5, 7.5), (9.0, 12.0), (13.5, 16.5))

PLATFORMS = {
    "start": Platform(LAYERS_X[0], (-HALF_WIDTH, HALF_WIDTH)),
    "right": Platform(LAYERS_X[1], (-HALF_WIDTH, -2.4)),
    "middle": Platform(LAYERS_X[1], (-2.0, 2.0)),
    "left": Platform(LAYERS_X[1], (2.4, HALF_WIDTH)),
    "far_right": Platform(LAYERS_X[2], (-HALF_WIDTH, -0.4)),
    "far_left": Platform(LAYERS_X[2], (0.4, HALF_WIDTH)),
    "end": Platform(LAYERS_X[3], (-HALF_WIDTH, HALF_WIDTH)),
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
NETWORK = Network(PLATFORMS, WAYS)
WITH_APPLES = ("right", "middle", "left", "far_right", "far_left")
# m further in than elsewhere: a hand from the next platform would take a second key to a third way.
OUT_OF_REACH = 0.5
MOST_ON_ONE, FEWEST_ON_BEST, MOST_IN_ALL = 2, 3, 6


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
    hall(world, NETWORK, TOP)

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
            posts = [(*NETWORK.post_spot(way), 0.6) for way in NETWORK.onward(name)]
            clear = [(*spot, 0.9), *posts]
            ((x, y),) = scatter(draw, platform.x, platform.y, [0.6], 0.0, clear)
            world.start_avatar(x, y, yaw=draw.uniform(-3.14, 3.14))
            continue
        for i, (x, y) in enumerate(_apple_spots(draw, name, apples[name], spot)):
            world.add(Apple(f"apple_{name}_{i}", (x, y, 0.0), large=False))
    for way in WAYS:
        add_way(world, NETWORK, way, keys[way.start], post_look, bridge_look)
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
        second, best = sorted(
            sum(apples.get(p, 0) for p in route) for route in NETWORK.routes("start")
        )[-2:]
        if best > second and best >= FEWEST_ON_BEST and sum(counts) <= MOST_IN_ALL:
            return apples


def _key_spot(draw: Generator, name: str) -> Spot:
    """Some steps in, clear of the posts, which it might touch, and out of the neighbours' reach."""
    x, (south, north) = PLATFORMS[name].x, PLATFORMS[name].y
    y = (
        south if south == -HALF_WIDTH else south + OUT_OF_REACH,
        north if north == HALF_WIDTH else north - OUT_OF_REACH,
    )
    clear = [(*NETWORK.post_spot(way), 1.1) for way in NETWORK.onward(name)]
    return scatter(draw, (x[0] + 0.6, x[1]), y, [0.6], 0.0, clear)[0]


def _apple_spots(draw: Generator, name: str, count: int, key_spot: Spot) -> list[Spot]:
    """Where they can be seen from the start platform: not close behind the raised bridges."""
    x, y = PLATFORMS[name].x, PLATFORMS[name].y
    hidden = 1.0 if x == LAYERS_X[1] else 1.6
    clear = [(x[0], way.y, hidden) for way in NETWORK.inward(name)] + [(*key_spot, 0.7)]
    return scatter(draw, x, y, [0.5] * count, 0.8, clear)
