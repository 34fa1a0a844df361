"""Demonstrations: Minari datasets in and out."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.replay import PrioritisedReplay
from r2d3.sequences import ChunkCodec, Episode, SequenceShape, SequenceWriter, write_episode
from r2d3.spaces import Arrays, ObservationSpec


def load_demonstrations(
    source: str, spec: ObservationSpec, actions: int, limit: int = 0
) -> list[Episode]:
    """Reads a Minari dataset by id or path, and refuses what cannot be learned from."""
    dataset = _open(source)
    space = dataset.action_space
    if not isinstance(space, gym.spaces.Discrete):
        raise UserError(f"demonstrations '{source}' have actions {space}, the agent needs Discrete")
    if int(space.n) > actions:
        raise UserError(
            f"demonstrations '{source}' have {space.n} actions, the environment has {actions}"
        )
    first = int(space.start)
    total = dataset.total_episodes
    if limit > total:
        raise UserError(f"--demo-limit {limit}: '{source}' holds {total} demonstrations")
    episodes = []
    for number in range(limit or total):
        name = f"demonstration {number} of '{source}'"
        raw = read_raw(dataset, number, name)
        episodes.append(_episode(raw, spec, actions, name, first))
    if not episodes:
        raise UserError(f"'{source}' holds no demonstration")
    return episodes


def _open(source: str) -> Any:
    import minari

    try:
        if pathlib.Path(source).is_dir():
            path = pathlib.Path(source)
            return minari.MinariDataset(path / "data" if (path / "data").is_dir() else path)
        if source not in minari.list_local_datasets():
            raise UserError(f"no dataset '{source}' here: see 'r2d3 demos list'")
        return minari.load_dataset(source)
    except UserError:
        raise
    except Exception as error:  # Minari raises many kinds; all mean that it cannot be read
        raise UserError(f"demonstrations '{source}' cannot be read: {error}") from None


def read_raw(dataset: Any, number: int, name: str) -> Any:
    """One episode as Minari gives it."""
    try:
        (raw,) = dataset.iterate_episodes([number])
    except Exception as error:  # Arrow raises many kinds; all mean that it cannot be read
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{name} cannot be read: {reason}") from None
    return raw


def _episode(
    raw: Any, spec: ObservationSpec, actions: int, name: str, first_action: int = 0
) -> Episode:
    action = np.asarray(raw.actions).reshape(-1) - first_action
    reward = np.asarray(raw.rewards, np.float64).reshape(-1)
    steps = len(action)
    if steps == 0 or len(reward) != steps:
        raise UserError(f"{name}: {steps} actions and {len(reward)} rewards")
    observations = raw.observations
    if not isinstance(observations, dict):
        observations = {"observation": observations}
    for field in spec.fields:
        if field.name not in observations:
            raise UserError(f"{name} lacks observation '{field.name}'")
        shape = np.shape(observations[field.name])
        if shape != (steps + 1, *field.shape):
            raise UserError(
                f"{name}: observation '{field.name}' has shape {shape}, "
                f"expected {(steps + 1, *field.shape)}: one more than actions, the last included"
            )
    arrays = spec.extract(observations)
    if action.min() < 0 or action.max() >= actions:
        raise UserError(f"{name} has an action outside 0..{actions - 1}")
    floats = [reward, *(a for a in arrays.values() if a.dtype.kind == "f")]
    if not all(np.isfinite(a).all() for a in floats):
        raise UserError(f"{name} holds NaN or infinity")
    terminations, truncations = np.asarray(raw.terminations), np.asarray(raw.truncations)
    if terminations[:-1].any() or truncations[:-1].any():
        raise UserError(f"{name} goes on after its end")
    # Neither flag at the end means that recording stopped there: cut off, not ended.
    info = {"id": int(raw.id), "seed": getattr(raw, "seed", None)}
    return Episode(arrays, action.astype(np.int64), reward, bool(terminations[-1]), info)


def demonstration_replay(
    episodes: Sequence[Episode], spec: ObservationSpec, config: Config, seed: int
) -> PrioritisedReplay:
    """A replay of exactly these episodes' sequences, all of the same priority at first."""
    shape = SequenceShape(config.sequence_length, config.burn_in, config.overlap)
    most = sum(1 + len(e) // shape.period for e in episodes)
    replay = PrioritisedReplay(
        spec,
        shape,
        capacity=most,
        capacity_bytes=1 << 62,  # nothing is added later, so nothing need ever leave
        exponent=config.priority_exponent,
        seed=seed,
        state_size=config.hidden if config.stored_state else 0,
        uniform=config.objective == "imitation",
    )
    writer = SequenceWriter(shape, ChunkCodec(spec), replay)
    for episode in episodes:
        write_episode(writer, episode)
    return replay


def save_demonstrations(
    dataset_id: str,
    episodes: Sequence[Episode],
    env: gym.Env,
    data_format: str = "arrow",
    **description: Any,
) -> Any:
    """Writes a Minari dataset holding the observations' used fields, losslessly."""
    import minari
    from minari.data_collector import EpisodeBuffer

    space = _used_space(env, episodes[0].observations)
    buffers = []
    for i, episode in enumerate(episodes):
        steps = len(episode)
        ends = np.zeros(steps, bool)
        ends[-1] = True
        is_dict = isinstance(space, gym.spaces.Dict)
        buffers.append(
            EpisodeBuffer(
                id=i,
                seed=episode.info.get("seed"),
                observations=episode.observations
                if is_dict
                else next(iter(episode.observations.values())),
                actions=episode.actions,
                rewards=episode.rewards.tolist(),
                terminations=(ends & episode.terminated).tolist(),
                truncations=(ends & (not episode.terminated)).tolist(),
            )
        )
    with warnings.catch_warnings():
        # Minari warns of everything left out of a description; the caller decides what to say.
        warnings.filterwarnings("ignore", module="minari")
        return minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            env=env,
            observation_space=space,
            action_space=env.action_space,
            data_format=data_format,
            jpeg_encoding=False,
            **description,
        )


def _used_space(env: gym.Env, observations: Arrays) -> gym.Space:
    space = env.observation_space
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({name: space.spaces[name] for name in observations})
    return space
