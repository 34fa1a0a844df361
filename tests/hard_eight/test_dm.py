"""The original release's interface: its names, its sticky controls, dm_env's contract."""

import subprocess
import sys
import unittest

import dm_env
import numpy as np
import pytest
from dm_env import specs, test_utils

from hard_eight import HardEightError, dm
from hard_eight.actions import CONTROLS
from hard_eight.env import HardEightEnv
from hard_eight.task import all_tasks

LEVEL = "reach_wall"
SMALL = {"width": 32, "height": 24}
REST = {control.name: 0.0 for control in CONTROLS}


def load(level=LEVEL, seed=0, time_limit=120.0, **settings):
    settings = {**SMALL, "num_action_repeats": 2, **settings}
    return dm.load(dm.EnvironmentSettings(seed, level, **settings), time_limit=time_limit)


# --- dm_env's own tests, on every level ----------------------------------------------------------


class Contract(test_utils.EnvironmentTestMixin):
    level: str

    def make_object_under_test(self):
        return load(self.level, time_limit=1.0)

    def make_action_sequence(self):
        draw = np.random.default_rng(0)
        spec = self.environment.action_spec()
        for _ in range(20):  # the episode ends after 15
            yield {name: draw.uniform(s.minimum, s.maximum, s.shape) for name, s in spec.items()}


for _task in all_tasks():
    _name = f"Test{_task.title}Contract"
    globals()[_name] = type(_name, (Contract, unittest.TestCase), {"level": _task.level})


# --- names ---------------------------------------------------------------------------------------


def test_settings_have_the_originals_fields_and_defaults():
    settings = dm.EnvironmentSettings(seed=123, level_name=LEVEL)
    assert settings == (123, LEVEL, 96, 72, 1)
    assert settings._fields == ("seed", "level_name", "width", "height", "num_action_repeats")


def test_every_task_has_a_level():
    assert {task.level for task in all_tasks()} == dm.LEVEL_NAMES
    assert LEVEL in dm.LEVEL_NAMES


def test_observations_have_the_originals_names_and_types():
    with dm.load(dm.EnvironmentSettings(seed=1, level_name=LEVEL)) as env:
        spec, seen = env.observation_spec(), env.reset().observation
    names = "RGB_INTERLEAVED ACCELERATION HAND_FORCE HAND_IS_HOLDING HAND_DISTANCE Score"
    assert set(spec) == set(seen) == set(names.split())
    assert (spec["RGB_INTERLEAVED"].shape, spec["RGB_INTERLEAVED"].dtype) == ((72, 96, 3), np.uint8)
    assert (spec["ACCELERATION"].shape, spec["ACCELERATION"].dtype) == ((3,), np.float32)
    for name in ("HAND_FORCE", "HAND_IS_HOLDING", "HAND_DISTANCE", "Score"):
        assert spec[name].shape == ()


def test_controls_have_the_originals_names_and_ranges():
    spec = load().action_spec()
    assert all(isinstance(control, specs.BoundedArray) for control in spec.values())
    assert {name: (s.minimum, s.maximum, s.shape, s.dtype) for name, s in spec.items()} == {
        name: (-most if name != "HAND_GRIP" else 0.0, most, (), np.float64)
        for name, most in {
            "MOVE_BACK_FORWARD": 1.0,
            "STRAFE_LEFT_RIGHT": 1.0,
            "LOOK_DOWN_UP": 1.0,
            "LOOK_LEFT_RIGHT": 1.0,
            "HAND_ROTATE_AROUND_FORWARD": 1.0,
            "HAND_ROTATE_AROUND_RIGHT": 1.0,
            "HAND_ROTATE_AROUND_UP": 1.0,
            "HAND_PUSH_PULL": 10.0,
            "HAND_GRIP": 1.0,
        }.items()
    }


# --- time ----------------------------------------------------------------------------------------


def test_it_plays_the_episodes_of_the_gymnasium_environment():
    ours, theirs = load(seed=5, time_limit=0.2), HardEightEnv("wall_sensor", **SMALL)
    for seed in (5, None, None):
        observation, info = theirs.reset(seed=seed)
        step = ours.reset()
        np.testing.assert_array_equal(step.observation["RGB_INTERLEAVED"], observation["rgb"])
        assert ours.info["seed"] == info["seed"]


def test_the_first_step_has_neither_reward_nor_discount():
    step = load().reset()
    assert (step.step_type, step.reward, step.discount) == (dm_env.StepType.FIRST, None, None)


def test_running_out_of_time_ends_with_discount_one():
    env = load(time_limit=0.2)
    env.reset()
    steps = [env.step({}) for _ in range(3)]
    assert [step.step_type for step in steps] == [*[dm_env.StepType.MID] * 2, dm_env.StepType.LAST]
    assert [step.discount for step in steps] == [1.0, 1.0, 1.0]
    assert env.step({}).first()


def put_avatar(env, at, facing):
    """Stand the avatar at (x, y), looking at a point; for tests alone."""
    world = env.world
    world.data.qpos[:2] = at
    look = np.asarray(facing) - world.eye
    world.state[0] = np.arctan2(look[1], look[0])  # yaw
    world.state[1] = np.arctan2(look[2], np.hypot(look[0], look[1]))  # pitch


