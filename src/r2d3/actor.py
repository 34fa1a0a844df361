"""Acting: many environments in one batch, each with its own share of exploration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from r2d3 import losses
from r2d3.config import Config
from r2d3.environments import EpisodeStream, milestones_of, success_of
from r2d3.errors import UserError
from r2d3.networks import AgentNetwork, Inputs
from r2d3.sequences import (
    NO_ACTION,
    ChunkCodec,
    PriorityFunction,
    SequenceShape,
    SequenceWriter,
    Sink,
)
from r2d3.spaces import Arrays, finite_rows

LARGEST_REWARD = 1e38  # float32 holds it


def epsilon_ladder(count: int, base: float, power: float) -> np.ndarray:
    """From `base` down to base ** power, evenly spaced in its logarithm."""
    return base ** (1.0 + (power - 1.0) * np.arange(count) / max(count - 1, 1))


@dataclass
class Choice:
    """What the policy chose for each environment, and what it thought of it."""

    action: np.ndarray
    q_taken: np.ndarray
    q_max: np.ndarray


class Policy:
    """Epsilon-greedy in a batch of environments; carries the recurrent states."""

    def __init__(self, network: AgentNetwork, epsilons: np.ndarray, seed: int):
        self.network, self.epsilons = network.eval(), epsilons
        self.rng = np.random.default_rng(seed)
        self.count = len(epsilons)
        self.state = network.initial_state(self.count)
        self.prev_action = np.full(self.count, NO_ACTION, np.int64)
        self.prev_reward = np.zeros(self.count, np.float32)
        self.rows = np.arange(self.count)

    @torch.inference_mode()
    def act(self, observations: Arrays) -> Choice:
        inputs = Inputs(
            {name: torch.from_numpy(array)[:, None] for name, array in observations.items()},
            torch.from_numpy(self.prev_action)[:, None],
            torch.from_numpy(self.prev_reward)[:, None],
        )
        q, self.state = self.network.unroll(inputs, self.state)
        values = q[:, 0].numpy()
        action = values.argmax(axis=1)
        explore = self.rng.random(self.count) < self.epsilons
        action[explore] = self.rng.integers(0, values.shape[1], int(explore.sum()))
        return Choice(action, values[self.rows, action], values.max(axis=1))

    def state_rows(self) -> np.ndarray:
        """[environments, 2, hidden]: the state before the coming observation is taken in."""
        return torch.stack(self.state, dim=1).numpy()

    def remember(self, action: np.ndarray, reward: np.ndarray, forget: np.ndarray) -> None:
        """After the environments' step; `forget` marks those that begin anew."""
        self.prev_action = np.where(forget, NO_ACTION, action)
        self.prev_reward = np.where(forget, 0.0, reward).astype(np.float32)
        if forget.any():
            with torch.inference_mode():
                # Not a product: a NaN times zero would still be NaN.
                lost = torch.from_numpy(forget)[:, None]
                self.state = (
                    self.state[0].masked_fill(lost, 0),
                    self.state[1].masked_fill(lost, 0),
                )


@dataclass
class EpisodeSummary:
    env_index: int
    epsilon: float
    undiscounted_return: float
    discounted_return: float  # of clipped rewards: what the value at the start predicts
    predicted: float  # that value
    length: int
    success: bool  # as the environment says; where it says nothing: a return above 0
    milestones: dict[str, bool]


def actor_priority(config: Config) -> PriorityFunction:
    """Priority of a new sequence from the values the actor saw anyway."""

    def priority(q: np.ndarray, q_max: np.ndarray, reward: np.ndarray, terminal: bool) -> float:
        r_t = torch.from_numpy(reward)[None]
        if config.clip_rewards:
            r_t = losses.clip_asymmetrically(r_t)
        discount_t = torch.full_like(r_t, config.discount)
        if terminal:
            discount_t[0, -1] = 0.0
        mask = torch.ones_like(r_t)
        q_tm1, v_t = torch.from_numpy(q)[None, :, None], torch.from_numpy(q_max)[None]
        td = losses.td_errors(
            q_tm1,
            torch.zeros_like(r_t, dtype=torch.int64),  # q holds the taken action's value alone
            r_t,
            discount_t,
            v_t,
            mask,
            n=config.n_step,
            rescaled=config.rescale_values,
        )
        return float(losses.sequence_priorities(td, mask, config.priority_eta))

    return priority


