"""Throw Across: throw one key over the void, carry the other round; two doors, then the apple.

A U of two legs round a void. The way round the bottom is a grating over the same void: it bears
the avatar, but whatever is not held falls through. Half way it steps down, too high to climb
back. So one key can be carried round, and only one: the other has to fly.

Why no second key comes round (tests/hard_eight/tasks/test_throw_across.py plays each out):
- from below the step the last firm ground before the grating is out of the hand's reach, and from
  above it the first firm ground beyond is out of a throw's;
- the grating pulls down what is loose, harder than the grip can bear: none rides on another;
- nothing along the grating rubs: neither walls nor body can pin a key and drag it over;
- the arch over the way is too low for a key on the avatar's head.
"""

from hard_eight.grating import STEEL, Grating
from hard_eight.looks import COLOURS, THING_TEXTURES, Look, draw_colours, draw_surroundings, pick
from hard_eight.milestones import AvatarIn, Collected, Held, On, ThingIn
from hard_eight.native import constants as c
from hard_eight.parts import Apple, Door, Sensor, key
from hard_eight.placing import scatter, wall_plate
from hard_eight.rooms import ROOM_HEIGHT, Opening, ceiling, floor, railing, wall
from hard_eight.task import Human, task
from hard_eight.world import AVATAR_ONLY, STEPPED_OVER, World

# West to east: near leg, a block and north of it the void, far leg. South to north: the grating,
# firm ground, and on the far side two small rooms.
NEAR_X, FAR_X = (-4.0, -1.4), (1.4, 4.0)
RAIL = 0.2  # the railings stand on the edges of the void, which is this much narrower each side
PASSAGE_Y, ARCH_HEIGHT = (0.0, 1.6), 1.6
FIRM_Y = 2.0  # where the grating ends and firm ground begins
VOID_Y = (2.4, 5.2)
ROOM_Y, APPLE_Y = (5.4, 6.9), (7.1, 8.6)
STEP_X, LOW = -0.5, -0.6
SLIPPERY = {"priority": 2, "condim": 1}


@task(
    "throw_across",
    level="throw_across",
    summary="Throw one key over the void, carry the other round; two doors, then the apple.",
    varies=(
        "avatar's position and orientation",
        "wall, floor and object materials and colours",
        "colour and material of the sensors",
        "positions of the two keys",
    ),
    human=Human(5.4, 4.9, 464, 172),
)
def throw_across(world: World) -> None:
    draw, looks = world.draw.layout, world.draw.looks
    world.surroundings = draw_surroundings(looks)
    build_rooms(world)
    world.avatar_geom.priority = 2  # nothing rubs against the body

    north = VOID_Y[1]
    spots = scatter(draw, NEAR_X, (FIRM_Y + 0.4, north), margins=(0.5, 0.5, 0.5), apart=0.9)
    *key_spots, avatar_spot = spots
    names = draw_colours(looks, 4)
    dress = [Look(COLOURS[name], pick(looks, THING_TEXTURES)) for name in names]
    keys = [
        world.add(key(name, (*spot, 0.2), look, yaw=draw.uniform(0, 1.57)))
        for name, spot, look in zip(("first_key", "second_key"), key_spots, dress[:2], strict=True)
    ]

    # Each sensor takes whichever key touches it, and destroys it: both are needed.
    height = LOW + 1.1
    first = wall_plate("north", 3.4, FAR_X, (FIRM_Y, north), height, half=0.32)
    second = wall_plate("north", 1.9, FAR_X, ROOM_Y, height, half=0.32)
    sensors = [
        world.add(Sensor(name, plate.at, plate.half, look, keys, c.SENSOR_CONSUMES))
        for name, plate, look in zip(
            ("first_sensor", "second_sensor"), (first, second), dress[2:], strict=True
        )
    ]
    world.add(Door("first_door", (2.2, north + 0.1, LOW), "x", opened_by=sensors[:1]))
    world.add(Door("second_door", (3.0, ROOM_Y[1] + 0.1, LOW), "x", opened_by=sensors[1:]))
    apple = world.add(Apple("apple", (3.0, APPLE_Y[1] - 0.6, LOW), large=True))
    world.start_avatar(*avatar_spot, yaw=draw.uniform(-3.14, 3.14))

    # On or just beyond the far railing: a thrown key comes down here, a carried one hardly goes.
    edge = {"x": (FAR_X[0] - 0.14, FAR_X[0] + 0.4), "y": VOID_Y, "z": (LOW + 0.3, ROOM_HEIGHT)}
    world.milestones = {
        "key_held": Held(*keys),
        "key_thrown_across": ThingIn(*keys, **edge),
        "round_the_bottom": AvatarIn(x=FAR_X, y=(FIRM_Y, 99.0)),
        "first_door": On(sensors[0]),
        "second_door": On(sensors[1]),
        "apple": Collected(apple),
    }


