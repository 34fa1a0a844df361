"""How well the demonstrators do: `python -m hard_eight.experts wall_sensor --episodes 200`."""

import argparse
import time

import gymnasium
import numpy as np

import hard_eight  # noqa: F401  registers the ids
from hard_eight.task import all_tasks, find_task

from . import make


def play(task: str, seed: int, skill: float) -> tuple[float, int, dict[str, bool]]:
    """Return, length in frames and milestones of one episode."""
    env = gymnasium.make(find_task(task).gym_id, disable_env_checker=True)
    env.reset(seed=seed)
    expert = make(task, seed=seed, skill=skill)
    expert.reset(env)
    total, decisions = 0.0, 0
    while True:
        _, reward, terminated, truncated, info = env.step(expert.act(env))
        total += float(reward)
        decisions += 1
        if terminated or truncated:
            return total, 2 * decisions, info["milestones"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hard_eight.experts", description=__doc__)
    parser.add_argument("tasks", nargs="*", default=[task.name for task in all_tasks()])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--skill", type=float, default=1.0)
    args = parser.parse_args()
    for name in args.tasks:
        began = time.perf_counter()
        seeds = range(args.first_seed, args.first_seed + args.episodes)
        played = {seed: play(name, seed, args.skill) for seed in seeds}
        won = {seed for seed, (_, _, reached) in played.items() if list(reached.values())[-1]}
        lengths = np.array([float(played[seed][1]) for seed in won] or [np.nan])
        human = find_task(name).human
        print(
            f"{name}: success {len(won) / len(played):.3f}, "
            f"return {np.mean([p[0] for p in played.values()]):.2f}, "
            f"frames of the won {lengths.mean():.0f} ± {lengths.std():.0f} "
            f"({lengths.min():.0f}..{lengths.max():.0f}), "
            f"{f'{lengths.mean() / human.length:.2f} of human, ' if human else ''}"
            f"{time.perf_counter() - began:.0f} s"
        )
        for seed in sorted(set(played) - won)[:20]:
            reached = [step for step, done in played[seed][2].items() if done]
            print(
                f"  seed {seed}: return {played[seed][0]:.0f}, reached {', '.join(reached) or '-'}"
            )


if __name__ == "__main__":
    main()
