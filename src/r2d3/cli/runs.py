"""Run folders, as `evaluate` and `watch` read them."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING

from r2d3.config import Config
from r2d3.errors import UserError

if TYPE_CHECKING:
    from r2d3.networks import AgentNetwork


def read_config(run: str) -> Config:
    path = pathlib.Path(run) / "config.json"
    if not path.exists():
        raise UserError(f"{run} is no run folder: it holds no config.json")
    return dataclasses.replace(Config.from_json(path.read_text()), out=run)


def load_trained_network(config: Config) -> AgentNetwork:
    """The network of a run's newest whole checkpoint, with the weights it acts with."""
    from r2d3.checkpoint import load_network_weights
    from r2d3.environments import environment_args, make_environment
    from r2d3.launch.parts import make_network
    from r2d3.spaces import number_of_actions, observation_spec

    env = make_environment(config.env, environment_args(config.env_args))
    spec, actions = observation_spec(env.observation_space), number_of_actions(env.action_space)
    env.close()
    network = make_network(config, spec, actions)
    network.load_state_dict(load_network_weights(pathlib.Path(config.out)))
    return network
