"""What acting processes and replay shards tell each other: few messages, large ones.

A shipment carries the sender's incarnation (a name it takes at each start) and a number that counts
its shipments. So the receiver knows a shipment that it has had already, however often a call is
repeated, and knows those of a process that has been replaced since.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from r2d3.actor import EpisodeSummary
from r2d3.sequences import SequenceRecord

SHIP_BYTES = 4 << 20
SHIP_SECONDS = 0.25  # older experience is sent even if it is little


class NewChunk(NamedTuple):
    number: int  # the sender's own
    blob: bytes
    steps: int


class NewSequence(NamedTuple):
    record: SequenceRecord  # its chunks by the sender's numbers


class Released(NamedTuple):
    numbers: list[int]


Operation = NewChunk | NewSequence | Released


@dataclass(frozen=True)
class Shipment:
    worker: int
    incarnation: str
    serial: int  # 1, 2, 3, ...
    operations: list[Operation]  # in the order in which a replay in the same process had them
    episodes: list[EpisodeSummary] = field(default_factory=list)
    decisions: int = 0  # since the last shipment
    bad_steps: int = 0


@dataclass(frozen=True)
class Note:
    """How an acting process is doing, by its own account."""

    pid: int
    node: str
    doing: str
    in_step_s: float = 0.0  # for how long the environments' present step has been going on
    held_s: float = 0.0  # all time spent waiting for the learner
    failed: str = ""  # what it died of, if it knows
    users_mistake: bool = False


@dataclass(frozen=True)
class Reply:
    """What a shard answers to a shipment or a note."""

    incarnation: str  # the shard's
    hold: bool  # enough for now: the learner has to catch up
    weights: Weights | None  # the newest it knows of


@dataclass(frozen=True)
class Weights:
    version: str
    # In a list, or Ray would fetch them for everyone this passes through.
    where: list[Any]


class ShippingSink:
    """Stands where the replay stands in one process; collects what goes to it."""

    def __init__(self, worker: int, incarnation: str, flush_at: int):
        self.worker, self.incarnation = worker, incarnation
        self.flush_at = flush_at  # sequences
        self.next_chunk = 0
        self.serial = 0
        self._clear()

    def _clear(self) -> None:
        self.operations: list[Operation] = []
        self.episodes: list[EpisodeSummary] = []
        self.bytes = self.sequences = 0
        self.since = time.monotonic()

    def add_chunk(self, blob: bytes, steps: int) -> int:
        number = self.next_chunk
        self.next_chunk += 1
        self.operations.append(NewChunk(number, blob, steps))
        self.bytes += len(blob)
        return number

    def release_chunks(self, chunks: list[int]) -> None:
        if chunks:
            self.operations.append(Released(list(chunks)))

    def add_sequence(self, record: SequenceRecord) -> int:
        self.operations.append(NewSequence(record))
        self.sequences += 1
        return -1  # the key is the replay's to give

    def episode_ended(self, summary: EpisodeSummary) -> None:
        self.episodes.append(summary)

    def due(self) -> bool:
        waiting = bool(self.operations or self.episodes)
        late = time.monotonic() - self.since > SHIP_SECONDS
        return waiting and (late or self.sequences >= self.flush_at or self.bytes >= SHIP_BYTES)

    def take(self, decisions: int, bad_steps: int) -> Shipment:
        self.serial += 1
        shipment = Shipment(
            self.worker,
            self.incarnation,
            self.serial,
            self.operations,
            self.episodes,
            decisions,
            bad_steps,
        )
        self._clear()
        return shipment
