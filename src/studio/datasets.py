"""Minari datasets on disk: where they lie, how they are written, what makes one unusable.

Minari's own writer compresses little or slowly. Here the same files (one folder an episode, one
record batch in it, encoded by Minari's own function) are written with zstd: a sixth of the raw
size, and `minari.load_dataset` reads them as any other.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from r2d3.errors import UserError

from .recording import Recording

FORMATS = ("arrow", "parquet")
ZSTD_LEVEL = 3
_ID = re.compile(r"[\w-]+(/[\w-]+)*-v\d+")
_MAKING = ".making"  # ends the name of a folder that is being filled; Minari skips dotted names


# --- where datasets lie -----------------------------------------------------------------------


def root() -> Path:
    """Minari's folder of datasets: $MINARI_DATASETS_PATH, or ~/.minari/datasets."""
    from minari.storage import get_dataset_path

    return Path(get_dataset_path())


def is_id(text: str) -> bool:
    """Whether a text names a dataset (`hardeight/wall-sensor/human-v0`) rather than a folder."""
    return bool(_ID.fullmatch(text)) and not Path(text).is_dir()


def data_folder(folder: Path) -> Path | None:
    """Where a dataset's metadata and episodes are, given its folder; None: it is no dataset."""
    for candidate in (folder / "data", folder):
        if (candidate / "metadata.json").is_file():
            return candidate
    return None


def read_metadata(data: Path) -> dict[str, Any]:
    """A dataset's own metadata."""
    try:
        metadata = json.loads((data / "metadata.json").read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{data / 'metadata.json'} cannot be read: {error}") from None
    if not isinstance(metadata, dict):
        raise UserError(f"{data / 'metadata.json'} holds no metadata")
    return metadata


def half_made(folder: Path) -> Path:
    """The folder in which a dataset grows until it is whole."""
    return folder.with_name(f".{folder.name}{_MAKING}")


def find(sources: list[str]) -> list[Path]:
    """The folders of the datasets meant by ids, folders of datasets, or nothing (all there are)."""
    if not sources:
        return find_below(root())
    found: list[Path] = []
    for source in sources:
        folder = root() / source if is_id(source) else Path(source).expanduser()
        here = find_below(folder)
        if not here:
            kind = "holds no dataset" if folder.is_dir() else "is not there"
            raise UserError(f"no dataset '{source}': {folder} {kind}")
        found += here
    return found


def find_below(folder: Path) -> list[Path]:
    """A dataset's own folder, or those of the whole datasets somewhere below it."""
    if data_folder(folder) is not None:
        return [folder]
    return sorted(
        path.parent.parent
        for path in folder.rglob("data/metadata.json")
        if not any(part.endswith(_MAKING) for part in path.parts)
    )


def find_half_made(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob(f".*{_MAKING}") if (path / "plan.json").is_file())


# --- writing ----------------------------------------------------------------------------------


def write_episode(
    data: Path, number: int, episode: Recording, env: gymnasium.Env, form: str
) -> None:
    """Write one episode's folder; it appears under its name only when it is whole."""
    import pyarrow as pa
    from minari.dataset._storages.arrow_storage import _encode_space

    def padded(values: np.ndarray) -> np.ndarray:
        return np.append(values, np.zeros(1, values.dtype))

    batch = pa.RecordBatch.from_pydict(
        {
            "observations": _encode_space(
                env.observation_space, episode.observations, jpeg_encoding=False
            ),
            "actions": _encode_space(env.action_space, episode.actions, pad=1),
            "rewards": padded(episode.rewards),
            "terminations": padded(episode.terminations),
            "truncations": padded(episode.truncations),
        }
    )
    growing = data / f".{number}"
    shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir(parents=True)
    if form == "arrow":
        _write_arrow(batch, growing / "part-0.arrow")
    else:
        _write_parquet(batch, growing / "part-0.parquet")
    metadata = {"id": number, "total_steps": len(episode.actions), **episode.metadata}
    (growing / "metadata.json").write_text(json.dumps(metadata))
    growing.rename(data / str(number))


def _write_arrow(batch: Any, path: Path) -> None:
    import pyarrow as pa

    codec = pa.Codec("zstd", compression_level=ZSTD_LEVEL)
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema, options=options) as f,
    ):
        f.write_batch(batch)


