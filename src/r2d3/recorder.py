"""Records what is played in any environment, by whomever, as a Minari dataset."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from r2d3.demos import save_demonstrations
from r2d3.errors import UserError
from r2d3.sequences import Episode
from r2d3.spaces import Arrays, observation_spec


class Recorder(gym.Wrapper):
    """Play in it as in the environment it wraps, then `save`.

    An episode that is reset before its end is kept as cut off; `discard` forgets it instead.
    """

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.spec_of_observations = observation_spec(env.observation_space)
        self.episodes: list[Episode] = []
        self._seen: list[Arrays] = []
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._seed: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._keep(terminated=False)
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed = info.get("seed", seed)
        self.discard()
        self._seen.append(self.spec_of_observations.extract(observation))
        return observation, info

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._seen.append(self.spec_of_observations.extract(observation))
        self._actions.append(int(action))
        self._rewards.append(float(reward))
        if terminated or truncated:
            self._keep(bool(terminated))
        return observation, reward, terminated, truncated, info

    def discard(self) -> None:
        """Forget the running episode."""
        self._seen.clear()
        self._actions.clear()
        self._rewards.clear()

    def save(self, dataset: str, **description: Any) -> Any:
        """Write all episodes so far as the Minari dataset of this name, such as 'my/maze-v0'."""
        self._keep(terminated=False)
        if not self.episodes:
            raise UserError("nothing was recorded: play before you save")
        return save_demonstrations(dataset, self.episodes, self.env, **description)

    def _keep(self, terminated: bool) -> None:
        if self._actions:
            observations = {
                name: np.stack([seen[name] for seen in self._seen]) for name in self._seen[0]
            }
            actions, rewards = np.array(self._actions), np.array(self._rewards)
            info = {"seed": self._seed}
            self.episodes.append(Episode(observations, actions, rewards, terminated, info))
        self.discard()
