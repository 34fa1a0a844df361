"""What was played comes back from the dataset, step for step."""

import gymnasium as gym
import numpy as np
import pytest

from r2d3.demos import load_demonstrations
from r2d3.errors import UserError
from r2d3.recorder import Recorder
from r2d3.spaces import observation_spec


@pytest.fixture(autouse=True)
def _minari_in_a_folder_of_our_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_actions_that_start_elsewhere_count_from_zero_inside():
    class Late(gym.ActionWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.action_space = gym.spaces.Discrete(2, start=5)

        def action(self, action):
            return action - 5

    env = Recorder(Late(gym.make("CartPole-v1")))
    env.reset(seed=0)
    for action in (5, 6, 6):
        env.step(action)
    env.save("test/late-v0")
    [episode] = load_demonstrations("test/late-v0", observation_spec(env.observation_space), 2)
    assert episode.actions.tolist() == [0, 1, 1]


@pytest.mark.parametrize("data_format", ["arrow", "hdf5"])
def test_recorded_episodes_are_what_was_played(data_format):
    env = Recorder(gym.make("CartPole-v1"))
    played = []
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        seen, rewards, over = [observation], [], False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(seed % 2)
            seen.append(observation)
            rewards.append(reward)
            over = terminated or truncated
        played.append((np.stack(seen), rewards))
    env.reset(seed=9)
    env.step(1)
    env.save("test/cartpole-v0", data_format=data_format)

    episodes = load_demonstrations("test/cartpole-v0", observation_spec(env.observation_space), 2)
    assert [e.terminated for e in episodes] == [True, True, True, False]  # the last one was left
    for seed, (episode, (seen, rewards)) in enumerate(zip(episodes, played, strict=False)):
        (observations,) = episode.observations.values()
        assert np.array_equal(observations, seen)
        assert episode.rewards.tolist() == rewards
        assert set(episode.actions.tolist()) == {seed % 2}


def test_a_discarded_episode_is_not_kept_and_nothing_is_not_saved():
    env = Recorder(gym.make("CartPole-v1"))
    env.reset(seed=0)
    env.step(0)
    env.discard()
    with pytest.raises(UserError, match="nothing was recorded"):
        env.save("test/nothing-v0")
