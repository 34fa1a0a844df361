"""Checkpoints: everything a run needs to go on, as if it had never stopped.

A checkpoint is a folder, `checkpoints/000001200/`:

    state.json            numbers, names, states of random generators
    arrays.npz            NumPy arrays (read with allow_pickle=False)
    tensors.safetensors   weights, target, optimiser
    NAME-000003.chunks    compressed steps of a replay, 1024 chunks a file
    manifest.json         SHA-256 of each of the above; written last

It is written under a temporary name, flushed to the disk, and renamed: it exists whole or not at
all. Two generations are kept. Files of chunks that did not change are linked, not written again.
Nothing is loaded through pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import safetensors.torch
import torch

from r2d3.errors import UserError
from r2d3.replay import Chunks

GENERATIONS = 2
CHUNKS_PER_FILE = 1024
_TEMPORARY = ".tmp-"
_REPLACED = f"{_TEMPORARY}replaced-"  # a checkpoint that makes way for a new one of its step
WEIGHTS = "tensors.safetensors"


class DamagedCheckpoint(Exception):
    """A checkpoint that cannot be used, and why."""


_UNUSABLE = (DamagedCheckpoint, OSError, ValueError, KeyError)


class CheckpointStore:
    """The folder `checkpoints/` of a run."""

    def __init__(self, folder: pathlib.Path, say: Callable[[str], None] = print):
        self.folder, self.say = folder, say
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder} cannot be made: {error}") from None
        self._tidy()
        # Files of chunks in the newest checkpoint: name -> (ids in it, path, hash).
        self._written: dict[str, tuple[frozenset[int], pathlib.Path, str]] = {}

    def _tidy(self) -> None:
        """Clears up after a run that was killed while writing."""
        for replaced in self.folder.glob(f"{_REPLACED}*"):
            # Killed between making way for a new checkpoint and putting that in place.
            place = self.folder / replaced.name.removeprefix(_REPLACED)
            if not place.exists():
                replaced.rename(place)
        for leftover in self.folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover)

    def steps(self) -> list[int]:
        return _steps(self.folder)

    def path(self, step: int) -> pathlib.Path:
        return self.folder / f"{step:09d}"

    # -- writing -------------------------------------------------------------------------------

    def save(self, step: int, state: dict[str, Any]) -> pathlib.Path:
        arrays: dict[str, np.ndarray] = {}
        tensors: dict[str, torch.Tensor] = {}
        chunks: dict[str, Chunks] = {}
        plain = _flatten(state, "", arrays, tensors, chunks)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise UserError(f"no checkpoint written: '{name}' holds NaN or infinity")
        temporary = self.folder / f"{_TEMPORARY}{step:09d}-{os.getpid()}"
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
        hashes: dict[str, str] = {}
        linked: dict[str, tuple[frozenset[int], pathlib.Path, str]] = {}
        for name, part in chunks.items():
            linked.update(self._save_chunks(temporary, name, part, hashes))
        (temporary / "state.json").write_text(json.dumps(plain))
        with (temporary / "arrays.npz").open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        safetensors.torch.save_file(tensors, str(temporary / WEIGHTS))
        for name in ("state.json", "arrays.npz", WEIGHTS):
            hashes[name] = _sha256(temporary / name)
            _flush_to_disk(temporary / name)
        (temporary / "manifest.json").write_text(json.dumps({"step": step, "sha256": hashes}))
        _flush_to_disk(temporary / "manifest.json")
        _flush_to_disk(temporary)
        final = self.path(step)
        if final.exists():  # of the same step: make way, a folder cannot be renamed onto another
            final.rename(self.folder / f"{_REPLACED}{final.name}")
        temporary.rename(final)
        _flush_to_disk(self.folder)
        self._written = {
            name: (ids, final / path.name, digest) for name, (ids, path, digest) in linked.items()
        }
        # Later steps than this one are of checkpoints that were passed over as damaged.
        keep = [old for old in self.steps() if old <= step][-GENERATIONS:]
        for old in set(self.steps()) - set(keep):
            shutil.rmtree(self.path(old))
        for replaced in self.folder.glob(f"{_REPLACED}*"):
            shutil.rmtree(replaced)
        return final

    def _save_chunks(
        self, folder: pathlib.Path, name: str, chunks: Chunks, hashes: dict[str, str]
    ) -> dict[str, tuple[frozenset[int], pathlib.Path, str]]:
        groups: dict[int, list[int]] = defaultdict(list)
        for chunk in sorted(chunks.blobs):
            groups[chunk // CHUNKS_PER_FILE].append(chunk)
        written = {}
        for number, ids in groups.items():
            path = folder / f"{name.replace('/', '.')}-{number:06d}.chunks"
            before = self._written.get(path.name)
            # A chunk never changes, so a file that holds all of these (and perhaps some that have
            # gone since) will do as it is.
            if before is not None and before[0].issuperset(ids) and before[1].exists():
                os.link(before[1], path)
                written[path.name] = (before[0], path, before[2])
            else:
                _write_chunks(path, {chunk: chunks.blobs[chunk] for chunk in ids})
                written[path.name] = (frozenset(ids), path, _sha256(path))
            hashes[path.name] = written[path.name][2]
        return written

    # -- reading -------------------------------------------------------------------------------

    def load(self) -> dict[str, Any] | None:
        """The newest whole checkpoint, or None; damaged ones are named and passed over."""
        for step in reversed(self.steps()):
            try:
                state = self._load(self.path(step))
            except _UNUSABLE as error:
                self.say(f"checkpoint {step} is damaged ({error}); trying the one before")
                continue
            return state
        return None

    def _load(self, folder: pathlib.Path) -> dict[str, Any]:
        hashes = _hashes(folder)
        for name in hashes:
            _verify(folder, name, hashes)
        plain = json.loads((folder / "state.json").read_text())
        with np.load(folder / "arrays.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        tensors = safetensors.torch.load_file(str(folder / WEIGHTS))
        chunks: dict[str, Chunks] = defaultdict(lambda: Chunks({}))
        for path in sorted(folder.glob("*.chunks")):
            name, ids = path.name.rsplit("-", 1)[0], _read_chunks(path)
            chunks[name].blobs.update(ids)
            self._written[path.name] = (frozenset(ids), path, hashes[path.name])
        state: dict[str, Any] = _unflatten(plain, arrays, tensors, chunks)
        return state


def load_network_weights(run: pathlib.Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The weights that the newest whole checkpoint of a run would act with.

    Reads the weights alone, not the gigabytes of replay beside them; and changes nothing in the
    folder, in which a run may be writing at this moment.
    """
    for step in reversed(_steps(run / "checkpoints")):
        folder = run / "checkpoints" / f"{step:09d}"
        try:
            _verify(folder, WEIGHTS, _hashes(folder))
            tensors = safetensors.torch.load_file(str(folder / WEIGHTS))
        except _UNUSABLE as error:
            say(f"checkpoint {step} is damaged ({error}); trying the one before")
            continue
        for prefix in ("learner/tensors/average/", "learner/tensors/network/"):
            weights = {
                n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)
            }
            if weights:
                return weights
    raise UserError(f"{run}: no checkpoint here")


