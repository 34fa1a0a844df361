"""Wall Sensor: the key at the sensor opens the door, once and for all, and nothing else does."""

import gymnasium
import mujoco
import numpy as np
import pytest

import hard_eight  # noqa: F401  registers the ids
from hard_eight import experts
from hard_eight.actions import ACTION_INDEX
from hard_eight.experts.player import Player
from hard_eight.looks import PLAIN_SURROUNDINGS
from hard_eight.native import constants as c
from hard_eight.task import find_task

TASK = find_task("wall_sensor")


def start(seed, frames=2):
    env = gymnasium.make(
        TASK.gym_id, disable_env_checker=True, height=8, width=8, action_repeat=frames
    )
    env.reset(seed=seed)
    return env, env.unwrapped.world


def act(env, name, times=1):
    """Some decisions of an action; returns the sum of their rewards."""
    return sum(float(env.step(ACTION_INDEX[name])[1]) for _ in range(times))


def place_avatar(world, x, y, yaw):
    """Test set-up: stand somewhere, to try what is there."""
    world.data.qpos[:2] = x, y
    world.data.qvel[:3] = 0.0
    world.state[c.S_YAW] = yaw
    mujoco.mj_forward(world.model, world.data)


def place_key(world, at, velocity=(0.0, 0.0, 0.0)):
    """Test set-up: a key somewhere, in flight perhaps."""
    qpos, dof = world.movables[world["key"].index, [c.M_QPOS, c.M_DOF]]
    world.data.qpos[qpos : qpos + 3] = at
    world.data.qvel[dof : dof + 6] = [*velocity, 0, 0, 0]
    mujoco.mj_forward(world.model, world.data)


def into_room(world):
    half, at = world["sensor"].half, world["sensor"].position
    axis = int(np.argmin(half))
    facing = np.zeros(3)
    facing[axis] = -np.sign(at[axis])
    return facing


def gap(world):
    geoms = world["key"].geom.id, world["sensor"].geom.id
    return mujoco.mj_geomDistance(world.model, world.data, *geoms, 1.0, None)


def watch(env, player, limit=900):
    """Play; returns the rewards, the milestones by order of reaching, and the last step's tuple."""
    rewards, order = [], []
    for _ in range(limit):
        step = env.step(player.act(env))
        rewards.append(float(step[1]))
        order += [
            name for name, done in step[4]["milestones"].items() if done and name not in order
        ]
        if step[2] or step[3]:
            break
    return rewards, order, step


class Carrier(Player):
    """Takes the key and touches it to the sensor, then stays."""

    def play(self):
        yield from self.grasp(self.world["key"])
        yield from self.tilt(0.0)
        yield from self.find(self.world["sensor"])
        sensor = self.world["sensor"]
        yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)
        while True:
            yield "grasp"


# --- what varies ----------------------------------------------------------------------------------

VARYING = {
    "avatar's position": lambda w: w.position[:2].tolist(),
    "avatar's orientation": lambda w: w.yaw,
    "sensor's wall": lambda w: into_room(w).tolist(),
    "sensor's place": lambda w: w["sensor"].position.tolist(),
    "key's position": lambda w: w["key"].position[:2].tolist(),
}


@pytest.mark.parametrize("what", VARYING)
def test_varies_with_the_seed_and_follows_from_it(what):
    values = [str(VARYING[what](TASK.build(seed))) for seed in range(25)]
    assert len(set(values)) >= (4 if what == "sensor's wall" else 25)
    assert values[:5] == [str(VARYING[what](TASK.build(seed))) for seed in range(5)]


def test_looks_do_not_vary():
    for seed in range(5):
        world = TASK.build(seed)
        assert world.surroundings == PLAIN_SURROUNDINGS
        assert world["key"].look == TASK.build(99)["key"].look
        assert world["sensor"].look == TASK.build(99)["sensor"].look


def test_the_apple_is_out_of_sight_and_key_and_sensor_seldom_in_one_view():
    both = 0
    for seed in range(60):
        env, _ = start(seed)
        player = Carrier(seed)
        player.reset(env)
        assert "apple" not in player.seen
        both += {"key", "sensor"} <= player.seen
    assert both < 20


def test_all_that_is_needed_stands_free_on_every_seed():
    for seed in range(300):
        world = TASK.build(seed)
        key, avatar, plate = world["key"].position, world.position, world["sensor"].position
        assert np.abs(key[:2]).max() < 2.6
        assert np.linalg.norm((key - avatar)[:2]) > 1.0
        assert np.linalg.norm((key - plate)[:2]) > 0.5
        # The plate keeps clear of the doorway and of the corners.
        if into_room(world)[0] < 0:
            assert abs(plate[1]) - 0.32 > 0.7
        assert np.sort(np.abs(plate[:2]))[0] + 0.32 < 2.9


