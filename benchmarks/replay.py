"""How fast and how small the replay is.

    taskset -c 1 python benchmarks/replay.py --json results/bench/replay.json

Episodes of 72x96 pictures (played in HardEight/WallSensor-v0 at random where that environment is
there, else drawn: a textured room through which a camera turns) go through the real path: chunks
of 40 steps, sequences of 80, priorities. Then: sequences sampled and decoded per second of CPU
time (batches of 32), bytes per step, and the costs of writing.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from typing import Any

import numpy as np

from r2d3.replay import PrioritisedReplay
from r2d3.sequences import ChunkCodec, Episode, SequenceShape, SequenceWriter, write_episode
from r2d3.spaces import ObservationField, ObservationSpec

SHAPE = SequenceShape(length=80, burn_in=40, overlap=40)
BATCH = 32


def drawn_episode(rng: np.random.Generator, steps: int) -> Episode:
    """A camera turning in a room of textured walls: neighbouring frames differ everywhere, as in
    the real thing."""
    grain = rng.normal(0, 6, (72, 480, 3))
    panels = rng.integers(40, 220, (8, 3)).repeat(60, axis=0)[None]
    strip = panels + grain
    strip[44:] = rng.integers(60, 160, 3) + grain[44:]  # the floor
    strip[:12] = rng.integers(150, 220, 3) + grain[:12] * 0.3  # the ceiling
    strip = np.clip(strip, 0, 255).astype(np.uint8)
    at = np.cumsum(rng.integers(-3, 4, steps + 1)) % 384
    frames = np.stack([strip[:, a : a + 96] for a in at])
    return Episode({"rgb": frames}, rng.integers(0, 46, steps), np.zeros(steps), True)


def played_episodes(count: int, steps: int) -> tuple[list[Episode], str]:
    from r2d3.environments import make_environment
    from r2d3.errors import UserError

    rng = np.random.default_rng(0)
    try:
        env = make_environment("HardEight/WallSensor-v0", {})
    except UserError:
        return [drawn_episode(rng, steps) for _ in range(count)], "drawn rooms"
    episodes = []
    for seed in range(count):
        observation, _ = env.reset(seed=seed)
        frames, actions, rewards = [observation["rgb"]], [], []
        for t in range(steps):
            if t % 8 == 0:  # keep on for a while, or the avatar only trembles on the spot
                action = int(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
            observation, reward, *_ = env.step(action)
            frames.append(observation["rgb"])
            actions.append(action)
            rewards.append(float(reward))
        episodes.append(
            Episode({"rgb": np.stack(frames)}, np.array(actions), np.array(rewards), True)
        )
    return episodes, "HardEight/WallSensor-v0, random actions held for 8 decisions"


def measure(count: int, steps: int, batches: int) -> dict[str, Any]:
    episodes, source = played_episodes(count, steps)
    spec = ObservationSpec(
        (ObservationField("rgb", "pixels", episodes[0].observations["rgb"].shape[1:], "uint8"),)
    )
    replay = PrioritisedReplay(
        spec, SHAPE, capacity=100_000, capacity_bytes=1 << 40, exponent=0.9, seed=0
    )
    writer = SequenceWriter(SHAPE, ChunkCodec(spec), replay)
    start = time.process_time()
    for episode in episodes:
        write_episode(writer, episode)
    written = time.process_time() - start
    rng = np.random.default_rng(0)
    rounds = []
    for _ in range(batches):
        priorities = rng.random(BATCH)
        start = time.process_time()
        draw = replay.draw(BATCH)
        batch = replay.new_batch(BATCH)
        replay.read(draw, batch, np.arange(BATCH))
        replay.update_priorities(draw, priorities)
        rounds.append(time.process_time() - start)
    raw = replay.codec.bytes_per_step
    return {
        "frames_from": source,
        "steps": replay.steps,
        "sequences": len(replay),
        "sequences_per_s": BATCH / float(np.median(rounds)),
        "bytes_per_step": replay.bytes / replay.steps,
        "raw_bytes_per_step": raw,
        "compressed_to": replay.bytes / replay.steps / raw,
        "write_us_per_step": written / replay.steps * 1e6,
        "gib_of_500_000_sequences": 500_000
        * SHAPE.period
        * replay.bytes
        / replay.steps
        / (1 << 30),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--episodes", type=int, default=20, metavar="N", help="episodes stored (20)"
    )
    parser.add_argument("--steps", type=int, default=300, metavar="N", help="steps of each (300)")
    parser.add_argument("--batches", type=int, default=50, metavar="N", help="batches timed (50)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")


def run(args: argparse.Namespace) -> int:
    from r2d3.machine import prepare

    prepare(1)
    results = measure(args.episodes, args.steps, args.batches)
    for name, value in results.items():
        print(f"{name:26s} {value if isinstance(value, str) else format(value, ',.4g')}")
    if args.json:
        path = pathlib.Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