def test_collecting_the_apple_ends_with_discount_zero_and_its_score():
    env = load()
    env.reset()
    apple = env.world["apple"]
    put_avatar(env, apple.at[:2], apple.at)
    step = env.step({})
    assert (step.step_type, step.reward, step.discount) == (dm_env.StepType.LAST, 10.0, 0.0)
    assert step.observation["Score"] == 10.0
    assert env.info["success"]
    # The next step begins an episode, whose score starts anew.
    step = env.step({"MOVE_BACK_FORWARD": 1.0})
    assert step.first()
    assert step.observation["Score"] == 0.0


# --- controls ------------------------------------------------------------------------------------


def test_a_control_persists_until_it_is_changed_and_at_most_to_the_episodes_end():
    env = load(time_limit=2.0)
    env.reset()
    turned = []
    for action in (
        {"LOOK_LEFT_RIGHT": -0.5},
        {},
        {"LOOK_DOWN_UP": 0.2},
        {"LOOK_LEFT_RIGHT": 0},
        {},
    ):
        before = env.world.yaw
        env.step(action)
        turned.append((env.world.yaw - before) % (2 * np.pi))
    assert turned[0] == pytest.approx(0.5 * 2.1 / 15)
    assert turned == pytest.approx([turned[0]] * 3 + [0, 0])
    assert env.world.pitch == pytest.approx(3 * 0.2 * 1.6 / 15)
    while not env.step({"LOOK_LEFT_RIGHT": 1.0}).last():
        pass
    # The action that begins an episode is ignored, and the last one's settings are gone.
    assert env.step({"LOOK_LEFT_RIGHT": -1.0}).first()
    before = env.world.yaw
    env.step({})
    assert env.world.yaw == before


@pytest.mark.parametrize(
    ("control", "forward", "right"),
    [("MOVE_BACK_FORWARD", 1, 0), ("STRAFE_LEFT_RIGHT", 0, 1)],
)
@pytest.mark.parametrize("value", [1.0, -1.0, 0.5])
def test_walking(control, forward, right, value):
    env = load()
    env.reset()
    put_avatar(env, (0.0, 0.0), (1.0, 0.6, 1.25))
    env.world["key"].world.data.qpos[3:6] = (-2.5, -2.5, 0.2)  # out of the way
    sine, cosine = np.sin(env.world.yaw), np.cos(env.world.yaw)
    for _ in range(5):
        env.step({control: value})
    x, y, _ = env.world.position
    ahead, aside = cosine * x + sine * y, sine * x - cosine * y
    distance = 3.2 * 5 / 15 * value
    assert ahead == pytest.approx(forward * distance, abs=0.12)
    assert aside == pytest.approx(right * distance, abs=0.12)


def test_looking():
    env = load()
    env.reset()
    yaw = env.world.yaw
    env.step({"LOOK_LEFT_RIGHT": 1.0})
    assert (yaw - env.world.yaw) % (2 * np.pi) == pytest.approx(2.1 / 15)  # right is clockwise
    env.step({"LOOK_LEFT_RIGHT": 0.0, "LOOK_DOWN_UP": 1.0})
    assert env.world.pitch == pytest.approx(1.6 / 15)
    env.step({"LOOK_DOWN_UP": -1.0})
    assert env.world.pitch == pytest.approx(0.0, abs=1e-9)


@pytest.fixture
def holding():
    """An environment whose avatar holds the key before it, off the floor."""
    env = load(seed=3)
    env.reset()
    key = env.world["key"]
    key.world.data.qpos[3:6] = (1.0, 0.0, 0.2)
    put_avatar(env, (0.0, 0.0), (1.0, 0.0, 0.2))
    env.step({})
    put_avatar(env, (0.0, 0.0), (1.0, 0.0, 0.2))
    step = env.step({"HAND_GRIP": 1.0})
    assert step.observation["HAND_IS_HOLDING"] == 1.0
    for _ in range(8):
        env.step({"LOOK_DOWN_UP": 0.8})
    step = env.step({"LOOK_DOWN_UP": 0.0})
    assert step.observation["HAND_IS_HOLDING"] == 1.0
    assert key.position[2] > 0.5
    return env


def test_grip_lifts_and_letting_go_drops(holding):
    step = holding.step({})
    assert 0.0 < step.observation["HAND_FORCE"] < 1.0
    step = holding.step({"HAND_GRIP": 0.0})
    assert step.observation["HAND_IS_HOLDING"] == 0.0
    assert step.observation["HAND_FORCE"] == 0.0
    assert step.observation["HAND_DISTANCE"] == 0.0
    for _ in range(15):
        holding.step({})
    assert holding.world["key"].position[2] == pytest.approx(0.2, abs=0.02)


