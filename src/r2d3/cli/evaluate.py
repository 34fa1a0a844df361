"""`r2d3 evaluate`: play the newest checkpoint of a run on fixed seeds."""

from __future__ import annotations

import argparse
import json
import pathlib

from r2d3.cli.runs import load_trained_network, read_config
from r2d3.errors import UserError

HELP = "play a run's newest weights on fixed seeds apart from training's, and print the means"
EPILOG = """examples:
  r2d3 evaluate runs/BabyAI-UnlockPickup-v0-r2d3-0
  r2d3 evaluate runs/wall --episodes 50 --epsilon 0.01 --json wall.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="run folder, as `r2d3 train --out` names it")
    parser.add_argument("--episodes", type=int, default=200, metavar="N", help="how many (200)")
    parser.add_argument(
        "--epsilon", type=float, default=0.0, metavar="X", help="share of random actions (0)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")


def run(args: argparse.Namespace) -> int:
    if args.episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {args.episodes}")
    if not 0.0 <= args.epsilon <= 1.0:
        raise UserError(f"--epsilon must lie in 0..1, not {args.epsilon:g}")
    if args.json and not pathlib.Path(args.json).parent.is_dir():
        raise UserError(f"--json {args.json}: there is no such folder")  # said before the wait
    config = read_config(args.run)
    from r2d3.evaluator import Evaluator
    from r2d3.machine import prepare

    prepare(config.torch_threads)
    network = load_trained_network(config)
    evaluator = Evaluator(config, network)
    result = evaluator.evaluate(network, args.episodes, args.epsilon)
    evaluator.close()
    for name, value in result.items():
        print(f"{name:20s} {value:.4g}")
    if args.json:
        try:
            pathlib.Path(args.json).write_text(json.dumps({"run": args.run, **result}, indent=1))
        except OSError as error:
            raise UserError(f"--json {args.json} cannot be written: {error}") from None
    return 0
