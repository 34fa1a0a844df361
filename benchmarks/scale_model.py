"""From what `r2d3 bench scale` measured to what larger machines would do.

    python benchmarks/scale_model.py results/cluster/scale.json

First the model's word on the runs that were measured, beside what they did; then two sizes that
nobody here could run: 256 actors and one GPU, 10 000 actors. docs/scaling.md explains the model.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCH, PERIOD, LENGTH, CAPACITY = 32, 40, 80, 500_000  # the paper's
PROCESS_GB = 0.35  # resident, of an acting process with 32 Wall Sensors: as `top` said
PER_INSERT = 1 / PERIOD  # sequences inserted per decision, long episodes


@dataclass(frozen=True)
class Costs:
    """Seconds of one core; what was measured, or follows from it."""

    decision: float  # environment, inference, cutting and compressing
    insert: float  # a sequence, in a shard's process, Ray's part of the call included
    draw: float  # a sequence, in a shard's process
    decode: float  # a sequence, in the learner's process
    learn: float  # a learner step on one core
    bytes_per_step: float
    batch_bytes: float
    weight_bytes: float


def decision_s(stage: dict[str, Any], environments: float) -> float:
    """A decision's three stages, so many environments in a process: batches save inference."""
    measured = {int(n): us for n, us in stage["inference_us_by_batch"].items()}
    infer = np.interp(np.log(environments), np.log(list(measured)), list(measured.values()))
    return float(stage["env_us"] + infer + stage["compress_us"]) * 1e-6


def costs(
    found: dict[str, Any], network: str, environments: float, actor_factor: float, insert: float
) -> Costs:
    stage = next(s for s in found["stages"] if s["network"] == network)
    alone = decision_s(stage, environments)
    # What a shard sends to the learner it has to pack: as dear a byte as unpacking one.
    per_byte = insert / (PERIOD * stage["bytes_per_step"])
    batch_bytes = float(stage["batch_bytes_compressed"])
    return Costs(
        decision=alone * actor_factor,
        insert=insert,
        draw=stage["draw_us_per_sequence"] * 1e-6 + per_byte * batch_bytes / BATCH,
        decode=stage["decode_us_per_sequence"] * 1e-6,
        learn=stage["learn_s"],
        bytes_per_step=stage["bytes_per_step"],
        batch_bytes=batch_bytes,
        weight_bytes=stage["weight_bytes"],
    )


def shared_machine(c: Costs, cores: float, samples_per_insert: float) -> tuple[float, float]:
    """Everything on so many cores, all busy: decisions/s and learner steps/s."""
    samples = samples_per_insert * PER_INSERT  # drawn per decision
    per_decision = c.decision + c.insert * PER_INSERT
    per_decision += samples * (c.draw + c.decode + c.learn / BATCH)
    decisions = cores / per_decision
    return decisions, decisions * samples / BATCH


@dataclass(frozen=True)
class Size:
    name: str
    actors: int
    actor_cores: int
    shards: int
    learner_step_s: float  # of the clock
    samples_per_insert: float
    network_gbit: float  # of the learner's node, and of each shard's
    weights_every: int = 200  # learner steps
    environments_per_process: int = 16


def predict(c: Costs, s: Size) -> dict[str, Any]:
    """Each stage's most, in decisions/s; the least of them is what the whole does."""
    wire = s.network_gbit * 1e9 / 8
    samples = s.samples_per_insert * PER_INSERT
    most = {
        "acting processes' cores": s.actor_cores / c.decision,
        "learner's step": BATCH / s.learner_step_s / samples,
        "learner's decoding (one core)": 1 / c.decode / samples,
        "replay shards' cores": s.shards / (c.insert * PER_INSERT + c.draw * samples),
        "network into the shards": s.shards * wire / c.bytes_per_step,
        "network into the learner": wire / (c.batch_bytes / BATCH * samples),
    }
    decisions = min(most.values())
    steps = decisions * samples / BATCH
    processes = math.ceil(s.actors / s.environments_per_process)
    return {
        "size": s.name,
        "first bottleneck": min(most, key=lambda stage: most[stage]),
        "then": sorted(most, key=lambda stage: most[stage])[1],
        "decisions_per_s": decisions,
        "learner_steps_per_s": steps,
        "decisions_per_s_and_actor": decisions / s.actors,
        "into_shards_MB_per_s": decisions * c.bytes_per_step / 1e6,
        "into_learner_MB_per_s": steps * c.batch_bytes / 1e6,
        "weights_MB_per_s_and_node": steps / s.weights_every * c.weight_bytes / 1e6,
        "replay_GB": CAPACITY * PERIOD * c.bytes_per_step / 1e9,
        "acting_processes": processes,
        "acting_memory_GB": processes * PROCESS_GB,
        "signs_of_life_per_s": processes / 2.0,
        "busy_share": {stage: decisions / value for stage, value in most.items()},
    }


