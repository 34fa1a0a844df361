"""Throw Across: its rules, and every way round the throw that we could think of, played out.

Tests that need a special situation put the avatar or a key there before the first step, to spare
the way; from then on only actions move anything.
"""

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from hard_eight import experts
from hard_eight.actions import ACTION_INDEX
from hard_eight.experts.habits import PLAIN
from hard_eight.experts.throw_across import Expert
from hard_eight.native import constants as c
from hard_eight.task import find_task
from hard_eight.tasks import throw_across as layout

TASK = find_task("throw_across")
EAST, NORTH, WEST, SOUTH = 0.0, np.pi / 2, np.pi, -np.pi / 2
LOST = -3.0  # m: what is below this lies in the void
SEEDS = range(60)


@pytest.fixture(scope="module")
def worlds():
    return [TASK.build(seed) for seed in SEEDS]


def new_env(seed=0):
    env = gym.make(TASK.gym_id, disable_env_checker=True, height=8, width=8)
    env.reset(seed=seed)
    return env, env.unwrapped.world


def do(env, name, times=1):
    """Repeat an action; what was rewarded."""
    return sum(float(env.step(ACTION_INDEX[name])[1]) for _ in range(times))


def put_avatar(world, x, y, yaw, pitch=0.0, floor=0.0):
    world.data.qpos[: c.AVATAR_Z + 1] = x, y, floor + c.BODY_BOTTOM
    world.state[c.S_YAW], world.state[c.S_PITCH] = yaw, pitch
    mujoco.mj_forward(world.model, world.data)


def put_key(world, key, at, velocity=(0, 0, 0), spin=(0, 0, 0), quat=(1, 0, 0, 0)):
    start, dof = world.movables[key.index, [c.M_QPOS, c.M_DOF]]
    world.data.qpos[start : start + 7] = *at, *quat
    world.data.qvel[dof : dof + 6] = *velocity, *spin
    mujoco.mj_forward(world.model, world.data)


def look_at(world, point):
    """Turn the gaze onto a point at once."""
    d = np.asarray(point) - world.eye
    world.state[c.S_YAW] = np.arctan2(d[1], d[0])
    world.state[c.S_PITCH] = np.clip(
        np.arctan2(d[2], np.hypot(d[0], d[1])), -c.PITCH_LIMIT, c.PITCH_LIMIT
    )
    mujoco.mj_forward(world.model, world.data)


def take(env, world, key, by=(0, 0, 0)):
    look_at(world, key.position + by)
    do(env, "grasp")
    assert world.held is key


def play(env, player, limit=700):
    """A demonstrator's rewards, and its milestones in the order they came."""
    player.reset(env)
    rewards, order = [], []
    for _ in range(limit):
        _, reward, terminated, truncated, info = env.step(player.act(env))
        rewards.append(float(reward))
        order += [m for m, done in info["milestones"].items() if done and m not in order]
        if terminated or truncated:
            return rewards, order, terminated
    return rewards, order, False


# --- the task ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_thrown_and_a_carried_key_open_both_doors_to_the_apple(seed):
    env, world = new_env(seed)
    rewards, order, terminated = play(env, experts.make("throw_across", seed=seed))
    assert terminated
    assert order == list(TASK.milestones)
    assert rewards[-1] == 10.0
    assert sum(rewards) == 10.0
    assert world["first_key"].is_destroyed
    assert world["second_key"].is_destroyed


class CarriesOnly(Expert):
    """Does all that can be done without a throw."""

    def play(self):
        if not self.is_across():
            yield from self.look_for_keys(1)
            yield from self.carry_round(self.nearest(self.near_keys()))
        yield from self.use_keys()


def test_one_key_opens_one_door():
    env, world = new_env(3)
    rewards, order, _ = play(env, CarriesOnly(seed=3, habits=PLAIN), limit=450)
    assert order == ["key_held", "round_the_bottom", "first_door"]
    assert sum(rewards) == 0
    assert world["first_door"].openness == 1
    assert world["second_door"].openness == 0
    assert not world["second_sensor"].is_on
    put_avatar(world, *world["second_door"].position[:2] - (0, 0.9), NORTH, floor=layout.LOW)
    do(env, "forward", 30)
    assert world.position[1] < layout.ROOM_Y[1], "the second door stops it"


@pytest.mark.parametrize("name", ["first_key", "second_key"])
def test_either_key_opens_the_first_door_and_is_spent(name):
    env, world = new_env()
    put_avatar(world, 3.4, 3.6, NORTH, floor=layout.LOW)
    put_key(world, world[name], (3.4, 4.7, layout.LOW + 1.1))
    take(env, world, world[name])
    do(env, "forward_grasp", 12)
    assert world["first_sensor"].is_on
    assert not world["second_sensor"].is_on
    assert world[name].is_destroyed
    assert world.held is None
    do(env, "noop", 20)
    assert world["first_door"].openness == 1


