"""The evaluator: newest weights, fixed seeds apart from training's, no exploration by default."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from r2d3.actor import Policy
from r2d3.config import Config
from r2d3.environments import (
    EpisodeStream,
    environment_args,
    evaluation_seed,
    make_environment,
    make_environments,
    milestones_of,
    success_of,
)
from r2d3.errors import UserError
from r2d3.networks import AgentNetwork, copy_weights

Seen = TypeVar("Seen")

MOST_AT_ONCE = 40  # environments in one batch


@dataclass
class Played:
    index: int  # which of the evaluation's seeds
    undiscounted_return: float
    length: int
    success: bool
    milestones: dict[str, bool]


class Evaluator:
    """Plays the same episodes every time it is asked; keeps its own environments and network."""

    def __init__(self, config: Config, network: AgentNetwork):
        self.config = config
        self.network = copy.deepcopy(network).cpu()
        self._streams: dict[int, EpisodeStream] = {}

    def evaluate(
        self, weights: AgentNetwork, episodes: int, epsilon: float | None = None
    ) -> dict[str, Any]:
        """Means over `episodes` episodes, each from its own fixed seed."""
        copy_weights(weights, self.network)
        epsilon = self.config.evaluation_epsilon if epsilon is None else epsilon
        played = play(self.network, self._stream(episodes), episodes, epsilon)
        lengths = np.array([p.length for p in played])
        result: dict[str, Any] = {
            "episodes": len(played),
            "epsilon": epsilon,
            "return": float(np.mean([p.undiscounted_return for p in played])),
            "length": float(lengths.mean()),
            "success": float(np.mean([p.success for p in played])),
        }
        for name in played[0].milestones:
            reached = [p.milestones.get(name, False) for p in played]
            result[f"milestone/{name}"] = float(np.mean(reached))
        return result

    def _stream(self, episodes: int) -> EpisodeStream:
        count = min(episodes, MOST_AT_ONCE)
        if count not in self._streams:
            # Evaluation keeps the environment's own time limit, whatever training does.
            args = environment_args(self.config.env_args)
            envs = make_environments(self.config.env, count, args)
            self._streams[count] = EpisodeStream(
                envs, lambda i, episode: evaluation_seed(episode * count + i)
            )
        return self._streams[count]

    def record(self, weights: AgentNetwork, path: pathlib.Path) -> None:
        """One episode (the first seed) as a video."""
        copy_weights(weights, self.network)
        frames = film(self.network, self.config)
        save_video(path, frames)

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self._streams = {}


def play(
    network: AgentNetwork, stream: EpisodeStream, episodes: int, epsilon: float
) -> list[Played]:
    """Episodes 0..episodes-1 of the stream's seeds, in that order."""
    policy = Policy(network, np.full(stream.count, epsilon), seed=0)
    stream.reset()
    # Each environment plays a set number of episodes. Taking the first to finish instead would
    # favour short episodes.
    quota = np.array([len(range(i, episodes, stream.count)) for i in range(stream.count)])
    done = np.zeros(stream.count, np.int64)
    total, length = np.zeros(stream.count), np.zeros(stream.count, np.int64)
    played: list[Played] = []
    while (done < quota).any():
        choice = policy.act(stream.observations)
        step = stream.step(choice.action)
        total += step.reward
        length += step.played
        for i in np.flatnonzero(step.ended).tolist():
            if done[i] < quota[i]:
                says = success_of(step.infos, i)
                played.append(
                    Played(
                        int(done[i]) * stream.count + i,
                        float(total[i]),
                        int(length[i]),
                        bool(total[i] > 0) if says is None else says,
                        milestones_of(step.infos, i),
                    )
                )
            done[i] += 1
        total[step.ended], length[step.ended] = 0.0, 0
        policy.remember(choice.action, step.reward, step.ended | ~step.played)
    return sorted(played, key=lambda p: p.index)


def film(network: AgentNetwork, config: Config, seed: int | None = None) -> list[np.ndarray]:
    """Pictures of one episode."""
    return follow(network, config, evaluation_seed(0) if seed is None else seed, _picture)[0]


def follow(
    network: AgentNetwork, config: Config, seed: int, look: Callable[[Any], Seen]
) -> tuple[list[Seen], Played]:
    """One episode, and what `look` makes of the environment at each of its decisions."""
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    env = make_environment(config.env, environment_args(config.env_args), "rgb_array")
    envs = SyncVectorEnv([lambda: env], autoreset_mode=AutoresetMode.DISABLED)
    stream = EpisodeStream(envs, lambda _, episode: seed + episode)
    policy = Policy(network, np.array([config.evaluation_epsilon]), seed=0)
    stream.reset()
    seen, total = [look(env)], 0.0
    while True:
        choice = policy.act(stream.observations)
        step = stream.step(choice.action)
        total += float(step.reward[0])
        if step.ended[0]:
            break
        seen.append(look(env))
        policy.remember(choice.action, step.reward, step.ended)
    stream.close()
    says = success_of(step.infos, 0)
    success = total > 0 if says is None else says
    return seen, Played(0, total, len(seen), success, milestones_of(step.infos, 0))


def _picture(env: Any) -> np.ndarray:
    picture = env.render()
    if not isinstance(picture, np.ndarray):
        raise UserError(f"{env.spec.id if env.spec else env} draws no pictures (rgb_array)")
    return picture


def save_video(path: pathlib.Path, frames: list[np.ndarray], fps: int = 15) -> None:
    import imageio.v2 as imageio

    # Video codecs want even sides.
    height, width = (side - side % 2 for side in frames[0].shape[:2])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer: Any = imageio.get_writer(path, fps=fps, macro_block_size=1)
        with writer:
            for frame in frames:
                writer.append_data(frame[:height, :width])
    except (OSError, ValueError, TypeError) as error:  # no such format, no right to write there
        raise UserError(f"no video can be written to {path}: {error}") from None
