"""What each stage of a run costs alone, and what the whole does with more and more processes.

    python benchmarks/scale.py --json results/cluster/scale.json
    python benchmarks/scale_model.py results/cluster/scale.json

Stages: one decision of the environments, of the policy's network, of cutting and compressing; one
sequence taken in by a replay shard, drawn there, decoded at the learner; one learner step; one
broadcast of weights through Ray's object store. In seconds of one core's time (process_time), so
that neighbours on a busy machine count less; the smallest of three rounds. Broadcast and Ray's
calls are of the clock.

Whole: `--launch ray` on this machine with 1, 2, 4, 8 acting processes; then hundreds of stub
actors, which send experience made before, as fast as the rate limiter lets them, to the same shards
and the same learner. Of each process's time /proc tells.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import platform
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from r2d3.config import Config, make_config

ENV = "HardEight/WallSensor-v0"
BASE: dict[str, Any] = {
    "env": ENV, "agent": "r2d2", "preset": "paper", "torso": "cnn", "features": 256, "hidden": 256,
    "minutes": 60.0, "min_replay": 40, "replay_capacity": 4000, "replay_gib": 2.0, "launch": "ray",
    "evaluate_every": 0, "final_episodes": 0, "checkpoint_minutes": 0.0, "tensorboard": False,
    "log_every": 10**9, "report": False, "actor_update_period": 10, "device": "cpu",
    "actor_resources": '{"num_cpus": 0}', "learner_resources": '{"num_cpus": 0}',
}  # fmt: skip


def config(**more: Any) -> Config:
    return make_config(**{**BASE, **more})


def cost(work: Callable[[], Any], times: int, rounds: int = 3) -> float:
    """Seconds of this process's core per call."""
    work()
    best = float("inf")
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - before) / times)
    return best


# -- each stage alone ----------------------------------------------------------------------------