def test_a_key_that_falls_short_is_lost_and_the_episode_goes_on():
    env, world = new_env()
    put_avatar(world, -2.2, 3.6, EAST)
    put_key(world, world["first_key"], (-1.4, 3.6, 1.2))
    take(env, world, world["first_key"])
    do(env, "forward_grasp", 10)
    do(env, "noop", 60)
    assert world["first_key"].position[2] < LOST
    _, _, terminated, truncated, info = env.step(ACTION_INDEX["noop"])
    assert not terminated
    assert not truncated
    assert not info["milestones"]["key_thrown_across"]


def test_what_lands_on_the_far_leg_can_be_picked_up_there():
    random = np.random.default_rng(5)
    env, world = new_env()
    for _ in range(25):
        env.reset(seed=0)
        world = env.unwrapped.world
        key = world["first_key"]
        velocity = (random.uniform(3.2, 3.7), random.normal() * 0.2, -0.6)
        turn = random.normal(size=4)
        put_key(
            world, key, (-0.4, random.uniform(3.0, 4.5), 1.8), velocity, random.normal(size=3),
            turn / np.linalg.norm(turn),
        )  # fmt: skip
        do(env, "noop", 60)
        x, y, z = key.position
        assert env.step(ACTION_INDEX["noop"])[4]["milestones"]["key_thrown_across"]
        assert 1.2 < x < layout.FAR_X[1]
        assert layout.FIRM_Y < y < layout.VOID_Y[1], "on firm ground"
        assert layout.LOW + 0.15 < z < layout.LOW + 0.5
        assert np.abs(key.velocity).max() < 0.05


# --- ways round the throw -----------------------------------------------------------------------


def test_a_carried_key_does_not_count_as_thrown():
    env, _world = new_env(3)
    _, order, _ = play(env, CarriesOnly(seed=3, habits=PLAIN), limit=450)
    assert "round_the_bottom" in order
    assert "key_thrown_across" not in order


@pytest.mark.parametrize("side", ["forward", "strafe_left", "strafe_right"])
@pytest.mark.parametrize("y", [0.32, 0.8, 1.28])
def test_the_step_cannot_be_climbed_back(y, side):
    env, world = new_env()
    put_avatar(world, 1.0, y, WEST, floor=layout.LOW)
    for _ in range(20):
        do(env, "forward", 3)
        do(env, side)
    assert world.position[0] > layout.STEP_X
    assert world.position[2] < layout.LOW + 0.8


def test_the_step_is_no_obstacle_on_the_way_there():
    env, world = new_env()
    put_avatar(world, -1.6, 0.8, EAST)
    do(env, "forward", 20)
    assert world.position[0] > 1.0
    assert world.position[2] < layout.LOW + 0.8


@pytest.mark.parametrize("x", [-3.3, -2.4, -1.65])
def test_no_key_left_on_firm_ground_is_in_reach_from_below_the_step(x):
    env, world = new_env()
    key = world["first_key"]
    for y in np.linspace(0.3, 1.3, 6):
        env.reset(seed=0)
        world = env.unwrapped.world
        key = world["first_key"]
        put_key(world, key, (x, layout.FIRM_Y + 0.02, 0.2))  # all but toppling over the edge
        put_avatar(world, layout.STEP_X + 0.31, y, WEST, floor=layout.LOW)
        for height in (0.05, 0.2, 0.35):
            for aside in (-0.19, 0.0, 0.19):
                look_at(world, (x + aside, layout.FIRM_Y - 0.15, height))
                do(env, "grasp")
                assert world.held is None
                do(env, "noop")
        assert key.position[2] > 0.15, "it still lies there"


@pytest.mark.parametrize(("y", "yaw"), [(0.3, 0.66), (0.8, 0.0), (1.2, 0.3), (0.3, 0.3)])
@pytest.mark.parametrize("pitch", [-0.1, 0.3, 0.8])
def test_nothing_is_thrown_from_above_the_step_to_firm_ground(y, yaw, pitch):
    env, world = new_env()
    key = world["first_key"]
    start = layout.STEP_X - 0.9
    put_avatar(world, start, y, yaw, pitch)
    put_key(world, key, world.eye + 1.2 * np.array(
        [np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), np.sin(pitch)]
    ))  # fmt: skip
    do(env, "grasp")
    assert world.held is key
    do(env, "hand_farther_grasp", 4)
    while world.position[0] < layout.STEP_X - 0.2 and world.held is key:
        do(env, "forward_grasp")
    do(env, "forward")
    do(env, "noop", 60)
    assert key.position[2] < LOST


@pytest.mark.parametrize(
    "at",
    [(-2.7, 1.2), (-3.9, 2.0 - 0.21), (-1.0, 0.8), (-0.5, 0.8), (0.5, 0.8), (2.7, 1.0), (1.6, 1.7)],
)
def test_whatever_is_let_go_over_the_grating_falls(at):
    env, world = new_env()
    put_key(world, world["first_key"], (*at, 0.4))
    do(env, "noop", 60)
    assert world["first_key"].position[2] < LOST


