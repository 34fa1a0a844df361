"""The native batch plays the very episodes that single environments play."""

import multiprocessing
import os
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from hard_eight import HardEightError
from hard_eight.batch import shares
from hard_eight.env import HardEightEnv
from hard_eight.task import all_tasks
from hard_eight.vector import HardEightVectorEnv

TASKS = [task.name for task in all_tasks()]
ONE_TASK = TASKS[-1]
SIZE = {"height": 24, "width": 32}
# Four decisions an episode: each stream of actions plays through several episodes.
SHORT = {**SIZE, "action_repeat": 4, "time_limit": 0.5}


def random_actions(steps, size, seed=0):
    return np.random.default_rng(seed).integers(46, size=(steps, size))


def assert_same_observation(batched, i, single):
    assert batched.keys() == single.keys()
    for name, array in single.items():
        np.testing.assert_array_equal(batched[name][i], array, err_msg=f"{name} of {i}")


def assert_same_info(infos, i, info):
    assert infos["success"][i] == info["success"]
    assert {name: bool(done[i]) for name, done in infos["milestones"].items()} == info["milestones"]


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_plays_what_single_environments_play(task):
    envs = HardEightVectorEnv(task, 3, **SIZE)
    singles = [HardEightEnv(task, **SIZE) for _ in range(3)]
    observations, infos = envs.reset(seed=7)
    assert infos["seed"].tolist() == [7, 8, 9]
    for i, env in enumerate(singles):
        assert_same_observation(observations, i, env.reset(seed=7 + i)[0])
    for actions in random_actions(40, 3):
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i, env in enumerate(singles):
            observation, reward, end, cut, info = env.step(actions[i])
            assert_same_observation(observations, i, observation)
            assert (rewards[i], terminated[i], truncated[i]) == (reward, end, cut)
            assert_same_info(infos, i, info)


def test_episodes_are_cut_off_after_as_many_decisions_as_gymnasium_make_would():
    limit = {**SIZE, "action_repeat": 3, "max_episode_steps": 5}
    env = gymnasium.make("HardEight/WallSensor-v0", **limit)
    envs = gymnasium.make_vec("HardEight/WallSensor-v0", 2, **limit)
    env.reset(seed=1)
    envs.reset(seed=1)
    for k in range(1, 6):
        assert env.step(0)[3] == (k == 5)
        assert envs.step(np.zeros(2, int))[3].tolist() == [k == 5] * 2


@pytest.mark.parametrize("threads", [1, 3])
def test_next_step_autoreset_spends_a_step_on_the_new_episode(threads):
    envs = HardEightVectorEnv(ONE_TASK, 3, threads=threads, autoreset_mode="NextStep", **SHORT)
    singles = [HardEightEnv(ONE_TASK, **SHORT) for _ in range(3)]
    envs.reset(seed=4)
    over = [False] * 3
    for i, env in enumerate(singles):
        env.reset(seed=4 + i)
    begun = 0
    for actions in random_actions(14, 3):
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i, env in enumerate(singles):
            if over[i]:
                observation, info = env.reset()
                assert infos["_seed"][i]
                assert infos["seed"][i] == info["seed"]
                reward, end, over[i] = 0.0, False, False
                begun += 1
            else:
                observation, reward, end, over[i], info = env.step(actions[i])
            assert_same_observation(observations, i, observation)
            assert (rewards[i], terminated[i], truncated[i]) == (reward, end, over[i])
            assert_same_info(infos, i, info)
    assert begun == 6
    envs.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_same_step_autoreset_hands_the_last_step_over_in_infos(threads):
    envs = HardEightVectorEnv(ONE_TASK, 3, threads=threads, autoreset_mode="SameStep", **SHORT)
    singles = [HardEightEnv(ONE_TASK, **SHORT) for _ in range(3)]
    envs.reset(seed=4)
    for i, env in enumerate(singles):
        env.reset(seed=4 + i)
    # One environment is a decision behind, so that a step ends some episodes and not others.
    envs.reset(seed=[None, 40, None], options={"reset_mask": np.array([False, True, False])})
    singles[1].reset(seed=40)
    first = random_actions(1, 3, seed=1)[0]
    envs.step(first)
    for i, env in enumerate(singles):
        env.step(first[i])
    envs.reset(seed=[None, 41, None], options={"reset_mask": np.array([False, True, False])})
    singles[1].reset(seed=41)
    begun = [0, 0, 0]
    for actions in random_actions(12, 3):
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i, env in enumerate(singles):
            observation, reward, end, cut, info = env.step(actions[i])
            assert (rewards[i], terminated[i], truncated[i]) == (reward, end, cut)
            if end or cut:
                assert infos["_final_obs"][i]
                assert infos["_final_info"][i]
                assert_same_observation(infos["final_obs"], i, observation)
                assert_same_info(infos["final_info"], i, info)
                observation, info = env.reset()
                assert infos["seed"][i] == info["seed"]
                begun[i] += 1
            elif "_final_obs" in infos:
                assert not infos["_final_obs"][i]
                assert not infos["_seed"][i]
            assert_same_observation(observations, i, observation)
            assert_same_info(infos, i, info)
    assert min(begun) >= 2
    envs.close()


