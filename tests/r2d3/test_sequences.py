"""Cutting episodes into sequences: what is kept, padded and masked."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import SPEC, episode, replay

from r2d3.replay import EMPTY, PrioritisedReplay, SequenceBatch
from r2d3.sequences import (
    NO_ACTION,
    ChunkCodec,
    Episode,
    SequenceShape,
    SequenceWriter,
    write_episode,
)

SHAPES = [
    SequenceShape(length=8, burn_in=4, overlap=4),
    SequenceShape(length=6, burn_in=2, overlap=2),
    SequenceShape(length=6, burn_in=2, overlap=4),  # trained windows overlap
    SequenceShape(length=7, burn_in=3, overlap=5),  # padding that is not a whole period
    SequenceShape(length=5, burn_in=0, overlap=0),
]


def written(shape: SequenceShape, episodes: list[Episode]) -> PrioritisedReplay:
    store = replay(shape)
    writer = SequenceWriter(shape, ChunkCodec(SPEC), store)
    for e in episodes:
        write_episode(writer, e)
    return store


def all_sequences(store: PrioritisedReplay) -> SequenceBatch:
    """Every sequence once, in the order of insertion."""
    slots = np.flatnonzero(store.key != EMPTY)
    slots = slots[np.argsort(store.key[slots])]
    batch = store.new_batch(len(slots))
    draws = []
    for row, slot in enumerate(slots):
        while True:  # the public way: draw until the wanted one comes
            draw = store.draw(1)
            if draw.slots[0] == slot:
                store.read(draw, batch, np.array([row]))
                draws.append(draw)
                break
    return batch


def sliced_by_hand(shape: SequenceShape, e: Episode) -> list[dict[str, np.ndarray]]:
    """The slow, obvious way: pad the whole episode, then slice it."""
    m, b, n = shape.length, shape.burn_in, len(e)
    behind = 2 * m
    seen = np.concatenate([np.zeros((b, 2)), e.observations["observation"], np.zeros((behind, 2))])
    action = np.concatenate([np.zeros(b), e.actions, np.zeros(behind)])
    reward = np.concatenate([np.zeros(b), e.rewards, np.zeros(behind)])
    mask = np.concatenate([np.zeros(b), np.ones(n), np.zeros(behind)])
    terminal = np.zeros_like(mask)
    terminal[b + n - 1] = e.terminated
    sequences, start = [], 0
    while start < n:  # the first trained step is start + b in padded time, start in real time
        cut = slice(start, start + m)
        sequences.append(
            {
                "observation": seen[start : start + m + 1],
                "action": action[cut],
                "reward": reward[cut],
                "mask": mask[cut],
                "terminal": terminal[cut],
            }
        )
        start += shape.period
    return sequences


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 23])
def test_equals_slicing_the_padded_episode(shape: SequenceShape, steps: int) -> None:
    e = episode(steps, number=2)
    expected = sliced_by_hand(shape, e)
    batch = all_sequences(written(shape, [e]))
    assert len(batch.mask) == len(expected)
    for row, want in enumerate(expected):
        np.testing.assert_array_equal(batch.action[row], want["action"])
        np.testing.assert_array_equal(batch.reward[row], want["reward"])
        np.testing.assert_array_equal(batch.mask[row], want["mask"])
        np.testing.assert_array_equal(batch.terminal[row], want["terminal"])
        # The observation behind the last real step is there too: it is bootstrapped from.
        np.testing.assert_array_equal(batch.observations["observation"][row], want["observation"])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("steps", [1, 3, 8, 17])
def test_every_step_is_trained(shape: SequenceShape, steps: int) -> None:
    batch = all_sequences(written(shape, [episode(steps)]))
    trained = set()
    for row in range(len(batch.mask)):
        for t in range(shape.burn_in, shape.length):
            if batch.mask[row, t]:
                trained.add(int(batch.observations["observation"][row, t, 1]))
    assert trained == set(range(steps))


def test_previous_action_and_reward_are_those_of_the_step_before() -> None:
    shape = SequenceShape(length=6, burn_in=2, overlap=2)
    e = episode(11)
    batch = all_sequences(written(shape, [e]))
    for row in range(len(batch.mask)):
        for t in range(shape.length + 1):
            step = int(batch.observations["observation"][row, t, 1])
            real = t >= batch.left_pad[row] and (t == 0 or batch.mask[row, t - 1] or step == 0)
            if real and step > 0:
                assert batch.prev_action[row, t] == e.actions[step - 1]
                assert batch.prev_reward[row, t] == e.rewards[step - 1]
            elif real:
                assert batch.prev_action[row, t] == NO_ACTION
                assert batch.prev_reward[row, t] == 0


def test_a_truncated_episode_has_no_terminal_step() -> None:
    shape = SequenceShape(length=6, burn_in=2, overlap=2)
    assert not all_sequences(written(shape, [episode(9, terminated=False)])).terminal.any()
    assert all_sequences(written(shape, [episode(9, terminated=True)])).terminal.sum() == 1


def test_each_step_lies_in_one_chunk_only() -> None:
    store = written(SequenceShape(length=8, burn_in=4, overlap=4), [episode(23)])
    assert store.steps == 23


def test_abandoned_episodes_leave_no_chunk_behind() -> None:
    shape = SequenceShape(length=8, burn_in=4, overlap=4)
    store = replay(shape)
    writer = SequenceWriter(shape, ChunkCodec(SPEC), store)
    e = episode(6)
    for t in range(6):  # one chunk of four steps is full, no sequence of eight is
        writer.append({"observation": e.observations["observation"][t]}, 0, 0.0)
    held = store.steps
    writer.abandon()
    kept = sum(int(store.layout[s, 2]) for s in np.flatnonzero(store.key != EMPTY))
    assert held == 4
    assert store.steps == kept  # only what sequences refer to


def test_writer_saves_and_restores_itself_in_the_middle_of_an_episode() -> None:
    shape = SequenceShape(length=6, burn_in=2, overlap=2)
    e = episode(19)
    whole, halved = replay(shape), replay(shape)
    write_episode(SequenceWriter(shape, ChunkCodec(SPEC), whole), e)
    rows = [{"observation": row} for row in e.observations["observation"]]
    first = SequenceWriter(shape, ChunkCodec(SPEC), halved)
    for t in range(10):
        first.append(rows[t], int(e.actions[t]), float(e.rewards[t]))
    second = SequenceWriter(shape, ChunkCodec(SPEC), halved)
    second.load_state_dict(first.state_dict())
    for t in range(10, 19):
        second.append(rows[t], int(e.actions[t]), float(e.rewards[t]))
    second.finish(rows[19], True)
    for name in ("action", "reward", "mask", "terminal", "prev_action"):
        np.testing.assert_array_equal(
            getattr(all_sequences(whole), name), getattr(all_sequences(halved), name)
        )


@pytest.mark.parametrize(("length", "burn_in", "overlap"), [(4, 4, 4), (8, 4, 3), (8, 4, 8)])
def test_shapes_that_would_lose_steps_are_refused(length: int, burn_in: int, overlap: int) -> None:
    with pytest.raises(ValueError, match=r"overlap|burn_in"):
        SequenceShape(length, burn_in, overlap)


def test_initial_priority_sees_the_trained_steps_and_the_state_behind_them() -> None:
    shape = SequenceShape(length=6, burn_in=2, overlap=2)
    calls: list[tuple[list[float], list[float], list[float], bool]] = []

    def priority(q: np.ndarray, q_max: np.ndarray, r: np.ndarray, terminal: bool) -> float:
        calls.append((q.tolist(), q_max.tolist(), r.tolist(), terminal))
        return 1.0

    writer = SequenceWriter(shape, ChunkCodec(SPEC), replay(shape), priority)
    for t in range(6):
        row = {"observation": np.array([0, t], np.float32)}
        writer.append(row, 0, float(t), q_taken=t + 0.1, q_max=t + 0.5)
    writer.finish({"observation": np.array([0, 6], np.float32)}, terminated=True)
    near = pytest.approx
    assert [c[2] for c in calls] == [[0, 1, 2, 3], [4, 5]]
    assert calls[0][1] == near([0.5, 1.5, 2.5, 3.5, 4.5])
    assert calls[1][0] == near([4.1, 5.1])
    assert calls[1][1] == near([4.5, 5.5, 0.0])  # behind a terminal step there is nothing
    assert [c[3] for c in calls] == [False, True]