# --- the door -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_key_at_the_sensor_opens_the_door_and_it_stays_open(seed):
    env, world = start(seed, frames=1)
    carrier = Carrier(seed)
    carrier.reset(env)
    for _ in range(1500):
        touching = gap(world) < c.TOUCH_DISTANCE
        assert world["sensor"].is_on == touching
        assert world["door"].openness == pytest.approx(0.0, abs=0.06)
        if touching:
            break
        env.step(carrier.act(env))
    assert world["sensor"].is_on
    act(env, "noop")  # let go
    act(env, "back", 60)
    assert gap(world) > 0.05
    assert world["sensor"].is_on  # it remembers
    assert world["door"].openness == pytest.approx(1.0)
    act(env, "noop", 300)
    assert world["door"].openness == pytest.approx(1.0)


def test_a_thrown_key_opens_it_too():
    env, world = start(4, frames=1)
    facing = into_room(world)
    place_key(world, world["sensor"].position + 1.2 * facing, -4.0 * facing + [0, 0, 1.0])
    act(env, "noop", 40)
    assert world["sensor"].is_on
    assert world["door"].openness == pytest.approx(1.0)


def test_the_body_at_the_sensor_or_a_key_just_short_of_it_opens_nothing():
    env, world = start(5, frames=1)
    facing, plate = into_room(world), world["sensor"].position
    place_avatar(world, *(plate + 0.8 * facing)[:2], np.arctan2(-facing[1], -facing[0]))
    act(env, "forward", 60)
    act(env, "grasp", 10)
    assert not world["sensor"].is_on
    place_avatar(world, *(plate + 3.0 * facing)[:2], 0.0)
    for short, on in ((0.02, False), (0.011, False), (0.009, True)):
        place_key(world, plate + facing * (world["sensor"].half.min() + 0.2 + short))
        qpos = world.movables[world["key"].index, c.M_QPOS]
        world.data.qpos[qpos + 3 : qpos + 7] = 1, 0, 0, 0
        act(env, "noop")
        assert world["sensor"].is_on == on


@pytest.mark.parametrize("seed", range(4))
def test_a_key_that_is_not_lifted_never_sets_the_sensor_off(seed):
    """However it is pushed about on the floor below it (the prototype's sensor once went off)."""
    env, world = start(seed)
    rng = np.random.default_rng(seed)
    facing, plate = into_room(world), world["sensor"].position
    names = ("forward", "forward", "forward", "strafe_left", "strafe_right", "back", "look_left")
    for _ in range(6):
        place_key(world, (*(plate + 0.35 * facing)[:2], 0.2))
        place_avatar(world, *(plate + 1.2 * facing)[:2], np.arctan2(-facing[1], -facing[0]))
        for _ in range(60):
            act(env, names[rng.integers(len(names))])
            assert not world["sensor"].is_on
    assert world["door"].openness == 0.0


def test_the_shut_door_lets_nobody_through():
    env, world = start(6)
    rng = np.random.default_rng(6)
    place_avatar(world, 2.2, 0.0, 0.0)
    for _ in range(300):
        name = ("forward", "forward", "strafe_left", "strafe_right", "grasp")[rng.integers(5)]
        assert act(env, name) == 0.0
        assert world.position[0] < 2.7
    # Nor do keys thrown at it open it, or get through.
    for _ in range(10):
        place_key(world, (1.5, 0.0, 1.0), (rng.uniform(3, 8), rng.uniform(-0.3, 0.3), 1.0))
        act(env, "noop", 15)
        assert world["key"].position[0] < 3.0
    assert world["door"].openness == 0.0


# --- winning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [7001, 7002, 7003, 7004, 7005])
def test_the_expert_wins_and_is_paid_ten_once(seed):
    env, world = start(seed)
    expert = experts.make(TASK.name, seed=seed)
    expert.reset(env)
    rewards, order, (_, _, terminated, truncated, info) = watch(env, expert)
    assert terminated
    assert not truncated
    assert info["success"]
    assert rewards == [0.0] * (len(rewards) - 1) + [10.0]
    assert tuple(order) == TASK.milestones
    assert TASK.milestones[-1] == "apple"
    assert world["apple"].is_collected


def test_milestones_are_reached_one_by_one():
    """Each flag goes up when its event happens, not before, and stays up."""
    env, world = start(1)
    expert = experts.make(TASK.name, seed=1)
    expert.reset(env)
    seen = dict.fromkeys(TASK.milestones, False)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(expert.act(env))
        now = info["milestones"]
        assert all(now[name] or not seen[name] for name in now)
        happened = {
            "key_held": world.held is world["key"],
            "key_lifted": world["key"].position[2] > 0.45,
            "sensor_on": world["sensor"].is_on,
            "door_passed": world.position[0] > 3.3,
            "apple": world["apple"].is_collected,
        }
        for name, done in happened.items():
            if done:
                assert now[name], name
            elif not seen[name] and name in ("sensor_on", "door_passed", "apple"):
                assert not now[name], name
        seen = now
        over = terminated or truncated
    assert all(seen.values())


def test_the_actions_that_win_one_episode_fail_on_others():
    env, _ = start(10)
    expert = experts.make(TASK.name, seed=10)
    expert.reset(env)
    actions, over = [], False
    while not over:
        actions.append(expert.act(env))
        _, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated

    def wins(seed):
        env.reset(seed=seed)
        for action in actions:
            _, _, terminated, _, info = env.step(action)
            if terminated:
                return info["success"]
        return False

    assert wins(10)
    assert sum(wins(seed) for seed in range(100, 120)) <= 1
