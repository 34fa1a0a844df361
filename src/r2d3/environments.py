"""Environments as the agent wants them: a batch, with the three ways of resetting made one."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from r2d3.errors import UserError
from r2d3.spaces import Arrays, ObservationSpec, number_of_actions, observation_spec

# Training seeds lie below this number, evaluation seeds above: never the same.
FIRST_EVALUATION_SEED = 1 << 30

# Packages that register their environments on import.
_PACKAGES = {"MiniGrid": "minigrid", "BabyAI": "minigrid", "HardEight": "hard_eight"}


def training_seed(run_seed: int, env_index: int, episode: int) -> int:
    sequence = np.random.SeedSequence([run_seed, env_index, episode])
    return int(sequence.generate_state(1)[0]) % FIRST_EVALUATION_SEED


def evaluation_seed(index: int) -> int:
    return FIRST_EVALUATION_SEED + index


def environment_args(config_env_args: str, max_episode_steps: int = 0) -> dict[str, Any]:
    args: dict[str, Any] = json.loads(config_env_args)
    if max_episode_steps:
        args["max_episode_steps"] = max_episode_steps
    return args


def find_environment(env_id: str) -> gym.envs.registration.EnvSpec:
    """The registered environment, its package imported where needed.

    `module:Id-v0` imports the module that registers it, as Gymnasium's own `make` does.
    """
    module, colon, registered = env_id.partition(":")
    if colon:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UserError(f"'{env_id}' names a module that cannot be imported: {error}") from None
        env_id = registered
    name = env_id.split("/")[0].split("-")[0]
    if env_id not in gym.registry and name in _PACKAGES:
        try:
            importlib.import_module(_PACKAGES[name])
        except ImportError as error:
            raise UserError(f"'{env_id}' needs the package '{_PACKAGES[name]}': {error}") from None
    module, _, name = env_id.rpartition(":")
    try:
        if module:  # "package:Env-v0", as gym.make knows it; gym.spec imports nothing
            importlib.import_module(module)
        return gym.spec(name)
    except gym.error.Error as error:
        raise UserError(f"no environment '{env_id}': {error}") from None


def make_environment(env_id: str, args: dict[str, Any], render_mode: str | None = None) -> gym.Env:
    spec = find_environment(env_id)
    try:
        return gym.make(spec, render_mode=render_mode, disable_env_checker=True, **args)
    except Exception as error:
        # Environments raise what they like when they are given arguments they cannot take.
        if not (args or isinstance(error, (TypeError, gym.error.Error))):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        made = f"made with {args}" if args else "made"
        raise UserError(f"'{env_id}' cannot be {made}: {reason}") from None


def make_environments(env_id: str, count: int, args: dict[str, Any]) -> VectorEnv:
    """A native batched environment where there is a fitting one, else one after the other.

    Resetting is ours (DISABLED): then each episode has a seed that is known and can be replayed.
    Gymnasium's own batches (CartPole's, say) reset themselves, and take one seed for all.
    """
    spec = find_environment(env_id)
    if spec.vector_entry_point is not None:
        try:
            return gym.make_vec(spec, num_envs=count, autoreset_mode=AutoresetMode.DISABLED, **args)
        except (TypeError, gym.error.Error):
            pass  # it knows no such mode; a wrong argument shows again below
    return SyncVectorEnv(
        [lambda: make_environment(env_id, args)] * count, autoreset_mode=AutoresetMode.DISABLED
    )


@dataclass
class Step:
    """What one step of all environments brought."""

    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    played: np.ndarray  # False: this environment only reset itself, the action meant nothing
    last_observations: dict[int, Arrays]  # what the last action of each ended episode led to
    infos: dict[str, Any]  # of this step; for ended episodes, of their end

    @property
    def ended(self) -> np.ndarray:
        return self.terminated | self.truncated


SeedOfEpisode = Callable[[int, int], int]  # (environment, episode) -> seed


class EpisodeStream:
    """A vector environment, whatever its autoreset mode. `observations` is what to act on next.

    With autoreset off, resetting is done here, every episode has its own seed, and the running
    episodes can be rebuilt after a stop by playing their actions again. The other two modes
    choose seeds themselves after the first episode; there a resumed run starts new episodes.
    """

    def __init__(self, envs: VectorEnv, seed_of: SeedOfEpisode):
        # Any: the type of VectorEnv.reset's seed lacks the list that all of them take.
        self.envs: Any = envs
        self.seed_of = seed_of
        self.count = envs.num_envs
        self.spec: ObservationSpec = observation_spec(envs.single_observation_space)
        self.actions = number_of_actions(envs.single_action_space)
        assert isinstance(envs.single_action_space, gym.spaces.Discrete)  # as was just seen
        self.first_action = int(envs.single_action_space.start)
        mode = envs.metadata.get("autoreset_mode")
        if mode is None:
            raise UserError(f"{envs} does not say in its metadata how it resets (autoreset_mode)")
        self.mode = mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
        self.episodes = np.zeros(self.count, np.int64)  # started so far
        self.played: list[list[int]] = [[] for _ in range(self.count)]
        self.resetting = np.zeros(self.count, bool)  # NEXT_STEP: the coming step only resets
        self.observations: Arrays = {}

    def reset(self) -> None:
        self.episodes[:] = 0
        self.resetting[:] = False
        self.played = [[] for _ in range(self.count)]
        observation, _ = self.envs.reset(seed=self._seeds())
        self.observations = self.spec.extract(observation)

    def step(self, actions: np.ndarray) -> Step:
        moves = actions + self.first_action if self.first_action else actions
        observation, reward, terminated, truncated, infos = self.envs.step(moves)
        # Copies: some environments hand out the arrays they go on writing into.
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        observations = self.spec.extract(observation)
        played = ~self.resetting
        ended = (terminated | truncated) & played
        last: dict[int, Arrays] = {}
        indices = np.flatnonzero(ended).tolist()
        if self.mode == AutoresetMode.SAME_STEP:
            for i in indices:
                last[i] = self.spec.extract(_final_observation(infos, i))
            if indices:
                infos = {**infos, **infos.get("final_info", {})}
        else:
            for i in indices:
                last[i] = {name: array[i].copy() for name, array in observations.items()}
        if self.mode == AutoresetMode.DISABLED:
            for i in np.flatnonzero(played).tolist():
                self.played[i].append(int(actions[i]))
            if indices:
                observations = self._start_episodes(ended, observations)
        elif self.mode == AutoresetMode.NEXT_STEP:
            self.resetting = ended.copy()
        self.observations = observations
        return Step(
            np.where(played, np.asarray(reward, np.float64), 0.0),
            terminated & played,
            truncated & played,
            played,
            last,
            infos,
        )

    def _start_episodes(self, which: np.ndarray, observations: Arrays) -> Arrays:
        self.episodes[which] += 1
        for i in np.flatnonzero(which).tolist():
            self.played[i] = []
        observation, _ = self.envs.reset(
            seed=self._seeds(), options={"reset_mask": np.array(which, bool)}
        )
        for name, array in self.spec.extract(observation).items():
            observations[name][which] = array[which]
        return observations

    def _seeds(self) -> list[int | None]:
        return [self.seed_of(i, int(self.episodes[i])) for i in range(self.count)]

    def close(self) -> None:
        self.envs.close()

    # -- the checkpoint ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        lengths = np.array([len(actions) for actions in self.played])
        flat = [action for actions in self.played for action in actions]
        return {
            "episodes": self.episodes.copy(),
            "lengths": lengths,
            "actions": np.array(flat, np.int64),
            **{f"observation/{name}": array for name, array in self.observations.items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> np.ndarray:
        """Plays the running episodes again. Returns, per environment, whether that succeeded;
        where it did not, a new episode has begun."""
        if self.mode != AutoresetMode.DISABLED:
            self.reset()
            return np.zeros(self.count, bool)
        ends = np.cumsum(saved["lengths"])
        histories = [
            saved["actions"][end - length : end].tolist()
            for end, length in zip(ends, saved["lengths"], strict=True)
        ]
        self.reset()
        longest = max((len(h) for h in histories), default=0)
        # All must arrive together: the environment with the longest history starts first, each
        # other one idles until as many steps are left as its own history has.
        for left in range(longest, -1, -1):
            starting = np.array([len(h) == left for h in histories])
            if starting.any():
                self.episodes[starting] = saved["episodes"][starting] - 1
                self._start_episodes(starting, self.observations)
            if left == 0:
                break
            underway = [len(h) - left if len(h) >= left else None for h in histories]
            actions = np.array(
                [0 if t is None else histories[i][t] for i, t in enumerate(underway)]
            )
            self.step(actions)
        same = np.ones(self.count, bool)
        for name, array in self.observations.items():
            rows = array == saved[f"observation/{name}"]
            same &= rows.reshape(self.count, -1).all(axis=1)
        self.episodes = saved["episodes"].copy()
        if not same.all():
            self._start_episodes(~same, self.observations)
        return same


def _final_observation(infos: dict[str, Any], i: int) -> Any:
    final = infos["final_obs"]
    if isinstance(final, dict):  # native batched environments: a dict of arrays
        return {name: array[i] for name, array in final.items()}
    return final[i]


def success_of(infos: dict[str, Any], i: int) -> bool | None:
    """What the environment itself says, if it says anything."""
    success, said = infos.get("success"), infos.get("_success")
    # Gymnasium fills in False for an environment that is silent while others speak.
    if success is None or (said is not None and not said[i]):
        return None
    return bool(np.asarray(success)[i])


def milestones_of(infos: dict[str, Any], i: int) -> dict[str, bool]:
    milestones = infos.get("milestones", {})
    return {
        name: bool(np.asarray(reached)[i])
        for name, reached in milestones.items()
        if not name.startswith("_")  # Gymnasium's own masks
    }
