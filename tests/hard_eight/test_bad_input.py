"""A mistake is one clear error that names what was given and what is allowed."""

import gymnasium
import numpy as np
import pytest

import hard_eight  # noqa: F401  registers the ids
from hard_eight import HardEightError
from hard_eight.actions import NOOP
from hard_eight.env import HardEightEnv
from hard_eight.task import find_task
from hard_eight.vector import HardEightVectorEnv

TASK = "wall_sensor"
SIZE = {"height": 8, "width": 8}


@pytest.fixture(scope="module")
def env():
    env = HardEightEnv(TASK, **SIZE)
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module")
def envs():
    envs = HardEightVectorEnv(TASK, 2, **SIZE)
    envs.reset(seed=0)
    return envs


@pytest.mark.parametrize(
    ("action", "given"),
    [
        (1.0, "1.0 of type float"),
        (np.float32(1), "float32"),
        (True, "True of type bool"),
        (np.True_, "bool"),
        (-1, "-1"),
        (46, "46"),
        (np.int64(2**40), str(2**40)),
        ("forward", "'forward' of type str"),
        (None, "None"),
        (np.zeros(1, int), "ndarray"),
        ([3], r"\[3\] of type list"),
    ],
)
def test_an_action_is_a_whole_number_from_0_to_45(env, action, given):
    frames = env.world.seconds
    with pytest.raises(HardEightError, match=f"action is .*{given}.* from 0 to 45"):
        env.step(action)
    assert env.world.seconds == frames  # nothing has moved


@pytest.mark.parametrize("action", [NOOP, np.int64(NOOP), np.uint8(NOOP), np.array(NOOP)])
def test_any_kind_of_whole_number_is_an_action(env, action):
    env.step(action)


@pytest.mark.parametrize(
    "actions",
    [
        [0.0, 1.0],
        [True, False],
        [0, -1],
        [0, 46],
        ["a", "b"],
        [None, None],
        [0],
        [0, 0, 0],
        [[0, 0]],
        0,
        None,
        np.zeros((2, 9)),
    ],
)
def test_a_batch_takes_one_whole_number_each(envs, actions):
    with pytest.raises(HardEightError, match=r"actions .* must be"):
        envs.step(actions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 0}, "height is 0; it must be from 8 to 1024"),
        ({"height": 5000}, "height is 5000"),
        ({"height": "a"}, "height is 'a'; it must be a whole number"),
        ({"width": 95.5}, "width is 95.5"),
        ({"width": True}, "width is True"),
        ({"width": -96}, "width is -96"),
        ({"action_repeat": 0}, "action_repeat is 0; it must be from 1"),
        ({"action_repeat": 2.0}, "action_repeat is 2.0"),
        ({"time_limit": -1}, "time_limit is -1; it must be a number of seconds"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"time_limit": float("inf")}, "time_limit is inf"),
        ({"time_limit": "long"}, "time_limit is 'long'"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
    ],
)
@pytest.mark.parametrize("form", [HardEightEnv, HardEightVectorEnv])
def test_options_are_refused_by_name(form, options, message):
    with pytest.raises(HardEightError, match=message):
        form(TASK, **options)


@pytest.mark.parametrize("size", [None, 100, (0, 100), (100, 10_000), (1, 2, 3), ("a", "b")])
def test_the_size_of_larger_views_is_checked(size):
    with pytest.raises(HardEightError, match="render_size is"):
        HardEightEnv(TASK, render_mode="rgb_array", render_size=size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0; it must be from 1 to"),
        ({"num_envs": -3}, "num_envs is -3"),
        ({"num_envs": 2.0}, "num_envs is 2.0"),
        ({"num_envs": True}, "num_envs is True"),
        ({"num_envs": "2"}, "num_envs is '2'"),
        ({"num_envs": 10**12}, "num_envs is 1000000000000"),
        ({"threads": 0}, "threads is 0; it must be from 1 to"),
        ({"threads": 10**6}, "threads is 1000000"),
        ({"autoreset_mode": "Sometimes"}, "autoreset_mode is 'Sometimes'; it must be one of"),
    ],
)
def test_options_of_a_batch_are_refused_by_name(options, message):
    with pytest.raises(HardEightError, match=message):
        HardEightVectorEnv(TASK, **options)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, 2**70])
def test_a_seed_is_a_whole_number(env, envs, seed):
    with pytest.raises(HardEightError, match="seed is"):
        env.reset(seed=seed)
    with pytest.raises(HardEightError, match="seed is"):
        envs.reset(seed=[seed, 1])


def test_a_batch_takes_one_seed_each(envs):
    with pytest.raises(HardEightError, match="3 seeds were given for 2"):
        envs.reset(seed=[1, 2, 3])


@pytest.mark.parametrize(
    "mask", [np.array([True]), np.array([1, 0]), np.zeros(2, bool), [True, False, True], None]
)
def test_a_reset_mask_has_a_bool_for_each(envs, mask):
    with pytest.raises(HardEightError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_a_batch_wants_a_reset_before_its_first_step():
    with pytest.raises(HardEightError, match="call reset"):
        HardEightVectorEnv(TASK, 2, **SIZE).step([0, 0])
    with pytest.raises(HardEightError, match="reset all"):
        HardEightVectorEnv(TASK, 2, **SIZE).reset(
            seed=0, options={"reset_mask": np.array([True, False])}
        )


def test_there_is_no_world_before_the_first_episode():
    with pytest.raises(HardEightError, match="call reset"):
        _ = HardEightEnv(TASK).world


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("wal_sensor", "wall_sensor"),
        ("WallSensr", "wall_sensor"),
        ("throw_accross", "throw_across"),
    ],
)
def test_a_near_miss_of_a_task_is_guessed(name, guess):
    with pytest.raises(HardEightError, match=f"no task '{name}'; did you mean '{guess}'"):
        find_task(name)
    with pytest.raises(HardEightError, match=f"did you mean '{guess}'"):
        HardEightEnv(name)


def test_an_unknown_task_lists_those_that_there_are():
    with pytest.raises(HardEightError, match=r"no task 'chess'.*wall_sensor"):
        find_task("chess")


def test_a_near_miss_of_an_id_is_guessed_by_gymnasium():
    with pytest.raises(gymnasium.error.NameNotFound, match="WallSensor"):
        gymnasium.make("HardEight/WallSenso-v0")


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_an_option_that_there_is_not_is_named_and_guessed(make):
    with pytest.raises(HardEightError, match=r"no option 'heigth'; did you mean 'height'.*width"):
        make("HardEight/WallSensor-v0", heigth=72)


def test_a_reset_has_no_options_but_a_batchs_mask(env, envs):
    with pytest.raises(HardEightError, match="no option of reset 'level'; there is none"):
        env.reset(options={"level": 3})
    with pytest.raises(HardEightError, match="options is 'level'; it must be a dict"):
        env.reset(options="level")
    with pytest.raises(HardEightError, match=r"'reset_maks'; did you mean 'reset_mask'"):
        envs.reset(options={"reset_maks": np.array([True, False])})
    env.reset(options={})


@pytest.mark.parametrize("seed", [1.5, "ab", {3}])
def test_seeds_of_a_batch_are_a_number_or_one_each(envs, seed):
    with pytest.raises(
        HardEightError, match=r"seed is .* must be None, a whole number, or one for"
    ):
        envs.reset(seed=seed)
