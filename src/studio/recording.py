"""One episode of a demonstrator, from reset to its end, as arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import hard_eight
from hard_eight import experts
from hard_eight.experts.habits import Skill
from hard_eight.task import find_task

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Recording:
    """T actions, what each one earned and whether it ended the episode; T + 1 observations.

    Reward, termination and truncation t belong to action t; observation t is what was seen before
    it, and observation t + 1 what came of it.
    """

    seed: int
    task: str
    demonstrator: str
    skill: Skill
    observations: Arrays
    actions: np.ndarray
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray
    success: bool
    gave_up: bool  # the person stopped, not the world: recorded as truncated

    @property
    def metadata(self) -> dict[str, Any]:
        """What is kept beside the arrays of an episode."""
        return {
            "seed": self.seed,
            "task": self.task,
            "source": "scripted",
            "demonstrator": self.demonstrator,
            "skill": self.skill,
            "success": self.success,
            "gave_up": self.gave_up,
            "actions_sha256": digest(self.actions),
            "versions": versions(),
        }


def digest(actions: np.ndarray) -> str:
    """A fingerprint of the actions: some changes of an action change nothing that can be seen."""
    return hashlib.sha256(np.asarray(actions, "<i8").tobytes()).hexdigest()


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """What an episode's bits depend on; the world's source too, as it may change unreleased."""
    package = Path(hard_eight.__file__).parent
    source = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return {
        "hard_eight": version("r2d3"),
        "hard_eight_source": source.hexdigest()[:12],
        "mujoco": version("mujoco-core"),
    }


class Size(NamedTuple):
    """Of the pictures, in pixels."""

    height: int = 72
    width: int = 96


FULL_SIZE = Size()


@lru_cache(maxsize=1)
def make_env(task: str, size: Size = FULL_SIZE) -> gymnasium.Env:
    gym_id = find_task(task).gym_id
    return gymnasium.make(gym_id, disable_env_checker=True, **size._asdict())


def record(
    task: str,
    seed: int,
    skill: Skill = 1.0,
    demonstrator: str | None = None,
    size: Size = FULL_SIZE,
) -> Recording:
    """Let a demonstrator play the episode with this seed until it ends or gives up."""
    task = find_task(task).name
    env = make_env(task, size)
    observation, info = env.reset(seed=seed)
    player = experts.make(task, seed=seed, skill=skill, demonstrator=demonstrator)
    player.reset(env)
    observations, actions, rewards, terminations, truncations = [observation], [], [], [], []
    gave_up = ended = False
    while not ended:
        action = player.act(env)
        observation, reward, terminated, truncated, info = env.step(action)
        gave_up = player.has_given_up and not (terminated or truncated)
        ended = terminated or truncated or gave_up
        observations.append(observation)
        actions.append(action)
        rewards.append(float(reward))
        terminations.append(terminated)
        truncations.append(truncated or gave_up)
    return Recording(
        seed=seed,
        task=task,
        demonstrator=player.habits.name,
        skill=skill,
        observations={name: np.stack([o[name] for o in observations]) for name in observation},
        actions=np.array(actions, np.int64),
        rewards=np.array(rewards, np.float64),
        terminations=np.array(terminations, np.bool_),
        truncations=np.array(truncations, np.bool_),
        success=bool(info["success"]),
        gave_up=gave_up,
    )
