"""Push Blocks: push the block of the sensor's colour into the recess; the door opens."""

from __future__ import annotations

from collections.abc import Sequence

from hard_eight.looks import COLOURS, Look, draw_colours, draw_surroundings, draw_thing_look
from hard_eight.milestones import AvatarIn, Collected, On, ThingIn, ThingOut
from hard_eight.native.raster import OUTLINED, VISIBLE
from hard_eight.parts import Apple, Door, Part, Sensor, block
from hard_eight.placing import Spot, scatter
from hard_eight.rooms import Hole, Opening, room, wall
from hard_eight.task import Human, task
from hard_eight.world import AVATAR_ONLY, GHOST, World

ROOM_X, ROOM_Y = (-4.0, 4.0), (-4.0, 4.0)
NEXT_X = (4.0, 8.0)
BLOCKS = 4
BLOCK_HALF = 0.3
RECESS_HALF = 0.44  # wider than a block's diagonal, so that it cannot jam
PLATE = 0.04
RECESS_DEPTH = 2 * BLOCK_HALF + PLATE + 0.02  # a block in it lies 2 cm below the floor
FRAME_WIDTH, FRAME_TOP = 0.14, 0.004
# From the walls and each other: the avatar, 0.6 m wide, can get behind every block.
FROM_WALLS, APART = 1.4, 1.6
FREE_WAY = 0.95  # m between the middles of the matching block's way and of the other blocks


class Frame(Part):
    """A painted frame round the recess: it tells the sensor's colour from afar."""

    def __init__(self, name: str, at: Spot, look: Look) -> None:
        super().__init__(name)
        self.at, self.look = at, look

    def build(self, world: World) -> None:
        (x, y), inner, outer = self.at, RECESS_HALF, RECESS_HALF + FRAME_WIDTH
        z = (-0.02, FRAME_TOP)
        for low, high in ((-outer, -inner), (inner, outer)):
            for across, along in (
                ((x - outer, x + outer), (y + low, y + high)),
                ((x + low, x + high), (y - inner, y + inner)),
            ):
                self.geom = world.solid(
                    across, along, z, self.look, collide=GHOST, flags=VISIBLE | OUTLINED
                )


def leg_is_free(axis: int, start: Spot, end: float, others: Sequence[Spot]) -> bool:
    """Whether a block can be pushed straight along an axis (0: x, 1: y) to a coordinate."""
    low = min(start[axis], end) - 1.2  # the avatar goes behind it
    high = max(start[axis], end) + 1.2
    return all(
        abs(other[1 - axis] - start[1 - axis]) > FREE_WAY or not low < other[axis] < high
        for other in others
    )


def free_order(start: Spot, recess: Spot, others: Sequence[Spot]) -> int | None:
    """The axis to push a block along first, so that a second straight push brings it home."""
    for first in (0, 1):
        second = 1 - first
        corner = (recess[0], start[1]) if first == 0 else (start[0], recess[1])
        if (
            abs(start[second] - recess[second]) > 2 * RECESS_HALF  # not over the recess's edge
            and leg_is_free(first, start, recess[first], others)
            and leg_is_free(second, corner, recess[second], others)
        ):
            return first
    return None


@task(
    "push_blocks",
    level="slot_colored_block",
    summary="Push the block of the sensor's colour into the recess: the door to the apple opens.",
    varies=(
        "avatar's position and orientation",
        "materials and colours of walls, floor and objects",
        "positions of the blocks and of the recess",
        "sensor's required colour",
    ),
    human=Human(9.1, 2.9, 683, 270),
)
def push_blocks(world: World) -> None:
    draw, looks = world.draw.layout, world.draw.looks
    world.surroundings = draw_surroundings(looks)

    recess = (float(draw.uniform(-1.5, 1.5)), float(draw.uniform(-1.5, 1.5)))
    hole = Hole(
        (recess[0] - RECESS_HALF, recess[0] + RECESS_HALF),
        (recess[1] - RECESS_HALF, recess[1] + RECESS_HALF),
        RECESS_DEPTH,
    )
    room(world, (ROOM_X[0], NEXT_X[1]), ROOM_Y, hole=hole)
    wall(world, "y", NEXT_X[0], ROOM_Y, [Opening(0.0)])
    # The avatar walks over the recess; blocks fall in.
    world.solid(hole.x, hole.y, (-0.3, 0.0), None, collide=AVATAR_ONLY)

    margins = [FROM_WALLS] * BLOCKS + [0.6]
    *spots, avatar_spot = scatter(draw, ROOM_X, ROOM_Y, margins, APART, [(*recess, 1.5)])
    while free_order(spots[0], recess, spots[1:]) is None:  # the first draw nearly always does
        *spots, avatar_spot = scatter(draw, ROOM_X, ROOM_Y, margins, APART, [(*recess, 1.5)])

    colours = draw_colours(looks, BLOCKS)
    names = ["matching_block", *(f"wrong_block_{i}" for i in range(1, BLOCKS))]
    blocks = [
        world.add(block(name, (*spot, BLOCK_HALF), draw_thing_look(looks, colour), BLOCK_HALF))
        for name, spot, colour in zip(names, spots, colours, strict=True)
    ]
    wanted = Look(COLOURS[colours[0]])
    world.add(Frame("frame", recess, wanted))
    plate = (*recess, PLATE / 2 - RECESS_DEPTH)
    half = (RECESS_HALF, RECESS_HALF, PLATE / 2)
    sensor = world.add(Sensor("sensor", plate, half, wanted, accepts=[blocks[0]]))
    world.add(Door("door", (NEXT_X[0], 0.0, 0.0), "y", opened_by=[sensor]))
    apple_spot = (draw.uniform(5.5, 7.0), draw.uniform(-2.8, 2.8), 0.0)
    apple = world.add(Apple("apple", apple_spot, large=True))
    world.start_avatar(*avatar_spot, yaw=draw.uniform(-3.14, 3.14))

    x, y = spots[0]
    down = {"x": hole.x, "y": hole.y, "z": (-9.0, 0.0)}
    world.milestones = {
        "block_pushed": ThingOut(blocks[0], x=(x - 0.25, x + 0.25), y=(y - 0.25, y + 0.25)),
        "any_block_in_recess": ThingIn(*blocks, **down),
        "block_in_recess": ThingIn(blocks[0], **down),
        "sensor_on": On(sensor),
        "door_passed": AvatarIn(x=(NEXT_X[0] + 0.3, 9.0)),
        "apple": Collected(apple),
    }
