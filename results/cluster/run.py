"""The MiniGrid run under Ray: on this machine, on three nodes with kills, and beside inline.

    python -m r2d3.study.minigrid_demos BabyAI-UnlockPickup-v0 --episodes 25
    python results/cluster/run.py local       # a Ray of its own
    python results/cluster/run.py faults      # three nodes; an actor, a shard, the learner killed
    python results/cluster/run.py overhead    # inline, then Ray, the same time each, the ratio

Each writes results/cluster/NAME.json (and `faults.log`, every line that the run said, with what was
killed when). Run folders go to --runs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import platform
import signal
import statistics
import sys
import tempfile
import threading
import time
from typing import Any

from r2d3.config import Config, make_config
from r2d3.metrics import read_metrics
from r2d3.terminal import Reporter

HERE = pathlib.Path(__file__).parent
ENV, DEMOS = "BabyAI-UnlockPickup-v0", "minigrid/BabyAI-UnlockPickup/bot-v0"


def settings(args: argparse.Namespace, name: str, **more: Any) -> Config:
    return make_config(**{
        "env": ENV, "demos": DEMOS, "preset": "laptop", "seed": args.seed, "device": "cpu",
        "minutes": args.minutes, "final_episodes": args.episodes, "evaluate_every": 500,
        "tensorboard": False, "report": False, "checkpoint_minutes": 0.5,
        "out": str(pathlib.Path(args.runs) / f"{name}-{args.seed}"), **more,
    })  # fmt: skip


class Log(Reporter):
    """Says all there is to say, with the seconds since the start, here and in a file."""

    seconds = 5.0

    def __init__(self, path: pathlib.Path | None = None):
        super().__init__(io.StringIO())
        self.file = path.open("w") if path else None
        self.began = time.monotonic()
        self.state: dict[str, Any] = {}

    def say(self, text: str) -> None:
        line = f"{time.monotonic() - self.began:7.1f} s  {text}"
        print(line, flush=True)
        if self.file is not None:
            print(line, file=self.file, flush=True)

    def progress(self, state: dict[str, Any]) -> None:
        self.state = state
        super().progress(state)


def write(name: str, result: dict[str, Any]) -> None:
    where = {"machine": platform.processor() or platform.machine(),
             "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}  # fmt: skip
    (HERE / f"{name}.json").write_text(json.dumps({**where, **result}, indent=1) + "\n")


def final_of(config: Config) -> dict[str, Any]:
    rows = read_metrics(pathlib.Path(config.out))
    final = rows[-1]
    assert final["kind"] == "final", f"{config.out} is not finished"
    kept = ("success", "return", "length", "learner_steps", "decisions", "samples_per_insert",
            "inserted", "lost_sequences", "repeated_shipments", "time")  # fmt: skip
    curve = [
        [round(r["time"]["elapsed_s"]), r["success"]] for r in rows if r["kind"] == "evaluation"
    ]
    return {**{name: final[name] for name in kept if name in final}, "evaluations": curve}


def local(args: argparse.Namespace) -> None:
    config = settings(args, "local", launch="ray")
    ray_run(config, Log(HERE / "local.log"))
    write("local", {"minutes": args.minutes, **final_of(config)})


def ray_run(config: Config, log: Log) -> None:
    from r2d3.launch.ray.safety import prepare_environment

    prepare_environment(config)
    from r2d3.launch.ray.run import RayRun

    run = RayRun(config, log)
    run.start()
    run.train()


# -- three nodes, and kills ----------------------------------------------------------------------


def faults(args: argparse.Namespace) -> None:
    from r2d3.launch.ray.safety import prepare_environment

    token = pathlib.Path(tempfile.mkdtemp()) / "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
    prepare_environment(settings(args, "token", launch="ray"))  # makes the token
    os.environ.pop("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")  # several nodes: by the machine's address
    import ray
    from ray.cluster_utils import Cluster

    from r2d3.launch.ray.run import RayRun

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "resources": {"head": 10}, "include_dashboard": False},
    )
    for _ in range(2):
        cluster.add_node(num_cpus=0, resources={"away": 10})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    config = settings(
        args, "faults", launch="ray", address=cluster.address, replay_shards=2, actor_processes=2,
        actor_resources='{"away": 1}', replay_resources='{"away": 1}',
        learner_resources='{"head": 1}', evaluator_resources='{"head": 1}',
    )  # fmt: skip
    log = Log(HERE / "faults.log")
    run = RayRun(config, log)
    run.start()
    killer = threading.Thread(target=kill_one_after_another, args=(run, log, args), daemon=True)
    killer.start()
    run.train()
    killed = [line for line in (HERE / "faults.log").read_text().splitlines() if "SIGKILL" in line]
    write("faults", {"minutes": args.minutes, "nodes": 3, "killed": killed, **final_of(config)})
    ray.shutdown()
    cluster.shutdown()


def kill_one_after_another(run: Any, log: Log, args: argparse.Namespace) -> None:
    """At a quarter, a half and three quarters of the time."""

    def actor() -> int:
        heard = [h for health in run.healths.values() for _, h in health.actors.values()]
        return int(heard[0].note.pid)

    victims = {
        "an acting process": actor,
        "replay shard 0": lambda: int(run.healths[0].pid),
        "the learner": lambda: int(run.status.pid),
    }
    for number, (name, pid) in enumerate(victims.items(), start=1):
        while log.state.get("elapsed_s", 0.0) < 60 * args.minutes * number / 4:
            time.sleep(0.2)
        while True:
            try:
                victim = pid()
            except (IndexError, KeyError, AttributeError):  # it is not there just now
                time.sleep(0.5)
                continue
            break
        log.say(f"SIGKILL to {name}, process {victim}")
        os.kill(victim, signal.SIGKILL)


# -- the price -----------------------------------------------------------------------------------


def overhead(args: argparse.Namespace) -> None:
    """Inline with its second thread against local Ray, turn about; the middle of the ratios."""
    rounds: list[dict[str, Any]] = []
    for number in range(args.rounds):
        speeds: dict[str, Any] = {}
        for launch in ("inline", "ray"):
            config = settings(
                args, f"overhead-{number}-{launch}", launch=launch, final_episodes=0,
                evaluate_every=0, log_every=20, checkpoint_minutes=0.0, actor_processes=1,
            )  # fmt: skip
            # A process for each: the allocator, and Ray, cannot be set back.
            status = os.spawnv(
                os.P_WAIT, sys.executable,
                [sys.executable, __file__, "one", "--config", config.to_json()],
            )  # fmt: skip
            assert status == 0, f"{launch} ended with {status}"
            speeds[launch] = speed_of(config)
        rounds.append(speeds)
    ratios = {
        name: statistics.median(r["ray"][name] / r["inline"][name] for r in rounds)
        for name in ("learner_steps_per_s", "decisions_per_s")
    }
    print(json.dumps(ratios))
    write("overhead", {"minutes": args.minutes, "ray_over_inline": ratios, "rounds": rounds})


def speed_of(config: Config) -> dict[str, float]:
    """Over the second half of the time: beginnings differ."""
    rows = [r for r in read_metrics(pathlib.Path(config.out)) if r["kind"] == "train"]
    half = [r for r in rows if r["time"]["elapsed_s"] >= rows[-1]["time"]["elapsed_s"] / 2]
    first, last = half[0], half[-1]
    seconds = last["time"]["elapsed_s"] - first["time"]["elapsed_s"]
    return {
        f"{name}_per_s": (last[name] - first[name]) / seconds
        for name in ("learner_steps", "decisions")
    }


def one(args: argparse.Namespace) -> None:
    config = Config.from_json(args.config)
    if config.launch == "ray":
        ray_run(config, Log())
        return
    from r2d3.launch.inline import Run

    run = Run(config, Log())
    run.start()
    run.train()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    what = {"local": local, "faults": faults, "overhead": overhead, "one": one}
    parser.add_argument("what", choices=what)
    parser.add_argument("--minutes", type=float, default=5.0, help="training time of each run")
    parser.add_argument("--episodes", type=int, default=200, help="of the final evaluation")
    parser.add_argument("--rounds", type=int, default=3, help="of overhead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", default="runs/cluster", help="run folders go here")
    parser.add_argument("--config", help=argparse.SUPPRESS)
    args = parser.parse_args()
    what[args.what](args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
