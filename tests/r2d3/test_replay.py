"""Prioritised replay: who is drawn, who leaves, what comes back after a stop."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import SPEC, episode, replay

from r2d3.replay import EMPTY, PrioritisedReplay
from r2d3.sequences import ChunkCodec, SequenceRecord, SequenceShape, SequenceWriter, write_episode
from r2d3.sum_tree import SumTree

SHAPE = SequenceShape(length=8, burn_in=4, overlap=4)


def fill(store: PrioritisedReplay, episodes: int, steps: int = 11) -> None:
    writer = SequenceWriter(store.shape, ChunkCodec(SPEC), store)
    for number in range(episodes):
        write_episode(writer, episode(steps, number))


def record(store: PrioritisedReplay, priority: float) -> int:
    """One sequence of its own chunk, with the given priority."""
    steps = store.shape.period
    timesteps = {
        "observation": np.zeros((steps + 1, 2)),
        "prev_action": np.zeros(steps + 1),
        "prev_reward": np.zeros(steps + 1),
    }
    chunk = store.add_chunk(store.codec.encode(timesteps), steps)
    key = store.add_sequence(SequenceRecord((chunk,), 0, 4, steps, False, priority))
    store.release_chunks([chunk])
    return key


def test_sum_tree_equals_a_plain_list() -> None:
    rng = np.random.default_rng(0)
    tree, plain = SumTree(37), np.zeros(37)
    for _ in range(50):
        leaves = rng.choice(37, size=5, replace=False)
        weights = rng.random(5) * (rng.random(5) > 0.3)
        tree.set(leaves, weights)
        plain[leaves] = weights
        tree.set_one(int(leaves[0]), 0.5)
        plain[leaves[0]] = 0.5
        assert tree.total == pytest.approx(plain.sum())
        points = rng.random(20) * tree.total
        expected = np.searchsorted(np.cumsum(plain), points, side="right")
        np.testing.assert_array_equal(tree.find(points), expected)


def test_sum_tree_never_finds_a_leaf_that_weighs_nothing() -> None:
    tree = SumTree(8)
    tree.set(np.array([2, 5]), np.array([0.1, 0.7]))
    edge = np.nextafter(tree.total, 0)
    found = tree.find(np.array([0.0, 0.1, edge, tree.total, tree.total * 1.01]))
    assert set(found.tolist()) <= {2, 5}


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_sequences_are_drawn_in_proportion_to_priority_to_the_exponent(exponent: float) -> None:
    store = replay(SHAPE, exponent=exponent)
    priorities = np.array([1.0, 2.0, 4.0, 8.0])
    for priority in priorities:
        record(store, priority)
    drawn = np.concatenate([store.draw(16).keys for _ in range(1000)])
    share = np.bincount(drawn, minlength=4) / len(drawn)
    expected = priorities**exponent / (priorities**exponent).sum()
    np.testing.assert_allclose(share, expected, atol=0.01)
    draw = store.draw(16)
    np.testing.assert_allclose(draw.probabilities, expected[draw.keys])


def test_updated_priorities_count_from_then_on() -> None:
    store = replay(SHAPE)
    for _ in range(4):
        record(store, 1.0)
    draw = store.draw(64)
    store.update_priorities(draw, np.where(draw.keys == 2, 97.0, 1.0))
    assert np.mean(store.draw(1000).keys == 2) == pytest.approx(0.97, abs=0.01)


def test_updates_for_sequences_that_have_left_are_dropped_and_counted() -> None:
    store = replay(SHAPE, capacity=4)
    for _ in range(4):
        record(store, 1.0)
    draw = store.draw(4)  # one of each slice, so all four
    for _ in range(3):
        record(store, 1.0)  # keys 0, 1, 2 make room for 4, 5, 6 in the same slots
    store.update_priorities(draw, np.full(4, 50.0))
    assert store.late_updates == 3
    weights = {int(store.key[s]): float(store.tree.get(np.array([s]))[0]) for s in range(4)}
    assert weights == {3: 50.0, 4: 1.0, 5: 1.0, 6: 1.0}


def test_a_draw_can_be_read_after_its_sequences_have_left() -> None:
    store = replay(SHAPE, capacity=2)
    fill(store, 1)
    draw = store.draw(2)
    before = store.new_batch(2)
    store.read(draw, before, np.arange(2))
    fill(store, 3)
    after = store.new_batch(2)
    store.read(draw, after, np.arange(2))
    np.testing.assert_array_equal(
        before.observations["observation"], after.observations["observation"]
    )


def test_first_in_is_first_out_and_chunks_go_with_their_last_sequence() -> None:
    store = replay(SHAPE, capacity=5)
    fill(store, 7)
    assert sorted(store.key[store.key != EMPTY].tolist()) == list(range(16, 21))
    used = {int(c) for row in store.sequence_chunks[store.key != EMPTY] for c in row if c != EMPTY}
    assert set(store.chunks) == used
    assert store.bytes == sum(len(blob) for blob, _ in store.chunks.values())


def test_capacity_in_bytes_holds() -> None:
    unlimited = replay(SHAPE)
    fill(unlimited, 20)
    limit = unlimited.bytes // 4
    store = replay(SHAPE, capacity_bytes=limit)
    fill(store, 20)
    assert 0 < len(store) < len(unlimited)
    assert store.bytes <= limit


def test_an_empty_replay_says_so() -> None:
    with pytest.raises(ValueError, match="empty replay"):
        replay(SHAPE).draw(1)


def test_saves_and_restores_itself_exactly() -> None:
    store = replay(SHAPE, capacity=20, exponent=0.7)
    fill(store, 9)
    store.update_priorities(store.draw(8), np.linspace(0.1, 3.0, 8))
    twin = replay(SHAPE, capacity=20, exponent=0.7, seed=5)
    twin.load_state_dict(store.state_dict())
    for number in range(3):
        one, other = store.draw(8), twin.draw(8)
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        batches = [store.new_batch(8), twin.new_batch(8)]
        store.read(one, batches[0], np.arange(8))
        twin.read(other, batches[1], np.arange(8))
        for name in ("action", "reward", "mask", "terminal", "prev_reward", "left_pad"):
            np.testing.assert_array_equal(getattr(batches[0], name), getattr(batches[1], name))
        for each, draw in ((store, one), (twin, other)):
            each.update_priorities(draw, np.arange(8) + 1.0)
            fill(each, 1 + number)
    assert store.bytes == twin.bytes
    assert store.steps == twin.steps
    assert store.references == twin.references


def test_stored_states_leave_with_their_sequences() -> None:
    store = replay(SHAPE, capacity=2, state_size=3)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), store)
    for number in range(3):
        e = episode(4, number)
        for t in range(4):
            state = np.full((2, 3), number + 1.0, np.float32) if writer.wants_state() else None
            writer.append({"observation": e.observations["observation"][t]}, 0, 0.0, state=state)
        writer.finish({"observation": e.observations["observation"][4]}, True)
    batch = store.new_batch(2)
    store.read(store.draw(2), batch, np.arange(2))
    assert batch.state is not None
    assert sorted(batch.state[:, 0, 0].tolist()) == [2.0, 3.0]
    assert len(store.states) == 2
