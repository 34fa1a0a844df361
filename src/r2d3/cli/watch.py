"""`r2d3 watch`: a video of a run's newest weights at play."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib

from r2d3.cli.runs import load_trained_network, read_config
from r2d3.errors import UserError

HELP = "record a video of a run's newest weights at play"
EPILOG = """examples:
  r2d3 watch runs/BabyAI-UnlockPickup-v0-r2d3-0
  r2d3 watch runs/wall --episodes 3 --epsilon 0.01 --video wall.mp4"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="run folder, as `r2d3 train --out` names it")
    parser.add_argument("--episodes", type=int, default=1, metavar="N", help="how many (1)")
    parser.add_argument(
        "--epsilon", type=float, default=0.0, metavar="X", help="share of random actions (0)"
    )
    parser.add_argument("--video", metavar="FILE", help="default: videos/watched.mp4 in the run")
    parser.add_argument("--fps", type=int, default=15, metavar="N", help="pictures a second (15)")


def run(args: argparse.Namespace) -> int:
    if args.episodes < 1 or args.fps < 1:
        raise UserError("--episodes and --fps must be at least 1")
    if not 0.0 <= args.epsilon <= 1.0:
        raise UserError(f"--epsilon must lie in 0..1, not {args.epsilon:g}")
    config = dataclasses.replace(read_config(args.run), evaluation_epsilon=args.epsilon)
    from r2d3.environments import evaluation_seed
    from r2d3.evaluator import film, save_video
    from r2d3.machine import prepare

    prepare(config.torch_threads)
    network = load_trained_network(config)
    frames = []
    for episode in range(args.episodes):
        played = film(network, config, evaluation_seed(episode))
        print(f"episode {episode}: {len(played)} pictures", flush=True)
        frames += played
    path = pathlib.Path(args.video or pathlib.Path(args.run) / "videos" / "watched.mp4")
    save_video(path, frames, args.fps)
    print(path)
    return 0
