"""The faults found in other implementations, each a test that fails when the fault is put back.

The numbers are those of the list the project keeps (docs/agent.md repeats it). Some of these are
tested more thoroughly elsewhere; here each has its name.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import pathlib
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from agent_fakes import SPEC, DiaryEnv, episode, replay
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from r2d3 import losses
from r2d3.actor import Actor
from r2d3.config import make_config
from r2d3.demos import demonstration_replay, load_demonstrations, save_demonstrations
from r2d3.environments import EpisodeStream, make_environment
from r2d3.errors import UserError
from r2d3.launch import acting_thread, inline, loop
from r2d3.launch.acting_thread import ActingThread
from r2d3.launch.parts import build, make_network
from r2d3.learner import Learner
from r2d3.mixture import DemoMixture
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import PrioritisedReplay, SequenceBatch
from r2d3.sequences import ChunkCodec, Episode, SequenceShape, SequenceWriter, write_episode
from r2d3.terminal import Reporter

SHAPE = SequenceShape(length=8, burn_in=4, overlap=4)


def settings(**more: Any) -> Any:
    small = {
        "env": "TestDiary-v0", "demos": "some", "features": 8, "hidden": 8, "batch_size": 8,
        "sequence_length": 8, "burn_in": 4, "overlap": 4, "demo_ratio": 0.5,
    }  # fmt: skip
    return make_config(**{**small, **more})


def demos(*episodes: Episode, **more: Any) -> PrioritisedReplay:
    return demonstration_replay(episodes, SPEC, settings(**more), seed=0)


def rows_of(store: PrioritisedReplay, count: int = 64) -> SequenceBatch:
    batch = store.new_batch(count)
    store.read(store.draw(count), batch, np.arange(count))
    return batch


def test_fault_01_a_demonstrations_reward_belongs_to_the_action_that_earned_it() -> None:
    """Off by one: the reward of arriving was read as the reward of leaving."""
    e = episode(6)
    e.rewards[:] = 0.0
    e.rewards[5] = 7.0  # the last action's
    batch = rows_of(demos(e))
    for row in range(len(batch.mask)):
        for t in np.flatnonzero(batch.mask[row]):
            step = int(batch.observations["observation"][row, t, 1])
            assert batch.reward[row, t] == (7.0 if step == 5 else 0.0)
            assert batch.action[row, t] == e.actions[step]
    # The step that earned it is a real, trained one, not a dummy behind the end.
    assert ((batch.reward == 7.0) & (batch.mask > 0)).any()


def test_fault_02_values_are_bootstrapped_at_the_start_and_not_past_the_end() -> None:
    """A missing discount at t = 0 read as 0, or a terminal discount forgotten."""
    batch = rows_of(demos(episode(6, terminated=True)))
    for row in range(len(batch.mask)):
        real = np.flatnonzero(batch.mask[row])
        steps = batch.observations["observation"][row, real, 1]
        np.testing.assert_array_equal(batch.terminal[row, real], steps == 5)
    # and what the loss makes of it, by hand: value 100 everywhere, one step, gamma 0.5
    for terminal, expected in ((0.0, 1.0 + 0.5 * 100.0), (1.0, 1.0)):
        target = losses.n_step_targets(
            torch.ones(1, 1), torch.tensor([[0.5 * (1.0 - terminal)]]),
            torch.full((1, 2), 100.0), torch.ones(1, 1), 1,
        )  # fmt: skip
        assert target.item() == expected


@pytest.mark.parametrize("terminated", [True, False])
def test_fault_02_the_learner_bootstraps_at_the_first_step_but_not_past_the_end(
    terminated: bool,
) -> None:
    """An episode of one step, which is the first and the last: the error, worked by hand."""
    learner, batch, error = one_step(terminated)
    _, priorities = learner.step(batch)
    np.testing.assert_allclose(priorities, abs(error), rtol=1e-4)
    assert abs(error - one_step(not terminated)[2]) > 0.01  # how it ended makes a difference


def one_step(terminated: bool) -> tuple[Learner, SequenceBatch, float]:
    """A learner, an episode of one step that earned 7, and the error the loss must find in it."""
    c = settings(demo_ratio=1.0)
    torch.manual_seed(0)
    learner = Learner(make_network(c, SPEC, 3), c)
    with torch.no_grad():  # far from zero, and not of one mind about the best action
        for net, shift in ((learner.network, 0.2), (learner.target, -0.4)):
            for parameter in net.parameters():
                parameter.add_(shift * torch.randn_like(parameter))
    e = episode(1, terminated=terminated)
    e.rewards[:] = 7.0
    batch = rows_of(demos(e), 1)
    batch.is_demo[:] = True
    inputs = learner._inputs(batch).slice(c.burn_in, c.burn_in + 2)
    with torch.no_grad():
        q = learner.network.unroll(inputs, learner.network.initial_state(1))[0][0]
        q_target = learner.target.unroll(inputs, learner.target.initial_state(1))[0][0]
    worth = losses.clip_asymmetrically(torch.tensor(7.0))
    if not terminated:
        worth = worth + c.discount * losses.unrescale(q_target[1, q[1].argmax()])
    assert q[1].argmax() != q_target[1].argmax()
    return learner, batch, float(q[0, e.actions[0]] - losses.rescale(worth))


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_fault_02_an_actors_episodes_end_as_the_environment_says(ends: str) -> None:
    actor, store = acting(ends=ends)
    for _ in range(30):
        actor.step()
    batch = rows_of(store, 100)
    last_seen = batch.observations["observation"][:, :-1, 1] == 8  # of nine steps
    expected = last_seen & (batch.mask > 0) if ends == "terminated" else False
    assert ((batch.mask > 0) & last_seen).any()
    np.testing.assert_array_equal(batch.terminal > 0, expected)


@pytest.mark.parametrize("terminated", [True, False])
def test_fault_01_and_fault_02_a_dataset_is_read_as_it_was_written(terminated: bool) -> None:
    e = episode(6, terminated=terminated)
    dataset = f"test/faults/{terminated}-v0".lower()
    save_demonstrations(dataset, [e], make_environment("TestDiary-v0", {}))
    [read] = load_demonstrations(dataset, SPEC, 3)
    np.testing.assert_array_equal(read.rewards, e.rewards)
    assert read.terminated == terminated


def test_fault_03_demonstrations_priorities_and_weights_are_real() -> None:
    """Made-up probabilities: priorities that never move, weights that shrink to nothing."""
    demo_store, own = demos(*(episode(9, n) for n in range(4))), replay(SHAPE)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), own)
    for number in range(40):
        write_episode(writer, episode(9, number))
    mixture = DemoMixture(own, demo_store, batch_size=64, importance_exponent=0.6, seed=0)
    batch, origins = mixture.sample(0.5)
    # Both replays are uniform as yet: every element counts the same, demonstrations included.
    np.testing.assert_allclose(batch.weight, 1.0)
    before = demo_store.tree.sums.copy()
    DemoMixture.update_priorities(origins, np.linspace(1.0, 3.0, 64))
    assert (demo_store.tree.sums != before).any()
    [demo_origin] = [o for o in origins if o.replay is demo_store]
    likelier = demo_origin.rows[-1]
    again, origins = mixture.sample(1.0)
    keys = np.concatenate([o.draw.keys for o in origins])
    weights = {int(k): float(w) for k, w in zip(keys, again.weight, strict=True)}
    last, first = int(demo_origin.draw.keys[-1]), int(demo_origin.draw.keys[0])
    assert batch.is_demo[likelier]
    if last in weights and first in weights and last != first:
        assert weights[last] < weights[first]
    # Every priority went to the sequence that earned it, and all weights share one largest.
    given = np.linspace(1.0, 3.0, 64)[demo_origin.rows]
    latest = dict(zip(demo_origin.draw.slots.tolist(), given.tolist(), strict=True))
    for slot, priority in latest.items():
        assert demo_store.tree.get(np.array([slot]))[0] == pytest.approx(priority**0.9)
    mixed, origins = mixture.sample(0.5)
    raw = np.ones(64)
    for o in origins:
        raw[o.rows] = (o.draw.size * o.draw.probabilities) ** -0.6
    np.testing.assert_allclose(mixed.weight, raw / raw.max(), rtol=1e-5)


def test_fault_04_arguments_of_the_loss_cannot_be_swapped_and_extras_are_off() -> None:
    """n and rescaling go by keyword alone; margin loss and its kin are off unless asked for."""
    parameters = inspect.signature(losses.td_errors).parameters
    assert {n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY} == {"n", "rescaled"}
    for preset in ("laptop", "workstation", "paper"):
        c = make_config(env="x", demos="d", preset=preset)
        assert (c.margin_weight, c.stored_state) == (0.0, False)
        assert (c.warmup_steps, c.demo_ratio_steps) == (0, 0)
        # Changes no loss; evens out the churn of policies on the laptop.
        assert c.averaged_weights == (0.99 if preset == "laptop" else 0.0)
    # Rewards and values are no longer the same shape, so a swap of those two fails too.
    with pytest.raises((RuntimeError, IndexError)):
        losses.n_step_targets(
            torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 4), 2
        )


@pytest.mark.parametrize("terminated", [True, False])
def test_fault_04_the_learner_puts_every_argument_in_its_place(terminated: bool) -> None:
    """The loss of one step is half its squared error: no margin, no L2, nothing exchanged."""
    learner, batch, error = one_step(terminated)
    metrics, _ = learner.step(batch)
    assert metrics["loss"] == pytest.approx(0.5 * error**2, rel=1e-4)
    assert learner.optimizer.defaults["weight_decay"] == 0


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_fault_05_episodes_shorter_than_a_sequence_are_kept_and_trained(steps: int) -> None:
    batch = rows_of(demos(episode(steps)))
    trained = batch.mask[:, SHAPE.burn_in :].astype(bool)
    seen = batch.observations["observation"][:, SHAPE.burn_in : -1, 1][trained]
    assert set(seen.astype(int).tolist()) == set(range(steps))


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("agent", ["r2d3", "bc"])
def test_fault_06_padding_counts_in_no_loss_priority_or_weight(
    agent: str, terminated: bool
) -> None:
    c = settings() if agent == "r2d3" else settings(agent="bc", demo_ratio=1.0)
    torch.manual_seed(0)
    batch = rows_of(demos(episode(2, terminated=terminated)), 8)

    def outcome(b: SequenceBatch) -> tuple[float, np.ndarray]:
        torch.manual_seed(0)
        metrics, priorities = Learner(make_network(c, SPEC, 3), c).step(b)
        assert priorities is not None
        return metrics["loss"], priorities

    loss, priorities = outcome(batch)
    behind = batch.mask == 0
    batch.reward[behind] = 1e6
    batch.action[behind] = 2
    batch.observations["observation"][:, :-1][behind] = -50.0
    row_end = batch.left_pad + batch.mask.sum(axis=1).astype(int)
    for row, end in enumerate(row_end):  # the state behind the end is bootstrapped from: keep it
        batch.observations["observation"][row, end] = [0.0, 2.0]
        batch.observations["observation"][row, end + 1 :] = 1e6
    other_loss, other_priorities = outcome(batch)
    assert other_loss == pytest.approx(loss)
    np.testing.assert_allclose(other_priorities, priorities)
    # The mean in the priority is over two steps, not over four.
    td = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    assert losses.sequence_priorities(td, mask, 0.0).item() == 1.0
    # And the loss is per real step: a row of padding only makes nothing smaller.
    one = losses.weighted_td_loss(td, mask, torch.ones(1))
    padded = losses.weighted_td_loss(
        torch.cat([td, torch.zeros(1, 4)]), torch.cat([mask, torch.zeros(1, 4)]), torch.ones(2)
    )
    assert one.item() == padded.item()


def acting(
    count: int = 2, ends: str = "terminated", **more: Any
) -> tuple[Actor, PrioritisedReplay]:
    c = settings(agent="r2d2", demos="", demo_ratio=0.0, actors=count, **more)
    envs = SyncVectorEnv([lambda: DiaryEnv(9, ends)] * count, autoreset_mode=AutoresetMode.DISABLED)
    stream = EpisodeStream(envs, lambda i, e: 10 * i + e)
    store = replay(SHAPE, capacity=200, state_size=8 if c.stored_state else 0)
    torch.manual_seed(0)
    actor = Actor(stream, make_network(c, SPEC, 3), c, store, 0, lambda _: None)
    actor.start()
    return actor, store


def test_fault_07_the_stored_state_is_the_one_before_the_observation() -> None:
    """Walking on from a sequence's stored state leads to the next sequence's stored state."""
    actor, store = acting(count=1, stored_state=True)
    for _ in range(30):
        actor.step()
    network, batch, checked = actor.policy.network, rows_of(store, 60), 0
    assert batch.state is not None
    inputs = Learner(network, actor.config)._inputs(batch)
    row_at = {}  # (episode, first real step, padding) -> row
    for row in range(60):
        pad = int(batch.left_pad[row])
        number, step = batch.observations["observation"][row, pad]
        row_at[int(number), int(step), pad] = row
    for (number, step, pad), row in row_at.items():
        if pad:
            assert (batch.state[row] == 0).all()  # an episode starts from nothing
        elif (number, step - 4, 0) in row_at:
            before = torch.tensor([row_at[number, step - 4, 0]])
            h, c = torch.from_numpy(batch.state[before.numpy()]).unbind(1)
            _, state = network.unroll(inputs.rows(before).slice(0, 4), (h, c))
            got = np.stack([part[0].detach().numpy() for part in state])
            np.testing.assert_allclose(batch.state[row], got, atol=1e-5)
            checked += 1
    assert checked


def test_fault_07_no_gradient_flows_through_the_burn_in() -> None:
    c = settings()
    network = make_network(c, SPEC, 3)
    batch = rows_of(demos(episode(12)), 4)
    x = Learner(network, c)._inputs(batch).slice(0, 4)
    state = network.burn_in(x, torch.from_numpy(batch.left_pad))
    assert not any(s.requires_grad for s in state)


def test_fault_07_burn_in_never_reads_the_episode_before() -> None:
    """Sequences that start an episode start from zero, whatever lies where their padding is."""
    c = settings(overlap=5)  # neighbours 3 apart, so padding may cover a part of the burn-in
    network = make_network(c, SPEC, 3)
    batch = rows_of(demos(episode(12), episode(12, 1), overlap=5), 32)
    assert set(batch.left_pad.tolist()) == {0, 1, 4}
    assert (batch.observations["observation"][:, :4][padding(batch)[:, :4]] == 0).all()

    def burnt_in() -> list[np.ndarray]:
        x = Learner(network, c)._inputs(batch).slice(0, 4)
        return [s.numpy() for s in network.burn_in(x, torch.from_numpy(batch.left_pad))]

    before = burnt_in()
    batch.observations["observation"][:, :4][padding(batch)[:, :4]] = 33.0
    for was, now in zip(before, burnt_in(), strict=True):
        np.testing.assert_array_equal(now, was)
        assert (now[batch.left_pad == 4] == 0).all()
        assert (now[batch.left_pad == 1] != 0).any()


def padding(batch: SequenceBatch) -> np.ndarray:
    return np.arange(batch.mask.shape[1])[None] < batch.left_pad[:, None]


def test_fault_07_an_actors_state_begins_anew_with_each_episode() -> None:
    actor, _ = acting()
    for _ in range(9):
        actor.step()
    assert (actor.policy.state_rows() == 0).all()


def test_fault_08_a_ratio_below_one_in_a_batch_is_possible() -> None:
    own, demo_store = replay(SHAPE), demos(episode(9))
    write_episode(SequenceWriter(SHAPE, ChunkCodec(SPEC), own), episode(9))
    mixture = DemoMixture(own, demo_store, batch_size=32, importance_exponent=0.6, seed=0)
    counts = np.array([mixture.sample(1 / 256)[0].is_demo.sum() for _ in range(1500)])
    assert np.mean(counts == 0) == pytest.approx((1 - 1 / 256) ** 32, abs=0.03)
    assert counts.sum() == pytest.approx(1500 * 32 / 256, rel=0.25)


def test_fault_09_the_replay_and_its_counters_survive_a_stop() -> None:
    """Without them the agent forgets its skills, or the replay ratio explodes."""
    actor, store = acting()
    for _ in range(40):
        actor.step()
    store.update_priorities(store.draw(16), np.linspace(1.0, 9.0, 16))
    limiter = RateLimiter(4.0, 5, 16.0, inserted=store.next_key, sampled=37)
    _, twin = acting()
    twin.load_state_dict(store.state_dict())
    again = RateLimiter(4.0, 5, 16.0)
    again.load_state_dict(limiter.state_dict())
    assert len(twin) == len(store)
    np.testing.assert_array_equal(twin.tree.sums, store.tree.sums)
    assert again.balance == limiter.balance
    batches = [rows_of(each, 32) for each in (store, twin)]
    np.testing.assert_array_equal(batches[0].reward, batches[1].reward)


def test_fault_09_a_resumed_run_has_its_replays_and_its_ratio(tmp_path: pathlib.Path) -> None:
    dataset = "test/faults/resumed-v0"
    save_demonstrations(dataset, [episode(9, 7)], make_environment("TestDiary-v0", {}))
    c = settings(
        demos=dataset, out=str(tmp_path), actors=2, threads=0, min_replay=5, learner_steps=9,
        evaluate_every=0, final_episodes=0, tensorboard=False, samples_per_insert=4.0,
    )  # fmt: skip
    stopped, resumed = (inline.Run(c, Reporter(io.StringIO())) for _ in range(2))
    stopped.start()
    stopped.train()
    resumed.resume()
    for replay_name in ("agent_replay", "demo_replay"):
        one, other = getattr(stopped.parts, replay_name), getattr(resumed.parts, replay_name)
        assert len(one) == len(other) > 0
        assert one.next_key == other.next_key
        assert len(set(one.tree.sums.tolist())) > 3  # priorities are not all alike
        np.testing.assert_array_equal(one.tree.sums, other.tree.sums)
    assert resumed.parts.limiter.balance == stopped.parts.limiter.balance
    assert resumed.parts.limiter.sampled == 9 * 8
    resumed.parts.close()


def test_fault_10_capacity_is_in_bytes_too_and_its_size_is_known() -> None:
    noise = np.random.default_rng(0)
    limit = 4_000
    store = replay(SHAPE, capacity=10_000, capacity_bytes=limit)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), store)
    # And the setting reaches the replay that a run builds.
    c = settings(agent="r2d2", demos="", demo_ratio=0.0, actors=1, replay_gib=0.25)
    parts = build(c, "cpu", lambda _: None)
    assert parts.agent_replay is not None
    assert parts.agent_replay.capacity_bytes == 1 << 28
    parts.close()
    for _ in range(60):
        e = episode(9)
        e.observations["observation"] = noise.normal(size=(10, 2)).astype(np.float32)
        write_episode(writer, e)
    assert store.bytes == sum(len(blob) for blob, _ in store.chunks.values())
    assert 0 < store.bytes <= limit
    assert 0 < len(store) < 60 * 3


def test_fault_11_waiting_is_seen_and_ends_with_a_reason() -> None:
    """An actor that dies must not leave the learner waiting for ever without a word."""
    actor, store = acting()
    with pytest.raises(ValueError, match="empty replay"):
        store.draw(1)
    limiter = RateLimiter(1.0, 1_000_000, 16.0)
    assert limiter.waiting(8) == "learner waits: 0 of 1000000 first sequences"

    def broken() -> int:
        time.sleep(0.2)
        raise UserError("the simulator is gone")

    actor.step = broken  # type: ignore[method-assign]
    thread = ActingThread(actor, store, limiter)
    thread.start()
    before = time.monotonic()

    def wait() -> None:
        while time.monotonic() - before < 5.0:
            thread.wait_for_experience()

    with pytest.raises(UserError, match="the simulator is gone"):
        wait()
    assert limiter.waited_s["learner"] > 0.0
    assert not any(t.name == "acting" and t.is_alive() for t in threading.enumerate())


def test_fault_11_an_environment_that_hangs_ends_the_run_with_a_reason(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(acting_thread, "STOP_SECONDS", 0.1)
    c = settings(agent="r2d2", demos="", demo_ratio=0.0, actors=1, learner_steps=5, threads=1)
    run = inline.Run(dataclasses.replace(c, out=str(tmp_path)), Reporter(io.StringIO()))
    run.start()
    assert run.parts.actor is not None
    for_ever = threading.Event()

    def hang() -> int:
        for_ever.wait(20.0)
        raise AssertionError("nobody gave up waiting")

    run.parts.actor.step = hang  # type: ignore[method-assign]
    before = time.monotonic()
    with pytest.raises(UserError, match=r"nothing moved .* learner waits: 0 of 200 first"):
        run.train()
    assert time.monotonic() - before < 30.0
    for_ever.set()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_fault_12_no_sequence_crosses_episodes(mode: AutoresetMode) -> None:
    envs = SyncVectorEnv([lambda: DiaryEnv(5), lambda: DiaryEnv(11)], autoreset_mode=mode)
    c = settings(agent="r2d2", demos="", demo_ratio=0.0, actors=2)
    store = replay(SHAPE, capacity=200)
    stream = EpisodeStream(envs, lambda i, e: 10 * i + e)
    actor = Actor(stream, make_network(c, SPEC, 3), c, store, 0, lambda _: None)
    actor.start()
    for _ in range(60):
        actor.step()
    batch = rows_of(store, 200)
    for row in range(200):
        first, last = int(batch.left_pad[row]), int(batch.left_pad[row] + batch.mask[row].sum())
        seen = batch.observations["observation"][row, first : last + 1]
        assert len(set(seen[:, 0].tolist())) == 1
        assert (np.diff(seen[:, 1]) == 1).all()
