"""From episodes to training sequences: the one path for actors and for demonstrations.

An episode of T steps is a row of T + 1 *time steps*. Time step t holds what was seen
(`observation`), and what led to it: the previous action and the previous reward. The reward of
action t therefore lies in time step t + 1, together with the observation it was handed out with.
There is no dummy step at the end and nothing to shift by hand: `reward[t]` is always the reward
*of* `action[t]`.

Sequence k covers the steps  k*period - burn_in ... k*period - burn_in + length - 1.  Sequence 0
starts before the episode does: those steps are padding, and they are exactly as many as the
burn-in, so the episode's first real step is a trained one. Without this, short episodes hardly
teach anything. The last sequence is padded behind the episode's end. Both kinds of padding are
masked out of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import zstandard

from r2d3.spaces import Arrays, ObservationSpec

NO_ACTION = -1  # "previous action" of an episode's first time step


@dataclass(frozen=True)
class SequenceShape:
    """length = burn_in + trained steps; neighbours start `period` steps apart."""

    length: int
    burn_in: int
    overlap: int

    def __post_init__(self) -> None:
        if not 0 <= self.burn_in < self.length:
            raise ValueError(f"burn_in {self.burn_in} must be less than length {self.length}")
        if not self.burn_in <= self.overlap < self.length:
            # Less overlap than burn-in would leave steps that no sequence trains.
            raise ValueError(
                f"overlap {self.overlap} must lie in {self.burn_in}..{self.length - 1}"
            )

    @property
    def period(self) -> int:
        return self.length - self.overlap

    @property
    def trained(self) -> int:
        return self.length - self.burn_in

    def start(self, k: int) -> int:
        """Episode step at which sequence k starts; negative for the padded ones."""
        return k * self.period - self.burn_in


@dataclass
class Episode:
    """A whole episode, as demonstrations come. `observations` has one row more than the rest."""

    observations: Arrays
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool  # False: cut off by a time limit, so the last state still has a value
    info: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.actions)


@dataclass
class SequenceRecord:
    """Where a sequence lies: which chunks, where in the first of them, and how much is padding."""

    chunks: tuple[int, ...]
    offset: int  # steps of the first chunk that come before the sequence
    left_pad: int
    steps: int  # real steps, without padding
    terminal: bool  # the last real step ended the episode for good
    priority: float
    state: np.ndarray | None = None  # recurrent state before the first real step, if stored


class Sink(Protocol):
    """What a writer writes into: the replay."""

    def add_chunk(self, blob: bytes, steps: int) -> int: ...
    def release_chunks(self, chunks: list[int]) -> None: ...
    def add_sequence(self, record: SequenceRecord) -> int: ...


class ChunkCodec:
    """n steps (n + 1 time steps: the last one belongs to the next chunk too) <-> one blob."""

    def __init__(self, spec: ObservationSpec, level: int = 1):
        self.columns = [(f.name, f.shape, np.dtype(f.dtype)) for f in spec.fields]
        self.columns += [("prev_action", (), np.dtype("<i2")), ("prev_reward", (), np.dtype("<f4"))]
        self.bytes_per_step = sum(
            int(np.prod(shape)) * dtype.itemsize for _, shape, dtype in self.columns
        )
        self._compressor = zstandard.ZstdCompressor(level=level)
        self._decompressor = zstandard.ZstdDecompressor()

    def encode(self, timesteps: Arrays) -> bytes:
        parts = [
            np.ascontiguousarray(timesteps[name], dtype=dtype).tobytes()
            for name, _, dtype in self.columns
        ]
        return self._compressor.compress(b"".join(parts))

    def decode(self, blob: bytes, steps: int) -> Arrays:
        """Read-only views into the decompressed bytes, steps + 1 rows each."""
        raw = self._decompressor.decompress(blob)
        arrays, at, rows = {}, 0, steps + 1
        for name, shape, dtype in self.columns:
            count = rows * int(np.prod(shape))
            arrays[name] = np.frombuffer(raw, dtype, count, at).reshape(rows, *shape)
            at += count * dtype.itemsize
        return arrays


# (q of the action taken, largest q) of the trained steps, reward, terminal -> priority
PriorityFunction = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], float]


class SequenceWriter:
    """Cuts one stream of episodes into chunks and sequences, and hands them to the replay.

    At most one chunk of raw steps is held at a time, however long the episode.
    """

    def __init__(
        self,
        shape: SequenceShape,
        codec: ChunkCodec,
        sink: Sink,
        priority: PriorityFunction | None = None,
    ):
        self.shape, self.codec, self.sink, self.priority = shape, codec, sink, priority
        self.chunk_length = shape.period
        self._clear()

    def _clear(self) -> None:
        self.steps = 0  # of this episode so far
        self.next_sequence = 0
        self.chunks: list[int] = []  # ids still needed by sequences to come
        self.first_chunk = 0  # index within the episode of chunks[0]
        self.flushed = 0  # steps of this episode that lie in chunks
        self.open: list[tuple[Arrays, int, float]] = []  # time steps of the chunk being filled
        self.prev_action, self.prev_reward = NO_ACTION, 0.0
        # Kept from the first trained step of the next sequence on, for initial priorities.
        self.q_taken: list[float] = []
        self.q_max: list[float] = []
        self.rewards: list[float] = []
        self.values_from = 0  # the episode step of q_taken[0]
        self.states: dict[int, np.ndarray] = {}  # by episode step

    def wants_state(self) -> bool:
        """True when a sequence starts at the step that is about to be appended."""
        return self.steps == 0 or (self.steps + self.shape.burn_in) % self.shape.period == 0

    def append(
        self,
        observation: Arrays,
        action: int,
        reward: float,
        q_taken: float = 0.0,
        q_max: float = 0.0,
        state: np.ndarray | None = None,
    ) -> None:
        """One step: what was seen, what was done, and what *that action* earned.

        `state` is the recurrent state before `observation` was taken in.
        """
        self.open.append((observation, self.prev_action, self.prev_reward))
        if state is not None:
            self.states[self.steps] = state
        self.q_taken.append(q_taken)
        self.q_max.append(q_max)
        self.rewards.append(reward)
        self.steps += 1
        if len(self.open) == self.chunk_length + 1:
            self._flush()
            self._emit(terminal=None)
        self.prev_action, self.prev_reward = action, reward

    def finish(self, last_observation: Arrays, terminated: bool) -> None:
        """Ends the episode. `last_observation` is what the last action led to."""
        if self.steps:
            self.open.append((last_observation, self.prev_action, self.prev_reward))
            # A cut-off episode goes on in truth: its value is taken from the last step seen.
            self.q_max.append(0.0 if terminated else self.q_max[-1])
            self._flush()
            self._emit(terminal=terminated)
            self.sink.release_chunks(self.chunks)
        self._clear()

    def abandon(self) -> None:
        """Forgets the rest of the episode. Sequences already handed over stay."""
        self.sink.release_chunks(self.chunks)
        self._clear()

    def _flush(self) -> None:
        steps = len(self.open) - 1
        timesteps = {
            name: np.stack([t[0][name] for t in self.open])
            for name, _, _ in self.codec.columns[:-2]
        }
        timesteps["prev_action"] = np.array([t[1] for t in self.open])
        timesteps["prev_reward"] = np.array([t[2] for t in self.open])
        self.chunks.append(self.sink.add_chunk(self.codec.encode(timesteps), steps))
        self.flushed += steps
        self.open = self.open[-1:]

    def _emit(self, terminal: bool | None) -> None:
        """Hands over every sequence that is complete; at the end (terminal given) the rest too."""
        shape = self.shape
        while True:
            start = shape.start(self.next_sequence)
            first_trained = start + shape.burn_in
            end = min(start + shape.length, self.flushed)
            complete = start + shape.length <= self.flushed
            if first_trained >= self.flushed or (terminal is None and not complete):
                break
            first = max(start, 0)
            first_chunk = first // self.chunk_length
            last_chunk = (end - 1) // self.chunk_length
            at_end = terminal is not None and end == self.flushed
            record = SequenceRecord(
                chunks=tuple(
                    self.chunks[first_chunk - self.first_chunk : last_chunk + 1 - self.first_chunk]
                ),
                offset=first - first_chunk * self.chunk_length,
                left_pad=first - start,
                steps=end - first,
                terminal=bool(terminal) and at_end,
                priority=self._initial_priority(first_trained, end, bool(terminal) and at_end),
                state=self.states.get(first),
            )
            self.sink.add_sequence(record)
            self.next_sequence += 1
            self._forget_what_no_sequence_needs()

    def _initial_priority(self, first: int, end: int, terminal: bool) -> float:
        if self.priority is None:
            return 1.0
        lo, hi = first - self.values_from, end - self.values_from
        return self.priority(
            np.array(self.q_taken[lo:hi], np.float32),
            np.array(self.q_max[lo : hi + 1], np.float32),
            np.array(self.rewards[lo:hi], np.float32),
            terminal,
        )

    def _forget_what_no_sequence_needs(self) -> None:
        start = self.shape.start(self.next_sequence)
        unneeded = max(max(start, 0) // self.chunk_length - self.first_chunk, 0)
        unneeded = min(unneeded, len(self.chunks))
        self.sink.release_chunks(self.chunks[:unneeded])
        self.chunks = self.chunks[unneeded:]
        self.first_chunk += unneeded
        drop = min(start + self.shape.burn_in, self.flushed) - self.values_from
        if drop > 0:
            del self.q_taken[:drop], self.q_max[:drop], self.rewards[:drop]
            self.values_from += drop
        for step in [s for s in self.states if s < start]:
            del self.states[step]

    def state_dict(self) -> dict[str, Any]:
        """Numbers and arrays only, for the checkpoint."""
        numbers = {
            name: getattr(self, name)
            for name in ("steps", "next_sequence", "first_chunk", "flushed", "values_from")
        }
        arrays = {
            "q_taken": np.array(self.q_taken, np.float64),
            "q_max": np.array(self.q_max, np.float64),
            "rewards": np.array(self.rewards, np.float64),
            "chunks": np.array(self.chunks, np.int64),
            "open_prev_action": np.array([t[1] for t in self.open], np.int64),
            "open_prev_reward": np.array([t[2] for t in self.open], np.float64),
        }
        for name, _, _ in self.codec.columns[:-2] if self.open else []:
            arrays[f"open_obs/{name}"] = np.stack([t[0][name] for t in self.open])
        for step, state in self.states.items():
            arrays[f"state/{step}"] = state
        previous = {"prev_action": self.prev_action, "prev_reward": float(self.prev_reward)}
        return {"numbers": {**numbers, **previous}, "arrays": arrays}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self._clear()
        arrays = saved["arrays"]
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
        self.q_taken, self.q_max, self.rewards, self.chunks = (
            arrays[name].tolist() for name in ("q_taken", "q_max", "rewards", "chunks")
        )
        names = [name for name, _, _ in self.codec.columns[:-2]]
        for i in range(len(arrays["open_prev_action"])):
            observation = {name: arrays[f"open_obs/{name}"][i] for name in names}
            self.open.append(
                (
                    observation,
                    int(arrays["open_prev_action"][i]),
                    float(arrays["open_prev_reward"][i]),
                )
            )
        self.states = {
            int(name.split("/")[1]): array
            for name, array in arrays.items()
            if name.startswith("state/")
        }


def write_episode(writer: SequenceWriter, episode: Episode) -> None:
    """Sends a demonstration down the path that an actor's steps take."""
    for t, observation in zip(range(len(episode)), _rows(episode.observations), strict=False):
        writer.append(observation, int(episode.actions[t]), float(episode.rewards[t]))
    last = {name: array[len(episode)] for name, array in episode.observations.items()}
    writer.finish(last, episode.terminated)


def _rows(arrays: Arrays) -> Iterator[Arrays]:
    for t in range(len(next(iter(arrays.values())))):
        yield {name: array[t] for name, array in arrays.items()}
