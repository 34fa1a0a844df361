"""The learner's end of the replay: one replay to draw from, wherever its shards are.

Priorities are global: a shard is chosen by its share of all shards' mass, a sequence by its share
of the shard's, so a sequence's probability is its share of the whole. Importance weights are worked
out from the probabilities with which it was really drawn. Masses are those of the shards' latest
answers, at most a fraction of a second old.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayActorError

from r2d3.actor import EpisodeSummary
from r2d3.launch.ray.shard import Notice, ShardState, Totals
from r2d3.launch.ray.shipping import Weights
from r2d3.replay import Draw, SequenceBatch, SequenceReader

ANSWER_SECONDS = 5.0  # a shard that takes longer is left out until it answers


class NothingToDraw(Exception):
    """No shard that answers holds a sequence."""


@dataclass(frozen=True)
class ShardedDraw(Draw):
    """Rows of several shards; which of them, in `shard`."""

    shard: np.ndarray
    incarnations: tuple[str, ...]  # of all the shards, at the time


@dataclass
class Shard:
    """A shard as the learner knows it."""

    number: int
    handle: Any
    state: ShardState | None = None
    # What restarts have lost: added to what it says, so that counters never go back.
    lost: Totals = dataclasses.field(default_factory=Totals)
    pending: Any = None  # a call that was not answered in time
    silent_since: float | None = None

    @property
    def drawable(self) -> bool:
        return self.pending is None and self.state is not None and self.state.mass > 0


class ShardedReplay:
    """Used by one thread at a time."""

    def __init__(
        self,
        handles: list[Any],
        reader: SequenceReader,
        seed: int,
        say: Callable[[str], None],
        on_episode: Callable[[EpisodeSummary], None],
    ):
        self.shards = [Shard(number, handle) for number, handle in enumerate(handles)]
        self.reader, self.say, self.on_episode = reader, say, on_episode
        self.rng = np.random.default_rng(seed)
        self.weights: Weights | None = None
        self.stop = False
        self.room = 1 << 62  # sequences that the actors may still send, all together
        self.refreshed = 0.0
        self.news = False  # something was lost that no checkpoint knows of yet

    # -- what is known -------------------------------------------------------------------------

    @property
    def states(self) -> list[ShardState]:
        return [shard.state for shard in self.shards if shard.state is not None]

    @property
    def mass(self) -> float:
        return sum(shard.state.mass for shard in self.shards if shard.state and shard.drawable)

    def __len__(self) -> int:
        return sum(state.sequences for state in self.states)

    @property
    def bytes(self) -> int:
        return sum(state.bytes for state in self.states)

    @property
    def held_s(self) -> float:
        return sum(state.held_s for state in self.states)

    def total(self, name: str) -> int:
        """Over all shards, of all their lives."""
        said = sum(getattr(state.totals, name) for state in self.states)
        return int(said + sum(getattr(shard.lost, name) for shard in self.shards))

    def lost(self) -> int:
        return sum(shard.lost.inserted for shard in self.shards)

    def silent(self) -> list[str]:
        now = time.monotonic()
        return [
            f"replay shard {shard.number} has not answered for {now - shard.silent_since:.0f} s"
            for shard in self.shards
            if shard.silent_since is not None
        ]

    # -- talking to the shards -----------------------------------------------------------------

    def refresh(self, patience: float = ANSWER_SECONDS) -> None:
        """Asks every shard how it is, and tells it what the learner has to tell."""
        self._exchange({shard.number: 0 for shard in self.shards}, patience)
        self.refreshed = time.monotonic()

    def _exchange(
        self, counts: dict[int, int], patience: float = ANSWER_SECONDS
    ) -> dict[int, Draw | None]:
        """One call to each of these shards, all at once; answers come from those that live."""
        asked = []
        for number, count in counts.items():
            shard = self.shards[number]
            if shard.pending is None:
                shard.pending = shard.handle.exchange.remote(self._notice(shard), count)
            else:
                # Asked long ago, not answered: nothing more is piled up before it. What it may
                # have drawn for that call nobody waits for any more.
                counts = {**counts, number: 0}
            asked.append(shard)
        answers: dict[int, Draw | None] = {}
        until = time.monotonic() + patience
        for shard in asked:
            try:
                left = max(until - time.monotonic(), 0.0)
                state, draw = ray.get(shard.pending, timeout=left)
            except GetTimeoutError:
                shard.silent_since = shard.silent_since or time.monotonic()
                continue
            except RayActorError:  # it is being restarted
                shard.silent_since = shard.silent_since or time.monotonic()
                shard.pending = None
                if shard.state is not None:
                    shard.state = dataclasses.replace(shard.state, mass=0.0, episodes=[])
                continue
            shard.pending, shard.silent_since = None, None
            self._take(shard, state)
            if counts[shard.number]:
                answers[shard.number] = draw
        return answers

    def _notice(self, shard: Shard) -> Notice:
        if shard.state is None:
            return Notice("", 0, self.weights, self.stop)
        here = shard.state.totals.inserted
        room = here + -(-max(self.room, 0) // len(self.shards))
        return Notice(shard.state.incarnation, room, self.weights, self.stop)

    def _take(self, shard: Shard, state: ShardState) -> None:
        before = shard.state
        if before is not None and before.incarnation != state.incarnation:
            self._restarted(shard, before.totals, state)
        shard.state = state
        for episode in state.episodes:
            self.on_episode(episode)

    def _restarted(self, shard: Shard, before: Totals, state: ShardState) -> None:
        for name, value in dataclasses.asdict(before).items():
            gone = max(value - getattr(state.totals, name), 0)
            setattr(shard.lost, name, getattr(shard.lost, name) + gone)
        self.news = True
        missing = max(before.inserted - state.totals.inserted, 0)
        since = f"its save of step {state.saved_step}" if state.saved_step >= 0 else "nothing saved"
        self.say(
            f"replay shard {shard.number} was restarted, from {since}: "
            f"{state.sequences} sequences restored, {missing} inserted since are lost"
        )

    # -- what DemoMixture asks for -------------------------------------------------------------

    def draw(self, count: int) -> Draw:
        """By global priority; raises NothingToDraw if no shard has anything."""
        parts: list[tuple[int, Draw]] = []
        missing = count
        while missing:
            shards = [shard for shard in self.shards if shard.drawable]
            masses = np.array([shard.state.mass for shard in shards if shard.state])
            if not len(masses):
                raise NothingToDraw
            share = masses / masses.sum()
            chosen = self._divide(missing, share)
            counts = {s.number: int(n) for s, n in zip(shards, chosen, strict=True) if n}
            answers = self._exchange(counts)
            for shard, part in zip(shards, share.tolist(), strict=True):
                draw = answers.get(shard.number)
                if draw is not None:
                    scaled = dataclasses.replace(draw, probabilities=draw.probabilities * part)
                    parts.append((shard.number, scaled))
                    missing -= len(draw)
        return self._joined(parts)

    def _divide(self, count: int, share: np.ndarray) -> np.ndarray:
        """How many for each shard: one from each of `count` equal slices of the whole mass."""
        if len(share) == 1:
            return np.array([count])
        points = (np.arange(count) + self.rng.random(count)) / count
        ends = np.cumsum(share)
        ends[-1] = 1.0
        return np.bincount(np.searchsorted(ends, points, side="right"), minlength=len(share))

    def _joined(self, parts: list[tuple[int, Draw]]) -> ShardedDraw:
        draws = [draw for _, draw in parts]
        return ShardedDraw(
            slots=np.concatenate([d.slots for d in draws]),
            keys=np.concatenate([d.keys for d in draws]),
            probabilities=np.concatenate([d.probabilities for d in draws]),
            size=sum(s.state.sequences for s in self.shards if s.state and s.drawable),
            chunks=[chunks for d in draws for chunks in d.chunks],
            layout=[place for d in draws for place in d.layout],
            states=[state for d in draws for state in d.states],
            shard=np.repeat([number for number, _ in parts], [len(d) for d in draws]),
            incarnations=tuple(s.state.incarnation if s.state else "" for s in self.shards),
        )

    def new_batch(self, size: int) -> SequenceBatch:
        return self.reader.new_batch(size)

    def read(self, draw: Draw, batch: SequenceBatch, rows: np.ndarray) -> None:
        self.reader.read(draw, batch, rows)

    def update_priorities(self, draw: Draw, priorities: np.ndarray) -> None:
        """Sent, not waited for."""
        assert isinstance(draw, ShardedDraw)
        for number in np.unique(draw.shard).tolist():
            mine = draw.shard == number
            self.shards[number].handle.update.remote(
                draw.incarnations[number], draw.slots[mine], draw.keys[mine], priorities[mine]
            )

    def save(self, step: int) -> None:
        for shard in self.shards:
            shard.handle.save.remote(step)

    # -- the checkpoint ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "rng": self.rng.bit_generator.state,
            "shards": [
                {
                    "lost": dataclasses.asdict(shard.lost),
                    "incarnation": shard.state.incarnation if shard.state else "",
                    "totals": dataclasses.asdict(shard.state.totals if shard.state else Totals()),
                }
                for shard in self.shards
            ],
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """The shards may be those of before, which went on meanwhile, or restored ones."""
        self.rng.bit_generator.state = saved["rng"]
        self.refresh(60.0)  # they may have to read a large replay first
        for shard, said in zip(self.shards, saved["shards"], strict=True):
            shard.lost = Totals(**said["lost"])
            if shard.state is not None and said["incarnation"] not in ("", shard.state.incarnation):
                self._restarted(shard, Totals(**said["totals"]), shard.state)
