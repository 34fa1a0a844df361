"""Wall Sensor Stack: stack two keys so that the upper one rests against the sensor; go through.

The door is open only while a key touches the sensor, and the sensor hangs too high for a key on the
floor. Its numbers leave no other way (tests/hard_eight/tasks/test_wall_sensor_stack.py):
- A 40 cm cube on the floor reaches 0.69 m at most, standing on a corner; the plate begins at 0.72.
- The plate stands out by 2 cm, too little for a key to rest or to topple slowly on its upper edge.
- The door rises so slowly that a key thrown at the plate opens no more than a slit, and comes down
  so fast that nobody who lets go of a key at the plate reaches the doorway in time.
"""

from hard_eight import looks
from hard_eight.looks import COLOURS, Look
from hard_eight.milestones import AvatarIn, Collected, Held, On, ThingIn
from hard_eight.native import constants as c
from hard_eight.parts import KEY_HALF, Apple, Door, Sensor, key
from hard_eight.placing import scatter, wall_plate
from hard_eight.rooms import Opening, room, wall
from hard_eight.task import Human, task
from hard_eight.world import World

ROOM_X, ROOM_Y = (-4.0, 4.0), (-3.0, 3.0)
NEXT_X = (4.0, 7.0)
PLATE_BOTTOM, PLATE_TOP = 0.72, 0.96
PLATE_HALF_WIDTH = 0.32
SECONDS_UP, SECONDS_DOWN = 3.0, 0.3


@task(
    "wall_sensor_stack",
    level="reach_wall_require_stack",
    summary="Stack two keys so that one rests against the sensor: the door stays open meanwhile.",
    varies=(
        "avatar's position and orientation",
        "wall, floor and object materials and colours",
        "positions of both keys",
        "position of the sensor",
    ),
    human=Human(8.6, 3.5, 521, 107),
)
def wall_sensor_stack(world: World) -> None:
    draw, paint = world.draw.layout, world.draw.looks
    world.surroundings = looks.draw_surroundings(paint)
    key_colour, sensor_colour = looks.draw_colours(paint, 2)
    key_look = looks.draw_thing_look(paint, key_colour)
    room(world, (ROOM_X[0], NEXT_X[1]), ROOM_Y)
    wall(world, "y", NEXT_X[0], ROOM_Y, [Opening(0.0)])

    # Far from the door: whoever presses a key against the plate cannot also be in the doorway.
    side = ("west", "south", "north")[int(draw.integers(3))]
    along = draw.uniform(-2.2, 2.2) if side == "west" else draw.uniform(-3.3, -1.4)
    plate = wall_plate(
        side,
        along,
        ROOM_X,
        ROOM_Y,
        height=(PLATE_BOTTOM + PLATE_TOP) / 2,
        half=PLATE_HALF_WIDTH,
        half_height=(PLATE_TOP - PLATE_BOTTOM) / 2,
        out=0.01,
    )
    near_plate = (*plate.front, 1.2)
    spots = scatter(
        draw, ROOM_X, ROOM_Y, margins=(0.7, 0.7, 0.6), apart=1.2, keep_clear=[near_plate]
    )
    *key_spots, avatar_spot = spots

    keys = [
        world.add(key(name, (*spot, KEY_HALF), key_look, yaw=draw.uniform(0, 1.57)))
        for name, spot in zip(("first_key", "second_key"), key_spots, strict=True)
    ]
    sensor_look = Look(COLOURS[sensor_colour])
    sensor = world.add(
        Sensor("sensor", plate.at, plate.half, sensor_look, keys, mode=c.SENSOR_NEEDS_CONTACT)
    )
    door = Door(
        "door",
        (NEXT_X[0], 0.0, 0.0),
        "y",
        opened_by=[sensor],
        seconds_up=SECONDS_UP,
        seconds_down=SECONDS_DOWN,
    )
    world.add(door)
    apple = world.add(Apple("apple", (5.8, draw.uniform(-2.0, 2.0), 0.0), large=True))
    world.start_avatar(*avatar_spot, yaw=draw.uniform(-3.14, 3.14))

    x, y = plate.front
    world.milestones = {
        "key_held": Held(*keys),
        "key_below_sensor": ThingIn(*keys, x=(x - 0.7, x + 0.7), y=(y - 0.7, y + 0.7), z=(0, 0.35)),
        "sensor_on": On(sensor),
        "door_passed": AvatarIn(x=(NEXT_X[0] + 0.3, 9.0)),
        "apple": Collected(apple),
    }
