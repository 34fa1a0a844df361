"""How fast the learner is, beside what the machine could do and beside the plain way.

    taskset -c 1 python benchmarks/learner.py --json results/bench/learner.json

Two networks on 72x96 RGB frames, batches of 32 sequences of 80 steps, burn-in 40: the small CNN
with an LSTM of 256, and the paper's ResNet with one of 512. A step is everything `Learner.step`
does: both networks' burn-in, both unrolls, loss, gradient, Adam. Frames/s counts the 80 x 32
steps of a batch once, though most of them go through two networks.

"Plain" is the same step with the default memory layout, all frames through the torso at once and
the allocator as it comes. "One frame at a time" is the torso fed single frames, forward only,
against the torso as we use it, forward only. Times are of the process's own CPU (one thread), the
smallest of `--repeats`, so that neighbours on a busy machine do not count.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from r2d3.config import Config, make_config
from r2d3.launch.parts import make_network
from r2d3.learner import Learner
from r2d3.machine import keep_freed_memory
from r2d3.networks import AgentNetwork
from r2d3.replay import SequenceBatch
from r2d3.spaces import ObservationField, ObservationSpec
from r2d3.torsos import ConvTorso

ACTIONS, HEIGHT, WIDTH = 46, 72, 96
SPEC = ObservationSpec(
    (
        ObservationField("acceleration", "vector", (3,), "float32"),
        ObservationField("hand", "vector", (3,), "float32", low=(0.0,) * 3, high=(1.0,) * 3),
        ObservationField("rgb", "pixels", (HEIGHT, WIDTH, 3), "uint8"),
    )
)
NETWORKS = {
    "cnn": {"torso": "cnn", "features": 256, "hidden": 256},
    "resnet": {"torso": "resnet", "features": 256, "hidden": 512},
}


def config(network: str, precision: str) -> Config:
    return make_config(
        env="HardEight/WallSensor-v0", demos="none", preset="paper", precision=precision,
        **NETWORKS[network],
    )  # fmt: skip


def random_batch(c: Config) -> SequenceBatch:
    rng = np.random.default_rng(0)
    b, m = c.batch_size, c.sequence_length
    return SequenceBatch(
        observations={
            "acceleration": rng.normal(size=(b, m + 1, 3)).astype(np.float32),
            "hand": rng.random((b, m + 1, 3), np.float32),
            "rgb": rng.integers(0, 256, (b, m + 1, HEIGHT, WIDTH, 3), np.uint8),
        },
        prev_action=rng.integers(0, ACTIONS, (b, m + 1)),
        prev_reward=np.zeros((b, m + 1), np.float32),
        action=rng.integers(0, ACTIONS, (b, m)),
        reward=rng.normal(size=(b, m)).astype(np.float32),
        terminal=np.zeros((b, m), np.float32),
        mask=np.ones((b, m), np.float32),
        left_pad=np.zeros(b, np.int64),
        weight=np.ones(b, np.float32),
        is_demo=np.zeros(b, bool),
    )


def best_seconds(work: Callable[[], Any], repeats: int) -> float:
    work()  # first touches of memory, first calls
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak_gflops() -> float:
    """The machine's own matrix-multiply rate, one thread, float32."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    return 2 * 2048**3 / best_seconds(lambda: a @ b, 5) / 1e9


def step_flops(network: AgentNetwork, c: Config) -> float:
    """Multiplications and additions of one learner step, counted by PyTorch on a small batch."""
    from torch.utils.flop_counter import FlopCounterMode

    small = random_batch(c)
    for name in ("observations", "prev_action", "prev_reward", "action", "reward", "terminal"):
        value = getattr(small, name)
        cut = {k: v[:1] for k, v in value.items()} if isinstance(value, dict) else value[:1]
        setattr(small, name, cut)
    small.mask, small.left_pad = small.mask[:1], small.left_pad[:1]
    small.weight, small.is_demo = small.weight[:1], small.is_demo[:1]
    counter = FlopCounterMode(display=False)
    with counter:
        Learner(network, c).step(small)
    # The counter does not look into the LSTM: 8 hidden (inputs + hidden) a step and network, the
    # online one backwards too.
    lstm = network.core
    each = 8 * lstm.hidden_size * (lstm.input_size + lstm.hidden_size)
    trained, burn_in = c.trained_steps + 1, c.burn_in
    walked = each * (2 * burn_in + trained + 3 * trained)
    return c.batch_size * (float(counter.get_total_flops()) + walked)


def make_plain() -> None:
    """The torso as one would write it at first."""

    def forward(self: ConvTorso, frames: torch.Tensor) -> torch.Tensor:
        self.layers.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        x = frames.permute(0, 3, 1, 2).contiguous().float().sub_(104.0).mul_(1 / 50.0)
        return self.layers(x).flatten(1)

    ConvTorso.forward = forward  # type: ignore[method-assign]


def measure(network: str, precision: str, plain: bool, repeats: int) -> dict[str, Any]:
    """One network, in this process: the allocator cannot be set back."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    if plain:
        make_plain()
    else:
        keep_freed_memory()
    c = config(network, precision)
    learner = Learner(make_network(c, SPEC, ACTIONS), c)
    batch = random_batch(c)
    seconds = best_seconds(lambda: learner.step(batch), repeats)
    frames = c.batch_size * c.sequence_length
    result: dict[str, Any] = {"step_s": seconds, "frames_per_s": frames / seconds}
    if not plain and precision == "float32":
        flops = step_flops(make_network(c, SPEC, ACTIONS), c)
        peak = peak_gflops()
        result["gflop_per_step"] = flops / 1e9
        result["peak_gflops"] = peak
        result["share_of_peak"] = flops / 1e9 / seconds / peak
        torso = learner.network.torsos["rgb"]
        pictures = torch.from_numpy(batch.observations["rgb"][0, :64])

        @torch.inference_mode()
        def singly() -> None:
            for picture in pictures:
                torso(picture[None])

        @torch.inference_mode()
        def together() -> None:
            torso(pictures)

        result["torso_over_one_frame_at_a_time"] = best_seconds(singly, 3) / best_seconds(
            together, 3
        )
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=tuple(NETWORKS), help="one network (default: both)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="steps timed (3)")
    parser.add_argument(
        "--no-plain", action="store_true", help="leave the plain way out: it is slow"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--one", metavar="WHICH", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.one:
        network, precision, way = args.one.split(",")
        print(json.dumps(measure(network, precision, way == "plain", args.repeats)))
        return 0
    results: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    for network in [args.only] if args.only else list(NETWORKS):
        for precision, way in (("float32", "ours"), ("bfloat16", "ours"), ("float32", "plain")):
            if way == "plain" and args.no_plain:
                continue
            repeats = 1 if way == "plain" and network == "resnet" else args.repeats
            command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--one"]
            command += [f"{network},{precision},{way}", "--repeats", str(repeats)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            measured = json.loads(output)
            results[f"{network} {precision} {way}"] = measured
            figures = ", ".join(f"{name} {value:.4g}" for name, value in measured.items())
            print(f"{network:7s} {precision:9s} {way:6s} {figures}", flush=True)
        ours, plain = (results.get(f"{network} float32 {way}") for way in ("ours", "plain"))
        if ours and plain:
            ratio = plain["step_s"] / ours["step_s"]
            results[f"{network} over the plain way"] = ratio
            print(f"{network:7s} {ratio:.2f} times as fast as the plain way", flush=True)
    if args.json:
        path = pathlib.Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
