"""Every setting of a run, in one place: the command line, the run folder and the code read this.

A preset is a set of values, an agent is a set of values; what the user says comes last.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass
from typing import Any, Literal

from r2d3.errors import UserError


def _setting(default: Any, help_line: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help_line})


@dataclass(frozen=True)
class Config:
    # What is trained, on what
    env: str = _setting("", "id of a Gymnasium environment with discrete actions")
    env_args: str = _setting("{}", "keyword arguments of the environment, as JSON")
    agent: Literal["r2d3", "r2d2", "dqfd", "bc"] = _setting("r2d3", "which of the four agents")
    preset: Literal["laptop", "workstation", "paper"] = _setting(
        "laptop", "set of values to start from"
    )
    demos: str = _setting("", "Minari dataset of demonstrations: its id, or the path of its folder")
    demo_limit: int = _setting(0, "use the first so many demonstrations only (0: all)")
    out: str = _setting("", "run folder (default: runs/ENV-AGENT-SEED)")
    seed: int = _setting(0, "everything random in the run follows from this number")
    # What makes the agents differ
    demo_ratio: float = _setting(
        1 / 256, "rho: probability that an element of a batch is a demonstration"
    )
    objective: Literal["value", "imitation"] = _setting(
        "value", "double Q-learning, or cross-entropy"
    )
    core: Literal["lstm", "feedforward"] = _setting("lstm", "what the network's core is")
    # Network
    torso: Literal["resnet", "cnn", "mlp"] = _setting("resnet", "what looks at pictures")
    features: int = _setting(256, "width of the linear layer after the torso")
    hidden: int = _setting(512, "width of the core and of the heads")
    layer_norm: bool = _setting(True, "LayerNorm after the torso's linear layer")
    precision: Literal["float32", "bfloat16"] = _setting("float32", "of the torso's arithmetic")
    # Sequences
    sequence_length: int = _setting(80, "m: steps of a sequence, burn-in included")
    burn_in: int = _setting(40, "first steps of a sequence, which only warm up the recurrent state")
    overlap: int = _setting(40, "steps that neighbouring sequences share")
    stored_state: bool = _setting(False, "start from the actor's recurrent state instead of zero")
    # Learning
    batch_size: int = _setting(32, "sequences per learner step")
    learning_rate: float = _setting(2e-4, "of Adam")
    adam_epsilon: float = _setting(1e-8, "of Adam; gradients are small, 1e-4 held learning back")
    clip_norm: float = _setting(40.0, "largest global norm of the gradient")
    discount: float = _setting(0.997, "gamma")
    n_step: int = _setting(5, "steps of the n-step target")
    target_period: int = _setting(400, "learner steps between two updates of the target network")
    rescale_values: bool = _setting(True, "learn h(value), which squashes large values")
    clip_rewards: bool = _setting(True, "asymmetric reward clipping")
    # Priorities and replay
    priority_exponent: float = _setting(1.0, "how strongly priorities count (0: uniform)")
    priority_eta: float = _setting(
        0.9, "share of the largest error in a sequence's priority, rest: mean"
    )
    importance_exponent: float = _setting(0.6, "beta: how fully importance weights undo priorities")
    initial_priority: Literal["actor", "one"] = _setting(
        "actor", "of new sequences: the actor's own error, or 1"
    )
    replay_capacity: int = _setting(500_000, "sequences in the agent's replay")
    replay_gib: float = _setting(64.0, "GiB of compressed steps in the agent's replay, at most")
    min_replay: int = _setting(25_000, "sequences in the replay before learning starts")
    samples_per_insert: float = _setting(1.0, "sequences drawn for each one inserted")
    # Acting
    actors: int = _setting(256, "environments, each with its own epsilon")
    epsilon_base: float = _setting(0.4, "the largest epsilon of the ladder")
    epsilon_power: float = _setting(8.0, "the smallest epsilon is the largest to this power")
    actor_update_period: int = _setting(
        200, "learner steps between two refreshments of the actors' weights"
    )
    max_episode_steps: int = _setting(
        0, "cut training episodes off after so many steps (0: the environment's own limit)"
    )
    # Options beyond the paper, off by default
    margin_weight: float = _setting(0.0, "weight of DQfD's large-margin loss on demonstrations")
    margin: float = _setting(0.05, "by how much a demonstrated action shall beat the others")
    demo_ratio_start: float = _setting(
        -1.0, "rho at the start, if it shall change linearly (-1: constant)"
    )
    demo_ratio_steps: int = _setting(0, "learner steps over which rho changes")
    warmup_steps: int = _setting(0, "learner steps on demonstrations alone, before acting starts")
    averaged_weights: float = _setting(
        0.0, "decay of averaged weights for acting and evaluation (0: off)"
    )
    # The run
    minutes: float = _setting(0.0, "stop after so many minutes (0: no limit)")
    learner_steps: int = _setting(0, "stop after so many learner steps (0: no limit)")
    threads: int = _setting(1, "0: act and learn in turn, deterministic; 1: act in a second thread")
    torch_threads: int = _setting(1, "cores that one operation of the learner may use")
    device: Literal["auto", "cpu", "cuda"] = _setting(
        "auto", "where the learner runs (auto: cuda if there)"
    )
    log_every: int = _setting(200, "learner steps between two lines of metrics")
    evaluate_every: int = _setting(2000, "learner steps between two evaluations (0: none)")
    evaluation_episodes: int = _setting(20, "episodes of such an evaluation")
    final_episodes: int = _setting(200, "episodes of the evaluation at the end (0: none)")
    evaluation_epsilon: float = _setting(0.0, "exploration during evaluation")
    video_every: int = _setting(0, "record one episode at every so many evaluations (0: never)")
    checkpoint_minutes: float = _setting(
        5.0, "minutes between two checkpoints (0: only at the end)"
    )
    checkpoint_steps: int = _setting(0, "also every so many learner steps (0: by time only)")
    report: bool = _setting(True, "keep report.html, the run's page, up to date")
    tensorboard: bool = _setting(True, "write TensorBoard events beside metrics.jsonl")
    bad_steps_allowed: int = _setting(5, "steps with NaN or infinity in a row before the run stops")
    # More than one process (docs/cluster.md)
    launch: Literal["inline", "ray"] = _setting(
        "inline", "all in this process, or each role in processes of its own, on Ray"
    )
    address: str = _setting(
        "", "of a Ray cluster to join, or auto (default: start Ray on this machine)"
    )
    listen: str = _setting(
        "127.0.0.1", "address that a Ray started here takes; another one lets machines join"
    )
    listen_publicly: bool = _setting(
        False, "start Ray though the machine has a public address, which it will listen on"
    )
    dashboard: bool = _setting(False, "start Ray's dashboard too, on 127.0.0.1")
    actor_processes: int = _setting(
        0, "processes that the environments are divided among (0: one for each free CPU)"
    )
    replay_shards: int = _setting(1, "processes that the agent's replay is divided among")
    prefetch: int = _setting(2, "batches that are drawn and decoded ahead of the learner")
    actor_resources: str = _setting(
        '{"num_cpus": 1}', "what Ray shall reserve for each acting process, as JSON"
    )
    learner_resources: str = _setting(
        '{"num_cpus": 1}', 'the same for the learner; names of your own pick nodes: {"gpu_node": 1}'
    )
    replay_resources: str = _setting('{"num_cpus": 0}', "the same for each replay shard")
    evaluator_resources: str = _setting('{"num_cpus": 0}', "the same for the evaluator")
    hang_seconds: float = _setting(
        120.0, "a process that is silent, or in one environment step, for so long is restarted"
    )

    @property
    def trained_steps(self) -> int:
        return self.sequence_length - self.burn_in

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> Config:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"config.json cannot be read: {error}") from None
        if not isinstance(values, dict):
            raise UserError("config.json holds no settings")
        known = {f.name for f in dataclasses.fields(Config)}
        strangers = sorted(set(values) - known)
        if strangers:
            raise UserError(f"config.json holds settings this version does not know: {strangers}")
        return Config(**values)


# `paper` is the dataclass itself: its defaults are the paper's table.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "workstation": {
        "actors": 64,
        "hidden": 512,
        "precision": "bfloat16",
        "replay_capacity": 100_000,
        "replay_gib": 16.0,
        "min_replay": 1_000,
        "samples_per_insert": 4.0,
        "priority_exponent": 0.9,
        "demo_ratio": 1 / 64,
        "actor_update_period": 50,
        "torch_threads": 4,
    },
    # Chosen on MiniGrid's UnlockPickup for R2D3: docs/learning.md says how, and how well it does.
    "laptop": {
        "demo_ratio": 1 / 64,
        "torso": "cnn",
        "features": 128,
        "hidden": 128,
        "sequence_length": 30,
        "burn_in": 10,
        "overlap": 10,
        "learning_rate": 5e-4,
        "averaged_weights": 0.99,  # policies churn; off in `paper`
        "clip_norm": 10.0,
        "discount": 0.99,
        "n_step": 10,
        "target_period": 100,
        "priority_exponent": 0.9,
        "replay_capacity": 20_000,
        "replay_gib": 4.0,
        "min_replay": 200,
        "samples_per_insert": 10.0,
        "actors": 32,
        "actor_update_period": 5,
    },
}

PRESET_HELP = {
    "laptop": "small, for two cores without a GPU; the default",
    "workstation": "one GPU and some cores; not measured",
    "paper": "every value of the paper's table: 256 environments, ResNet, LSTM of 512",
}

# The four agents are one system: nothing but settings tells them apart.
AGENTS: dict[str, dict[str, Any]] = {
    "r2d3": {},
    "r2d2": {"demo_ratio": 0.0},
    "dqfd": {"core": "feedforward", "demo_ratio": 0.25},
    "bc": {"objective": "imitation", "demo_ratio": 1.0, "actors": 0},
}


def make_config(**said: Any) -> Config:
    """The preset's values, then the agent's, then what was said; refused if they cannot work."""
    preset, agent = said.get("preset", "laptop"), said.get("agent", "r2d3")
    if preset not in PRESETS:
        raise UserError(f"unknown preset '{preset}': choose from {', '.join(PRESETS)}")
    if agent not in AGENTS:
        raise UserError(f"unknown agent '{agent}': choose from {', '.join(AGENTS)}")
    config = Config(**{**PRESETS[preset], **AGENTS[agent], **said})
    if not config.out:
        name = config.env.split("/")[-1].split(":")[-1]
        config = dataclasses.replace(config, out=f"runs/{name}-{agent}-{config.seed}")
    check(config)
    return config


def check(config: Config) -> None:
    """Refuses what cannot work, before anything starts."""
    c = config
    hints = typing.get_type_hints(Config)
    for f in dataclasses.fields(Config):
        value, hint = getattr(c, f.name), hints[f.name]
        choices = typing.get_args(hint)
        if choices and value not in choices:
            raise UserError(f"{flag(f.name)} is one of {', '.join(choices)}, not '{value}'")
    _demand(bool(c.env), "no environment named")
    for name in _AT_LEAST:
        _demand(
            getattr(c, name) >= _AT_LEAST[name], f"{flag(name)} must be at least {_AT_LEAST[name]}"
        )
    for name in ("learning_rate", "clip_norm", "replay_gib", "samples_per_insert", "adam_epsilon"):
        _demand(getattr(c, name) > 0, f"{flag(name)} must be above 0")
    for name in ("demo_ratio", "discount", "priority_eta", "epsilon_base", "evaluation_epsilon"):
        _demand(0 <= getattr(c, name) <= 1, f"{flag(name)} must lie in 0..1")
    _demand(0 <= c.averaged_weights < 1, "--averaged-weights must lie in 0..1, below 1")
    _demand(
        c.burn_in < c.sequence_length,
        "--burn-in leaves nothing to train: it must be less than --sequence-length",
    )
    _demand(
        c.burn_in <= c.overlap < c.sequence_length,
        f"--overlap must lie in {c.burn_in}..{c.sequence_length - 1}: less than the burn-in would "
        "leave steps that are never trained, as much as the length would never move on",
    )
    _demand(
        c.threads in (0, 1), "--threads is 0 (in turn, deterministic) or 1 (act in a second thread)"
    )
    _demand(
        c.min_replay <= c.replay_capacity,
        "--min-replay is larger than --replay-capacity: learning could never start",
    )
    _demand(not (c.stored_state and c.core != "lstm"), "--stored-state needs --core lstm")
    largest = max(c.demo_ratio, c.demo_ratio_start, 1.0 if c.warmup_steps else 0.0)
    if largest > 0:
        _demand(
            bool(c.demos),
            f"--agent {c.agent} with demo ratio {largest:g} needs --demos; r2d2 needs none",
        )
    else:
        _demand(not c.demos, "--demos would never be used: --demo-ratio is 0")
        _demand(c.margin_weight == 0, "--margin-weight acts on demonstrations: --demo-ratio is 0")
    if c.actors == 0:
        _demand(
            c.demo_ratio == 1.0, "--actors 0 leaves demonstrations alone: --demo-ratio must be 1"
        )
    if c.objective == "imitation":
        _demand(
            c.demo_ratio == 1.0,
            "--objective imitation copies demonstrations: --demo-ratio must be 1",
        )
        _demand(c.actors == 0, "--objective imitation learns without acting: --actors must be 0")
        _demand(c.margin_weight == 0, "--margin-weight belongs to --objective value")
    _demand(
        (c.demo_ratio_start < 0) == (c.demo_ratio_steps == 0),
        "--demo-ratio-start and --demo-ratio-steps go together",
    )
    _json_object(c, "env_args", '{"height": 36}')
    for role in ROLES:
        resources = _json_object(c, f"{role}_resources", '{"num_cpus": 1}')
        for name, amount in resources.items():
            _demand(
                isinstance(amount, (int, float)) and not isinstance(amount, bool) and amount >= 0,
                f"{flag(f'{role}_resources')}: '{name}' must be a number, 0 or more",
            )
    if c.launch == "inline":
        _demand(not c.address, "--address names a Ray cluster: it needs --launch ray")
    else:
        _demand(
            c.replay_shards <= c.replay_capacity, "--replay-shards: more than --replay-capacity"
        )
        _demand(
            c.actor_processes <= max(c.actors, 1),
            f"--actor-processes {c.actor_processes}: there are only {c.actors} environments "
            "(--actors) to divide among them",
        )


_AT_LEAST = {
    "batch_size": 1, "n_step": 1, "target_period": 1, "actor_update_period": 1, "features": 1,
    "hidden": 1, "burn_in": 0, "sequence_length": 2, "actors": 0, "replay_capacity": 1,
    "min_replay": 1, "log_every": 1, "evaluate_every": 0, "evaluation_episodes": 1,
    "final_episodes": 0, "demo_limit": 0, "seed": 0, "bad_steps_allowed": 1, "torch_threads": 1,
    "warmup_steps": 0, "minutes": 0, "learner_steps": 0, "checkpoint_minutes": 0,
    "margin_weight": 0, "checkpoint_steps": 0, "max_episode_steps": 0, "priority_exponent": 0,
    "importance_exponent": 0, "demo_ratio_steps": 0, "video_every": 0, "actor_processes": 0,
    "replay_shards": 1, "prefetch": 1, "hang_seconds": 1,
}  # fmt: skip

ROLES = ("actor", "learner", "replay", "evaluator")  # each with resources of its own under Ray


def _json_object(config: Config, name: str, example: str) -> dict[str, Any]:
    try:
        value = json.loads(getattr(config, name))
    except json.JSONDecodeError as error:
        raise UserError(f"{flag(name)} is no JSON: {error}") from None
    _demand(isinstance(value, dict), f"{flag(name)} must be a JSON object, such as '{example}'")
    assert isinstance(value, dict)
    return value


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UserError(otherwise)
