"""`r2d3 bench env`: how fast the environments step here, and where the time goes."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from r2d3.cli.table import print_table
from r2d3.errors import UserError

HELP = """\
How fast the environments step on this machine, and where a decision's time goes: 96x72 pictures,
2 frames a decision, random actions from a fixed seed, episodes beginning and ending as they come.

Each figure is the median of five rounds. 'single' goes through gymnasium.make, 'batch' through
gymnasium.make_vec; both run on one core and include the resets. 'mj_step' is the time inside the
very calls of MuJoCo's mj_step that the environments make, taken by a clock round each call while
they play; 'ratio' is a decision's whole time, resets aside, in multiples of it. 'drawing' is the
same scenes drawn once more. 'rules' is the rest of the one compiled call: hand, sensors, doors.
'python' is what is outside that call. Decisions that other processes interrupt are left out of this
account, or it says that they are in it. 'start' is a fresh process, from the first import to the
first picture, its compiled code already on the disk. 'x 1.20 on 1.3 cores' stands where other
processes left the threads so little of the machine. Nothing is pinned to a core: for that, run it
under taskset.
"""
EPILOG = """\
examples:
  r2d3 bench env                            all tasks: about half a minute each
  r2d3 bench env wall_sensor --seconds 5    one task, longer and so steadier
  r2d3 bench env --json bench.json          keep all figures, and the machine's name, in a file
"""
BUSY = 0.95  # of the time: with less of its core a measurement is worth little


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="measure these (default: all)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=1.0,
        metavar="S",
        help="length of a round; a task takes about 25 of them (default: 1)",
    )
    parser.add_argument(
        "--batch", type=int, default=32, metavar="N", help="environments in the batch (default: 32)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        metavar="N",
        help="compare the batch on one thread with the batch on this many (default: 2)",
    )
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")


def run(args: argparse.Namespace) -> int:
    _check(args)
    # Imported late: `r2d3 bench env --help` should not wait for the physics to load.
    import hard_eight.tasks  # noqa: F401  fills the registry
    from hard_eight import bench
    from hard_eight.task import all_tasks, find_task

    tasks = [find_task(name) for name in args.tasks] or all_tasks()
    machine = bench.machine()
    print(f"{machine['cpu']}, {machine['cores_usable']} cores usable")
    reports = []
    for number, task in enumerate(tasks, start=1):
        _progress(f"{task.name} ({number} of {len(tasks)}) ...")
        reports.append(
            bench.measure(task.name, seconds=args.seconds, batch=args.batch, threads=args.threads)
        )
    _progress("")
    _print(reports, args.batch)
    if args.json:
        settings = {name: getattr(args, name) for name in ("seconds", "batch", "threads")}
        whole = {"machine": machine, "settings": settings, "tasks": reports}
        Path(args.json).write_text(json.dumps(whole, indent=2) + "\n")
    return 0


def _check(args: argparse.Namespace) -> None:
    if not 0.05 <= args.seconds <= 600:
        raise UserError(f"--seconds is {args.seconds}; it must be from 0.05 to 600")
    for name, most in (("batch", 1024), ("threads", 256)):
        if not 1 <= getattr(args, name) <= most:
            raise UserError(f"--{name} is {getattr(args, name)}; it must be from 1 to {most}")
    if args.json and not Path(args.json).resolve().parent.is_dir():
        raise UserError(f"--json {args.json}: there is no folder {Path(args.json).parent}")


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


Column = tuple[str, Callable[[dict[str, Any]], str]]


def _print(reports: list[dict[str, Any]], batch: int) -> None:
    speed: list[Column] = [
        ("task", lambda r: r["task"]),
        ("single /s", lambda r: f"{r['single']:.0f}"),
        (f"batch of {batch} /s", lambda r: f"{r['batched']:.0f} ± {_spread(r['batched_rounds'])}%"),
        (_threads_title(reports), _speed_up),
        ("reset, ms", lambda r: f"{r['reset_ms']:.1f}"),
        ("worst of 200", lambda r: f"{r['reset_worst_ms']:.1f}"),
        ("start, s", lambda r: f"{r['start_s']:.2f}"),
    ]
    print()
    print("decisions a second on one core")
    _table(speed, reports)
    for form in ("single", "batched"):
        print()
        print(f"{form}: microseconds a decision")
        _table([("task", lambda r: r["task"]), *_parts(form)], reports)
        disturbed = [r["task"] for r in reports if r["breakdown"][form]["disturbed"]]
        if disturbed:
            print(f"Other processes' time is in the figures of {', '.join(disturbed)}.")
    share = min(report["cpu_share"] for report in reports)
    if share < BUSY:
        print()
        print(
            f"The machine was busy: this had its core for {share:.0%} of the time, so the speeds "
            "are too low. With the core to itself, by the processor's own clock:"
        )
        alone: list[Column] = [
            ("task", lambda r: r["task"]),
            ("single /s", lambda r: f"{r['single_per_core_second']:.0f}"),
            (f"batch of {batch} /s", lambda r: f"{r['batched_per_core_second']:.0f}"),
        ]
        _table(alone, reports)


def _parts(form: str) -> list[Column]:
    def part(name: str, digits: int = 1) -> Callable[[dict[str, Any]], str]:
        return lambda report: f"{report['breakdown'][form][name]:.{digits}f}"

    names = ("mj_step", "rules", "drawing", "python", "total")
    return [*((name, part(f"{name}_us")) for name in names), ("ratio", part("ratio", 2))]


def _threads_title(reports: list[dict[str, Any]]) -> str:
    threads = max(report["threads"] for report in reports)
    return f"{threads} threads" if threads > 1 else "threads"


def _speed_up(report: dict[str, Any]) -> str:
    if "speed_up" not in report:
        return "one core only"
    # What other processes took of the cores, the threads cannot use.
    busy = report["cores_had"] < 0.9 * report["threads"]
    where = f" on {report['cores_had']:.1f} cores" if busy else ""
    return f"x {report['speed_up']:.2f}{where}"


def _spread(rounds: list[float]) -> str:
    """Half the distance between the slowest and fastest round, in percent of their middle."""
    return f"{100 * (max(rounds) - min(rounds)) / (max(rounds) + min(rounds)):.0f}"


def _table(columns: list[Column], reports: list[dict[str, Any]]) -> None:
    print_table(
        [title for title, _ in columns],
        [[cell(report) for _, cell in columns] for report in reports],
    )
