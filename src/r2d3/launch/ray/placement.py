"""Where the roles go: what each reserves, how many acting processes there are."""

from __future__ import annotations

import json
import math
from typing import Any

import ray

from r2d3.config import ROLES, Config
from r2d3.launch.ray.acting import ActingProcess
from r2d3.launch.ray.evaluating import EvaluatingProcess
from r2d3.launch.ray.learning import EVALUATOR, LearningProcess
from r2d3.launch.ray.shard import ReplayShard
from r2d3.spaces import ObservationSpec

# Ray's own names; all others are resources that an operator gave nodes.
_OWN = ("num_cpus", "num_gpus", "memory")


def options(config: Config, role: str, gpus: float = 0.0) -> dict[str, Any]:
    """What Ray is asked for, in a cluster that has so many GPUs. Every process is started again
    whenever it dies."""
    wanted = json.loads(getattr(config, f"{role}_resources"))
    if role == "learner" and config.device != "cpu" and gpus >= 1:
        wanted.setdefault("num_gpus", 1)  # Ray hides GPUs from whoever reserved none
    own = {name: amount for name, amount in wanted.items() if name in _OWN}
    named = {name: amount for name, amount in wanted.items() if name not in _OWN}
    return {
        "num_cpus": 0,  # said, or Ray would ask for a whole one to start with
        **own,
        "resources": named,
        "max_restarts": -1,
        "max_task_retries": 0,  # calls are repeated by us, where repeating does no harm
        "scheduling_strategy": "SPREAD" if role in ("actor", "replay") else "DEFAULT",
    }


def demand(config: Config, role: str, name: str) -> float:
    return float(json.loads(getattr(config, f"{role}_resources")).get(name, 0))


def number_of_actors(config: Config, cpus: float) -> int:
    """As many acting processes as there are CPUs left, at least one, each with work to do."""
    if not config.actors:
        return 0
    if config.actor_processes:
        return config.actor_processes
    others = demand(config, "learner", "num_cpus") + demand(config, "evaluator", "num_cpus")
    others += demand(config, "replay", "num_cpus") * config.replay_shards
    each = demand(config, "actor", "num_cpus")
    fitting = int((cpus - others) // each) if each else int(cpus - others)
    return min(max(fitting, 1), config.actors)


def homeless(config: Config) -> list[str]:
    """Roles that no node of the cluster could take even if it were empty, in words."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    ray_names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    found = []
    for role in ROLES:
        wanted = json.loads(getattr(config, f"{role}_resources"))
        wanted = {ray_names.get(name, name): amount for name, amount in wanted.items()}
        if not any(
            all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes
        ):
            found.append(f"no node has what --{role}-resources asks for: {json.dumps(wanted)}")
    return found


class Roles:
    """The handles of all the processes of a run.

    They find each other by name: a handle among a constructor's arguments would live in the object
    store of one node, and with that node all restarts would be lost.
    """

    def __init__(
        self,
        config: Config,
        spec: ObservationSpec,
        actions: int,
        cpus: float,
        acting: type = ActingProcess,
    ):
        gpus = ray.cluster_resources().get("GPU", 0.0)

        def start(role: str, name: str, process: type, *arguments: Any) -> Any:
            made = ray.remote(process).options(name=name, **options(config, role, gpus))
            return made.remote(config, *arguments)

        workers = number_of_actors(config, cpus)
        shards = config.replay_shards if workers else 0
        names = [f"replay-{number}" for number in range(shards)]
        first = config.min_replay + config.batch_size / config.samples_per_insert + config.actors
        each = math.ceil(first / max(shards, 1))
        self.shards = [
            start("replay", name, ReplayShard, spec, number, each)
            for number, name in enumerate(names)
        ]
        self.evaluator = start("evaluator", EVALUATOR, EvaluatingProcess, spec, actions)
        self.learner = start("learner", "learner", LearningProcess, spec, actions, names)
        self.actors = [
            start("actor", f"actor-{n}", acting, n, workers, names[n % shards])
            for n in range(workers)
        ]

    def kill(self) -> None:
        for handle in (*self.actors, self.learner, self.evaluator, *self.shards):
            ray.kill(handle)