def _write_parquet(batch: Any, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Parquet has no bytes: a uint8 takes four. Split into streams, three of them are zeros.
    streams = {"observations.rgb.list.element": "BYTE_STREAM_SPLIT"}
    pq.write_table(
        pa.Table.from_batches([batch]),
        path,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=False,
        column_encoding=streams,
    )


def write_metadata(
    data: Path, dataset_id: str, env: gymnasium.Env, form: str, extra: Mapping[str, Any]
) -> None:
    """The dataset's own metadata, last: what has none is no dataset."""
    import minari
    from minari.dataset.minari_storage import MinariStorage

    episodes = [json.loads(p.read_text()) for p in data.glob("[0-9]*/metadata.json")]
    (data / "metadata.json").unlink(missing_ok=True)
    storage = MinariStorage.new(
        data,
        observation_space=env.observation_space,
        action_space=env.action_space,
        env_spec=env.spec,
        data_format=form,
        jpeg_encoding=False,
    )
    storage.update_metadata(
        {
            "dataset_id": dataset_id,
            "minari_version": minari.__version__,
            "total_episodes": len(episodes),
            "total_steps": sum(episode["total_steps"] for episode in episodes),
            **extra,
        }
    )
    storage.update_metadata({"dataset_size": float(storage.get_size())})


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dataset:
    """A dataset that Minari has opened, with what is known of its episodes."""

    name: str
    folder: Path
    minari: Any
    episodes: tuple[dict[str, Any], ...]  # the metadata of each

    def __len__(self) -> int:
        return len(self.episodes)


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset; what cannot be used is refused by name, with the reason."""
    from r2d3 import demos

    opened = demos._open(str(folder))
    name = opened.id
    actions = opened.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise UserError(f"dataset '{name}' has actions {actions}; they must be Discrete")
    if opened.total_episodes == 0:
        raise UserError(f"dataset '{name}' holds no episodes")
    try:
        episodes = tuple(opened.storage.get_episode_metadata(range(opened.total_episodes)))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"dataset '{name}' lacks the metadata of an episode: {error}") from None
    return Dataset(name, folder, opened, episodes)


def read_episode(dataset: Dataset, number: int) -> Any:
    """One episode as Minari gives it, whole and sound; what is not is refused with the reason."""
    from r2d3 import demos
    from r2d3.spaces import observation_spec

    where = f"episode {number} of '{dataset.name}'"
    raw = demos.read_raw(dataset.minari, number, where)
    spec = observation_spec(dataset.minari.observation_space)
    demos._episode(raw, spec, int(dataset.minari.action_space.n), where)
    return raw


def read_outcomes(dataset: Dataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Actions and rewards of each episode, without the pictures where the format allows it."""
    for number in range(len(dataset)):
        if dataset.minari.storage.FORMAT not in FORMATS:
            raw = read_episode(dataset, number)
            actions, rewards = raw.actions, raw.rewards
        else:
            actions, rewards = _read_columns(dataset, number)
        where = f"episode {number} of '{dataset.name}'"
        if len(actions) == 0 or len(actions) != len(rewards):
            raise UserError(f"{where}: {len(actions)} actions and {len(rewards)} rewards")
        if actions.min() < 0 or actions.max() >= dataset.minari.action_space.n:
            raise UserError(f"{where} has an action outside 0..{dataset.minari.action_space.n - 1}")
        if not np.isfinite(rewards).all():
            raise UserError(f"{where} holds NaN or infinity")
        yield actions, rewards


def _read_columns(dataset: Dataset, number: int) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow.dataset

    path = dataset.minari.storage.data_path / str(number)
    try:
        table = pyarrow.dataset.dataset(
            str(path),
            format=dataset.minari.storage.FORMAT,
            ignore_prefixes=["_", ".", "metadata.json"],
        ).to_table(columns=["actions", "rewards"])
    except Exception as error:  # as above
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"episode {number} of '{dataset.name}' cannot be read: {reason}") from None
    # The last row holds only the last observation.
    return table["actions"].to_numpy()[:-1], table["rewards"].to_numpy()[:-1]
