"""Builds everything a run consists of from its config."""

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
from r2d3.mixture import DemoMixture
from r2d3.networks import AgentNetwork
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import PrioritisedReplay
from r2d3.sequences import SequenceShape
from r2d3.spaces import ObservationSpec


@dataclass
class Parts:
    config: Config
    spec: ObservationSpec
    learner: Learner
    mixture: DemoMixture
    limiter: RateLimiter
    evaluator: Evaluator
    actor: Actor | None
    agent_replay: PrioritisedReplay | None
    demo_replay: PrioritisedReplay | None

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


def build(config: Config, device: str, on_episode: Callable[[EpisodeSummary], None]) -> Parts:
    seeds = [int(s) for s in np.random.SeedSequence(config.seed).generate_state(5)]
    torch.manual_seed(seeds[0])
    args = environment_args(config.env_args, config.max_episode_steps)
    envs = make_environments(config.env, max(config.actors, 1), args)
    stream = EpisodeStream(envs, lambda i, episode: training_seed(config.seed, i, episode))
    network = make_network(config, stream.spec, stream.actions)

    demo_replay = None
    if config.demos:
        episodes = load_demonstrations(config.demos, stream.spec, stream.actions, config.demo_limit)
        demo_replay = demonstration_replay(episodes, stream.spec, config, seeds[1])

    agent_replay, actor = None, None
    if config.actors:
        agent_replay = PrioritisedReplay(
            stream.spec,
            SequenceShape(config.sequence_length, config.burn_in, config.overlap),
            capacity=config.replay_capacity,
            capacity_bytes=int(config.replay_gib * (1 << 30)),
            exponent=config.priority_exponent,
            seed=seeds[2],
            state_size=config.hidden if config.stored_state else 0,
        )
        actor = Actor(stream, copy.deepcopy(network), config, agent_replay, seeds[3], on_episode)
    else:
        stream.close()
    mixture = DemoMixture(
        agent_replay,
        demo_replay,
        batch_size=config.batch_size,
        importance_exponent=config.importance_exponent,
        seed=seeds[4],
    )
    # Wide enough that one chunk from every environment at once holds nobody up.
    slack = config.batch_size + config.samples_per_insert * max(config.actors, 1)
    limiter = RateLimiter(config.samples_per_insert, config.min_replay, slack)
    return Parts(
        config=config,
        spec=stream.spec,
        learner=Learner(network, config, device),
        mixture=mixture,
        limiter=limiter,
        evaluator=Evaluator(config, network),
        actor=actor,
        agent_replay=agent_replay,
        demo_replay=demo_replay,
    )
