"""How near the demonstrators' `human` setting comes to the paper's people, and what comes nearer.

`python benchmarks/people.py` plays each task with endless patience, at the skill that `PEOPLE` in
src/hard_eight/experts/habits.py gives, and then works out from the same episodes what any patience
would have made of them: first the one that stands in the table, then the best of a search. Skill
and lateness are to be tried by hand (--skill, --lateness), as they change what is played.
"""

import argparse
import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hard_eight import experts
from hard_eight.experts.habits import HEART, NEVER, PEOPLE, Habits, Manner
from hard_eight.task import Human, all_tasks, find_task
from r2d3.cli.table import print_table
from studio.making import FIRST_SEED
from studio.progress import progress
from studio.recording import make_env
from studio.workers import run_jobs, usable_cores

DECISIONS_PER_SECOND, FRAMES_PER_DECISION = 15, 2


class Job(NamedTuple):
    task: str
    seed: int
    skill: float | None
    lateness: float | None


class Run(NamedTuple):
    """An episode played to its end by someone who never gives up."""

    task: str
    seed: int
    success: bool
    rewards: np.ndarray
    setbacks: list[float]  # when it was stuck, s


class Figures(NamedTuple):
    success: float
    score: float
    score_spread: float
    frames: float
    frames_spread: float


def play(job: Job) -> Run:
    env = make_env(job.task)
    env.reset(seed=job.seed)
    player = experts.make(
        job.task, seed=job.seed, skill="human" if job.skill is None else job.skill
    )
    player.habits = replace(player.habits, patience=NEVER)
    if job.lateness is not None:
        player.habits = replace(player.habits, lateness=job.lateness)
    player.reset(env)
    setbacks: list[float] = []
    player.manner.lose_heart = setbacks.append
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, truncated, info = env.step(player.act(env))
        rewards.append(float(reward))
        ended = terminated or truncated
    return Run(job.task, job.seed, bool(info["success"]), np.array(rewards), setbacks)


def with_patience(runs: list[Run], patience: float, spread: float) -> Figures:
    """What these runs would have been with this patience."""
    success, scores, frames = [], [], []
    for run in runs:
        end = Manner(Habits(patience=patience, patience_spread=spread), run.seed).patience
        for setback in run.setbacks:
            if setback >= end:
                break
            end = setback + HEART * (end - setback)
        last = int(np.ceil(end * DECISIONS_PER_SECOND))
        success.append(run.success and last >= len(run.rewards))
        scores.append(run.rewards[:last].sum())
        frames.append(FRAMES_PER_DECISION * min(last, len(run.rewards)))
    return Figures(
        float(np.mean(success)), float(np.mean(scores)), float(np.std(scores)),
        float(np.mean(frames)), float(np.std(frames)),
    )  # fmt: skip


def distance(figures: Figures, human: Human) -> float:
    """How far from people: 0.5 of return weighs as much as a tenth of the length; spreads less."""
    return (
        ((figures.score - human.score) / 0.5) ** 2
        + ((figures.frames / human.length - 1) / 0.1) ** 2
        + 0.3 * (figures.score_spread - human.score_deviation) ** 2
        + 0.3 * ((figures.frames_spread / human.length_deviation - 1) / 0.5) ** 2
    )


def line(task: str, what: str, figures: Figures) -> list[str]:
    return [
        task, what, f"{figures.success:.0%}", f"{figures.score:.1f} ± {figures.score_spread:.1f}",
        f"{figures.frames:.0f} ± {figures.frames_spread:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="default: all")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--skill", type=float, help="instead of the one in PEOPLE")
    parser.add_argument("--lateness", type=float, help="instead of the one in PEOPLE")
    parser.add_argument("--workers", type=int, default=usable_cores())
    args = parser.parse_args()
    names = [find_task(name).name for name in args.tasks] or [task.name for task in all_tasks()]
    seeds = range(FIRST_SEED, FIRST_SEED + args.episodes)
    jobs = [Job(name, seed, args.skill, args.lateness) for name in names for seed in seeds]
    runs = list(progress(run_jobs(play, jobs, args.workers), len(jobs), "episodes"))
    rows = []
    for name in names:
        human, person = find_task(name).human, PEOPLE[name]
        mine = sorted((run for run in runs if run.task == name), key=lambda run: run.seed)
        now = with_patience(mine, person.patience, person.patience_spread)
        _, patience, spread = min(
            (distance(with_patience(mine, p, s), human), p, s)
            for p, s in itertools.product(
                np.geomspace(6, 100, 30).round(), (0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
            )
        )
        rows.append([name, "people", "", human_score(human), human_length(human)])
        rows.append(line("", f"patience {person.patience:g} s, {person.patience_spread:g}", now))
        rows.append(
            line("", f"best: {patience:g} s, {spread:g}", with_patience(mine, patience, spread))
        )
        rows.append(line("", "endless patience", with_patience(mine, 1e9, 0.0)))
    print_table(["task", "who", "success", "return", "length, frames"], rows)


def human_score(human: Human) -> str:
    return f"{human.score} ± {human.score_deviation}"


def human_length(human: Human) -> str:
    return f"{human.length:.0f} ± {human.length_deviation:.0f}"


if __name__ == "__main__":
    main()
