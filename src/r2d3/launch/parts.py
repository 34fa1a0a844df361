"""Builds what a run consists of from its config: all at once, or one role at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from r2d3.actor import Actor, EpisodeSummary
from r2d3.config import Config
from r2d3.demos import demonstration_replay, load_demonstrations
from r2d3.environments import (
    EpisodeStream,
    environment_args,
    make_environments,
    training_seed,
)
from r2d3.evaluator import Evaluator
from r2d3.learner import Learner
from r2d3.mixture import DemoMixture, Replay
from r2d3.networks import AgentNetwork
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import PrioritisedReplay
from r2d3.sequences import SequenceShape
from r2d3.spaces import ObservationSpec


@dataclass(frozen=True)
class Seeds:
    """What is drawn at random in a run, each from a generator of its own."""

    network: int
    demo_replay: int
    agent_replay: int
    policy: int
    mixture: int

    @staticmethod
    def of(config: Config) -> Seeds:
        return Seeds(*(int(s) for s in np.random.SeedSequence(config.seed).generate_state(5)))


@dataclass
class LearningParts:
    """What learns, wherever that is."""

    spec: ObservationSpec
    learner: Learner
    mixture: DemoMixture
    limiter: RateLimiter
    demo_replay: PrioritisedReplay | None


@dataclass
class Parts(LearningParts):
    """All of a run in one process."""

    evaluator: Evaluator
    actor: Actor | None
    agent_replay: PrioritisedReplay | None

    def close(self) -> None:
        self.evaluator.close()
        if self.actor is not None:
            self.actor.stream.close()


def make_network(config: Config, spec: ObservationSpec, actions: int) -> AgentNetwork:
    return AgentNetwork(
        spec,
        actions,
        torso=config.torso,
        core=config.core,
        head="softmax" if config.objective == "imitation" else "dueling",
        features=config.features,
        hidden=config.hidden,
        layer_norm=config.layer_norm,
        precision=config.precision,
    )


def first_network(config: Config, spec: ObservationSpec, actions: int) -> AgentNetwork:
    """The same weights in every process of a run."""
    torch.manual_seed(Seeds.of(config).network)
    return make_network(config, spec, actions)


def training_stream(
    config: Config, seed_of: Callable[[int, int], int], count: int
) -> EpisodeStream:
    args = environment_args(config.env_args, config.max_episode_steps)
    return EpisodeStream(make_environments(config.env, count, args), seed_of)


def agent_replay(
    config: Config, spec: ObservationSpec, shard: int = 0, shards: int = 1
) -> PrioritisedReplay:
    """The agent's replay, or one of several that share its capacity."""
    return PrioritisedReplay(
        spec,
        SequenceShape(config.sequence_length, config.burn_in, config.overlap),
        capacity=-(-config.replay_capacity // shards),
        capacity_bytes=int(config.replay_gib * (1 << 30)) // shards,
        exponent=config.priority_exponent,
        seed=Seeds.of(config).agent_replay + shard,
        state_size=config.hidden if config.stored_state else 0,
    )


def learning_parts(
    config: Config,
    device: str,
    network: AgentNetwork,
    spec: ObservationSpec,
    actions: int,
    agent: Replay | None,
) -> LearningParts:
    seeds = Seeds.of(config)
    demo_replay = None
    if config.demos:
        episodes = load_demonstrations(config.demos, spec, actions, config.demo_limit)
        demo_replay = demonstration_replay(episodes, spec, config, seeds.demo_replay)
    mixture = DemoMixture(
        agent,
        demo_replay,
        batch_size=config.batch_size,
        importance_exponent=config.importance_exponent,
        seed=seeds.mixture,
    )
    # Wide enough that one chunk from every environment at once holds nobody up.
    slack = config.batch_size + config.samples_per_insert * max(config.actors, 1)
    limiter = RateLimiter(config.samples_per_insert, config.min_replay, slack)
    return LearningParts(spec, Learner(network, config, device), mixture, limiter, demo_replay)


def build(config: Config, device: str, on_episode: Callable[[EpisodeSummary], None]) -> Parts:
    """Everything, for one process."""
    stream = training_stream(
        config, lambda i, episode: training_seed(config.seed, i, episode), max(config.actors, 1)
    )
    spec, actions = stream.spec, stream.actions
    network = first_network(config, spec, actions)
    replay, actor = None, None
    if config.actors:
        replay = agent_replay(config, spec)
        seed = Seeds.of(config).policy
        actor = Actor(stream, copy.deepcopy(network), config, replay, seed, on_episode)
    else:
        stream.close()
    learning = learning_parts(config, device, network, spec, actions, replay)
    return Parts(
        **vars(learning),
        evaluator=Evaluator(config, network),
        actor=actor,
        agent_replay=replay,
    )
