"""Prioritised replay of sequences. Each step is stored once, in compressed chunks.

Neighbouring sequences overlap, so each refers to a few chunks instead of owning its steps; a chunk
goes when nothing refers to it any more. Sequences leave first-in first-out, when there are more
than `capacity` of them or more than `capacity_bytes` of chunks.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2d3.sequences import NO_ACTION, ChunkCodec, SequenceRecord, SequenceShape
from r2d3.spaces import Arrays, ObservationSpec
from r2d3.sum_tree import SumTree

SMALLEST_PRIORITY = 1e-6  # nothing in the replay is ever out of reach
EMPTY = -1


@dataclass
class SequenceBatch:
    """B sequences; everything is [B, time, ...]. Observations have one time step more: the last
    one is only ever looked at to bootstrap from."""

    observations: Arrays  # [B, m + 1, ...]
    prev_action: np.ndarray  # [B, m + 1], NO_ACTION at an episode's start
    prev_reward: np.ndarray  # [B, m + 1]
    action: np.ndarray  # [B, m]
    reward: np.ndarray  # [B, m], of that action
    terminal: np.ndarray  # [B, m], the action ended the episode for good
    mask: np.ndarray  # [B, m], 0 on padding
    left_pad: np.ndarray  # [B]
    state: np.ndarray | None = None  # [B, 2, hidden] before the first real step, if stored
    weight: np.ndarray = field(default_factory=lambda: np.ones(0, np.float32))  # importance
    is_demo: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))


@dataclass(frozen=True)
class Draw:
    """Which sequences were sampled, how likely that was, and all that is needed to decode them.

    Holding the compressed chunks themselves, a draw stays readable after its sequences have left.
    """

    slots: np.ndarray
    keys: np.ndarray
    probabilities: np.ndarray
    size: int  # of the replay, at the time
    chunks: list[list[tuple[bytes, int]]]
    layout: list[tuple[int, int, int, int]]
    states: list[np.ndarray | None]

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class Chunks:
    """Compressed chunks by id, with their number of steps: what a checkpoint writes in bulk."""

    blobs: dict[int, tuple[bytes, int]]


class SequenceReader:
    """From drawn, compressed sequences to batches. Needs no replay: a learner on another machine
    than the replay decodes what it was sent."""

    def __init__(self, spec: ObservationSpec, shape: SequenceShape, state_size: int = 0):
        self.spec, self.shape, self.codec = spec, shape, ChunkCodec(spec)
        self.state_size = state_size  # width of stored recurrent states, 0: none are stored

    def new_batch(self, size: int) -> SequenceBatch:
        m = self.shape.length
        # Every row is filled by `read`, padding included, so nothing need be cleared here.
        observations = {
            f.name: np.empty((size, m + 1, *f.shape), f.dtype) for f in self.spec.fields
        }
        return SequenceBatch(
            observations=observations,
            prev_action=np.empty((size, m + 1), np.int64),
            prev_reward=np.empty((size, m + 1), np.float32),
            action=np.zeros((size, m), np.int64),
            reward=np.zeros((size, m), np.float32),
            terminal=np.zeros((size, m), np.float32),
            mask=np.zeros((size, m), np.float32),
            left_pad=np.zeros(size, np.int64),
            state=np.zeros((size, 2, self.state_size), np.float32) if self.state_size else None,
            weight=np.ones(size, np.float32),
            is_demo=np.zeros(size, bool),
        )

    def read(self, draw: Draw, batch: SequenceBatch, rows: np.ndarray) -> None:
        """Decodes the drawn sequences into the given rows of a batch."""
        for row, chunks, place, state in zip(
            rows, draw.chunks, draw.layout, draw.states, strict=True
        ):
            self._decode_into(batch, int(row), chunks, *place)
            if batch.state is not None and state is not None:
                batch.state[row] = state

    def _decode_into(
        self,
        batch: SequenceBatch,
        row: int,
        chunks: list[tuple[bytes, int]],
        offset: int,
        left_pad: int,
        steps: int,
        terminal: int,
    ) -> None:
        columns = {**batch.observations}
        columns["prev_action"] = batch.prev_action
        columns["prev_reward"] = batch.prev_reward
        at, missing = left_pad, steps + 1
        for blob, chunk_steps in chunks:
            # A chunk's last time step is the next chunk's first: it is read from the last one only.
            count = min(chunk_steps + 1 - offset, missing)
            for name, values in self.codec.decode(blob, chunk_steps).items():
                columns[name][row, at : at + count] = values[offset : offset + count]
            at, missing, offset = at + count - 1, missing - count + 1, 0
        if missing != 1:
            raise LookupError(f"a sequence of {steps} steps lacks {missing - 1} of them")
        end = left_pad + steps
        for name, column in columns.items():
            blank = NO_ACTION if name == "prev_action" else 0
            column[row, :left_pad] = blank
            column[row, end + 1 :] = blank
        batch.action[row, left_pad:end] = batch.prev_action[row, left_pad + 1 : end + 1]
        batch.reward[row, left_pad:end] = batch.prev_reward[row, left_pad + 1 : end + 1]
        batch.mask[row, left_pad:end] = 1.0
        batch.terminal[row, end - 1] = terminal
        batch.left_pad[row] = left_pad


class PrioritisedReplay:
    """Thread safe: one lock, held for work on the tables, never while (de)compressing."""

    def __init__(
        self,
        spec: ObservationSpec,
        shape: SequenceShape,
        *,
        capacity: int,
        capacity_bytes: int,
        exponent: float,
        seed: int,
        state_size: int = 0,
        uniform: bool = False,
    ):
        self.spec, self.shape = spec, shape
        self.reader = SequenceReader(spec, shape, state_size)
        self.codec = self.reader.codec
        self.capacity, self.capacity_bytes = capacity, capacity_bytes
        self.exponent = 0.0 if uniform else exponent
        self.state_size = state_size  # width of stored recurrent states, 0: none are stored
        self.rng = np.random.default_rng(seed)
        self.tree = SumTree(capacity)
        self.lock = threading.RLock()
        # One row per slot. A slot is a place in the ring; a key is given out once, ever.
        chunks_per_sequence = -(-(shape.length + shape.period - 1) // shape.period)
        self.key = np.full(capacity, EMPTY, np.int64)
        self.sequence_chunks = np.full((capacity, chunks_per_sequence), EMPTY, np.int64)
        # offset, left_pad, steps, terminal
        self.layout = np.zeros((capacity, 4), np.int32)
        self.states: dict[int, np.ndarray] = {}  # by slot
        self.chunks: dict[int, tuple[bytes, int]] = {}
        self.references: dict[int, int] = {}
        self.oldest = 0  # slot of the sequence that leaves next
        self.size = 0
        self.next_key = 0
        self.next_chunk = 0
        self.bytes = 0
        self.steps = 0  # environment steps that lie in chunks
        self.late_updates = 0

    def __len__(self) -> int:
        return self.size

    # -- writing -------------------------------------------------------------------------------

    def add_chunk(self, blob: bytes, steps: int) -> int:
        """The new chunk belongs to its writer until `release_chunks`."""
        with self.lock:
            chunk = self.next_chunk
            self.next_chunk += 1
            self.chunks[chunk] = (blob, steps)
            self.references[chunk] = 1
            self.bytes += len(blob)
            self.steps += steps
            return chunk

    def release_chunks(self, chunks: list[int]) -> None:
        with self.lock:
            for chunk in chunks:
                self.references[chunk] -= 1
                if self.references[chunk] == 0:
                    blob, steps = self.chunks.pop(chunk)
                    del self.references[chunk]
                    self.bytes -= len(blob)
                    self.steps -= steps

    def add_sequence(self, record: SequenceRecord) -> int:
        """Returns the key. The oldest sequences make room where room is short."""
        with self.lock:
            if self.size == self.capacity:
                self._evict_oldest()
            slot = (self.oldest + self.size) % self.capacity
            key = self.next_key
            self.next_key += 1
            self.key[slot] = key
            self.sequence_chunks[slot] = EMPTY
            self.sequence_chunks[slot, : len(record.chunks)] = record.chunks
            self.layout[slot] = record.offset, record.left_pad, record.steps, record.terminal
            for chunk in record.chunks:
                self.references[chunk] += 1
            if self.state_size and record.state is not None:
                self.states[slot] = record.state.astype(np.float32)
            self.tree.set_one(slot, max(record.priority, SMALLEST_PRIORITY) ** self.exponent)
            self.size += 1
            while self.bytes > self.capacity_bytes and self.size > 1:
                self._evict_oldest()
            return key

    def _evict_oldest(self) -> None:
        slot = self.oldest
        self.key[slot] = EMPTY
        self.tree.set_one(slot, 0.0)
        self.states.pop(slot, None)
        chunks = self.sequence_chunks[slot]
        self.release_chunks(chunks[chunks != EMPTY].tolist())
        self.oldest = (slot + 1) % self.capacity
        self.size -= 1

    # -- reading -------------------------------------------------------------------------------

    def draw(self, count: int) -> Draw:
        """By priority, one from each of `count` equal slices of the whole weight."""
        with self.lock:
            if not self.size:
                raise ValueError("cannot sample from an empty replay")
            total = self.tree.total
            points = (np.arange(count) + self.rng.random(count)) / max(count, 1) * total
            slots = self.tree.find(points)
            return Draw(
                slots=slots,
                keys=self.key[slots],
                probabilities=self.tree.get(slots) / total,
                size=self.size,
                chunks=[
                    [self.chunks[c] for c in row if c != EMPTY]
                    for row in self.sequence_chunks[slots].tolist()
                ],
                layout=[tuple(place) for place in self.layout[slots].tolist()],
                states=[self.states.get(slot) for slot in slots.tolist()],
            )

    def new_batch(self, size: int) -> SequenceBatch:
        return self.reader.new_batch(size)

    def read(self, draw: Draw, batch: SequenceBatch, rows: np.ndarray) -> None:
        """Decodes the drawn sequences into the given rows of a batch."""
        self.reader.read(draw, batch, rows)

    def update_priorities(self, draw: Draw, priorities: np.ndarray) -> None:
        """Sequences that have left since they were drawn are passed over, and counted."""
        with self.lock:
            present = self.key[draw.slots] == draw.keys
            self.late_updates += int((~present).sum())
            raised = np.maximum(priorities[present], SMALLEST_PRIORITY) ** self.exponent
            self.tree.set(draw.slots[present], raised)

    @property
    def mass(self) -> float:
        """The whole weight: what a sequence's own weight is a share of."""
        return self.tree.total

    # -- the checkpoint ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything but the chunks' bytes, which are written by `checkpoint.py` on their own."""
        with self.lock:
            used = np.flatnonzero(self.key != EMPTY)
            arrays = {
                "used": used,
                "key": self.key[used],
                "sequence_chunks": self.sequence_chunks[used],
                "layout": self.layout[used],
                "weight": self.tree.get(used),
            }
            if self.state_size:
                stored = sorted(self.states)
                arrays["state_slots"] = np.array(stored, np.int64)
                arrays["states"] = np.array([self.states[s] for s in stored], np.float32)
            arrays["reference_chunks"] = np.array(list(self.references), np.int64)
            arrays["reference_counts"] = np.array(list(self.references.values()), np.int64)
            names = ("oldest", "size", "next_key", "next_chunk", "late_updates")
            numbers = {name: getattr(self, name) for name in names}
            return {
                "arrays": arrays,
                "numbers": numbers,
                "rng": self.rng.bit_generator.state,
                # Blobs are never changed, so a shallow copy is a snapshot.
                "chunks": Chunks(dict(self.chunks)),
                "capacity": self.capacity,
            }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        with self.lock:
            if saved["capacity"] != self.capacity:
                raise ValueError(
                    f"saved with capacity {saved['capacity']}, this one has {self.capacity}"
                )
            arrays, used = saved["arrays"], saved["arrays"]["used"]
            self.key[:] = EMPTY
            self.key[used] = arrays["key"]
            self.sequence_chunks[used] = arrays["sequence_chunks"]
            self.layout[used] = arrays["layout"]
            self.tree.sums[:] = 0.0
            self.tree.set(used, arrays["weight"])
            self.states = {}
            if self.state_size:
                slots = arrays["state_slots"].tolist()
                self.states = dict(zip(slots, arrays["states"], strict=True))
            for name, value in saved["numbers"].items():
                setattr(self, name, value)
            self.rng.bit_generator.state = saved["rng"]
            ids, counts = arrays["reference_chunks"], arrays["reference_counts"]
            self.references = dict(zip(ids.tolist(), counts.tolist(), strict=True))
            self.chunks = {chunk: saved["chunks"].blobs[chunk] for chunk in self.references}
            self.bytes = sum(len(blob) for blob, _ in self.chunks.values())
            self.steps = sum(steps for _, steps in self.chunks.values())
