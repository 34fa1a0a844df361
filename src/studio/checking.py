"""Every episode played again from its seed and actions: is what was recorded what happens?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from r2d3.errors import UserError

from .datasets import Dataset, open_dataset, read_episode
from .progress import progress
from .recording import digest, versions
from .stats import task_of
from .workers import run_jobs


class Finding(NamedTuple):
    """What differs in one episode."""

    episode: int
    what: str


class _Job(NamedTuple):
    folder: Path
    episode: int


def check_dataset(folder: Path, workers: int) -> list[Finding]:
    """Re-simulate all episodes; what differs, in the order of the episodes."""
    dataset = resimulable(folder)
    _opened.cache_clear()
    jobs = [_Job(folder, k) for k in range(len(dataset))]
    done = progress(run_jobs(_check, jobs, workers), len(jobs), dataset.name)
    return sorted(finding for findings in done for finding in findings)


def resimulable(folder: Path) -> Dataset:
    """Open a dataset of the Hard-Eight whose episodes can be played again."""
    dataset = open_dataset(folder)
    if task_of(dataset) is None:
        raise UserError(
            f"dataset '{dataset.name}' cannot be re-simulated: it names no Hard-Eight environment"
        )
    for number, metadata in enumerate(dataset.episodes):
        if not isinstance(metadata.get("seed"), int):
            raise UserError(
                f"dataset '{dataset.name}' cannot be re-simulated: "
                f"episode {number} does not name its seed"
            )
    return dataset


def environment(dataset: Dataset) -> gymnasium.Env:
    env: gymnasium.Env = dataset.minari.recover_environment(disable_env_checker=True)
    return env


@lru_cache(maxsize=1)
def _opened(folder: Path) -> tuple[Dataset, gymnasium.Env]:
    """Once for all the episodes that a worker checks."""
    dataset = resimulable(folder)
    return dataset, environment(dataset)


def other_versions(dataset: Dataset) -> str | None:
    """In which versions a dataset was made, if they are not those in use."""
    here = versions()
    for metadata in dataset.episodes:
        there = metadata.get("versions", here)
        if there != here:
            made = ", ".join(f"{name} {number}" for name, number in sorted(there.items()))
            used = ", ".join(f"{name} {number}" for name, number in sorted(here.items()))
            return f"made with {made}; here are {used}"
    return None


def _check(job: _Job) -> list[Finding]:
    dataset, env = _opened(job.folder)
    raw = read_episode(dataset, job.episode)
    metadata = dataset.episodes[job.episode]
    found = list(_differences(env, raw, metadata))
    return [Finding(job.episode, what) for what in found]


def _differences(env: gymnasium.Env, raw: Any, metadata: dict[str, Any]) -> Iterator[str]:
    """The first difference in an episode, and how many steps differ; then what else is wrong."""
    recorded_digest = metadata.get("actions_sha256")
    if recorded_digest is not None and recorded_digest != digest(raw.actions):
        yield "the actions are not those that were recorded: their SHA-256 differs"
    steps = len(raw.actions)
    observation, info = env.reset(seed=metadata["seed"])
    first = _observation_difference(raw.observations, 0, observation)
    where, differing = "at the start", int(first is not None)
    for t in range(steps):
        observation, reward, terminated, truncated, info = env.step(int(raw.actions[t]))
        if t == steps - 1 and metadata.get("gave_up"):
            truncated = True
        difference = _step_difference(raw, t, observation, float(reward), terminated, truncated)
        differing += difference is not None
        if first is None and difference is not None:
            first, where = difference, f"step {t}"
        if (terminated or truncated) and t < steps - 1:
            yield f"step {t}: the episode ends here, but {steps} steps were recorded"
            break
    if first is not None:
        yield f"{where}: {first}" + (f" ({differing} steps differ)" if differing > 1 else "")
    success = metadata.get("success")
    if success is not None and bool(success) != info["success"]:
        yield f"success is {info['success']}, recorded was {bool(success)}"


def _step_difference(
    raw: Any, t: int, observation: dict[str, np.ndarray], reward: float, terminated: bool,
    truncated: bool,
) -> str | None:  # fmt: skip
    """How the outcome of action t differs from what was recorded."""
    pairs = (
        ("reward", float(raw.rewards[t]), reward),
        ("terminated", bool(raw.terminations[t]), bool(terminated)),
        ("truncated", bool(raw.truncations[t]), bool(truncated)),
    )
    for name, recorded, simulated in pairs:
        if recorded != simulated:
            return f"{name} is {simulated}, recorded was {recorded}"
    return _observation_difference(raw.observations, t + 1, observation)


def _observation_difference(
    recorded: dict[str, np.ndarray], at: int, simulated: dict[str, np.ndarray]
) -> str | None:
    for name, values in recorded.items():
        there, here = values[at], simulated[name]
        if there.tobytes() == here.tobytes():
            continue
        if name == "rgb":
            pixels = int((there != here).any(axis=-1).sum())
            return f"{pixels} pixel{'s' * (pixels > 1)} of the picture after it differ"
        return f"{name} is {here.tolist()}, recorded was {there.tolist()}"
    return None
