"""The native batch: all environments advance and are drawn in one compiled call.

Slot i plays exactly the episodes that a single environment, seeded alike, would play.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from .actions import ACTIONS, CONTROL_TABLE
from .batch import ADVANCE, DRAW_ONLY, LEAVE, Batch, Options, whole_number
from .env import check_reset_options, check_seed, observation_space
from .errors import HardEightError, options_of, refuse_unknown
from .native import constants as c
from .task import find_task

Observations = dict[str, np.ndarray]
Infos = dict[str, Any]

MOST_ENVS, MOST_THREADS = 4096, 256


class HardEightVectorEnv(gymnasium.vector.VectorEnv[Observations, np.ndarray, np.ndarray]):
    """A batch of one task's environments.

    `max_episode_steps` cuts episodes off after so many decisions, as it does in `gymnasium.make`.
    `infos` holds arrays over the batch: `success`, `milestones` (a dictionary of arrays) and, where
    an episode began, `seed`. Arrays are fresh at each call.
    """

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        height: int = 72,
        width: int = 96,
        action_repeat: int = 2,
        time_limit: float = 120.0,
        max_episode_steps: int | None = None,
        threads: int = 1,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown("option", unknown, options_of(HardEightVectorEnv))
        if render_mode is not None:
            raise HardEightError(
                f"render_mode is {render_mode!r}; a batch is not rendered, its observations are "
                "the pictures (a single environment has larger views)"
            )
        num_envs = whole_number("num_envs", num_envs, 1, MOST_ENVS)
        threads = whole_number("threads", threads, 1, MOST_THREADS)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError as error:
            allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
            raise HardEightError(
                f"autoreset_mode is {autoreset_mode!r}; it must be one of {allowed}"
            ) from error
        self.task = find_task(task)
        self.options = Options(height, width, action_repeat, time_limit, max_episode_steps)
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_action_space = spaces.Discrete(len(ACTIONS))
        self.single_observation_space = observation_space(self.options.height, self.options.width)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._batch = Batch(self.task, self.num_envs, self.options, min(threads, num_envs))
        self._generators: list[np.random.Generator] = []
        self._over = np.ones(self.num_envs, np.bool_)
        self._milestones = {name: i for i, name in enumerate(self.task.milestones)}

    @property
    def worlds(self) -> list[Any]:
        """The running episodes' worlds, to read."""
        return self._batch.worlds

    # --- episodes ---------------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, Infos]:
        mask = np.ones(self.num_envs, np.bool_)
        options = check_reset_options(options, known=("reset_mask",))
        if "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise HardEightError(
                    f"options['reset_mask'] must be a bool array of shape ({self.num_envs},) with "
                    "at least one True"
                )
        seeds = self._seeds(seed)
        if not self._generators:
            fresh = [gymnasium.utils.seeding.np_random(s)[0] for s in seeds]
            self._generators = fresh
        begun = {}
        for i in np.flatnonzero(mask):
            if seeds[i] is not None:
                self._generators[i] = gymnasium.utils.seeding.np_random(seeds[i])[0]
            begun[int(i)] = self._begin(int(i), seeds[i])
        self._batch.moving[:] = DRAW_ONLY
        missing = [i for i, world in enumerate(self._batch.worlds) if world is None]
        if missing:
            raise HardEightError(
                f"environments {missing} have no episode yet; reset all of them first"
            )
        return self._observations(*self._batch.run()), self._infos(begun)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            first = check_seed(seed)
            return [first + i for i in range(self.num_envs)]
        if not isinstance(seed, list | tuple | range | np.ndarray):
            raise HardEightError(
                f"seed is {seed!r}; it must be None, a whole number, or one for each environment"
            )
        seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise HardEightError(f"{len(seeds)} seeds were given for {self.num_envs} environments")
        return [None if s is None else check_seed(s) for s in seeds]

    def _begin(self, slot: int, seed: int | None = None) -> int:
        """Load an episode into a slot: the given one, or the next of the slot's own stream."""
        if seed is None:
            seed = int(self._generators[slot].integers(2**31))
        self._batch.load(slot, seed)
        self._over[slot] = False
        return seed

    # --- decisions --------------------------------------------------------------------------------

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, Infos]:
        actions = self._check_actions(actions)
        if not self._generators:
            raise HardEightError("no episodes have begun; call reset() first")
        batch = self._batch
        batch.controls[:] = CONTROL_TABLE[actions]
        batch.moving[:] = ADVANCE
        begun: dict[int, int] = {}
        if self._over.any():
            if self.autoreset_mode == AutoresetMode.DISABLED:
                raise HardEightError(
                    f"episodes {np.flatnonzero(self._over).tolist()} have ended; reset them with "
                    "options={'reset_mask': ...}"
                )
            for i in np.flatnonzero(self._over):
                begun[int(i)] = self._begin(int(i))
                batch.moving[i] = DRAW_ONLY
        pictures, proprioception = batch.run()
        rewards, terminated = batch.rewards.copy(), batch.terminated.copy()
        limit = self.options.frame_limit
        frames = np.array([world.state[c.S_FRAMES] for world in batch.worlds])  # type: ignore[union-attr]
        truncated = (frames >= limit) & ~terminated
        self._over = terminated | truncated
        if self.autoreset_mode != AutoresetMode.SAME_STEP or not self._over.any():
            observations = self._observations(pictures, proprioception)
            return observations, rewards, terminated, truncated, self._infos(begun)
        return self._restart_now(pictures, proprioception, rewards, terminated, truncated)

    def _restart_now(
        self,
        pictures: np.ndarray,
        proprioception: np.ndarray,
        rewards: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """SAME_STEP: ended episodes give way to new ones at once; their last step goes to infos."""
        over = self._over.copy()  # _begin clears it slot by slot
        final = self._observations(pictures.copy(), proprioception.copy())
        final_infos = self._infos({})
        begun = {int(i): self._begin(int(i)) for i in np.flatnonzero(over)}
        self._batch.moving[:] = np.where(over, DRAW_ONLY, LEAVE)
        fresh_pictures, fresh_proprioception = self._batch.run()
        pictures[over] = fresh_pictures[over]
        proprioception[over] = fresh_proprioception[over]
        infos = self._infos(begun)
        infos["final_obs"], infos["_final_obs"] = final, over.copy()
        infos["final_info"], infos["_final_info"] = final_infos, over.copy()
        self._over = np.zeros(self.num_envs, np.bool_)
        return self._observations(pictures, proprioception), rewards, terminated, truncated, infos

    def _check_actions(self, actions: Any) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise HardEightError(
                f"actions have shape {actions.shape} and type {actions.dtype}; they must be "
                f"{self.num_envs} whole numbers"
            )
        if actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise HardEightError(
                f"actions go from {actions.min()} to {actions.max()}; "
                f"they must be from 0 to {len(ACTIONS) - 1}"
            )
        return actions

    # --- what comes back --------------------------------------------------------------------------

    def _observations(self, pictures: np.ndarray, proprioception: np.ndarray) -> Observations:
        return {
            "rgb": pictures,
            "acceleration": proprioception[:, 0:3].copy(),
            "hand_force": proprioception[:, 3:4].copy(),
            "hand_is_holding": proprioception[:, 4:5].copy(),
            "hand_distance": proprioception[:, 5:6].copy(),
        }

    def _infos(self, begun: dict[int, int]) -> Infos:
        worlds = self._batch.worlds
        reached = np.array([world.reached for world in worlds], np.bool_)  # type: ignore[union-attr]
        success = np.array([world.state[c.S_SUCCESS] > 0 for world in worlds])  # type: ignore[union-attr]
        infos: Infos = {
            "success": success,
            "milestones": {name: reached[:, i] for name, i in self._milestones.items()},
        }
        if begun:
            infos["seed"] = np.zeros(self.num_envs, np.int64)
            infos["_seed"] = np.zeros(self.num_envs, np.bool_)
            for i, seed in begun.items():
                infos["seed"][i], infos["_seed"][i] = seed, True
        return infos

    def close_extras(self, **kwargs: Any) -> None:
        self._batch.close()
