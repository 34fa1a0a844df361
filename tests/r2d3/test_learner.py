"""The learner: one code for four agents, and no NaN survives."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from agent_fakes import SPEC, episode, replay

from r2d3 import losses
from r2d3.config import Config, make_config
from r2d3.launch.parts import make_network
from r2d3.learner import Learner, TrainingDiverged
from r2d3.mixture import DemoMixture
from r2d3.replay import SequenceBatch
from r2d3.sequences import ChunkCodec, SequenceShape, SequenceWriter, write_episode


def config(**more: Any) -> Config:
    small = {
        "env": "TestDiary-v0", "demos": "some", "features": 8, "hidden": 8, "sequence_length": 8,
        "burn_in": 4, "overlap": 4, "batch_size": 6, "demo_ratio": 0.5,
    }  # fmt: skip
    return make_config(**{**small, **more})


def learner(c: Config) -> Learner:
    torch.manual_seed(1)
    return Learner(make_network(c, SPEC, 3), c)


def batch(c: Config, seed: int = 0, steps: tuple[int, ...] = (3, 9, 14)) -> SequenceBatch:
    shape = SequenceShape(c.sequence_length, c.burn_in, c.overlap)
    stores = []
    for first in (0, 5):
        store = replay(shape)
        writer = SequenceWriter(shape, ChunkCodec(SPEC), store)
        for i, length in enumerate(steps):
            write_episode(writer, episode(length, first + i, terminated=i % 2 == 0))
        stores.append(store)
    mixture = DemoMixture(
        stores[0], stores[1], batch_size=c.batch_size, importance_exponent=0.6, seed=seed
    )
    return mixture.sample(c.demo_ratio)[0]


def slow_value_loss(a: Learner, b: SequenceBatch) -> tuple[float, list[float]]:
    """Row by row, step by step, without padding, without batches, in double precision."""
    c = a.config
    online, target = copy.deepcopy(a.network).double(), copy.deepcopy(a.target).double()
    total, count, priorities = 0.0, 0, []
    for row in range(len(b.weight)):
        real = [t for t in range(c.sequence_length) if b.mask[row, t]]
        first, steps = int(b.left_pad[row]), len(real)
        values: dict[str, list[torch.Tensor]] = {"online": [], "target": []}
        for name, net in (("online", online), ("target", target)):
            state = tuple(s.double() for s in net.initial_state(1))
            for t in range(first, first + steps + 1):
                x = torch.from_numpy(b.observations["observation"][row : row + 1, t : t + 1])
                one_hot = torch.zeros(1, 1, 3, dtype=torch.float64)
                if b.prev_action[row, t] >= 0:
                    one_hot[0, 0, b.prev_action[row, t]] = 1.0
                squashed = torch.sign(x) * torch.log1p(x.abs())
                reward = torch.tensor([[[float(b.prev_reward[row, t])]]], dtype=torch.float64)
                joined = torch.cat(
                    [one_hot, losses.clip_asymmetrically(reward), squashed.double()], -1
                )
                core, state = net.walk(joined, state)  # type: ignore[arg-type]
                values[name].append(net.head(core)[0, 0].detach())
        start = c.burn_in - first  # first trained step, counted in real ones
        errors = []
        for t in range(start, steps):
            end = min(t + c.n_step, steps)
            best = int(values["online"][end].argmax())
            worth = losses.unrescale(values["target"][end][best])
            if b.terminal[row, first + end - 1]:
                worth = torch.zeros(())
            for k in reversed(range(t, end)):
                r = torch.tensor(float(b.reward[row, first + k]), dtype=torch.float64)
                worth = losses.clip_asymmetrically(r) + c.discount * worth
            taken = values["online"][t][int(b.action[row, first + t])]
            errors.append(float(taken - losses.rescale(worth)))
        total += sum(0.5 * e * e for e in errors) * float(b.weight[row])
        count += len(errors)
        absolute = [abs(e) for e in errors]
        priorities.append(0.9 * max(absolute) + 0.1 * sum(absolute) / len(absolute))
    return total / count, priorities


def test_loss_and_priorities_equal_a_slow_obvious_version() -> None:
    c = config()
    a, b = learner(c), batch(c)
    with torch.no_grad():  # the target must differ, or the two could be mixed up unseen
        for parameter in a.target.parameters():
            parameter.mul_(1.3).add_(0.05)
    loss, priorities = slow_value_loss(a, b)
    metrics, got = a.step(b)
    assert got is not None
    assert metrics["loss"] == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(got, priorities, rtol=1e-4)


def test_a_stored_state_is_where_the_burn_in_starts() -> None:
    """Told apart by their states alone; without the setting they are not looked at."""
    for stored, differ in ((True, True), (False, False)):
        c = config(stored_state=stored)
        losses_of = []
        for filled_with in (0.0, 2.0):
            b = batch(c)
            b.state = np.full((c.batch_size, 2, c.hidden), filled_with, np.float32)
            losses_of.append(learner(c).step(b)[0]["loss"])
        assert (losses_of[0] != losses_of[1]) == differ


def test_a_step_moves_the_weights_downhill() -> None:
    c = config(learning_rate=1e-2, target_period=1000)
    a, b = learner(c), batch(c)
    before = [a.step(b)[0]["loss"] for _ in range(200)]
    assert before[-1] < 0.5 * before[0]


def test_the_target_follows_every_target_period() -> None:
    c = config(target_period=3)
    a, b = learner(c), batch(c)

    def same() -> bool:
        pairs = zip(a.network.parameters(), a.target.parameters(), strict=True)
        return all(torch.equal(p, q) for p, q in pairs)

    followed = []
    for _ in range(6):
        a.step(b)
        followed.append(same())
    assert followed == [False, False, True, False, False, True]


def test_averaged_weights_lag_behind() -> None:
    c = config(averaged_weights=0.9)
    a, b = learner(c), batch(c)
    start = next(a.network.parameters()).detach().clone()
    a.step(b)
    now = next(a.network.parameters()).detach()
    average = next(a.acting_network().parameters())
    torch.testing.assert_close(average, 0.9 * start + 0.1 * now)


def test_imitation_learns_what_was_demonstrated() -> None:
    c = config(agent="bc", demo_ratio=1.0, learning_rate=1e-2)
    a, b = learner(c), batch(c)
    for _ in range(300):
        metrics, _ = a.step(b)
    assert metrics["demo_agreement"] == 1.0


def test_a_margin_pulls_demonstrated_actions_up() -> None:
    c = config(margin_weight=10.0, margin=0.5, learning_rate=1e-2)
    a, b = learner(c), batch(c)
    for _ in range(300):
        metrics, _ = a.step(b)
    assert metrics["demo_agreement"] > 0.9


def poisoned(b: SequenceBatch, where: str) -> SequenceBatch:
    b = copy.deepcopy(b)
    row, t = 0, int(np.flatnonzero(b.mask[0])[-1])
    if where == "rewards":
        b.reward[row, t] = np.nan
    elif where == "observations":
        b.observations["observation"][row, t] = np.inf
    return b


@pytest.mark.parametrize("where", ["rewards", "observations", "gradients"])
def test_nan_is_skipped_counted_and_leaves_no_trace(where: str) -> None:
    c = config()
    a, b = learner(c), batch(c)
    a.step(b)
    before = copy.deepcopy(a.state_dict())
    hooks = []
    if where == "gradients":
        weight = next(a.network.head.parameters())
        hooks.append(weight.register_hook(lambda g: g * float("nan")))
    _, priorities = a.step(poisoned(b, where))
    assert priorities is None
    assert (a.skipped, a.steps) == (1, 1)
    for group, tensors in a.state_dict()["tensors"].items():
        for name, tensor in tensors.items():
            torch.testing.assert_close(tensor, before["tensors"][group][name], rtol=0, atol=0)
    for hook in hooks:
        hook.remove()
    a.step(b)
    assert (a.skipped, a.skipped_in_a_row, a.steps) == (1, 0, 2)


def test_several_nan_in_a_row_stop_the_run_with_a_clear_message() -> None:
    c = config(bad_steps_allowed=3)
    a = learner(c)
    bad = poisoned(batch(c), "rewards")
    a.step(bad)
    a.step(bad)
    with pytest.raises(TrainingDiverged, match=r"nan.*3 learner steps in a row"):
        a.step(bad)


def test_saves_and_restores_itself_exactly() -> None:
    c = config(averaged_weights=0.9, target_period=2)
    one = learner(c)
    for seed in range(3):
        one.step(batch(c, seed))
    other = Learner(make_network(c, SPEC, 3), c)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for seed in range(3, 7):
        assert one.step(batch(c, seed))[0] == other.step(batch(c, seed))[0]


def test_the_four_agents_are_settings() -> None:
    of = {name: make_config(env="x", agent=name, demos="" if name == "r2d2" else "d")
          for name in ("r2d3", "r2d2", "dqfd", "bc")}  # fmt: skip
    assert of["r2d2"].demo_ratio == 0
    assert (of["dqfd"].core, of["dqfd"].demo_ratio) == ("feedforward", 0.25)
    assert (of["bc"].objective, of["bc"].core, of["bc"].actors) == ("imitation", "lstm", 0)
    assert of["r2d3"].demo_ratio > 0
