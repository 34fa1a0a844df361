"""`r2d3 demos make`: datasets of scripted demonstrations."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from r2d3.errors import UserError

if TYPE_CHECKING:
    from studio.making import Plan

HELP = """\
Let the scripted demonstrators play, and keep what they did as Minari datasets: one for each task,
pictures without loss, a third of the episodes by each of three people of different habits.

Killed at any moment, the same command goes on where it stopped. The same seeds give the same bytes,
with any number of workers.
"""
EPILOG = """\
examples:
  r2d3 demos make wall_sensor                    hardeight/wall-sensor/scripted-v0, 100 episodes
  r2d3 demos make all --episodes 100             all tasks
  r2d3 demos make all --skill human              fails as often as people: .../scripted-human-v0
  r2d3 demos make wall_sensor --height 36 --width 48     small pictures: .../scripted-48x36-v0
  r2d3 demos make baseball --out my/baseball-v0  under another name in Minari's folder
  r2d3 demos make all --out ./demos              into a folder (MINARI_DATASETS_PATH=./demos)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK|all", help="the task, or all of them")
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="for each task (default: 100)"
    )
    parser.add_argument(
        "--skill",
        type=_skill,
        default=1.0,
        metavar="X|human",
        help="1 is an expert, 0 hardly plays; 'human' fails as often as people (default: 1)",
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER|ID",
        help="a folder for the datasets, or a dataset's name (default: Minari's own folder)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="FIRST",
        help="seed of the first episode; the others count on from it (default: 2147483648, which "
        "training and evaluation never use)",
    )
    parser.add_argument(
        "--format", choices=["arrow", "parquet"], default="arrow", help="(default: arrow)"
    )
    for side, pixels in (("height", 72), ("width", 96)):
        parser.add_argument(
            f"--{side}",
            type=int,
            default=pixels,
            metavar="N",
            help=f"of the pictures, in pixels (default: {pixels})",
        )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")
    parser.add_argument(
        "--anew", action="store_true", help="replace what is there, whole or half made"
    )


def _skill(text: str) -> float | str:
    if text == "human":
        return text
    try:
        skill = float(text)
    except ValueError:
        skill = -1.0
    if not 0 <= skill <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is neither from 0 to 1 nor 'human'")
    return skill


def run(args: argparse.Namespace) -> int:
    # Imported late: --help should not wait for the physics to load.
    from studio.datasets import root
    from studio.making import make_datasets
    from studio.stats import size_in_bytes
    from studio.workers import usable_cores

    workers = usable_cores() if args.workers is None else args.workers
    for name, value, most in (("episodes", args.episodes, 10**6), ("workers", workers, 1024)):
        if not 1 <= value <= most:
            raise UserError(f"--{name} is {value}; it must be from 1 to {most}")
    out, dataset_id = _place(args.out, args.task)
    plans = _plans(args, dataset_id)
    began = time.perf_counter()
    made_any = False
    for plan, folder, made in make_datasets(plans, out or root(), workers, args.anew):
        made_any |= made
        size = size_in_bytes(folder) / 1e6
        print(
            f"{plan.dataset_id}: {plan.episodes} episodes, {size:.0f} MB"
            + ("" if made else ", there already"),
            flush=True,
        )
    if made_any:
        print(f"{time.perf_counter() - began:.0f} s; in {out or root()}", file=sys.stderr)
    return 0


def _place(out: str | None, task: str) -> tuple[Path | None, str | None]:
    """The folder and the name that --out says, if it says them."""
    from studio.datasets import is_id

    if out is None:
        return None, None
    if not is_id(out):
        return Path(out).expanduser(), None
    if task == "all":
        raise UserError(f"--out {out} names one dataset; for all tasks give a folder")
    return None, out


def _plans(args: argparse.Namespace, dataset_id: str | None) -> "list[Plan]":
    from hard_eight.env import LARGEST_SEED
    from hard_eight.task import all_tasks, find_task
    from studio.making import FIRST_SEED, make_plan
    from studio.recording import Size, make_env

    first = FIRST_SEED if args.seed is None else args.seed
    if not 0 <= first <= LARGEST_SEED - args.episodes:
        raise UserError(f"--seed is {first}; it must be from 0 to 2**62, all episodes included")
    size = Size(args.height, args.width)
    tasks = all_tasks() if args.task == "all" else [find_task(args.task)]
    make_env(tasks[0].name, size)  # refuses a size that cannot be, before anything is written
    return [
        make_plan(task.name, args.episodes, args.skill, first, args.format, dataset_id, size)
        for task in tasks
    ]
