"""The mathematics, against slow obvious versions and against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from r2d3 import losses


def h(x: float) -> float:
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + 1e-3 * x


# -- rescaling -------------------------------------------------------------------------------


def test_rescaling_by_hand() -> None:
    # sqrt(3 + 1) - 1 + 0.003 = 1.003, and the same with the other sign
    x = torch.tensor([0.0, 3.0, -3.0, 99.0])
    torch.testing.assert_close(losses.rescale(x), torch.tensor([0.0, 1.003, -1.003, 9.099]))
    torch.testing.assert_close(losses.unrescale(losses.rescale(x)), x)


def test_rescaling_and_back_is_exact_to_1e5_relative_in_float32() -> None:
    magnitude = torch.logspace(-8, 6, 20_000)
    x = torch.cat([magnitude, -magnitude])
    error = (losses.unrescale(losses.rescale(x)) - x) / x
    assert error.abs().max() < 1e-5


def test_the_inverse_alone_is_exact_to_1e5_relative_in_float32() -> None:
    y = torch.logspace(-6, 4, 20_000)
    exact = losses.unrescale(y.double())
    assert ((losses.unrescale(y).double() - exact) / exact).abs().max() < 1e-5
    back = [h(x) for x in exact[::997].tolist()]
    assert back == pytest.approx(y[::997].tolist(), rel=1e-6)


def test_asymmetric_clipping_by_hand() -> None:
    r = torch.tensor([0.0, 10.0, 1.0, -1.0, -100.0])
    expected = [0.0, 5 * math.tanh(2), 5 * math.tanh(0.2), -1.5 * math.tanh(0.2), -1.5]
    torch.testing.assert_close(losses.clip_asymmetrically(r), torch.tensor(expected))


# -- n-step targets --------------------------------------------------------------------------


def slow_target(
    r: list[float], discount: list[float], v: list[float], steps: int, t: int, n: int
) -> float:
    """By recursion, one step at a time: n steps, or as many as there are."""
    if n == 0 or t == steps:
        return v[t]
    return r[t] + discount[t] * slow_target(r, discount, v, steps, t + 1, n - 1)


def test_n_step_targets_by_hand() -> None:
    # Two steps, gamma 0.5, rewards 1, 2, 4, values of the states 10, 20, 30, 40.
    r, discount = torch.tensor([[1.0, 2.0, 4.0]]), torch.full((1, 3), 0.5)
    v, mask = torch.tensor([[10.0, 20.0, 30.0, 40.0]]), torch.ones(1, 3)
    # 1 + 0.5*2 + 0.25*30 = 9.5;   2 + 0.5*4 + 0.25*40 = 14;   n shrinks: 4 + 0.5*40 = 24
    torch.testing.assert_close(
        losses.n_step_targets(r, discount, v, mask, 2), torch.tensor([[9.5, 14.0, 24.0]])
    )


def test_a_terminal_state_is_worth_nothing_and_a_truncated_one_its_value() -> None:
    r, v, mask = torch.ones(1, 2), torch.full((1, 3), 100.0), torch.ones(1, 2)
    cut_off = losses.n_step_targets(r, torch.tensor([[0.5, 0.5]]), v, mask, 5)
    ended = losses.n_step_targets(r, torch.tensor([[0.5, 0.0]]), v, mask, 5)
    torch.testing.assert_close(cut_off, torch.tensor([[1 + 0.5 + 25.0, 1 + 50.0]]))
    torch.testing.assert_close(ended, torch.tensor([[1.5, 1.0]]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 7), st.booleans())
def test_n_step_targets_equal_the_slow_version(seed: int, length: int, n: int, ends: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = 3
    r = rng.normal(size=(rows, length))
    v = rng.normal(size=(rows, length + 1))
    discount = np.full((rows, length), 0.9)
    steps = rng.integers(0, length + 1, rows)
    mask = (np.arange(length)[None] < steps[:, None]).astype(float)
    if ends:
        for row in range(rows):
            if steps[row]:
                discount[row, steps[row] - 1] = 0.0
    # What lies in the padding must not matter, be it ever so large.
    r[mask == 0] = 1e9
    tensors = [torch.from_numpy(x) for x in (r, discount, v, mask)]
    got = losses.n_step_targets(*tensors, n)
    for row in range(rows):
        for t in range(int(steps[row])):
            want = slow_target(
                r[row].tolist(), discount[row].tolist(), v[row].tolist(), int(steps[row]), t, n
            )
            assert float(got[row, t]) == pytest.approx(want, rel=1e-9, abs=1e-9)


# -- temporal differences --------------------------------------------------------------------


def test_double_q_takes_the_online_choice_and_the_targets_word_for_it() -> None:
    online = torch.tensor([[[1.0, 3.0, 2.0]]])
    target = torch.tensor([[[10.0, 20.0, 30.0]]])
    assert losses.double_q_values(online, target).item() == 20.0


def test_rescaled_td_error_by_hand() -> None:
    """One step, gamma 0.5, reward 1, next value h(3): target h(1 + 0.5 * 3)."""
    td = losses.td_errors(
        torch.tensor([[[0.25, 0.75]]]),
        torch.tensor([[1]]),
        torch.tensor([[1.0]]),
        torch.tensor([[0.5]]),
        torch.tensor([[123.0, h(3.0)]]),
        torch.ones(1, 1),
        n=5,
        rescaled=True,
    )
    assert td.item() == pytest.approx(0.75 - h(2.5), rel=1e-6)


def test_no_gradient_flows_into_the_target() -> None:
    q = torch.zeros(1, 2, 2, requires_grad=True)
    v = torch.ones(1, 3, requires_grad=True)
    td = losses.td_errors(
        q, torch.zeros(1, 2, dtype=torch.int64), torch.ones(1, 2), torch.ones(1, 2), v,
        torch.ones(1, 2), n=1, rescaled=False,
    )  # fmt: skip
    td.sum().backward()
    assert v.grad is None
    assert q.grad is not None


def test_loss_by_hand() -> None:
    td = torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    mask = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    # (0.5*4*0.5 + (0.5*1 + 0.5*9)*1) / 3 real steps
    loss = losses.weighted_td_loss(td, mask, torch.tensor([0.5, 1.0]))
    assert loss.item() == pytest.approx(2.0)


def test_priorities_by_hand() -> None:
    td = torch.tensor([[1.0, -3.0, 2.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    # 0.9 * 3 + 0.1 * (1 + 3 + 2) / 3
    assert losses.sequence_priorities(td, mask, 0.9).item() == pytest.approx(2.9)


def test_margin_loss_by_hand() -> None:
    q = torch.tensor([[[1.0, 0.98, 0.0]], [[1.0, 5.0, 0.0]]])
    a, mask = torch.tensor([[0], [0]]), torch.ones(2, 1)
    is_demo = torch.tensor([True, False])
    # Only the first row demonstrates: 0.98 + 0.05 exceeds 1 by 0.03.
    assert losses.large_margin_loss(q, a, mask, is_demo, 0.05).item() == pytest.approx(0.03)
    nobody = torch.tensor([False, False])
    assert losses.large_margin_loss(q, a, mask, nobody, 0.05).item() == 0.0


def test_cross_entropy_by_hand() -> None:
    logits = torch.tensor([[[0.0, math.log(3.0)], [float("nan"), 0.0]]])
    got = losses.cross_entropy(logits, torch.tensor([[1, 0]]), torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(got, torch.tensor([[-math.log(0.75), 0.0]]))