def test_a_key_pushed_along_the_floor_falls_at_the_grating():
    env, world = new_env()
    key = world["first_key"]
    put_key(world, world["second_key"], (-3.6, 4.6, 0.2))
    put_key(world, key, (-2.7, 3.0, 0.2))
    put_avatar(world, -2.7, 4.0, SOUTH)
    do(env, "forward", 20)
    do(env, "noop", 30)
    assert world.position[1] < layout.FIRM_Y - 0.3, "the avatar is borne"
    assert key.position[2] < LOST


@pytest.mark.parametrize("firm", [True, False])
def test_a_key_rides_on_a_held_one_but_not_over_the_grating(firm):
    """The same few careful steps south, once on firm ground, once onto the grating."""
    env, world = new_env()
    lower, upper = world["first_key"], world["second_key"]
    start = 4.9 if firm else layout.FIRM_Y + 1.1
    put_avatar(world, -2.7, start, SOUTH)
    put_key(world, lower, (-2.7, start - 0.9, 0.2))
    put_key(world, upper, (-2.7, start - 0.9, 0.6))
    take(env, world, lower, by=(0, 0.2, -0.1))  # its front, below the other
    do(env, "grasp", 8)
    do(env, "forward_fine_grasp", 18)
    assert world.held is lower or not firm
    assert (upper.position[2] > 0.4) == firm
    if not firm:
        do(env, "noop", 30)
        assert upper.position[2] < LOST


@pytest.mark.parametrize("firm", [True, False])
def test_the_body_pins_a_key_to_a_wall_but_not_over_the_grating(firm):
    env, world = new_env()
    key, y = world["first_key"], 4.0 if firm else 1.0
    west = layout.NEAR_X[0]
    put_key(world, world["second_key"], (-1.7, 4.8, 0.2))
    put_key(world, key, (west + 0.2, y, 0.9))
    put_avatar(world, west + 0.71, y, WEST)
    do(env, "forward", 20)
    assert (key.position[2] > 0.6) == firm


@pytest.mark.parametrize("pitch", [-0.3, 0.0, 0.4])
def test_the_void_is_wider_than_the_hand_is_long(pitch):
    """A key held out over the railing as far as it goes, and let go without a swing."""
    env, world = new_env()
    key = world["first_key"]
    put_avatar(world, layout.NEAR_X[1] - 0.31, 3.8, EAST, pitch)
    put_key(world, key, world.eye + np.array([1.25 * np.cos(pitch), 0, 1.25 * np.sin(pitch)]))
    do(env, "grasp")
    do(env, "hand_farther_grasp", 10)
    do(env, "forward_grasp", 3)
    do(env, "grasp", 20)
    assert world.held is key
    assert world.reach == pytest.approx(c.REACH_FAR)
    do(env, "noop", 60)
    assert key.position[2] < LOST


@pytest.mark.parametrize(("leg", "floor", "way"), [("near", 0.0, EAST), ("far", layout.LOW, WEST)])
def test_the_railings_keep_the_avatar(leg, floor, way):
    env, world = new_env()
    x = -2.2 if leg == "near" else 2.2
    for y in (2.6, 3.8, 5.0):
        put_avatar(world, x, y, way, floor=floor)
        do(env, "forward", 15)
        assert abs(world.position[0]) > 1.4
        assert world.position[2] > floor + 0.6


# --- what varies -------------------------------------------------------------------------------


def looks_of(world):
    s = world.surroundings
    parts = ("first_key", "second_key", "first_sensor", "second_sensor")
    return {
        "wall": s.wall, "floor": s.floor, "ceiling": s.ceiling,
        **{name: world[name].look for name in parts},
    }  # fmt: skip


def test_places_and_looks_vary_over_the_seeds(worlds):
    for name in ("first_key", "second_key"):
        spots = np.array([w[name].position[:2] for w in worlds])
        assert (np.ptp(spots, axis=0) > 1.0).all()
    starts = np.array([w.position[:2] for w in worlds])
    assert (np.ptp(starts, axis=0) > 1.0).all()
    assert np.ptp([w.yaw for w in worlds]) > 5.0
    looks = [looks_of(w) for w in worlds]
    for part in looks[0]:
        assert len({look[part].rgb for look in looks}) >= 3
        if part != "ceiling":
            assert len({look[part].texture for look in looks}) >= 3


def test_keys_and_sensors_of_an_episode_differ_in_colour(worlds):
    for world in worlds:
        looks = looks_of(world)
        assert len({looks[name].rgb for name in looks if "key" in name or "sensor" in name}) == 4


def test_all_follows_from_the_seed(worlds):
    for seed in (0, 17):
        again = TASK.build(seed)
        assert (again.data.qpos == worlds[seed].data.qpos).all()
        assert looks_of(again) == looks_of(worlds[seed])


def test_everything_starts_on_the_near_leg(worlds):
    for world in worlds:
        for x, y, _ in (world.position, world["first_key"].position, world["second_key"].position):
            assert layout.NEAR_X[0] < x < layout.NEAR_X[1]
            assert layout.FIRM_Y < y < layout.VOID_Y[1]
