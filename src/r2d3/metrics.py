"""What a run says about itself: `metrics.jsonl` (the source of every figure) and TensorBoard."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections import defaultdict
from typing import Any

import numpy as np

from r2d3.actor import EpisodeSummary


class MetricWindow:
    """Since the last line: means of the learner's metrics, and the episodes that ended."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.sums: dict[str, float] = defaultdict(float)
        self.counts: dict[str, int] = defaultdict(int)
        self.episodes: list[EpisodeSummary] = []

    def add(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            if np.isfinite(value):
                self.sums[name] += value
                self.counts[name] += 1

    def add_episode(self, summary: EpisodeSummary) -> None:
        self.episodes.append(summary)

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = {name: self.sums[name] / self.counts[name] for name in self.sums}
        row["episodes_ended"] = len(self.episodes)
        if not self.episodes:
            return row
        row.update(_episode_means(self.episodes))
        # The quieter half of the epsilon ladder is what the policy itself can do.
        middle = np.median([e.epsilon for e in self.episodes])
        quiet = [e for e in self.episodes if e.epsilon <= middle]
        row["success_quiet"] = float(np.mean([e.success for e in quiet]))
        return row

    def state_dict(self) -> dict[str, Any]:
        return {
            "sums": dict(self.sums),
            "counts": dict(self.counts),
            "episodes": [dataclasses.asdict(e) for e in self.episodes],
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.clear()
        self.sums.update(saved["sums"])
        self.counts.update(saved["counts"])
        self.episodes = [EpisodeSummary(**e) for e in saved["episodes"]]


def _episode_means(episodes: list[EpisodeSummary]) -> dict[str, float]:
    def mean(name: str) -> float:
        return float(np.mean([getattr(e, name) for e in episodes]))

    means = {
        "return": mean("undiscounted_return"),
        "length": mean("length"),
        "success": mean("success"),
        # Side by side, these two tell whether the values are to be believed.
        "discounted_return": mean("discounted_return"),
        "predicted_return": mean("predicted"),
    }
    for name in episodes[0].milestones:
        reached = [e.milestones.get(name, False) for e in episodes]
        means[f"milestone/{name}"] = float(np.mean(reached))
    return means


class MetricLog:
    """Appends lines to metrics.jsonl and scalars to TensorBoard's event file.

    Each line is one JSON object: `kind` is train, evaluation or final; what depends on the speed
    of the machine is under `time`, so that two runs of the same seed can be compared by the rest.
    """

    def __init__(self, folder: pathlib.Path, tensorboard: bool = True):
        self.path = folder / "metrics.jsonl"
        self._file = self.path.open("a", encoding="utf-8")
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"))

    def write(self, kind: str, row: dict[str, Any]) -> None:
        self._file.write(json.dumps({"kind": kind, **row}) + "\n")
        self._file.flush()
        if self._board is not None:
            flat = {**row, **{f"time/{k}": v for k, v in row.get("time", {}).items()}}
            for name, value in flat.items():
                if isinstance(value, (int, float)):
                    self._board.add_scalar(f"{kind}/{name}", value, row["learner_steps"])

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(folder: pathlib.Path) -> list[dict[str, Any]]:
    """All whole lines: the last one may have been cut by a kill."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            rows.append(json.loads(line))
    return rows


def rewind_metrics(folder: pathlib.Path, lines: int) -> None:
    """Drops what was written after the checkpoint that is being resumed: it will come again."""
    rows = read_metrics(folder)[:lines]
    path = folder / "metrics.jsonl"
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
