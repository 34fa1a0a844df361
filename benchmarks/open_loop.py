"""Can a task be won blindly? Actions of won episodes, replayed on other seeds, hardly ever win.

`python benchmarks/open_loop.py` prints a table; the exit status is 1 when more than 10% of the
replays of a task win, which would mean that its episodes vary too little.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from hard_eight.task import all_tasks, find_task
from r2d3.cli.table import print_table
from r2d3.errors import UserError
from studio.making import FIRST_SEED
from studio.pages import fill, table
from studio.progress import progress
from studio.recording import make_env, record
from studio.workers import run_jobs, usable_cores

MOST = 0.10  # of the replays
TRIES = 5  # seeds on which a demonstrator may fail before its task counts as not playable
MARK = "open loop"


class Job(NamedTuple):
    task: str
    seed: int
    replays: int


class Count(NamedTuple):
    task: str
    replays: int
    wins: int


def replay(job: Job) -> Count:
    """Count how often one won episode's actions win on other seeds."""
    for seed in range(job.seed, job.seed + TRIES):
        source = record(job.task, seed)
        if source.success:
            break
    else:
        raise UserError(f"{job.task}: no success on seeds {job.seed} to {job.seed + TRIES - 1}")
    env = make_env(job.task)
    # A replay that did not even win its own seed would show nothing.
    assert wins(env, source.seed, source.actions)
    others = [job.seed + TRIES + k for k in range(job.replays)]
    return Count(job.task, len(others), sum(wins(env, seed, source.actions) for seed in others))


def wins(env, seed, actions) -> bool:
    """Whether these actions win the episode with this seed."""
    env.reset(seed=seed)
    for action in actions:
        *_, terminated, truncated, info = env.step(int(action))
        if terminated or truncated:
            return bool(info["success"])
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="default: all")
    parser.add_argument("--episodes", type=int, default=5, help="won episodes a task (default: 5)")
    parser.add_argument("--replays", type=int, default=20, help="of each of them (default: 20)")
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--into", type=Path, help=f"page to write the table to, at '{MARK}'")
    args = parser.parse_args()

    names = [find_task(name).name for name in args.tasks] or [task.name for task in all_tasks()]
    apart = TRIES + args.replays  # no two episodes of this benchmark share a seed
    first = [FIRST_SEED + 10**6 + k * apart for k in range(args.episodes)]
    jobs = [Job(name, seed, args.replays) for name in names for seed in first]
    counts = list(progress(run_jobs(replay, jobs, args.workers), len(jobs), "episodes"))

    titles, rows, worst = ["task", "episodes", "replays", "wins", "share"], [], 0.0
    for name in names:
        replays = sum(count.replays for count in counts if count.task == name)
        won = sum(count.wins for count in counts if count.task == name)
        worst = max(worst, won / replays)
        rows.append([name, str(args.episodes), str(replays), str(won), f"{won / replays:.1%}"])
    print_table(titles, rows)
    if args.into:
        fill(args.into, MARK, table(titles, rows))
    if worst > MOST:
        print(f"more than {MOST:.0%} of the replays of a task win", file=sys.stderr)
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