def build_rooms(world: World) -> None:
    (west, near), (far, east), north = NEAR_X, FAR_X, VOID_Y[1]
    mouth, top = PASSAGE_Y[1], APPLE_Y[1]
    deep = LOW - 1.0  # the walls go down as far as the floors are thick
    tall = ROOM_HEIGHT - deep
    floor(world, (west - 0.2, near + RAIL), (FIRM_Y, north + 0.2))
    floor(world, (far - RAIL, east + 0.2), (FIRM_Y, top + 0.2), top=LOW)
    ceiling(world, (west - 0.2, east + 0.2), (-0.2, top + 0.2))

    world.add(Grating("near_grating", (west, near), (0.0, FIRM_Y), "x"))
    world.add(Grating("upper_grating", (near, STEP_X), PASSAGE_Y, "y"))
    world.add(Grating("lower_grating", (STEP_X, far), PASSAGE_Y, "y", LOW))
    world.add(Grating("far_grating", (far, east), (0.0, FIRM_Y), "x", LOW))
    world.solid((STEP_X - 0.05, STEP_X), PASSAGE_Y, (LOW, 0.0), STEEL, collide=AVATAR_ONLY)

    # Walls along the grating are smooth: no key can be dragged along them. They end at the bars,
    # below which there is nothing to be seen.
    def smooth(x: tuple[float, float], y: tuple[float, float], bottom: float) -> None:
        world.solid(x, y, (bottom, ROOM_HEIGHT), Look(world.surroundings.wall.rgb), **SLIPPERY)

    smooth((west - 0.2, west), (-0.2, FIRM_Y), 0.0)
    smooth((west, STEP_X), (-0.2, 0.0), 0.0)
    smooth((STEP_X, east), (-0.2, 0.0), LOW)
    smooth((east, east + 0.2), (-0.2, FIRM_Y), LOW)
    smooth((near, far), (mouth, VOID_Y[0]), LOW)
    smooth((near, near + RAIL), PASSAGE_Y, ARCH_HEIGHT)
    wall(world, "y", west - 0.1, (FIRM_Y, north + 0.2), bottom=deep, height=tall)
    wall(world, "y", east + 0.1, (FIRM_Y, top + 0.2), bottom=deep, height=tall)
    wall(world, "x", north + 0.1, (west, far), bottom=deep, height=tall)
    wall(world, "y", far - 0.1, (north, top + 0.2), bottom=deep, height=tall)
    room = ROOM_HEIGHT - LOW
    wall(world, "x", north + 0.1, (far, east), [Opening(2.2)], bottom=LOW, height=room)
    wall(world, "x", ROOM_Y[1] + 0.1, (far, east), [Opening(3.0)], bottom=LOW, height=room)
    wall(world, "x", top + 0.1, (far, east), bottom=LOW, height=room)
    # A sill that the avatar steps over keeps a key that lands tumbling from the grating.
    sill = ((far, east), (FIRM_Y, FIRM_Y + 0.1), (LOW, LOW + 0.3))
    world.solid(*sill, world.surroundings.wall, collide=STEPPED_OVER)
    railing(world, "y", near + RAIL / 2, VOID_Y)
    railing(world, "y", far - RAIL / 2, VOID_Y, bottom=LOW, height=0.15)