def sizes(learner_step_s: float) -> list[Size]:
    return [
        Size("256 actors, one GPU", 256, 16, 1, learner_step_s, 1.0, 10.0),
        Size("10 000 actors, one GPU, as drawn", 10_000, 640, 8, learner_step_s, 1.0, 10.0),
        Size("10 000 actors, one GPU, nobody held", 10_000, 640, 8, learner_step_s, 0.02, 10.0),
    ]


def measured_factors(found: dict[str, Any]) -> tuple[float, float]:
    """(what a decision costs an acting process beside its stages, a shard's cost of an insertion),
    from the run with one acting process and from the stubs: the rest is checked against these."""
    stage = found["stages"][0]
    first = found["whole"][0]
    alone = decision_s(stage, 32 / first["processes"])
    factor = first["cores"]["actors"] / first["decisions_per_s"] / alone
    stubs = found["stub_runs"][0]
    return factor, stubs["cores"]["replay"] / stubs["inserted_per_s"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument(
        "--gpu-step",
        type=float,
        default=0.1,
        metavar="S",
        help="seconds of a learner step on the GPU: assumed, not measured (0.1)",
    )
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    found = json.loads(args.file.read_text())
    factor, insert = measured_factors(found)
    print(f"a decision costs an acting process {factor:.2f} times its three stages")
    print(f"an insertion costs a shard {insert * 1e6:.0f} us\n")
    checks = []
    network = found["stages"][0]["network"]
    here = costs(found, network, 32, factor, insert)
    for run in found["whole"]:
        here = costs(found, network, 32 / run["processes"], factor, insert)
        cores = sum(run["cores"].values())
        decisions, steps = shared_machine(here, cores, run["samples_per_insert"])
        checks.append({
            "processes": run["processes"], "cores_had": cores,
            "decisions_per_s": run["decisions_per_s"], "predicted_decisions_per_s": decisions,
            "learner_steps_per_s": run["learner_steps_per_s"], "predicted_steps_per_s": steps,
            "predicted_over_measured": decisions / run["decisions_per_s"],
        })  # fmt: skip
    stub_checks = []
    for run in found["stub_runs"]:
        share = run["cores"]["replay"]
        inserted = share / (insert + here.draw * run["samples_per_insert"])
        stub_checks.append({
            "stubs": run["stubs"], "inserted_per_s": run["inserted_per_s"],
            "predicted_inserted_per_s": inserted,
            "predicted_over_measured": inserted / run["inserted_per_s"],
        })  # fmt: skip
    networks = [s["network"] for s in found["stages"]]
    big = costs(found, "resnet" if "resnet" in networks else networks[0], 16, factor, insert)
    predictions = [predict(big, size) for size in sizes(args.gpu_step)]
    for row in (*checks, *stub_checks, *predictions):
        for name, value in row.items():
            if isinstance(value, dict):
                shares = ", ".join(f"{k} {v:.0%}" for k, v in value.items())
                print(f"  {name:28s} {shares}")
            else:
                print(
                    f"  {name:28s} {format(value, ',.4g') if isinstance(value, float) else value}"
                )
        print()
    if args.json:
        result = {"gpu_step_s_assumed": args.gpu_step, "actor_factor": factor,
                  "insert_us": insert * 1e6, "checks": checks, "stub_checks": stub_checks,
                  "predictions": predictions}  # fmt: skip
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
