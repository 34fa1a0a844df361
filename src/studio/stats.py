"""What is in a dataset: returns, lengths, successes and actions, by demonstrator."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hard_eight.actions import ACTIONS
from hard_eight.errors import HardEightError
from hard_eight.task import Task, find_task

from .datasets import Dataset, data_folder, open_dataset, read_outcomes

EVERYONE = "all"


@dataclass(frozen=True)
class Outcome:
    """What is counted of one episode."""

    demonstrator: str
    score: float
    frames: int
    success: bool | None  # None: the dataset does not say
    actions: np.ndarray  # how often each was taken


@dataclass(frozen=True)
class Row:
    """The figures of one dataset, or of one demonstrator in it. Spreads are standard deviations."""

    dataset: str
    demonstrator: str
    episodes: int
    score: float
    score_spread: float
    frames: float
    frames_spread: float
    success: float | None
    actions_used: int  # kinds of actions that occur at all
    fine: float | None  # share of decisions that are fine actions


def task_of(dataset: Dataset) -> Task | None:
    """The Hard-Eight task that a dataset shows, if it is one."""
    spec = dataset.minari.env_spec
    if spec is None or not spec.id.startswith("HardEight/"):
        return None
    try:
        return find_task(spec.id)
    except HardEightError:
        return None


def frames_per_decision(dataset: Dataset) -> int:
    """How many frames one action lasts; 1 where there are no frames to speak of."""
    if task_of(dataset) is None:
        return 1
    return int(dataset.minari.env_spec.kwargs.get("action_repeat", 2))


def outcomes(dataset: Dataset) -> list[Outcome]:
    repeat = frames_per_decision(dataset)
    kinds = int(dataset.minari.action_space.n)
    return [
        Outcome(
            demonstrator=str(metadata.get("demonstrator", metadata.get("annotator", "unknown"))),
            score=float(rewards.sum()),
            frames=repeat * len(actions),
            success=metadata.get("success"),
            actions=np.bincount(actions, minlength=kinds),
        )
        for metadata, (actions, rewards) in zip(
            dataset.episodes, read_outcomes(dataset), strict=True
        )
    ]


def rows(dataset: Dataset) -> list[Row]:
    """One row for all episodes, then one for each demonstrator."""
    everyone = outcomes(dataset)
    by_person: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in everyone:
        by_person[outcome.demonstrator].append(outcome)
    fine = _fine_actions(task_of(dataset))
    return [
        _row(dataset.name, who, some, fine)
        for who, some in [(EVERYONE, everyone), *sorted(by_person.items())]
    ]


def _fine_actions(task: Task | None) -> np.ndarray | None:
    return None if task is None else np.array(["_fine" in action.name for action in ACTIONS])


def _row(name: str, who: str, some: list[Outcome], fine: np.ndarray | None) -> Row:
    scores = np.array([outcome.score for outcome in some])
    frames = np.array([outcome.frames for outcome in some])
    known = [outcome.success for outcome in some if outcome.success is not None]
    counts = np.sum([outcome.actions for outcome in some], axis=0)
    return Row(
        dataset=name,
        demonstrator=who,
        episodes=len(some),
        score=float(scores.mean()),
        score_spread=float(scores.std()),
        frames=float(frames.mean()),
        frames_spread=float(frames.std()),
        success=float(np.mean(known)) if known else None,
        actions_used=int((counts > 0).sum()),
        fine=None if fine is None else float(counts[fine].sum() / counts.sum()),
    )


def facts(folder: Path) -> list[dict[str, Any]]:
    """The rows of a dataset beside the paper's table of people, for a program."""
    dataset = open_dataset(folder)
    task = task_of(dataset)
    human = task.human if task is not None else None
    return [
        asdict(row) | {"human": human._asdict() if human is not None else None}
        for row in rows(dataset)
    ]


TITLES = (
    "dataset", "who", "episodes", "return", "length, frames", "success", "actions", "fine",
    "human return", "human length",
)  # fmt: skip


def cells(fact: dict[str, Any]) -> list[str]:
    """One line of the table."""
    human, everyone = fact["human"], fact["demonstrator"] == EVERYONE
    return [
        fact["dataset"] if everyone else "",
        fact["demonstrator"],
        str(fact["episodes"]),
        f"{fact['score']:.1f} ± {fact['score_spread']:.1f}",
        f"{fact['frames']:.0f} ± {fact['frames_spread']:.0f}",
        "unknown" if fact["success"] is None else f"{fact['success']:.0%}",
        str(fact["actions_used"]),
        "" if fact["fine"] is None else f"{fact['fine']:.0%}",
        f"{human['score']} ± {human['score_deviation']}" if human and everyone else "",
        f"{human['length']:.0f} ± {human['length_deviation']:.0f}" if human and everyone else "",
    ]


def size_in_bytes(folder: Path) -> int:
    data = data_folder(folder) or folder
    return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
