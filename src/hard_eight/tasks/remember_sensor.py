"""Remember Sensor: see the sensor's colour, fetch the block of that colour from far away."""

from typing import Any, NamedTuple

from hard_eight.looks import COLOURS, GREY_SURROUNDINGS, THING_TEXTURES, Look, pick
from hard_eight.milestones import AvatarIn, Collected, Held, On, ThingIn
from hard_eight.parts import Apple, Door, PenaltyStrip, Sensor, Thing
from hard_eight.placing import scatter, wall_plate
from hard_eight.rooms import ROOM_HEIGHT, Opening, ceiling, floor, room, wall
from hard_eight.task import Human, task
from hard_eight.world import BOX, CYLINDER, SPHERE, World

# Only colours that nobody takes for one another: no orange by red and yellow, no purple by blue.
PALETTE = ("red", "blue", "yellow", "cyan", "pink", "black")
FEWEST_BLOCKS, MOST_BLOCKS = 3, 6

APPLE_X, START_X, START_Y = (-6.0, -3.0), (-3.0, 3.0), (-3.0, 3.0)
# The hallway runs east out of the start room and bends north into the block room: round the
# corner nothing of the start room is to be seen.
HALL_Y, CORNER_X, HALL_END_Y = (-1.1, 1.1), (12.8, 15.0), 10.0
BLOCKS_X, BLOCKS_Y = (10.0, 17.8), (HALL_END_Y + 0.2, 16.2)
PENALTY_Y = (8.4, 9.4)
MIDDLE_X = sum(CORNER_X) / 2


class Shape(NamedTuple):
    """What MuJoCo needs to make a thing of this shape, about 40 cm large, that stays put."""

    kind: Any
    half: tuple[float, ...]
    height: float  # of the middle when it lies on the floor
    friction: tuple[float, float, float] = (0.8, 0.01, 0.001)
    condim: int = 4


SHAPES = (
    Shape(BOX, (0.2, 0.2, 0.2), 0.2),
    Shape(CYLINDER, (0.2, 0.22), 0.22),
    Shape(SPHERE, (0.22,), 0.22, friction=(0.8, 0.02, 0.02), condim=6),
)


@task(
    "remember_sensor",
    level="sensorhidden_color_novary_greywall",
    summary="See the sensor's colour, cross the penalty strip to a far room of blocks, and bring "
    "back the one of that colour: the door to the apple opens.",
    varies=(
        "avatar's position and orientation",
        "colour of the sensor",
        "number of blocks",
        "positions of the blocks",
        "shapes, colours and materials of the blocks",
    ),
    human=Human(7.7, 1.4, 853, 188),
)
def remember_sensor(world: World) -> None:
    draw, looks = world.draw.layout, world.draw.looks
    world.surroundings = GREY_SURROUNDINGS
    _rooms(world)

    colours = [PALETTE[i] for i in looks.permutation(len(PALETTE))]
    count = int(draw.integers(FEWEST_BLOCKS, MOST_BLOCKS + 1))
    right = int(draw.integers(count))
    clear_of_doorway = (MIDDLE_X, BLOCKS_Y[0], 2.0)
    spots = scatter(draw, BLOCKS_X, BLOCKS_Y, [0.7] * count, 1.2, [clear_of_doorway])
    blocks = []
    for i, spot in enumerate(spots):
        shape = pick(draw, SHAPES)
        block = Thing(
            f"block_{i}",
            (*spot, shape.height),
            Look(COLOURS[colours[i]], pick(looks, THING_TEXTURES)),
            shape=shape.kind,
            half=shape.half,
            yaw=draw.uniform(0, 1.57),
            friction=shape.friction,
            condim=shape.condim,
        )
        blocks.append(world.add(block))

    # Beside the apple's door, large and plain, so that its colour cannot be misread.
    plate = wall_plate("west", 1.9, (START_X[0] + 0.1, START_X[1]), START_Y, 1.1, half=0.45)
    colour = Look(COLOURS[colours[right]])
    sensor = world.add(Sensor("sensor", plate.at, plate.half, colour, accepts=[blocks[right]]))
    world.add(Door("door", (START_X[0], 0.0, 0.0), "y", opened_by=[sensor]))
    apple = world.add(Apple("apple", (-4.8, 0.0, 0.0), large=True))
    world.add(PenaltyStrip("penalty", CORNER_X, PENALTY_Y))
    x, y = draw.uniform(-1.8, 2.2), draw.uniform(-2.2, 2.2)
    world.start_avatar(x, y, yaw=draw.uniform(-3.14, 3.14))

    world.milestones = {
        "penalty_crossed": AvatarIn(y=(PENALTY_Y[1] + 0.3, 99.0)),
        "right_block_held": Held(blocks[right]),
        "right_block_in_hallway": ThingIn(blocks[right], y=(-99.0, PENALTY_Y[0])),
        "sensor_on": On(sensor),
        "apple": Collected(apple),
    }


def _rooms(world: World) -> None:
    """From west to east: the apple, the start room, the hallway; round its bend the blocks."""
    doorway = CORNER_X[1] - CORNER_X[0]
    room(world, (APPLE_X[0], START_X[1]), START_Y, east=[Opening(0.0, 2.2, ROOM_HEIGHT)])
    wall(world, "y", START_X[0], START_Y, [Opening(0.0)])
    room(world, BLOCKS_X, BLOCKS_Y, south=[Opening(MIDDLE_X, doorway, ROOM_HEIGHT)])

    west, east = START_X[1] + 0.2, CORNER_X[1]
    south, bend = HALL_Y
    for slab in (floor, ceiling):
        slab(world, (west, east + 0.2), (south - 0.2, bend))
        slab(world, (CORNER_X[0] - 0.2, east + 0.2), (bend, HALL_END_Y))
    wall(world, "x", south - 0.1, (west, east + 0.2))
    wall(world, "x", bend + 0.1, (west, CORNER_X[0]))
    wall(world, "y", CORNER_X[0] - 0.1, (bend + 0.2, HALL_END_Y))
    wall(world, "y", east + 0.1, (south, HALL_END_Y))
