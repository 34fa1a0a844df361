"""Datasets of scripted demonstrations: made in parallel, resumed where they stopped.

A dataset grows in a hidden folder beside its place, episode by episode; each episode's folder, and
at last the whole, gets its name only when it is complete. So whatever is found is whole.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hard_eight.experts.habits import DEMONSTRATORS, HUMAN, Skill
from r2d3.errors import UserError

from . import datasets
from .progress import progress
from .recording import FULL_SIZE, Size, make_env, record, versions
from .workers import run_jobs

# Training draws its seeds below 2**30 and evaluation counts on from there; environments that are
# reset without a seed draw one below 2**31.
FIRST_SEED = 1 << 31


@dataclass(frozen=True)
class Plan:
    """All that a dataset's content follows from."""

    task: str
    episodes: int
    skill: Skill
    first_seed: int
    form: str
    dataset_id: str
    versions: dict[str, str]
    height: int
    width: int

    @property
    def size(self) -> Size:
        return Size(self.height, self.width)


class _Job(NamedTuple):
    plan: Plan
    data: Path
    number: int


def default_id(task: str, skill: Skill, size: Size = FULL_SIZE) -> str:
    """hardeight/wall-sensor/scripted-v0; with another skill or size, another name."""
    if skill == HUMAN:
        who = "scripted-human"
    elif skill == 1.0:
        who = "scripted"
    else:
        who = f"scripted-skill{round(1000 * float(skill)):04d}"
    if size != FULL_SIZE:
        who += f"-{size.width}x{size.height}"
    return f"hardeight/{task.replace('_', '-')}/{who}-v0"


def make_plan(
    task: str,
    episodes: int,
    skill: Skill,
    first_seed: int = FIRST_SEED,
    form: str = "arrow",
    dataset_id: str | None = None,
    size: Size = FULL_SIZE,
) -> Plan:
    dataset_id = dataset_id or default_id(task, skill, size)
    return Plan(
        task, episodes, skill, first_seed, form, dataset_id, versions(), size.height, size.width
    )


def make_datasets(
    plans: list[Plan], root: Path, workers: int, anew: bool = False
) -> Iterator[tuple[Plan, Path, bool]]:
    """Make what is missing; yields each plan with its folder, and whether it was made just now."""
    root = root.resolve()  # Minari loses its way along relative paths
    waiting: dict[str, Plan] = {}
    for plan in plans:
        if _is_there(plan, root / plan.dataset_id, anew):
            yield plan, root / plan.dataset_id, False
        else:
            waiting[plan.dataset_id] = plan
    growing = {name: datasets.half_made(root / name) for name in waiting}
    with _locked(list(growing.values()), anew):
        jobs: list[_Job] = []
        missing: dict[str, int] = {}
        for name, plan in waiting.items():
            data = _begin(plan, growing[name])
            numbers = [k for k in range(plan.episodes) if not (data / str(k)).is_dir()]
            jobs += [_Job(plan, data, k) for k in numbers]
            missing[name] = len(numbers)
            if not numbers:  # killed between the last episode and the end
                _finish(plan, root / name)
        if workers > 1 and jobs:
            _compile(jobs[0].plan.task)
        total = sum(plan.episodes for plan in waiting.values())
        made = run_jobs(_make_episode, jobs, workers)
        for name in progress(made, total, "episodes", done=total - len(jobs)):
            missing[name] -= 1
            if not missing[name]:
                _finish(waiting[name], root / name)
    for name, plan in waiting.items():
        yield plan, root / name, True


def _make_episode(job: _Job) -> str:
    plan, data, number = job
    episode = record(plan.task, plan.first_seed + number, plan.skill, size=plan.size)
    datasets.write_episode(data, number, episode, make_env(plan.task, plan.size), plan.form)
    return plan.dataset_id


def _compile(task: str) -> None:
    """Fill numba's cache here, or every worker would compile the same code."""
    make_env(task).reset(seed=0)


def _is_there(plan: Plan, folder: Path, anew: bool) -> bool:
    """Whether the very dataset is there already; another one in its place is an error."""
    data = datasets.data_folder(folder)
    if data is None:
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} is in the way: it is no dataset, and not empty")
        return False
    there = datasets.read_metadata(data).get("plan")
    if not isinstance(there, dict):
        raise UserError(f"{folder} holds a dataset not made by 'demos make': it is left alone")
    if anew:
        return False
    if there != asdict(plan):
        raise UserError(
            f"{folder} holds another dataset ({_difference(there, plan)}); "
            "--anew makes it anew, --out puts this one elsewhere"
        )
    return True


def _begin(plan: Plan, growing: Path) -> Path:
    """The folder for the episodes, with those that a former run has completed."""
    note = growing / "plan.json"
    if note.is_file():
        there = json.loads(note.read_text())
        if there != asdict(plan):
            raise UserError(
                f"{growing} holds a half-made dataset ({_difference(there, plan)}); "
                "finish it with the same options, or begin again with --anew"
            )
    else:
        note.write_text(json.dumps(asdict(plan)))
    (growing / "data").mkdir(exist_ok=True)
    return growing / "data"


def _difference(there: dict[str, Any], plan: Plan) -> str:
    return ", ".join(
        f"{name} {there.get(name)!r} there, {value!r} now"
        for name, value in asdict(plan).items()
        if there.get(name) != value
    )


def _finish(plan: Plan, folder: Path) -> None:
    """Give a complete dataset its metadata and its name."""
    growing = datasets.half_made(folder)
    data = growing / "data"
    for leftover in data.glob(".*"):
        shutil.rmtree(leftover)
    extra = {
        "plan": asdict(plan),
        "author": {"r2d3 demos make"},
        "algorithm_name": "scripted demonstrators: " + ", ".join(DEMONSTRATORS),
        "description": (
            f"{plan.episodes} episodes of {plan.task} by scripted demonstrators, "
            f"skill {plan.skill}. Pictures are stored without loss."
        ),
        "requirements": [f"mujoco-core=={plan.versions['mujoco']}"],
    }
    datasets.write_metadata(data, plan.dataset_id, make_env(plan.task, plan.size), plan.form, extra)
    shutil.rmtree(folder, ignore_errors=True)
    growing.rename(folder)
    for note in ("plan.json", "lock"):
        (folder / note).unlink(missing_ok=True)
    _name_spaces(folder, plan.dataset_id)


def _name_spaces(folder: Path, dataset_id: str) -> None:
    """Minari wants a note in each folder above a dataset."""
    for above in list(folder.parents)[: dataset_id.count("/")]:
        note = above / "namespace_metadata.json"
        if not note.exists():
            note.write_text("{}")


@contextmanager
def _locked(folders: list[Path], anew: bool) -> Iterator[None]:
    """Keep a second `make` out of the same folders; with `anew`, empty them first."""
    locks = []
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("w")
            locks.append(lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{folder} is being filled by another 'demos make'") from None
            if anew:
                (folder / "plan.json").unlink(missing_ok=True)
                shutil.rmtree(folder / "data", ignore_errors=True)
        yield
    finally:
        for lock in locks:
            lock.close()
