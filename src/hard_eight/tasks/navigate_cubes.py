"""Navigate Cubes: dig through a wall of cubes, find the ramp, climb to the apple."""

from hard_eight.looks import FLOOR_TEXTURES, Look, draw_surroundings, draw_thing_look, pick
from hard_eight.milestones import AvatarIn, Collected, ThingOut
from hard_eight.native.raster import FLOOR, OUTLINED, VISIBLE
from hard_eight.parts import Apple, Ramp, Thing
from hard_eight.rooms import railing, room
from hard_eight.task import Human, task
from hard_eight.world import World

COLUMNS, ROWS = 9, 4
# m. Between columns a chink: what falls in one does not wake all the others.
CUBE_HALF, PITCH = 0.4, 0.88
CUBE_MASS = 1.5
HALF_WIDTH = COLUMNS * PITCH / 2
# MuJoCo compiles with the avatar at the origin: the wall keeps clear of it, so that it can sleep.
WALL_X = 1.5
ROOM_X, ROOM_Y, HEIGHT = (WALL_X - 6.0, WALL_X + 7.0), (-HALF_WIDTH, HALF_WIDTH), 4.0
PLATFORM_X, PLATFORM_TOP = WALL_X + 5.0, 1.0
RAMP_RUN, RAMP_WIDTH = 2.5, 1.4
# Darker than all walls and floors, so that its edge is seen.
PLATFORM_RGBS = ((95, 85, 110), (110, 85, 70), (75, 95, 115), (90, 100, 80))
TUMBLING = 8 << 20  # bytes of working memory for a heap of cubes
CALM = 0.005  # m/s: a heap this still falls asleep; MuJoCo's own limit keeps it awake for long


@task(
    "navigate_cubes",
    level="ball_room_navigation_cubes",
    summary="Dig through the wall of cubes and find the ramp to the apple on the platform.",
    varies=(
        "avatar's position and orientation",
        "materials and colours of walls, floor and objects",
        "places of the ramp and the apple along the platform",
    ),
    human=Human(7.9, 4.1, 638, 185),
)
def navigate_cubes(world: World) -> None:
    draw, looks = world.draw.layout, world.draw.looks
    world.spec.memory = TUMBLING
    world.spec.option.sleep_tolerance = CALM
    world.surroundings = draw_surroundings(looks)
    room(world, ROOM_X, ROOM_Y, height=HEIGHT)

    cubes = []
    for column in range(COLUMNS):
        y = (column - (COLUMNS - 1) / 2) * PITCH
        for row in range(ROWS):
            at = (WALL_X, y, CUBE_HALF * (1 + 2 * row))
            cube = Thing(
                f"cube_{column}_{row}",
                at,
                draw_thing_look(looks),
                half=(CUBE_HALF, CUBE_HALF, CUBE_HALF),
                mass=CUBE_MASS,
                friction=(0.5, 0.01, 0.001),
                condim=3,
                asleep=True,
            )
            cubes.append(world.add(cube))

    world.solid(
        (PLATFORM_X, ROOM_X[1]),
        ROOM_Y,
        (0.0, PLATFORM_TOP),
        Look(pick(looks, PLATFORM_RGBS), pick(looks, FLOOR_TEXTURES)),
        flags=VISIBLE | FLOOR | OUTLINED,
    )
    reach = HALF_WIDTH - RAMP_WIDTH / 2 - 0.1
    ramp_y = float(draw.uniform(-reach, reach))
    foot = (PLATFORM_X - RAMP_RUN, ramp_y, 0.0)
    world.add(Ramp("ramp", foot, 0.0, RAMP_RUN, PLATFORM_TOP, RAMP_WIDTH, draw_thing_look(looks)))
    # No cube makes a step to the platform.
    for span in (
        (ROOM_Y[0], ramp_y - RAMP_WIDTH / 2),
        (ramp_y + RAMP_WIDTH / 2, ROOM_Y[1]),
    ):
        railing(world, "y", PLATFORM_X + 0.1, span, bottom=PLATFORM_TOP, height=0.25)
    apple_spot = (PLATFORM_X + 1.1, float(draw.uniform(-2.8, 2.8)), PLATFORM_TOP)
    apple = world.add(Apple("apple", apple_spot, large=True))
    start = WALL_X + draw.uniform(-5.4, -2.8), draw.uniform(-HALF_WIDTH + 0.6, HALF_WIDTH - 0.6)
    world.start_avatar(*start, yaw=draw.uniform(-3.14, 3.14))

    world.milestones = {
        "cube_moved": ThingOut(*cubes, x=(WALL_X - 0.3, WALL_X + 0.3)),
        "wall_passed": AvatarIn(x=(WALL_X + 1.0, 9.0)),
        "ramp_climbed": AvatarIn(x=(PLATFORM_X, 9.0), z=(PLATFORM_TOP + 0.6, 9.0)),
        "apple": Collected(apple),
    }
