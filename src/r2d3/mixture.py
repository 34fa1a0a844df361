"""One batch out of two replays: each *element* comes from the demonstrations with probability rho.

The choice is made anew for every element, as the paper says. So rho = 1/256 works with a batch of
32: seven batches in eight then hold no demonstration at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from r2d3.replay import Draw, SequenceBatch


class Replay(Protocol):
    """What batches are drawn from: a replay in this process, or one spread over others."""

    def draw(self, count: int) -> Draw: ...
    def new_batch(self, size: int) -> SequenceBatch: ...
    def read(self, draw: Draw, batch: SequenceBatch, rows: np.ndarray) -> None: ...
    def update_priorities(self, draw: Draw, priorities: np.ndarray) -> None: ...


@dataclass(frozen=True)
class Origin:
    """Which rows of a batch came from which replay, so that priorities find their way back."""

    replay: Replay
    draw: Draw
    rows: np.ndarray


class DemoMixture:
    """Draws batches from the agent's and the demonstrations' replay."""

    def __init__(
        self,
        agent: Replay | None,
        demos: Replay | None,
        *,
        batch_size: int,
        importance_exponent: float,
        seed: int,
    ):
        self.agent, self.demos = agent, demos
        self.batch_size, self.importance_exponent = batch_size, importance_exponent
        self.rng = np.random.default_rng(seed)

    def sample(self, demo_ratio: float) -> tuple[SequenceBatch, list[Origin]]:
        is_demo = self.rng.random(self.batch_size) < demo_ratio
        replay = self.agent if self.agent is not None else self.demos
        assert replay is not None, "a mixture needs at least one replay"
        batch = replay.new_batch(self.batch_size)
        batch.is_demo = is_demo
        origins = []
        for source, chosen in ((self.agent, ~is_demo), (self.demos, is_demo)):
            rows = np.flatnonzero(chosen)
            if not len(rows):
                continue
            if source is None:
                raise ValueError(f"demo ratio {demo_ratio} asks for a replay that is not there")
            draw = source.draw(len(rows))
            source.read(draw, batch, rows)
            batch.weight[rows] = (draw.size * draw.probabilities) ** -self.importance_exponent
            origins.append(Origin(source, draw, rows))
        # One normalisation over the whole batch: normalised each on their own, demonstrations and
        # experience would weigh differently depending on which replay is the more uneven.
        batch.weight /= batch.weight.max()
        return batch, origins

    @staticmethod
    def update_priorities(origins: list[Origin], priorities: np.ndarray) -> None:
        for origin in origins:
            origin.replay.update_priorities(origin.draw, priorities[origin.rows])

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.rng.bit_generator.state = saved["rng"]
