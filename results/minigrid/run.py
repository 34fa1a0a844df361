"""The MiniGrid comparison: settings x seeds, each run on one core of its own, then one figure.

    python -m r2d3.study.minigrid_demos BabyAI-UnlockPickup-v0 --episodes 25
    python results/minigrid/run.py --jobs 2 --out results/minigrid/unlock_pickup
    python results/minigrid/figure.py results/minigrid/unlock_pickup

`runs.jsonl` holds every line of every run's metrics.jsonl (with its `run`), `summary.json` the
final evaluations, `settings.json` what was run. A run is one process, pinned to one core, that
acts and learns in turn for `--minutes` of wall time and then plays `--episodes` episodes greedily
on seeds that training never sees. Results are written after every run; a run that is finished
already is not run again, so a stopped comparison goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from typing import Any

ENV, DEMOS = "BabyAI-UnlockPickup-v0", "minigrid/BabyAI-UnlockPickup/bot-v0"
SETTINGS: dict[str, dict[str, Any]] = {
    "r2d3 1/4": {"agent": "r2d3", "demo_ratio": 1 / 4},
    "r2d3 1/16": {"agent": "r2d3", "demo_ratio": 1 / 16},
    "r2d3 1/64": {"agent": "r2d3", "demo_ratio": 1 / 64},
    "r2d3 1/256": {"agent": "r2d3", "demo_ratio": 1 / 256},
    "r2d2": {"agent": "r2d2"},
    "dqfd": {"agent": "dqfd"},
    "bc": {"agent": "bc"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the results")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one core each")
    parser.add_argument("--first-core", type=int, default=0, help="leave the cores before it alone")
    parser.add_argument("--minutes", type=float, default=5.0, help="training time of each run")
    parser.add_argument("--episodes", type=int, default=200, help="of the final evaluation")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--env", default=ENV)
    parser.add_argument("--demos", default=DEMOS)
    parser.add_argument("--only", nargs="*", help="names of settings (default: all)")
    parser.add_argument("--settings", type=pathlib.Path, help="JSON: name -> settings")
    parser.add_argument("--runs", default="runs/minigrid", help="run folders go here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(json.loads(args.worker))
    settings = json.loads(args.settings.read_text()) if args.settings else SETTINGS
    chosen = {name: settings[name] for name in args.only or settings}
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    jobs: list[dict[str, Any]] = []
    for seed in range(args.seeds):
        for name, values in chosen.items():
            said = {
                "env": args.env,
                "demos": "" if values.get("agent") == "r2d2" else args.demos,
                "preset": "laptop",
                "seed": seed,
                "minutes": args.minutes,
                "final_episodes": args.episodes,
                "threads": 0,
                "device": "cpu",
                "checkpoint_minutes": 0,
                "evaluate_every": 500,
                "tensorboard": False,
                **values,
            }
            folder = name.replace(" ", "-").replace("/", "_")
            said["out"] = f"{args.runs}/{args.env}-{folder}-{seed}"
            jobs.append({"name": name, "seed": seed, "said": said, "commit": commit})
    args.out.mkdir(parents=True, exist_ok=True)
    run_all(jobs, args.jobs, args.first_core, args.out)
    return 0


def run_all(jobs: list[dict[str, Any]], at_once: int, first_core: int, out: pathlib.Path) -> None:
    """Each free core takes the next job."""
    free = list(range(first_core, first_core + at_once))
    running: dict[int, subprocess.Popen[bytes]] = {}
    waiting = [job for job in jobs if not finished(job)]
    collect(jobs, out)
    while waiting or running:
        while waiting and free:
            job, core = waiting.pop(0), free.pop(0)
            job["core"] = core
            log = pathlib.Path(job["said"]["out"] + ".log")
            log.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, __file__, "--out", ".", "--worker", json.dumps(job)]
            env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            with log.open("wb") as file:
                running[core] = subprocess.Popen(command, stdout=file, stderr=file, env=env)
            print(f"core {core}: {job['name']} seed {job['seed']}", flush=True)
        for core, process in list(running.items()):
            if process.poll() is not None:
                if process.returncode:
                    print(
                        f"core {core}: exit status {process.returncode}, see its .log", flush=True
                    )
                del running[core]
                free.append(core)
                collect(jobs, out)
        time.sleep(0.2)


def finished(job: dict[str, Any]) -> bool:
    return any(row["kind"] == "final" for row in metrics_of(job))


def metrics_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    path = pathlib.Path(job["said"]["out"]) / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def work(job: dict[str, Any]) -> int:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {job["core"]})
    from r2d3.config import make_config
    from r2d3.launch.inline import Run
    from r2d3.terminal import Reporter

    training = Run(make_config(**job["said"]), Reporter())
    training.start()
    training.train()
    return 0


def collect(jobs: list[dict[str, Any]], out: pathlib.Path) -> None:
    """What the finished runs say. Results of earlier calls for other runs stay."""
    done = [job for job in jobs if finished(job)]
    names = {(job["name"], job["seed"]) for job in done}

    def others(rows: list[Any], key: str) -> list[Any]:
        return [row for row in rows if (row[key], row["seed"]) not in names]

    lines = others([json.loads(line) for line in read(out / "runs.jsonl").splitlines()], "run")
    summary = others(json.loads(read(out / "summary.json") or "[]"), "run")
    described = others(json.loads(read(out / "settings.json") or "[]"), "name")
    for job in done:
        rows = metrics_of(job)
        lines += [{"run": job["name"], "seed": job["seed"], **row} for row in rows]
        final = rows[-1]
        result = {"run": job["name"], "seed": job["seed"]}
        for name in ("success", "return", "length", "learner_steps", "decisions", "time"):
            result[name] = final[name]
        summary.append(result)
        described.append({**job, "machine": platform.machine()})
    (out / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (out / "settings.json").write_text(json.dumps(described, indent=1) + "\n")


def read(path: pathlib.Path) -> str:
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    raise SystemExit(main())