def test_disabled_autoreset_waits_for_a_reset_of_those_that_ended():
    envs = HardEightVectorEnv(ONE_TASK, 2, autoreset_mode="Disabled", **SHORT)
    single = HardEightEnv(ONE_TASK, **SHORT)
    observations, _ = envs.reset(seed=4)
    single.reset(seed=4)
    actions = np.array([3, 3])
    truncated = np.zeros(2, bool)
    while not truncated.any():
        *_, truncated, _ = envs.step(actions)
        single.step(3)
    with pytest.raises(HardEightError, match="reset_mask"):
        envs.step(actions)
    observations, infos = envs.reset(options={"reset_mask": truncated})
    observation, info = single.reset()
    assert infos["seed"][0] == info["seed"]
    assert_same_observation(observations, 0, observation)
    assert_same_observation(envs.step(actions)[0], 0, single.step(3)[0])


def test_a_masked_reset_leaves_the_others_where_they_are():
    envs = HardEightVectorEnv(ONE_TASK, 2, **SIZE)
    envs.reset(seed=1)
    before, *_ = envs.step(np.array([0, 0]))
    after, infos = envs.reset(seed=[9, None], options={"reset_mask": np.array([True, False])})
    assert infos["_seed"].tolist() == [True, False]
    assert_same_observation(after, 1, {name: array[1] for name, array in before.items()})
    assert_same_observation(after, 0, HardEightEnv(ONE_TASK, **SIZE).reset(seed=9)[0])


def test_every_call_returns_arrays_of_its_own():
    envs = HardEightVectorEnv(ONE_TASK, 2, autoreset_mode="SameStep", **SHORT)
    earlier = [envs.reset(seed=0)[0]]
    for actions in random_actions(8, 2):
        observations, rewards, *_ = envs.step(actions)
        kept_rewards = rewards.copy()
        for name, array in observations.items():
            assert not any(np.shares_memory(array, other[name]) for other in earlier)
        earlier.append(observations)
        envs.step(actions)
        np.testing.assert_array_equal(rewards, kept_rewards)


def test_spaces_and_autoreset_mode_are_told_as_gymnasium_expects():
    task = next(task for task in all_tasks() if task.name == ONE_TASK)
    envs = gymnasium.make_vec(task.gym_id, num_envs=4)
    assert isinstance(envs.unwrapped, HardEightVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert observations["rgb"].shape == (4, 72, 96, 3)
    assert envs.step(envs.action_space.sample())[0] in envs.observation_space
    envs.close()


def _rewards_after_fork(envs, pipe):
    observations, *_ = envs.step(np.zeros(4, int))
    pipe.send(observations["rgb"].sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_batch_with_threads_steps_on_in_a_forked_process():
    """Threads do not survive a fork: waiting for them would last for ever."""
    envs = HardEightVectorEnv(ONE_TASK, 4, threads=2, **SHORT)
    envs.reset(seed=1)
    here, there = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=_rewards_after_fork, args=(envs, there)
    )
    child.start()
    assert here.poll(60)
    child.join(10)
    assert here.recv() == envs.step(np.zeros(4, int))[0]["rgb"].sum()
    envs.close()


@pytest.mark.parametrize(("size", "threads"), [(1, 1), (2, 2), (3, 2), (5, 4), (32, 2), (100, 7)])
def test_threads_share_all_of_a_batch_and_nothing_twice(size, threads):
    slots = [slot for first, last in shares(size, threads) for slot in range(first, last)]
    assert slots == list(range(size))


def test_a_slow_environment_does_not_keep_half_of_the_batch_waiting():
    batch = HardEightVectorEnv(ONE_TASK, 32, threads=2, **SIZE)._batch
    done_by = {}
    rest_done = threading.Event()

    def run_slice(first, last, *_):
        done_by.update(dict.fromkeys(range(first, last), threading.current_thread()))
        if len(done_by) == 32:
            rest_done.set()
        if first == 0:  # as slow as can be: until all others are done
            rest_done.wait(10.0)

    batch._run_slice = run_slice
    batch.run()
    assert len(done_by) == 32
    assert list(done_by.values()).count(done_by[0]) < 16
