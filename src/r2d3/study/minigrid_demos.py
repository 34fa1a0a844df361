"""Demonstrations by the BabyAI bot, as a Minari dataset.

    python -m r2d3.study.minigrid_demos BabyAI-UnlockPickup-v0 --episodes 25

writes the dataset `minigrid/BabyAI-UnlockPickup/bot-v0` (see `minari list local`).
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import gymnasium as gym
import numpy as np

from r2d3.demos import save_demonstrations
from r2d3.environments import make_environment
from r2d3.errors import UserError
from r2d3.sequences import Episode
from r2d3.spaces import observation_spec

# Far from the seeds of training (below 2**30, but drawn at random) and of evaluation (above).
FIRST_SEED = (1 << 30) - 1_000_000
DONE_ACTION = 6  # BabyAI's "done" does nothing in these tasks; a bot that says it has given up


def demonstrate(env: gym.Env, seed: int) -> Episode | None:
    """One episode by the bot, or None where it fails."""
    from minigrid.utils.baby_ai_bot import BabyAIBot

    spec = observation_spec(env.observation_space)
    observation, _ = env.reset(seed=seed)
    bot = BabyAIBot(env.unwrapped)
    seen, actions, rewards = [spec.extract(observation)], [], []
    action: Any = None
    terminated = truncated = False
    while not (terminated or truncated):
        try:
            action = int(bot.replan(action))
        except Exception:  # the bot asserts where it finds no way: such an episode is left out
            return None
        if action == DONE_ACTION:
            return None
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(spec.extract(observation))
        actions.append(action)
        rewards.append(float(reward))
    if rewards[-1] <= 0:
        return None
    observations = {name: np.stack([s[name] for s in seen]) for name in seen[0]}
    return Episode(
        observations, np.array(actions), np.array(rewards), bool(terminated), {"seed": seed}
    )


def collect(env_id: str, count: int) -> tuple[list[Episode], int]:
    """`count` successful episodes, and how many the bot failed on the way."""
    env = make_environment(env_id, {})
    episodes: list[Episode] = []
    failures, seed = 0, FIRST_SEED
    while len(episodes) < count:
        episode = demonstrate(env, seed)
        seed += 1
        if episode is None:
            failures += 1
            if failures > 20 * (len(episodes) + 1):
                raise UserError(f"the bot fails on '{env_id}': {failures} failures")
        else:
            episodes.append(episode)
    return episodes, failures


def dataset_name(env_id: str) -> str:
    return f"minigrid/{env_id.split(':')[-1].removesuffix('-v0')}/bot-v0"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("env", help="a BabyAI environment, such as BabyAI-UnlockPickup-v0")
    parser.add_argument("--episodes", type=int, default=25, help="how many (default: 25)")
    parser.add_argument("--dataset", help="id of the dataset to write")
    parser.add_argument(
        "--format", default="arrow", choices=("arrow", "hdf5"), help="Minari's storage (arrow)"
    )
    args = parser.parse_args(argv)
    name = args.dataset or dataset_name(args.env)
    try:
        episodes, failures = collect(args.env, args.episodes)
        save_demonstrations(
            name,
            episodes,
            make_environment(args.env, {}),
            args.format,
            algorithm_name="BabyAI bot",
            author="r2d3",
            author_email="none",
            code_permalink="none",
            description=f"{args.episodes} successful episodes of {args.env} by the BabyAI bot",
        )
    except (UserError, ValueError) as error:
        print(f"minigrid_demos: {error}", file=sys.stderr)
        return 2
    lengths = [len(e) for e in episodes]
    print(
        f"{name}: {len(episodes)} episodes of {np.mean(lengths):.1f} steps "
        f"({min(lengths)}..{max(lengths)}), the bot failed {failures}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
