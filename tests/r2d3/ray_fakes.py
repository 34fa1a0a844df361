"""An environment for processes of their own: its every step tells where it is from.

`gym.make("ray_fakes:TestStamp-v0")` imports this module, which registers it.
"""

from __future__ import annotations

import pathlib
import random
import time
from typing import Any

import gymnasium as gym
import numpy as np

LENGTH = 12


class StampEnv(gym.Env[np.ndarray, int]):
    """Observation (a number that no other episode ever has, step). Reward 1 for action 1.

    While the file `hang` is there, steps do not come back; it names how many environments hang.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, hang: str = "", pause: float = 0.002, render_mode: str | None = None):
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.hang, self.pause = pathlib.Path(hang) if hang else None, pause
        self.unique = random.Random(time.time_ns())  # not from the seed: a repeat must show
        self.stamp, self.t = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.stamp, self.t = self.unique.getrandbits(24), 0  # float32 holds 24 bits exactly
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.hang is not None and self.hang.exists():
            self.hang.unlink()  # one environment hangs, the first to come here
            time.sleep(600.0)
        time.sleep(self.pause)
        self.t += 1
        return self._observation(), float(action), self.t == LENGTH, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.stamp, self.t], np.float32)


gym.register("TestStamp-v0", entry_point="ray_fakes:StampEnv")