def test_the_hand_moves_the_held_thing_nearer_and_farther(holding):
    key, world = holding.world["key"], holding.world
    distances, reaches = [], []
    for value in (-10.0, 10.0):
        for _ in range(6):
            step = holding.step({"HAND_PUSH_PULL": value})
        for _ in range(4):
            step = holding.step({"HAND_PUSH_PULL": 0.0})
        distances.append(np.linalg.norm(key.position - world.eye))
        reaches.append(step.observation["HAND_DISTANCE"])
    assert distances[0] - distances[1] == pytest.approx(10 * 0.15 * 6 / 15, abs=0.1)
    assert 1.0 >= reaches[0] > reaches[1] >= 0.0


@pytest.mark.parametrize(
    ("control", "axis"),
    [
        ("HAND_ROTATE_AROUND_FORWARD", "forward"),
        ("HAND_ROTATE_AROUND_RIGHT", "right"),
        ("HAND_ROTATE_AROUND_UP", "up"),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rotation_turns_the_held_thing_about_its_axis(holding, control, axis, sign):
    world, key = holding.world, holding.world["key"]
    sine, cosine = np.sin(world.yaw), np.cos(world.yaw)
    about = {
        "forward": (cosine, sine, 0.0),
        "right": (sine, -cosine, 0.0),
        "up": (0.0, 0.0, 1.0),
    }[axis]
    before = key.rotation
    for _ in range(5):
        holding.step({control: sign})
    for _ in range(8):
        step = holding.step({control: 0.0})
    assert step.observation["HAND_IS_HOLDING"] == 1.0
    turn = key.rotation @ before.T
    skew = (turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1])
    assert np.dot(skew, about) / 2 == pytest.approx(sign * np.sin(1.5 * 5 / 15), abs=0.06)
    assert np.linalg.norm(skew) / 2 == pytest.approx(np.sin(1.5 * 5 / 15), abs=0.06)


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (3, "must be a dict of control names"),
        (None, "must be a dict"),
        ([0.0] * 9, "must be a dict"),
        ({"MOVE_BACK_FORWRD": 1.0}, "did you mean 'MOVE_BACK_FORWARD'"),
        ({"JUMP": 1.0}, "no control 'JUMP'; there are: HAND_GRIP"),
        ({"MOVE_BACK_FORWARD": 1.01}, "is 1.01; it must be a number from -1 to 1"),
        ({"HAND_GRIP": -0.1}, "from 0 to 1"),
        ({"HAND_PUSH_PULL": 11}, "from -10 to 10"),
        ({"LOOK_DOWN_UP": float("nan")}, "is nan"),
        ({"LOOK_DOWN_UP": "up"}, "is 'up' of type str"),
        ({"HAND_GRIP": True}, "is True of type bool"),
        ({"HAND_GRIP": None}, "NoneType"),
        ({"HAND_GRIP": np.ones(1)}, "ndarray"),
    ],
)
def test_a_bad_action_is_refused_whole(action, message):
    env = load()
    env.reset()
    if isinstance(action, dict):
        action = {"LOOK_LEFT_RIGHT": 1.0, **action}
    with pytest.raises(HardEightError, match=message):
        env.step(action)
    yaw = env.world.yaw
    env.step({})
    assert env.world.yaw == yaw


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1.0), np.int64(1), np.array(1.0)])
def test_any_kind_of_number_is_a_setting(value):
    env = load()
    env.reset()
    env.step({"LOOK_DOWN_UP": value})
    assert env.world.pitch > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "reach_wal"}, "no level 'reach_wal'; did you mean 'reach_wall'"),
        ({"level": "wall_sensor"}, "did you mean 'reach_wall'"),
        ({"level": "Reach_Wall"}, "did you mean 'reach_wall'"),
        ({"level": "chess"}, "no level 'chess'; there are: .*reach_wall"),
        ({"level": None}, "no level None"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"width": 0}, "width is 0; it must be from"),
        ({"height": 5000}, "height is 5000; it must be from"),
        ({"height": "a"}, "height is 'a'"),
        ({"num_action_repeats": 0}, "num_action_repeats is 0; it must be from 1"),
        ({"num_action_repeats": 1.5}, "num_action_repeats is 1.5"),
        ({"time_limit": -1}, "time_limit is -1"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(HardEightError, match=message):
        load(**settings)


def test_settings_of_another_kind_are_refused():
    with pytest.raises(HardEightError, match="EnvironmentSettings"):
        dm.load({"seed": 1, "level_name": LEVEL})


def test_the_originals_ways_in_name_ours():
    settings = dm.EnvironmentSettings(seed=1, level_name=LEVEL)
    with pytest.raises(HardEightError, match=r"call load\(settings\)"):
        dm.load_from_docker(settings=settings, name=None)
    with pytest.raises(HardEightError, match=r"'/some/where': call load\(settings\)"):
        dm.load_from_disk("/some/where", settings)


def test_without_dm_env_the_import_says_what_to_install():
    code = "import sys; sys.modules['dm_env'] = None; import hard_eight.dm"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stderr.count("Traceback") == 1
    assert (
        child.stderr.strip().splitlines()[-1]
        == "ImportError: hard_eight.dm needs dm_env: pip install 'r2d3[dm]'"
    )