# -- a tree of dictionaries and lists <-> JSON, arrays, tensors and chunks ---------------------


def _flatten(
    node: Any,
    path: str,
    arrays: dict[str, np.ndarray],
    tensors: dict[str, torch.Tensor],
    chunks: dict[str, Chunks],
) -> Any:
    if isinstance(node, dict):
        return {
            key: _flatten(value, f"{path}/{key}" if path else key, arrays, tensors, chunks)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [
            _flatten(value, f"{path}/{i}", arrays, tensors, chunks) for i, value in enumerate(node)
        ]
    if isinstance(node, np.ndarray):
        arrays[path] = node
        return {"$array": path}
    if isinstance(node, torch.Tensor):
        tensors[path] = node.detach().cpu().contiguous()
        return {"$tensor": path}
    if isinstance(node, Chunks):
        name = path.replace("/", ".")
        chunks[name] = node
        return {"$chunks": name}
    return node.item() if isinstance(node, np.generic) else node


def _unflatten(
    node: Any,
    arrays: dict[str, np.ndarray],
    tensors: dict[str, torch.Tensor],
    chunks: dict[str, Chunks],
) -> Any:
    if isinstance(node, list):
        return [_unflatten(value, arrays, tensors, chunks) for value in node]
    if not isinstance(node, dict):
        return node
    for kind, store in (("$array", arrays), ("$tensor", tensors), ("$chunks", chunks)):
        if kind in node:
            return store[node[kind]]
    return {key: _unflatten(value, arrays, tensors, chunks) for key, value in node.items()}


# -- files -------------------------------------------------------------------------------------

_LENGTH = struct.Struct("<Q")


def _write_chunks(path: pathlib.Path, blobs: dict[int, tuple[bytes, int]]) -> None:
    """The index's length, the index as JSON, the blobs one after another."""
    index = json.dumps([[chunk, len(blob), steps] for chunk, (blob, steps) in blobs.items()])
    with path.open("wb") as file:
        file.write(_LENGTH.pack(len(index)))
        file.write(index.encode())
        file.writelines(blob for blob, _ in blobs.values())
    _flush_to_disk(path)


def _read_chunks(path: pathlib.Path) -> dict[int, tuple[bytes, int]]:
    with path.open("rb") as file:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        index = json.loads(file.read(length))
        return {chunk: (file.read(size), steps) for chunk, size, steps in index}


def _steps(folder: pathlib.Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit())


def _hashes(checkpoint: pathlib.Path) -> dict[str, str]:
    hashes: dict[str, str] = json.loads((checkpoint / "manifest.json").read_text())["sha256"]
    return hashes


def _verify(checkpoint: pathlib.Path, name: str, hashes: dict[str, str]) -> None:
    if not (checkpoint / name).exists():
        raise DamagedCheckpoint(f"{name} is missing")
    if _sha256(checkpoint / name) != hashes[name]:
        raise DamagedCheckpoint(f"{name} is not what was written")


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush_to_disk(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
