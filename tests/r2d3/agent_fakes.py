"""Small things to test with: an environment whose every number says where it comes from."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from r2d3.replay import PrioritisedReplay
from r2d3.sequences import Episode, SequenceShape
from r2d3.spaces import ObservationField, ObservationSpec

SPEC = ObservationSpec((ObservationField("observation", "vector", (2,), "float32"),))


class DiaryEnv(gym.Env[np.ndarray, int]):
    """Observation (episode number, step); reward 10 * step + action; ends after `length` steps.

    `ends` says how: "terminated", "truncated", or "in turn".
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        length: int = 7,
        ends: str = "terminated",
        nan_at: int | None = None,
        render_mode: str | None = None,
    ):
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.length, self.ends, self.nan_at = length, ends, nan_at
        self.nan = float("nan")  # or another number that no agent should see
        self.first_observation: float | None = None  # instead of 0, at the next reset
        self.episode, self.t, self.total_steps = -1, 0, 0
        self.seeds: list[int | None] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.episode, self.t = self.episode + 1, 0
        observation = self._observation()
        if self.first_observation is not None:
            observation[1], self.first_observation = self.first_observation, None
        return observation, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.total_steps += 1
        over = self.t == self.length
        terminated = over and (
            self.ends == "terminated" or (self.ends == "in turn" and self.episode % 2 == 0)
        )
        reward = 10.0 * (self.t - 1) + float(action)
        if self.nan_at is not None and self.total_steps >= self.nan_at:
            reward = self.nan
        info = {"success": over, "milestones": {"halfway": self.t >= self.length / 2}}
        return self._observation(), reward, terminated, over and not terminated, info

    def _observation(self) -> np.ndarray:
        return np.array([self.episode, self.t], np.float32)


class CorridorEnv(gym.Env[np.ndarray, int]):
    """Walk `length` steps right; each step left starts over. Reward 1 at the end only."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, length: int = 6, limit: int = 24, render_mode: str | None = None):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (length + 1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length, self.limit = length, limit
        self.place, self.t = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # The start depends on the seed, so that episodes differ.
        self.place, self.t = int(self.np_random.integers(0, 2)), 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.place = self.place + 1 if action == 1 else 0
        won = self.place == self.length
        return self._observation(), float(won), won, self.t >= self.limit and not won, {}

    def _observation(self) -> np.ndarray:
        return np.eye(self.length + 1, dtype=np.float32)[self.place]


def register() -> None:
    for name in ("Diary", "Corridor"):
        if f"Test{name}-v0" not in gym.registry:
            gym.register(f"Test{name}-v0", entry_point=f"agent_fakes:{name}Env")


def episode(steps: int, number: int = 0, terminated: bool = True) -> Episode:
    """As DiaryEnv would have played it: reward 10 * step + action."""
    t = np.arange(steps + 1, dtype=np.float32)
    observations = np.stack([np.full(steps + 1, number, np.float32), t], axis=1)
    actions = (np.arange(steps) + number) % 3
    rewards = 10.0 * np.arange(steps) + actions
    return Episode({"observation": observations}, actions, rewards, terminated, {"seed": number})


def replay(
    shape: SequenceShape, capacity: int = 100, exponent: float = 1.0, **more: Any
) -> PrioritisedReplay:
    settings: dict[str, Any] = {"capacity_bytes": 1 << 40, "seed": 0, **more}
    return PrioritisedReplay(SPEC, shape, capacity=capacity, exponent=exponent, **settings)
