"""Wall Sensor: touch the key to the sensor on the wall; the door opens; take the apple."""

from hard_eight.looks import COLOURS, PLAIN_SURROUNDINGS, Look
from hard_eight.milestones import AvatarIn, Collected, Held, On, ThingIn
from hard_eight.parts import Apple, Door, Sensor, key
from hard_eight.placing import scatter, wall_plate
from hard_eight.rooms import Opening, room, wall
from hard_eight.task import Human, task
from hard_eight.world import World

ROOM_X, ROOM_Y = (-3.0, 3.0), (-3.0, 3.0)
NEXT_X = (3.0, 6.0)
SENSOR_HEIGHT = 1.1


@task(
    "wall_sensor",
    level="reach_wall",
    summary="Pick up the key and touch it to the wall sensor: the door to the apple opens.",
    varies=("avatar's position and orientation", "position of the sensor", "position of the key"),
    human=Human(9.1, 2.8, 280, 87),
)
def wall_sensor(world: World) -> None:
    draw = world.draw.layout
    world.surroundings = PLAIN_SURROUNDINGS
    room(world, (ROOM_X[0], NEXT_X[1]), ROOM_Y)
    wall(world, "y", NEXT_X[0], ROOM_Y, [Opening(0.0)])

    side = ("west", "south", "north", "east")[int(draw.integers(4))]
    # On the door's wall the plate keeps clear of the doorway.
    along = draw.uniform(1.3, 2.4) * (1, -1)[int(draw.integers(2))]
    if side != "east":
        along = draw.uniform(-2.2, 2.2)
    plate = wall_plate(side, along, ROOM_X, (ROOM_Y[0], ROOM_Y[1]), SENSOR_HEIGHT, half=0.32)
    near_plate = (*plate.front, 1.0)
    spots = scatter(draw, ROOM_X, ROOM_Y, margins=(0.5, 0.6), apart=1.2, keep_clear=[near_plate])
    key_spot, avatar_spot = spots

    cube = world.add(key("key", (*key_spot, 0.2), Look(COLOURS["blue"]), yaw=draw.uniform(0, 1.57)))
    sensor = world.add(Sensor("sensor", plate.at, plate.half, Look(COLOURS["red"]), accepts=[cube]))
    world.add(Door("door", (NEXT_X[0], 0.0, 0.0), "y", opened_by=[sensor]))
    apple = world.add(Apple("apple", (4.8, draw.uniform(-2.0, 2.0), 0.0), large=True))
    world.start_avatar(*avatar_spot, yaw=draw.uniform(-3.14, 3.14))

    world.milestones = {
        "key_held": Held(cube),
        "key_lifted": ThingIn(cube, z=(0.45, 9.0)),
        "sensor_on": On(sensor),
        "door_passed": AvatarIn(x=(NEXT_X[0] + 0.3, 9.0)),
        "apple": Collected(apple),
    }