def stages(network: str) -> dict[str, Any]:
    import dataclasses

    import torch

    from r2d3.launch.parts import agent_replay, first_network, training_stream
    from r2d3.launch.ray.intake import Intake
    from r2d3.launch.ray.shipping import ShippingSink
    from r2d3.learner import Learner
    from r2d3.machine import prepare
    from r2d3.sequences import ChunkCodec, SequenceShape, SequenceWriter

    prepare(1)
    c = config(out=tempfile.mkdtemp())
    if network == "resnet":
        c = dataclasses.replace(c, torso="resnet", hidden=512)
    count = 32
    stream = training_stream(c, lambda i, episode: 1000 * i + episode, count)
    stream.reset()
    rng = np.random.default_rng(0)
    actions = [rng.integers(0, stream.actions, count) for _ in range(64)]
    turn = iter(range(10**9))
    step = cost(lambda: stream.step(actions[next(turn) % 64]), 60) / count

    infer = {
        n: infer_s(c, stream, n, 96 // n if network == "resnet" else 640 // n)
        for n in (1, 2, 4, 8, 16, 32)
    }

    # Real pictures of real episodes: as compressible as what actors see.
    shape = SequenceShape(c.sequence_length, c.burn_in, c.overlap)
    seen = [{name: array.copy() for name, array in stream.observations.items()}]
    for t in range(240):
        stream.step(actions[t // 8 % 64])  # each action held for a while, as a policy would
        seen.append({name: array.copy() for name, array in stream.observations.items()})
    sink = ShippingSink(0, "bench", 1)
    writers = [SequenceWriter(shape, ChunkCodec(stream.spec), sink) for _ in range(count)]

    def write() -> None:
        for i, writer in enumerate(writers):
            for t in range(240):
                writer.append({name: array[i] for name, array in seen[t].items()}, 0, 0.0)
            writer.finish({name: array[i] for name, array in seen[240].items()}, False)

    before = time.process_time()
    write()
    compress = (time.process_time() - before) / (240 * count)
    shipment = sink.take(240 * count, 0)
    sequences = sum(type(o).__name__ == "NewSequence" for o in shipment.operations)
    sent = sum(len(o.blob) for o in shipment.operations if hasattr(o, "blob"))

    replay = agent_replay(c, stream.spec)
    intake, serial = Intake(replay), iter(range(1, 10**6))

    def insert() -> None:
        intake.take(dataclasses.replace(shipment, serial=next(serial)))

    insert_s = cost(insert, 5) / sequences
    draw_s = cost(lambda: replay.draw(c.batch_size), 20) / c.batch_size
    batch, draw = replay.new_batch(c.batch_size), replay.draw(c.batch_size)
    rows = np.arange(c.batch_size)
    decode_s = cost(lambda: replay.read(draw, batch, rows), 5) / c.batch_size
    batch.weight[:] = 1.0
    learner = Learner(first_network(c, stream.spec, stream.actions), c, "cpu")
    learn_s = cost(lambda: learner.step(batch), 1, 1 if network == "resnet" else 3)
    weights = sum(p.numel() for p in learner.network.parameters()) * 4
    on_gpu = None
    if torch.cuda.is_available():
        on_gpu = gpu_step(c, stream, batch)
    stream.close()
    return {
        "network": network,
        "env_us": step * 1e6,
        "inference_us": infer[count] * 1e6,
        "inference_us_by_batch": {n: seconds * 1e6 for n, seconds in infer.items()},
        "compress_us": compress * 1e6,
        "bytes_per_step": sent / (240 * count),
        "sequences_per_step": sequences / (240 * count),
        "insert_us_per_sequence": insert_s * 1e6,
        "draw_us_per_sequence": draw_s * 1e6,
        "decode_us_per_sequence": decode_s * 1e6,
        "learn_s": learn_s,
        "learn_s_on_gpu": on_gpu,
        "weight_bytes": weights,
        "batch_bytes_compressed": sum(len(b) for row in draw.chunks for b, _ in row),
        "raw_bytes_per_step": replay.codec.bytes_per_step,
    }


def infer_s(c: Config, stream: Any, count: int, times: int) -> float:
    """Seconds a decision, `count` environments in one batch."""
    from r2d3.actor import Policy
    from r2d3.launch.parts import first_network

    policy = Policy(first_network(c, stream.spec, stream.actions), np.zeros(count), 0)
    seen = {name: array[:count] for name, array in stream.observations.items()}
    return cost(lambda: policy.act(seen), times) / count


def gpu_step(c: Config, stream: Any, batch: Any) -> float:
    """Seconds of the clock per learner step on the GPU, the copy of the batch there included."""
    import torch

    from r2d3.launch.parts import first_network
    from r2d3.learner import Learner

    learner = Learner(first_network(c, stream.spec, stream.actions), c, "cuda")
    for _ in range(5):
        learner.step(batch)
    torch.cuda.synchronize()
    before = time.monotonic()
    for _ in range(30):
        learner.step(batch)
    torch.cuda.synchronize()
    return (time.monotonic() - before) / 30


def ray_stages(weight_bytes: int, chunk_bytes: int) -> dict[str, float]:
    """Ray's own cost: broadcast of weights, small calls, calls that carry a shipment."""
    import ray

    class Taker:
        def take(self, thing: Any) -> int:
            return len(thing[0]) if isinstance(thing, list) else 0

        def fetch(self, where: list[Any]) -> int:
            return int(ray.get(where[0])["w"].nbytes)

    takers = [ray.remote(Taker).options(num_cpus=0).remote() for _ in range(4)]
    weights = {"w": np.zeros(weight_bytes // 4, np.float32)}
    ray.get([t.take.remote(0) for t in takers])

    def broadcast() -> None:
        where = [ray.put(weights)]
        ray.get([t.fetch.remote(where) for t in takers])

    def calls(thing: Any, count: int) -> float:
        before = time.monotonic()
        ray.get([takers[0].take.remote(thing) for _ in range(count)])
        return (time.monotonic() - before) / count

    times = []
    for _ in range(8):
        before = time.monotonic()
        broadcast()
        times.append(time.monotonic() - before)
    large = [os.urandom(chunk_bytes)]
    calls(0, 50)
    result = {
        "broadcast_to_4_ms": min(times) * 1e3,
        "small_call_us": min(calls(0, 300) for _ in range(3)) * 1e6,
        "shipment_bytes": chunk_bytes,
        "shipment_call_us": min(calls(large, 50) for _ in range(3)) * 1e6,
    }
    for taker in takers:
        ray.kill(taker)
    return result


# -- the whole -----------------------------------------------------------------------------------


class StubProcess:
    """Many actors that only send: each with its own name and numbering, as real ones have."""

    def __init__(self, config: Config, worker: int, workers: int, shard: str):
        import ray

        self.shard = ray.get_actor(shard)
        each = int(os.environ["R2D3_STUBS"]) // workers
        blob, steps = self._chunk(config)
        self.steps = steps
        self.operations = lambda number: [
            _new_chunk(number, blob, steps), _new_sequence(number, steps), _released(number)
        ]  # fmt: skip
        self.stubs = [(worker + k * workers, f"stub-{worker}-{k}-{time.time_ns()}")
                      for k in range(each)]  # fmt: skip
        threading.Thread(target=self._send, daemon=True).start()

    def _chunk(self, c: Config) -> tuple[bytes, int]:
        from r2d3.launch.parts import training_stream
        from r2d3.sequences import ChunkCodec

        stream = training_stream(c, lambda i, e: i + e, 1)
        stream.reset()
        steps, rng, rows = c.sequence_length - c.overlap, np.random.default_rng(0), []
        for _ in range(steps + 1):
            rows.append({name: array[0].copy() for name, array in stream.observations.items()})
            stream.step(rng.integers(0, stream.actions, 1))
        columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        columns["prev_action"] = columns["prev_reward"] = np.zeros(steps + 1)
        return ChunkCodec(stream.spec).encode(columns), steps

    def _send(self) -> None:
        import ray

        from r2d3.launch.ray.shipping import Note, Shipment

        note = Note(os.getpid(), "", "acting")
        serial, under_way = 0, []
        while True:
            serial += 1
            for worker, incarnation in self.stubs:
                shipment = Shipment(
                    worker, incarnation, serial, self.operations(serial), [], self.steps, 0
                )
                under_way.append(self.shard.receive.remote(shipment, note))
                if len(under_way) >= 16:  # as many as wait for an answer, all stubs together
                    reply = ray.get(under_way.pop(0))
                    while reply.hold:
                        time.sleep(0.02)
                        reply = ray.get(self.shard.report.remote(worker, incarnation, note))


def _new_chunk(number: int, blob: bytes, steps: int) -> Any:
    from r2d3.launch.ray.shipping import NewChunk

    return NewChunk(number, blob, steps)


def _new_sequence(number: int, steps: int) -> Any:
    from r2d3.launch.ray.shipping import NewSequence
    from r2d3.sequences import SequenceRecord

    return NewSequence(SequenceRecord((number,), 0, 40, steps, False, 1.0))


def _released(number: int) -> Any:
    from r2d3.launch.ray.shipping import Released

    return Released([number])


def whole(c: Config, seconds: float, acting: type | None = None) -> dict[str, Any]:
    """A run on this machine: rates and each role's share of a core, after it has got going."""
    import io

    from r2d3.launch.ray.run import RayRun
    from r2d3.terminal import Reporter

    class Enough(Exception):
        pass

    class Meter(Reporter):
        seconds = 0.5

        def __init__(self) -> None:
            super().__init__(io.StringIO())
            self.first: tuple[float, dict[str, Any], dict[str, float]] | None = None
            self.result: dict[str, Any] = {}

        def progress(self, state: dict[str, Any]) -> None:
            now, used = time.monotonic(), cpu_of_roles(run)
            if self.first is None:
                if state["learner_steps"] >= 3:
                    self.first = now, state, used
                return
            since, before, had = self.first
            if now - since < seconds:
                return
            taken = now - since

            def rate(name: str) -> float:
                return float(state[name] - before[name]) / taken

            self.result = {
                "seconds": taken,
                "decisions_per_s": rate("decisions"),
                "inserted_per_s": rate("inserted"),
                "learner_steps_per_s": rate("learner_steps"),
                "samples_per_insert": 32 * rate("learner_steps") / max(rate("inserted"), 1e-9),
                "learner_waited_share": rate("learner_waited_s"),
                "cores": {role: (used[role] - had.get(role, 0.0)) / taken for role in used},
                "waiting": state["waiting"],
                "troubles": state["troubles"],
            }
            raise Enough

    meter = Meter()
    run = RayRun(c, meter)
    if acting is not None:
        run.acting_process = acting
    run.start()
    with contextlib.suppress(Enough):
        run.train()
    return meter.result


def cpu_of_roles(run: Any) -> dict[str, float]:
    """Seconds of processor time that each role's processes have taken so far."""
    pids: dict[str, set[int]] = {"learner": set(), "replay": set(), "actors": set()}
    if run.status is not None:
        pids["learner"].add(run.status.pid)
    for health in run.healths.values():
        pids["replay"].add(health.pid)
        pids["actors"] |= {heard.note.pid for _, heard in health.actors.values()}
    return {role: sum(map(cpu_seconds, found)) for role, found in pids.items()}


def cpu_seconds(pid: int) -> float:
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- all together --------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",") if word]

    parser.add_argument("--processes", type=numbers, default=[1, 2, 4, 8], metavar="N,N,...",
                        help="acting processes of the whole runs (1,2,4,8)")  # fmt: skip
    parser.add_argument("--stubs", type=numbers, default=[100, 400], metavar="N,N,...",
                        help="stub actors (100,400)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=20.0, help="measured of each run (20)")
    parser.add_argument("--networks", default="cnn,resnet", help="of the stages (cnn,resnet)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")


def run(args: argparse.Namespace) -> int:
    results: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "load_before": os.getloadavg()[0],
        "env": ENV,
        "stages": [stages(network) for network in args.networks.split(",") if network],
        "whole": [],
        "stub_runs": [],
    }
    for found in results["stages"]:
        show(f"stages, {found['network']}", found)
    if args.processes or args.stubs:
        run_on_ray(args, results)
    if args.json:
        path = pathlib.Path(args.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def run_on_ray(args: argparse.Namespace, results: dict[str, Any]) -> None:
    from r2d3.launch.ray.safety import prepare_environment

    out = pathlib.Path(tempfile.mkdtemp())
    prepare_environment(config(out=str(out)))
    os.environ["R2D3_STUBS"] = "0"
    import ray
    from ray import cloudpickle

    from r2d3.launch.ray.run import connect

    cloudpickle.register_pickle_by_value(__import__("sys").modules[__name__])
    found = results["stages"][0] if results["stages"] else {"weight_bytes": 10**7}
    connect(config(out=str(out)))
    results["ray"] = ray_stages(int(found["weight_bytes"]), 112_000)
    show("Ray", results["ray"])
    for processes in args.processes:
        c = config(out=str(out / f"whole-{processes}"), actors=32, actor_processes=processes)
        measured = {"processes": processes, **whole(c, args.seconds)}
        results["whole"].append(measured)
        show(f"whole, {processes} acting processes", measured)
    ray.shutdown()
    for stubs in args.stubs:
        os.environ["R2D3_STUBS"] = str(stubs)
        # As much as the shard takes: the limiter lets the actors run far ahead of the learner.
        c = config(out=str(out / f"stubs-{stubs}"), actors=stubs, actor_processes=2,
                   samples_per_insert=0.05)  # fmt: skip
        measured = {"stubs": stubs, **whole(c, args.seconds, StubProcess)}
        results["stub_runs"].append(measured)
        show(f"{stubs} stub actors", measured)


def show(title: str, figures: dict[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        text = format(value, ",.4g") if isinstance(value, float) else str(value)
        print(f"  {name:26s} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