class Actor:
    """Steps its environments and writes what happens into the replay."""

    def __init__(
        self,
        stream: EpisodeStream,
        network: AgentNetwork,
        config: Config,
        sink: Sink,
        seed: int,
        on_episode: Callable[[EpisodeSummary], None],
        rungs: np.ndarray | None = None,
    ):
        """`rungs`: which of the run's environments these are, where they are not all of them."""
        self.stream, self.config, self.on_episode = stream, config, on_episode
        self.rungs = np.arange(stream.count) if rungs is None else rungs
        ladder = epsilon_ladder(
            stream.count if rungs is None else config.actors,
            config.epsilon_base,
            config.epsilon_power,
        )
        epsilons = ladder[self.rungs]
        self.policy = Policy(network, epsilons, seed)
        shape = SequenceShape(config.sequence_length, config.burn_in, config.overlap)
        codec = ChunkCodec(stream.spec)
        priority = actor_priority(config) if config.initial_priority == "actor" else None
        self.writers = [SequenceWriter(shape, codec, sink, priority) for _ in range(stream.count)]
        self.decisions = 0
        self.bad_steps = 0
        self.bad_in_a_row = 0
        # An environment that gave a NaN is played on to its episode's end, but not learned from.
        self.spoilt = np.zeros(stream.count, bool)
        # Per running episode: return, discounted return, discount so far, predicted value, length.
        self.running = np.zeros((stream.count, 5))
        self.running[:, 2] = 1.0

    def start(self) -> None:
        self.stream.reset()
        fine = finite_rows(self.stream.observations, self.stream.count)
        self._spoil(~fine)
        self._count_bad(~fine)

    def step(self) -> int:
        """One decision in every environment. Returns how many were real."""
        states = self.policy.state_rows() if self.config.stored_state else None
        seen = self.stream.observations
        choice = self.policy.act(seen)
        step = self.stream.step(choice.action)
        ended = step.ended
        measurable = np.abs(step.reward) < LARGEST_REWARD
        reward = np.where(measurable, step.reward, 0.0)
        # What the network makes of an observation that is finite, but beyond all measure.
        lost = ~np.isfinite(choice.q_max)
        fine = measurable & ~lost
        for i in np.flatnonzero(step.played & ~self.spoilt & fine).tolist():
            writer = self.writers[i]
            state = states[i].copy() if states is not None and writer.wants_state() else None
            observation = {name: array[i] for name, array in seen.items()}
            writer.append(
                observation,
                int(choice.action[i]),
                float(reward[i]),
                choice.q_taken[i],
                choice.q_max[i],
                state,
            )
        self._count(reward, choice.q_max, step.played)
        led_to = finite_rows(self.stream.observations, self.stream.count)
        begun = ended & ~self.stream.resetting  # these show the next episode already
        fine &= led_to | begun
        for i, observation in step.last_observations.items():
            fine[i] &= finite_rows({k: v[None] for k, v in observation.items()}, 1)[0]
        self._spoil(~fine)
        for i in np.flatnonzero(ended).tolist():
            if not self.spoilt[i]:
                self.writers[i].finish(step.last_observations[i], bool(step.terminated[i]))
                self.on_episode(self._summary(i, step.infos))
            self.spoilt[i] = False
            self.running[i] = 0.0, 0.0, 1.0, 0.0, 0.0
        self._spoil(begun & ~led_to)
        self._count_bad(~(fine & led_to))
        self.policy.remember(choice.action, reward, ended | ~step.played | lost)
        played = int(step.played.sum())
        self.decisions += played
        return played

    def _count(self, reward: np.ndarray, q_max: np.ndarray, played: np.ndarray) -> None:
        running, c = self.running, self.config
        first = played & (running[:, 4] == 0)
        running[first, 3] = q_max[first]
        clipped = reward
        if c.clip_rewards:
            clipped = losses.clip_asymmetrically(torch.from_numpy(reward)).numpy()
        running[played, 0] += reward[played]
        running[played, 1] += (running[:, 2] * clipped)[played]
        running[played, 2] *= c.discount
        running[played, 4] += 1

    def _summary(self, i: int, infos: dict[str, Any]) -> EpisodeSummary:
        total, discounted, _, predicted, length = self.running[i].tolist()
        if self.config.rescale_values:
            predicted = float(losses.unrescale(torch.tensor(predicted)))
        success = success_of(infos, i)
        return EpisodeSummary(
            env_index=int(self.rungs[i]),
            epsilon=float(self.policy.epsilons[i]),
            undiscounted_return=total,
            discounted_return=discounted,
            predicted=predicted,
            length=int(length),
            success=total > 0 if success is None else success,
            milestones=milestones_of(infos, i),
        )

    def _spoil(self, which: np.ndarray) -> None:
        """NaN or infinity must reach neither the replay nor a recurrent state."""
        for i in np.flatnonzero(which).tolist():
            self.spoilt[i] = True
            self.writers[i].abandon()

    def _count_bad(self, bad: np.ndarray) -> None:
        if not bad.any():
            self.bad_in_a_row = 0
            return
        for array in self.stream.observations.values():
            if array.dtype.kind == "f":
                np.nan_to_num(array, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        self.bad_steps += 1
        self.bad_in_a_row += 1
        if self.bad_in_a_row >= self.config.bad_steps_allowed:
            which = self.rungs[np.flatnonzero(bad)].tolist()
            raise UserError(
                f"stopped: NaN or infinity in rewards or observations of environments "
                f"{which}, in {self.bad_in_a_row} steps in a row. "
                "Nothing of it was learned from; the environment needs mending"
            )

    # -- the checkpoint ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "stream": self.stream.state_dict(),
            "writers": [writer.state_dict() for writer in self.writers],
            "arrays": {
                "h": self.policy.state[0].numpy().copy(),
                "c": self.policy.state[1].numpy().copy(),
                "prev_action": self.policy.prev_action,
                "prev_reward": self.policy.prev_reward,
                "running": self.running.copy(),
                "spoilt": self.spoilt.copy(),
            },
            "numbers": {
                "decisions": self.decisions,
                "bad_steps": self.bad_steps,
                "bad_in_a_row": self.bad_in_a_row,
            },
            "rng": self.policy.rng.bit_generator.state,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> int:
        """Returns how many running episodes could not be rebuilt and were begun anew."""
        rebuilt = self.stream.load_state_dict(saved["stream"])
        arrays = saved["arrays"]
        self.policy.state = (torch.from_numpy(arrays["h"]), torch.from_numpy(arrays["c"]))
        self.policy.prev_action = arrays["prev_action"]
        self.policy.prev_reward = arrays["prev_reward"]
        self.policy.rng.bit_generator.state = saved["rng"]
        self.running, self.spoilt = arrays["running"], arrays["spoilt"]
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
        for writer, state in zip(self.writers, saved["writers"], strict=True):
            writer.load_state_dict(state)
        lost = np.flatnonzero(~rebuilt)
        for i in lost.tolist():
            self.writers[i].abandon()
            self.running[i] = 0.0, 0.0, 1.0, 0.0, 0.0
        self.spoilt[lost] = False
        self.policy.remember(self.policy.prev_action, self.policy.prev_reward, ~rebuilt)
        return len(lost)
