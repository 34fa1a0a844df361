"""Remember Sensor: its rules played out through the physics."""

from itertools import pairwise

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from hard_eight import experts
from hard_eight.actions import ACTION_INDEX
from hard_eight.experts.player import Player
from hard_eight.native import constants as c
from hard_eight.task import find_task
from hard_eight.tasks.remember_sensor import (
    BLOCKS_X,
    BLOCKS_Y,
    CORNER_X,
    MIDDLE_X,
    PALETTE,
    PENALTY_Y,
    SHAPES,
    START_X,
)

TASK = find_task("remember_sensor")
SEEDS = range(40)


@pytest.fixture(scope="module")
def worlds():
    return [TASK.build(seed) for seed in SEEDS]


def new_env(seed):
    env = gym.make(TASK.gym_id, disable_env_checker=True)
    env.reset(seed=seed)
    return env


def put_avatar(world, x, y, yaw):
    """Spare the test the long way there."""
    world.data.qpos[c.AVATAR_X], world.data.qpos[c.AVATAR_Y] = x, y
    world.state[c.S_YAW], world.state[c.S_PITCH] = yaw, 0.0


def put_thing(world, thing, x, y):
    """Spare the test the long way back: the thing lies in the start room from the beginning."""
    at = world.movables[thing.index, c.M_QPOS]
    world.data.qpos[at : at + 2] = x, y


def do(env, name, times):
    """Repeat an action; the rewards."""
    return [float(env.step(ACTION_INDEX[name])[1]) for _ in range(times)]


class Carrier(Player):
    """Takes one block to the sensor, right or wrong, and presses it there."""

    block = None

    def play(self):
        sensor = self.world["sensor"]
        yield from self.grasp(self.block)
        yield from self.touch(lambda: sensor.position, lambda: False, limit=60)


def blocks(world):
    return [part for name, part in world.parts.items() if name.startswith("block_")]


def right_block(world):
    return world["sensor"].accepts[0]


def test_exactly_one_block_has_the_sensors_colour_and_only_it_is_accepted(worlds):
    for world in worlds:
        sensor = world["sensor"]
        assert [b for b in blocks(world) if b.look.rgb == sensor.look.rgb] == sensor.accepts
        assert len({b.look.rgb for b in blocks(world)}) == len(blocks(world))


def test_everything_listed_varies(worlds):
    assert len({w["sensor"].look.rgb for w in worlds}) == len(PALETTE)
    assert {len(blocks(w)) for w in worlds} == {3, 4, 5, 6}
    assert {b.shape for w in worlds for b in blocks(w)} == {shape.kind for shape in SHAPES}
    assert len({b.look.texture for w in worlds for b in blocks(w)}) >= 4
    assert len({tuple(blocks(w)[0].position) for w in worlds}) == len(worlds)
    assert len({tuple(w.position) for w in worlds}) == len({w.yaw for w in worlds}) == len(worlds)
    assert len({right_block(w).name for w in worlds}) >= 3  # its place in the list tells nothing


def test_surroundings_never_vary(worlds):
    assert len({w.surroundings for w in worlds}) == 1
    wall, floor, ceiling = (look.rgb for look in worlds[0].surroundings)
    assert all(max(rgb) - min(rgb) <= 10 for rgb in (wall, floor, ceiling))  # grey


def test_an_episode_follows_from_its_seed():
    one, same, other = TASK.build(11), TASK.build(11), TASK.build(12)
    for a, b in ((one.data.qpos, same.data.qpos), (one.rgb, same.rgb), (one.texture, same.texture)):
        assert np.array_equal(a, b)
    assert not np.array_equal(one.data.qpos[:3], other.data.qpos[:3])


def test_blocks_lie_in_the_block_room_and_the_avatar_starts_by_the_sensor(worlds):
    for world in worlds:
        for block in blocks(world):
            x, y, _ = block.position
            assert BLOCKS_X[0] < x < BLOCKS_X[1]
            assert BLOCKS_Y[0] < y < BLOCKS_Y[1]
        x, y, _ = world.position
        assert START_X[0] < x < START_X[1]
        assert np.hypot(*(world["sensor"].position - world.position)[:2]) < 7.0


