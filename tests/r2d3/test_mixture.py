"""Demonstrations and experience in one batch."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import SPEC, episode, replay

from r2d3.mixture import DemoMixture
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import PrioritisedReplay
from r2d3.sequences import ChunkCodec, SequenceShape, SequenceWriter, write_episode

SHAPE = SequenceShape(length=8, burn_in=4, overlap=4)


def filled(first: int, episodes: int, **more: float) -> PrioritisedReplay:
    store = replay(SHAPE, **more)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), store)
    for number in range(first, first + episodes):
        write_episode(writer, episode(9, number))
    return store


def mixture(**more: float) -> DemoMixture:
    settings = {"batch_size": 32, "importance_exponent": 0.6, "seed": 0, **more}
    return DemoMixture(filled(0, 6), filled(100, 4), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [0.0, 1 / 256, 1 / 4, 1.0])
def test_share_of_demonstrations_is_the_ratio(ratio: float) -> None:
    mixed = mixture()
    shares = [mixed.sample(ratio)[0].is_demo.mean() for _ in range(600)]
    spread = np.sqrt(ratio * (1 - ratio) / (600 * 32))
    assert np.mean(shares) == pytest.approx(ratio, abs=4 * spread + 1e-12)


def test_elements_are_chosen_independently() -> None:
    """The number of demonstrations in a batch is binomial, not fixed."""
    mixed = mixture()
    counts = [int(mixed.sample(0.25)[0].is_demo.sum()) for _ in range(600)]
    assert np.var(counts) == pytest.approx(32 * 0.25 * 0.75, rel=0.25)


def test_rows_come_from_the_replay_they_are_marked_with() -> None:
    batch, origins = mixture().sample(0.5)
    number = batch.observations["observation"][:, SHAPE.burn_in, 0]
    np.testing.assert_array_equal(number >= 100, batch.is_demo)
    for origin in origins:
        assert len(set(batch.is_demo[origin.rows].tolist())) == 1


def test_priorities_go_back_to_the_replay_they_came_from() -> None:
    mixed = mixture()
    batch, origins = mixed.sample(0.5)
    priorities = np.where(batch.is_demo, 7.0, 3.0)
    DemoMixture.update_priorities(origins, priorities)
    assert mixed.agent is not None
    assert mixed.demos is not None
    for store, value in ((mixed.agent, 3.0), (mixed.demos, 7.0)):
        leaves = store.tree.get(np.arange(store.capacity))
        assert value in leaves
        assert 10.0 - value not in leaves


def test_weights_are_one_over_n_p_normalised_once_over_the_batch() -> None:
    mixed = mixture()
    assert mixed.agent is not None
    assert mixed.demos is not None
    for store in (mixed.agent, mixed.demos):
        for _ in range(20):
            draw = store.draw(8)
            store.update_priorities(draw, 1.0 + draw.keys % 5)
    batch, origins = mixed.sample(0.5)
    raw = np.zeros(32)
    for origin in origins:
        raw[origin.rows] = (len(origin.replay) * origin.draw.probabilities) ** -0.6
    np.testing.assert_allclose(batch.weight, raw / raw.max(), rtol=1e-6)
    assert batch.weight.max() == 1.0
    # One normalisation: the replay whose largest weight is the smaller one has no 1 of its own.
    largest = [batch.weight[origin.rows].max() for origin in origins]
    assert min(largest) < 1.0


def test_a_ratio_without_demonstrations_is_an_error_and_not_a_silent_zero() -> None:
    mixed = DemoMixture(filled(0, 6), None, batch_size=8, importance_exponent=0.6, seed=0)
    with pytest.raises(ValueError, match="demo ratio"):
        mixed.sample(1.0)


def test_the_limiter_keeps_samples_per_insert() -> None:
    limiter = RateLimiter(samples_per_insert=4.0, min_size=10, slack=8.0)
    for _ in range(5000):
        if limiter.may_sample(8):
            limiter.sampled += 8
        else:
            assert limiter.may_insert(), "both wait: a deadlock"
            limiter.inserted += 1
    assert limiter.sampled / (limiter.inserted - 10) == pytest.approx(4.0, rel=0.02)


def test_actors_wait_when_the_learner_falls_behind() -> None:
    limiter = RateLimiter(samples_per_insert=4.0, min_size=10, slack=8.0)
    inserted = 0
    while limiter.may_insert():
        limiter.inserted += 1
        inserted += 1
    assert 10 + 8 / 4 <= inserted <= 10 + 8 / 4 + 1
    assert limiter.waiting(8) == "actors wait for learner" or limiter.may_sample(8)
