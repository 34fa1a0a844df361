"""What a run folder tells, and what to compare it with."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hard_eight.errors import HardEightError
from hard_eight.task import Human, find_task
from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.metrics import read_metrics
from studio.datasets import find
from studio.stats import facts

Points = list[tuple[float, float]]
LAST_EPISODES = 25  # the paper counts an agent successful by its last 25 episodes


@dataclass(frozen=True)
class RunData:
    """A run as it stands."""

    folder: Path
    config: Config
    rows: list[dict[str, Any]]
    demonstrations: dict[str, Any] | None = None
    human: Human | None = None
    frames_per_decision: int = 1
    milestones: list[str] = field(default_factory=list)

    def series(self, kind: str, name: str) -> Points:
        """(minutes, value) of one metric, wherever it was measured; `time/x` is in `time`."""
        points = []
        for row in self.rows:
            where = row.get("time", {}) if name.startswith("time/") else row
            value = where.get(name.removeprefix("time/"))
            if row["kind"] == kind and isinstance(value, int | float):
                points.append((minutes(row), float(value)))
        return points

    def last(self, kind: str) -> dict[str, Any] | None:
        return next((row for row in reversed(self.rows) if row["kind"] == kind), None)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == "evaluation"]

    @property
    def is_finished(self) -> bool:
        return self.last("final") is not None


def minutes(row: dict[str, Any]) -> float:
    return float(row.get("time", {}).get("elapsed_s", 0.0)) / 60.0


def read_run(folder: Path) -> RunData:
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder} is no run folder: it holds no config.json")
    config = Config.from_json(path.read_text())
    rows = read_metrics(folder)
    names: dict[str, None] = {}
    for row in rows:
        names.update(
            dict.fromkeys(k.removeprefix("milestone/") for k in row if k.startswith("milestone/"))
        )
    human, repeat = None, 1
    if config.env.startswith("HardEight/"):
        with suppress(HardEightError):  # a task added at run time in the training process
            human = find_task(config.env).human
        repeat = int(json.loads(config.env_args).get("action_repeat", 2))
    return RunData(folder, config, rows, _demonstrations(config), human, repeat, list(names))


def _demonstrations(config: Config) -> dict[str, Any] | None:
    """The dataset's figures, if it can still be read: a report must not fail for want of it."""
    if not config.demos:
        return None
    try:
        return facts(find([config.demos])[0])[0]
    except (UserError, OSError):
        return None
