"""A replay shard: a part of the agent's replay in a process of its own, which saves itself.

Ray starts a killed process anew, empty and without a word. So a shard begins by looking for its own
last save; and it takes a new name at each start, by which the learner sees that it was restarted.
"""

from __future__ import annotations

import os
import pathlib
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2d3.actor import EpisodeSummary
from r2d3.checkpoint import CheckpointStore
from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.launch.parts import agent_replay
from r2d3.launch.ray.intake import Intake
from r2d3.launch.ray.shipping import Note, Reply, Shipment, Weights
from r2d3.replay import Draw
from r2d3.spaces import ObservationSpec


@dataclass(frozen=True)
class Notice:
    """What the learner tells a shard, whenever it asks for something."""

    incarnation: str  # of the shard that `accept_until` was worked out for
    accept_until: int  # hold the actors from this key on
    weights: Weights | None
    stop: bool = False  # hold them for good: training is over


@dataclass
class Totals:
    """Counted by a shard since the run began."""

    inserted: int = 0
    decisions: int = 0
    bad_steps: int = 0
    duplicates: int = 0
    orphans: int = 0
    late_updates: int = 0


@dataclass(frozen=True)
class ShardState:
    """What a shard says about itself with every answer to the learner."""

    incarnation: str
    totals: Totals
    sequences: int
    bytes: int
    mass: float  # of all its priorities
    held_s: float  # that its actors have waited for the learner, together
    episodes: list[EpisodeSummary]  # ended since the learner asked last
    saved_step: int
    trouble: str


@dataclass
class Heard:
    """What is known of an acting process."""

    note: Note
    at: float
    decisions: int = 0
    incarnations: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed_last: str = ""  # the incarnation that did


@dataclass(frozen=True)
class Health:
    """What the driver is told: about the shard, and (seconds since, what) of each process."""

    incarnation: str
    pid: int
    sequences: int
    saved_step: int
    trouble: str
    actors: dict[int, tuple[float, Heard]]


class ReplayShard:
    """Answers one call at a time, in the order in which they come. Saves beside that."""

    def __init__(self, config: Config, spec: ObservationSpec, number: int, accept_first: int):
        """`accept_first`: sequences to take in before the learner has said anything."""
        self.replay = agent_replay(config, spec, number, config.replay_shards)
        self.intake = Intake(self.replay)
        self.incarnation = uuid.uuid4().hex
        self.accept_until = accept_first
        self.weights: Weights | None = None
        self.stopped = False
        self.decisions = self.bad_steps = 0
        self.episodes: list[EpisodeSummary] = []
        self.heard: dict[int, Heard] = {}
        self.store = CheckpointStore(shard_folder(config, number), lambda _: None)
        self.saving: threading.Thread | None = None
        self.saved_step = -1
        self.trouble = ""
        saved = self.store.load()
        if saved is not None:
            self._load(saved)

    # -- for acting processes ------------------------------------------------------------------

    def receive(self, shipment: Shipment, note: Note) -> Reply:
        if self.intake.take(shipment):
            self.decisions += shipment.decisions
            self.bad_steps += shipment.bad_steps
            self.episodes.extend(shipment.episodes)
            self._hear(shipment.worker, shipment.incarnation, note)
            self.heard[shipment.worker].decisions += shipment.decisions
        return self._reply()

    def report(self, worker: int, incarnation: str, note: Note) -> Reply:
        """A sign of life, and a question: may I go on, are there new weights?"""
        self._hear(worker, incarnation, note)
        return self._reply()

    def _hear(self, worker: int, incarnation: str, note: Note) -> None:
        heard = self.heard.setdefault(worker, Heard(note, 0.0))
        if incarnation not in heard.incarnations:
            heard.incarnations.append(incarnation)
        elif incarnation != heard.incarnations[-1]:
            return  # a late word from one that has been replaced
        if note.failed and heard.failed_last != incarnation:
            heard.failures.append(note.failed)
            heard.failed_last = incarnation
        heard.note, heard.at = note, time.monotonic()

    def _reply(self) -> Reply:
        hold = self.stopped or self.replay.next_key >= self.accept_until
        return Reply(self.incarnation, hold, self.weights)

    # -- for the learner -----------------------------------------------------------------------

    def exchange(self, notice: Notice, count: int) -> tuple[ShardState, Draw | None]:
        """News from the learner against news from here and, if it wants any, sequences."""
        if notice.incarnation == self.incarnation:
            self.accept_until = notice.accept_until
        if notice.weights is not None:
            self.weights = notice.weights
        self.stopped = notice.stop
        draw = self.replay.draw(count) if count and len(self.replay) else None
        return self.state(), draw

    def update(
        self, incarnation: str, slots: np.ndarray, keys: np.ndarray, priorities: np.ndarray
    ) -> None:
        if incarnation != self.incarnation:  # of before a restart: keys have been given out anew
            self.replay.late_updates += len(slots)
            return
        self.replay.update_priorities(
            Draw(slots, keys, np.empty(0), 0, [], [], []), np.array(priorities)
        )

    def state(self) -> ShardState:
        episodes, self.episodes = self.episodes, []
        return ShardState(
            incarnation=self.incarnation,
            totals=self.totals(),
            sequences=len(self.replay),
            bytes=self.replay.bytes,
            mass=self.replay.mass,
            held_s=sum(heard.note.held_s for heard in self.heard.values()),
            episodes=episodes,
            saved_step=self.saved_step,
            trouble=self.trouble,
        )

    def totals(self) -> Totals:
        return Totals(
            inserted=self.replay.next_key,
            decisions=self.decisions,
            bad_steps=self.bad_steps,
            duplicates=self.intake.duplicates,
            orphans=self.intake.orphans,
            late_updates=self.replay.late_updates,
        )

    # -- for the driver ------------------------------------------------------------------------

    def health(self) -> Health:
        now = time.monotonic()
        actors = {worker: (now - heard.at, heard) for worker, heard in self.heard.items()}
        return Health(
            self.incarnation,
            os.getpid(),
            len(self.replay),
            self.saved_step,
            self.trouble,
            actors,
        )

    # -- saving --------------------------------------------------------------------------------

    def save(self, step: int) -> None:
        """Begins to; the tables are read now, written in a thread."""
        if self.saving is not None and self.saving.is_alive():
            self.trouble = f"the save of step {self.saved_step} was still going on at step {step}"
            return
        self.saving = threading.Thread(target=self._write, args=(step, self._state_dict(step)))
        self.saving.start()

    def wait_until_saved(self, step: int) -> int:
        """The step of the last whole save, after the one under way."""
        if self.saving is not None:
            self.saving.join()
        return self.saved_step

    def _write(self, step: int, state: dict[str, Any]) -> None:
        try:
            self.store.save(step, state)
        except (OSError, UserError) as error:  # a full disk must not end the run; it is told of
            self.trouble = f"could not be saved: {error}"
        else:
            self.saved_step, self.trouble = step, ""

    def _state_dict(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "replay": self.replay.state_dict(),
            "intake": self.intake.state_dict(),
            "decisions": self.decisions,
            "bad_steps": self.bad_steps,
            "accept_until": self.accept_until,
        }

    def _load(self, saved: dict[str, Any]) -> None:
        self.replay.load_state_dict(saved["replay"])
        self.intake.load_state_dict(saved["intake"])
        self.decisions, self.bad_steps = saved["decisions"], saved["bad_steps"]
        self.accept_until = saved["accept_until"]
        self.saved_step = saved["step"]


def shard_folder(config: Config, number: int) -> pathlib.Path:
    return pathlib.Path(config.out) / "checkpoints" / f"replay-{number}"
