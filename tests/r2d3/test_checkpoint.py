"""Checkpoints: whole or not at all, two generations, damage found, nothing through pickle."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest
import torch

import r2d3
from r2d3.checkpoint import GENERATIONS, CheckpointStore, load_network_weights
from r2d3.errors import UserError
from r2d3.replay import Chunks


def state(value: float = 1.0, chunks: range = range(5)) -> dict[str, Any]:
    return {
        "numbers": {"steps": 7, "big": 2**100, "none": None, "flag": True, "text": "ρ"},
        "list": [{"a": np.arange(3)}, {"a": np.ones((2, 2), np.float32)}],
        "tensors": {"w": torch.full((2, 3), value)},
        "replay": {"chunks": Chunks({i: (bytes([i % 256]) * 10, i) for i in chunks})},
    }


def test_what_was_saved_comes_back(tmp_path: pathlib.Path) -> None:
    CheckpointStore(tmp_path).save(12, state())
    loaded = CheckpointStore(tmp_path).load()
    assert loaded is not None
    want = state()
    assert loaded["numbers"] == want["numbers"]
    for got, expected in zip(loaded["list"], want["list"], strict=True):
        np.testing.assert_array_equal(got["a"], expected["a"])
        assert got["a"].dtype == expected["a"].dtype
    assert torch.equal(loaded["tensors"]["w"], want["tensors"]["w"])
    assert loaded["replay"]["chunks"] == want["replay"]["chunks"]


def test_two_generations_are_kept(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path)
    for step in (1, 2, 3, 4):
        store.save(step, state(float(step)))
    assert store.steps() == [3, 4]
    assert GENERATIONS == 2


@pytest.mark.parametrize(
    "name", ["state.json", "arrays.npz", "tensors.safetensors", "replay.chunks-000000.chunks",
             "manifest.json"]
)  # fmt: skip
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_damage_is_found_named_and_the_one_before_is_used(
    tmp_path: pathlib.Path, name: str, damage: str
) -> None:
    store = CheckpointStore(tmp_path)
    store.save(1, state(1.0, range(5)))
    store.save(2, state(2.0, range(2, 9)))
    path = store.path(2) / name
    content = path.read_bytes()
    path.unlink()  # a linked file must not be damaged in both generations
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    said: list[str] = []
    loaded = CheckpointStore(tmp_path, said.append).load()
    assert loaded is not None
    assert float(loaded["tensors"]["w"][0, 0]) == 1.0
    assert len(said) == 1
    assert said[0].startswith("checkpoint 2 is damaged")


def test_leftovers_of_a_kill_are_removed_at_the_start(tmp_path: pathlib.Path) -> None:
    CheckpointStore(tmp_path).save(1, state())
    half = tmp_path / ".tmp-000000002-4711"
    half.mkdir()
    (half / "state.json").write_text("{")
    store = CheckpointStore(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["000000001"]
    assert store.load() is not None


def test_a_kill_while_a_checkpoint_of_the_same_step_is_replaced_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(tmp_path)
    store.save(1, state(1.0))
    rename = pathlib.Path.rename

    def killed_between(path: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        if target == tmp_path / "000000001":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(pathlib.Path, "rename", killed_between)
        with pytest.raises(KeyboardInterrupt):
            store.save(1, state(2.0))
    loaded = CheckpointStore(tmp_path).load()
    assert loaded is not None
    assert float(loaded["tensors"]["w"][0, 0]) == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["000000001"]


def test_a_damaged_checkpoint_does_not_count_as_a_generation(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path)
    for step in (1, 2, 9):
        store.save(step, state(float(step)))
    (store.path(9) / "state.json").write_text("{")
    again = CheckpointStore(tmp_path, lambda _: None)
    again.load()  # goes on from 2
    again.save(3, state(3.0))
    assert again.steps() == [2, 3]


def run_state(value: float) -> dict[str, Any]:
    tensors = {"network": {"w": torch.full((2,), value)}, "target": {"w": torch.zeros(2)}}
    return {**state(), "learner": {"tensors": tensors}}


def test_reading_the_weights_leaves_a_run_that_is_writing_alone(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    store.save(1, run_state(1.0))
    store.save(2, run_state(2.0))
    being_written = tmp_path / "checkpoints" / ".tmp-000000003-4711"
    being_written.mkdir()
    (store.path(2) / "replay.chunks-000000.chunks").unlink()  # the replay is none of its business
    assert load_network_weights(tmp_path)["w"].tolist() == [2.0, 2.0]
    assert being_written.exists()
    (store.path(2) / "tensors.safetensors").write_bytes(b"x")
    said: list[str] = []
    assert load_network_weights(tmp_path, said.append)["w"].tolist() == [1.0, 1.0]
    assert said[0].startswith("checkpoint 2 is damaged")


def test_averaged_weights_are_the_ones_to_act_with(tmp_path: pathlib.Path) -> None:
    saved = run_state(1.0)
    saved["learner"]["tensors"]["average"] = {"w": torch.full((2,), 5.0)}
    CheckpointStore(tmp_path / "checkpoints").save(1, saved)
    assert load_network_weights(tmp_path)["w"].tolist() == [5.0, 5.0]


def test_unchanged_chunks_are_linked_and_changed_ones_written(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path)
    name = "replay.chunks-000000.chunks"
    first = (store.save(1, state(chunks=range(9))) / name).stat().st_ino
    second = (store.save(2, state(chunks=range(3, 9))) / name).stat().st_ino
    third = (store.save(3, state(chunks=range(3, 12))) / name).stat().st_ino
    assert first == second != third
    loaded = CheckpointStore(tmp_path).load()
    assert loaded is not None
    assert set(range(3, 12)) <= set(loaded["replay"]["chunks"].blobs)


def test_a_checkpoint_of_the_same_step_replaces_the_old_one(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path)
    store.save(1, state(1.0))
    store.save(1, state(2.0))
    loaded = store.load()
    assert loaded is not None
    assert float(loaded["tensors"]["w"][0, 0]) == 2.0
    assert len(list(tmp_path.iterdir())) == 1


def test_no_checkpoint_is_written_with_a_nan_in_it(tmp_path: pathlib.Path) -> None:
    store = CheckpointStore(tmp_path)
    with pytest.raises(UserError, match="tensors/w"):
        store.save(1, state(float("nan")))
    assert store.steps() == []


def test_nothing_in_the_agent_uses_pickle() -> None:
    folder = pathlib.Path(r2d3.__file__).parent
    wrong = re.compile(
        r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve)"
        r"|torch\.(load|save)\(|allow_pickle=True"
    )
    for path in folder.rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not wrong.search(line), f"{path}:{number}: {line}"