def test_sensor_cannot_be_seen_from_the_block_room_nor_from_the_penalty():
    """Rays from everywhere an eye can be there to every part of the plate meet something else."""
    world = TASK.build(0)
    sensor = world["sensor"]
    # A grid on the plate's face, which looks east.
    face = sensor.position[0] + sensor.half[0]
    targets = [
        (face, sensor.position[1] + a * sensor.half[1], sensor.position[2] + b * sensor.half[2])
        for a in np.linspace(-0.99, 0.99, 7)
        for b in np.linspace(-0.99, 0.99, 5)
    ]
    eyes = (
        [
            (x, y, z)
            for x in np.linspace(BLOCKS_X[0] + 0.2, BLOCKS_X[1] - 0.2, 20)
            for y in np.linspace(BLOCKS_Y[0], BLOCKS_Y[1] - 0.2, 16)
            for z in (1.25, 2.0)  # on the floor, and standing on something
        ]
        + [(x, y, 1.25) for x in np.linspace(*CORNER_X, 9)[1:-1] for y in (*PENALTY_Y, 10.0)]
    )
    assert not any(sees(world, eye, target) for eye in eyes for target in targets)
    # The same rays do find it where it is to be seen.
    assert all(sees(world, (2.0, 0.0, 1.25), target) for target in targets)


def sees(world, eye, target):
    met = np.zeros(1, np.int32)
    offset = np.subtract(target, eye)
    mujoco.mj_ray(
        world.model, world.data, np.array(eye), offset / np.linalg.norm(offset), None, True,
        world.avatar_body.id, met,
    )  # fmt: skip
    return met[0] == world["sensor"].geom.id


@pytest.mark.parametrize("x", np.linspace(CORNER_X[0] + 0.3, CORNER_X[1] - 0.3, 5))
@pytest.mark.parametrize("leaning", ["strafe_left", "strafe_right", None])
def test_every_crossing_costs_one_each_way_wherever_one_walks(x, leaning):
    env = new_env(0)
    world = env.unwrapped.world
    put_avatar(world, x, PENALTY_Y[0] - 1.0, np.pi / 2)

    def cross(done):
        rewards = []
        while not done() and len(rewards) < 80:
            rewards += do(env, "forward", 1)
            if leaning:
                rewards += do(env, leaning, 1)  # hug the wall
        assert done()
        return rewards

    into = cross(lambda: world.position[1] > PENALTY_Y[1] + 0.7)
    put_avatar(world, *world.position[:2], -np.pi / 2)
    back = cross(lambda: world.position[1] < PENALTY_Y[0] - 0.7)
    assert [r for r in into if r] == [-1.0]
    assert [r for r in back if r] == [-1.0]


def test_no_block_can_be_reached_from_before_the_penalty(worlds):
    for world in worlds:
        for block in blocks(world):
            gap = block.position[:2] - (MIDDLE_X, PENALTY_Y[0])
            assert np.hypot(*gap) > c.REACH_FAR + 1.0


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_only_the_block_of_the_sensors_colour_opens_the_door(seed):
    for i in range(len(blocks(TASK.build(seed)))):
        env = new_env(seed)
        world = env.unwrapped.world
        block, sensor, door = blocks(world)[i], world["sensor"], world["door"]
        put_avatar(world, 1.0, 1.9, np.pi)
        put_thing(world, block, -0.8, 1.9)
        carrier = Carrier(seed)
        carrier.block = block
        carrier.reset(env)
        nearest = np.inf
        for _ in range(90):
            env.step(carrier.act(env))
            nearest = min(nearest, touch_gap(world, block, sensor))
        assert nearest < c.TOUCH_DISTANCE
        is_right = block is right_block(world)
        assert sensor.is_on is is_right
        assert door.openness == (1.0 if is_right else 0.0)


def touch_gap(world, one, other):
    return mujoco.mj_geomDistance(world.model, world.data, one.geom.id, other.geom.id, 5.0, None)


def test_shut_door_keeps_the_apple():
    env = new_env(1)
    world = env.unwrapped.world
    put_avatar(world, -1.5, 0.0, np.pi)
    assert not any(do(env, "forward", 60))
    assert world.position[0] > START_X[0]


@pytest.mark.parametrize("seed", [2, 7, 19, 23])
def test_expert_wins_eight_points_with_the_milestones_in_order(seed):
    env = new_env(seed)
    world = env.unwrapped.world
    expert = experts.make("remember_sensor", seed=seed)
    expert.reset(env)
    rewards, reached, held = [], [], set()
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(expert.act(env))
        over = terminated or truncated
        rewards += [reward] if reward else []
        reached.append([int(done) for done in info["milestones"].values()])
        held |= {world.held.name} if world.held else set()
        if world.position[1] > PENALTY_Y[0]:
            assert "sensor" in expert.seen  # it set out knowing the colour
    assert info["success"]
    assert terminated
    assert rewards == [-1.0, -1.0, 10.0]
    assert held == {right_block(world).name}
    # Each milestone is reached later than the one before it.
    first = [next(i for i, row in enumerate(reached) if row[k]) for k in range(len(reached[0]))]
    assert all(a < b for a, b in pairwise(first))
