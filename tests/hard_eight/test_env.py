"""The Gymnasium form: its contract, its clock, and what it returns."""

import gc
import warnings
import weakref

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hard_eight import HardEightError
from hard_eight.actions import ACTION_INDEX, NOOP
from hard_eight.env import HardEightEnv
from hard_eight.task import all_tasks

TASKS = [task.name for task in all_tasks()]
ONE_TASK = TASKS[-1]


def make(task=ONE_TASK, **options):
    return HardEightEnv(task, **options)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_gymnasiums_checker_has_no_complaint_and_no_warning(task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(task.gym_id, render_mode="rgb_array", render_size=(64, 48))
        check_env(env.unwrapped)


def test_actions_are_46_and_the_picture_is_72_by_96_unless_asked_otherwise():
    env = make()
    assert env.action_space == gymnasium.spaces.Discrete(46)
    assert env.reset(seed=0)[0]["rgb"].shape == (72, 96, 3)
    assert make(height=24, width=32).reset(seed=0)[0]["rgb"].shape == (24, 32, 3)


@pytest.mark.parametrize("task", TASKS)
def test_info_at_every_step_tells_success_and_milestones_in_order(task):
    env = make(task)
    _, info = env.reset(seed=3)
    assert info["seed"] == 3
    for _ in range(3):
        assert info["success"] is False
        assert tuple(info["milestones"]) == env.task.milestones
        assert all(type(done) is bool for done in info["milestones"].values())
        *_, info = env.step(NOOP)
        assert "seed" not in info


def test_every_call_returns_arrays_of_its_own():
    env = make()
    observation, info = env.reset(seed=0)
    kept = [(observation, {k: v.copy() for k, v in observation.items()}, info)]
    for action in ("forward", "look_left", "back"):
        observation, *_, info = env.step(ACTION_INDEX[action])
        for earlier, _, earlier_info in kept:
            assert info is not earlier_info
            assert info["milestones"] is not earlier_info["milestones"]
            for name, array in observation.items():
                assert not np.shares_memory(array, earlier[name])
        kept.append((observation, {k: v.copy() for k, v in observation.items()}, info))
    for observation, as_it_was, _ in kept:
        for name, array in observation.items():
            np.testing.assert_array_equal(array, as_it_was[name])


def test_a_seed_names_an_episode_and_its_successors():
    env = make()
    first, info = env.reset(seed=11)
    _, next_info = env.reset()
    again, info_again = make().reset(seed=11)
    assert info["seed"] == info_again["seed"] == 11
    np.testing.assert_array_equal(first["rgb"], again["rgb"])
    # The seed that info names is enough to play an unseeded episode again.
    env.reset(seed=11)
    successor, successor_info = env.reset()
    assert successor_info["seed"] == next_info["seed"] != 11
    replayed, _ = make().reset(seed=successor_info["seed"])
    np.testing.assert_array_equal(successor["rgb"], replayed["rgb"])
    assert not np.array_equal(successor["rgb"], first["rgb"])


def test_unseeded_environments_differ():
    assert make().reset()[1]["seed"] != make().reset()[1]["seed"]


@pytest.mark.parametrize(
    ("time_limit", "action_repeat", "decisions"),
    [(1.0, 2, 15), (1.0, 1, 30), (2.0, 4, 15), (1.0, 4, 8), (0.1, 60, 1)],
)
def test_the_time_limit_truncates_at_the_first_decision_that_reaches_it(
    time_limit, action_repeat, decisions
):
    env = make(time_limit=time_limit, action_repeat=action_repeat, height=8, width=8)
    env.reset(seed=0)
    for n in range(1, decisions + 1):
        _, _, terminated, truncated, _ = env.step(NOOP)
        assert not terminated
        assert truncated == (n == decisions)


def test_an_episode_lasts_120_seconds_unless_asked_otherwise():
    env = make(action_repeat=60, height=8, width=8)
    env.reset(seed=0)
    ends = [env.step(NOOP)[3] for _ in range(60)]
    assert ends == [False] * 59 + [True]


def test_an_action_is_held_for_action_repeat_frames():
    once, six_times = make(action_repeat=6), make(action_repeat=1)
    once.reset(seed=5)
    six_times.reset(seed=5)
    observation, *_ = once.step(ACTION_INDEX["look_left"])
    for _ in range(6):
        repeated, *_ = six_times.step(ACTION_INDEX["look_left"])
    np.testing.assert_array_equal(observation["rgb"], repeated["rgb"])
    assert once.world.yaw == six_times.world.yaw


def test_stepping_needs_a_running_episode():
    env = make(time_limit=0.1)
    with pytest.raises(HardEightError, match="call reset"):
        env.step(NOOP)
    env.reset(seed=0)
    while not env.step(NOOP)[3]:
        pass
    with pytest.raises(HardEightError, match=r"has ended.*call reset"):
        env.step(NOOP)
    env.reset()
    env.step(NOOP)


def test_the_world_of_an_ended_episode_is_freed_at_once_unless_somebody_holds_it():
    env = make("wall_sensor")
    env.reset(seed=0)
    ended = weakref.ref(env.world)
    gc.disable()
    try:
        env.reset(seed=1)
        assert ended() is None
    finally:
        gc.enable()
    held = env.world
    env.reset(seed=2)
    assert held["key"].position.shape == (3,)
    assert not held["key"].is_held


def test_larger_views_have_the_size_asked_for():
    env = make(render_mode="rgb_array", render_size=(64, 48))
    env.reset(seed=0)
    assert env.render().shape == (48, 64, 3)
    assert make().render() is None
    env = make(render_mode="top_down", render_size=(96, 96))
    env.reset(seed=0)
    assert env.render().shape == (96, 96, 3)
