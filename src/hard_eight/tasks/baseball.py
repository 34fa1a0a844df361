"""Baseball: knock the ball off its plinth with the stick, touch it to the sensor, take the apple.

The plinth is too high for the hand: wherever the avatar stands, even a ball on the rim is farther
from the eye than the hand reaches. The stick held up adds what is missing.
"""

from hard_eight.looks import COLOURS, Look, draw_colours, draw_surroundings, draw_thing_look
from hard_eight.milestones import FAR, AvatarIn, Collected, Held, On, ThingIn
from hard_eight.parts import Apple, Door, Plinth, Sensor, ball, stick
from hard_eight.placing import scatter, wall_plate
from hard_eight.rooms import Opening, room, wall
from hard_eight.task import Human, task
from hard_eight.world import World

ROOM_X, ROOM_Y = (-3.0, 3.0), (-3.0, 3.0)
NEXT_X = (3.0, 6.0)
ROOM_HEIGHT = 4.0  # room for the ball, and for a stick above it

PLINTH_HEIGHT = 2.9  # m: the ball's surface is 1.65 m above the eye, the hand reaches 1.6 m
PLINTH_RADIUS = 0.18  # slender, so that the ball shows from below and no stick comes to rest on it
BALL_RADIUS = 0.15

SENSOR_ALONG, SENSOR_HEIGHT, SENSOR_HALF = 1.9, 1.1, 0.32
# A ball poked off the plinth at a walk falls less than 2.3 m away before it is below the plate,
# and what rolls passes underneath.
SENSOR_CLEARANCE = 2.6


@task(
    "baseball",
    level="use_object_knock_down",
    summary="Knock the ball off its high plinth with the stick; the ball opens the door.",
    varies=(
        "avatar's position and orientation",
        "wall, floor and object materials and colours",
        "position of the stick",
        "position of the plinth",
    ),
    human=Human(7.8, 4.1, 492, 121),
)
def baseball(world: World) -> None:
    draw = world.draw.layout
    world.surroundings = draw_surroundings(world.draw.looks)
    room(world, (ROOM_X[0], NEXT_X[1]), ROOM_Y, height=ROOM_HEIGHT)
    wall(world, "y", NEXT_X[0], ROOM_Y, [Opening(0.0)], height=ROOM_HEIGHT)

    plate = wall_plate("east", SENSOR_ALONG, ROOM_X, ROOM_Y, SENSOR_HEIGHT, SENSOR_HALF)
    near_plate = (plate.at[0], plate.at[1], SENSOR_CLEARANCE)
    (plinth_spot,) = scatter(draw, ROOM_X, ROOM_Y, (1.3,), apart=0.0, keep_clear=[near_plate])
    stick_spot, avatar_spot = scatter(
        draw, ROOM_X, ROOM_Y, margins=(0.9, 0.5), apart=1.2, keep_clear=[(*plinth_spot, 1.3)]
    )

    # Four different colours, so that no two things seem to belong together.
    looks = world.draw.looks
    colours = draw_colours(looks, 4)
    sensor_look = Look(COLOURS[colours[0]])
    ball_look, stick_look, plinth_look = (draw_thing_look(looks, name) for name in colours[1:])
    world.add(Plinth("plinth", (*plinth_spot, 0.0), PLINTH_RADIUS, PLINTH_HEIGHT, plinth_look))
    key = world.add(ball("ball", (*plinth_spot, PLINTH_HEIGHT + BALL_RADIUS), ball_look))
    bat = world.add(stick("stick", (*stick_spot, 0.05), stick_look, yaw=draw.uniform(0.0, 6.28)))
    sensor = world.add(Sensor("sensor", plate.at, plate.half, sensor_look, accepts=[key]))
    world.add(Door("door", (NEXT_X[0], 0.0, 0.0), "y", opened_by=[sensor]))
    apple = world.add(Apple("apple", (4.8, 0.0, 0.0), large=True))
    world.start_avatar(*avatar_spot, yaw=draw.uniform(-3.14, 3.14))

    world.milestones = {
        "stick_held": Held(bat),
        "ball_off": ThingIn(key, z=(-FAR, PLINTH_HEIGHT)),
        "ball_held": Held(key),
        "sensor_on": On(sensor),
        "door_passed": AvatarIn(x=(NEXT_X[0] + 0.3, FAR)),
        "apple": Collected(apple),
    }
