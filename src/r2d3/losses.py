"""The mathematics of learning, as pure functions of tensors [B, time]. No module, no state.

Time indices follow the transition: action `a_tm1` in state t-1 earns `r_t` and leads to state t.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

RESCALING_EPSILON = 1e-3


def rescale(x: Tensor) -> Tensor:
    """h(x) = sign(x)(sqrt(|x| + 1) - 1) + eps x: squashes large values, and stays invertible."""
    a = torch.abs(x)
    # sqrt(a + 1) - 1, written so that small values keep their digits.
    return torch.sign(x) * (a / (torch.sqrt(a + 1.0) + 1.0)) + RESCALING_EPSILON * x


def unrescale(y: Tensor) -> Tensor:
    """The inverse of `rescale`, without subtracting nearly equal numbers.

    With u = sqrt(|x| + 1) - 1 the definition reads  eps u^2 + (1 + 2 eps) u = |y|.  The root is
    taken in the form that divides by a sum, and |x| = u (u + 2). The textbook formula loses most
    of float32's digits.
    """
    a = torch.abs(y)
    b = 1.0 + 2.0 * RESCALING_EPSILON
    u = 2.0 * a / (b + torch.sqrt(b * b + 4.0 * RESCALING_EPSILON * a))
    return torch.sign(y) * u * (u + 2.0)


def clip_asymmetrically(reward: Tensor) -> Tensor:
    """Squashes rewards to (-1.5, 5): good news counts for more than bad."""
    squashed = torch.tanh(reward / 5.0)
    return torch.where(reward >= 0, 5.0 * squashed, 1.5 * squashed)


def n_step_targets(r_t: Tensor, discount_t: Tensor, v_t: Tensor, mask: Tensor, n: int) -> Tensor:
    """What each state-action is worth: n rewards, then the value of the state n steps on.

    r_t, discount_t, mask are [B, L]; discount_t is 0 where the episode ended for good, and
    v_t is [B, L + 1]: v_t[:, i] is the value of state i, the last one that of the state behind
    the last action. mask is 1 on a row's first steps and 0 on the rest (padding).
    Near a row's end n shrinks: the state that is bootstrapped from stays the last real one.
    """
    batch, length = r_t.shape
    steps = mask.sum(dim=1, keepdim=True).long()  # [B, 1] real steps of each row
    t = torch.arange(length, device=r_t.device)[None, :]
    nothing = r_t.new_zeros(batch, n)
    padded_r = torch.cat([r_t, nothing], dim=1)
    padded_discount = torch.cat([discount_t, nothing], dim=1)
    target = torch.zeros_like(r_t)
    discount = torch.ones_like(r_t)
    for k in range(n):
        inside = t + k < steps
        target = target + torch.where(inside, discount * padded_r[:, k : k + length], 0.0)
        discount = torch.where(inside, discount * padded_discount[:, k : k + length], discount)
    bootstrap_at = torch.minimum(t + n, steps)
    return target + discount * v_t.gather(1, bootstrap_at)


def double_q_values(q_t: Tensor, q_target_t: Tensor) -> Tensor:
    """The online network chooses the action, the target network says what it is worth."""
    a_t = q_t.argmax(dim=-1, keepdim=True)
    return q_target_t.gather(-1, a_t).squeeze(-1)


def td_errors(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    v_t: Tensor,
    mask: Tensor,
    *,
    n: int,
    rescaled: bool,
) -> Tensor:
    """Prediction minus n-step target, [B, L]; zero on padding.

    q_tm1 is [B, L, actions]; v_t [B, L + 1] are the values of states 0..L as the networks give
    them, that is rescaled if `rescaled`.
    """
    with torch.no_grad():
        true_v_t = unrescale(v_t) if rescaled else v_t
        target = n_step_targets(r_t, discount_t, true_v_t, mask, n)
        if rescaled:
            target = rescale(target)
    taken = q_tm1.gather(-1, a_tm1[..., None]).squeeze(-1)
    # `where`, not a product: a NaN in the padding times zero would still be NaN.
    return torch.where(mask > 0, taken - target, 0.0)


def weighted_td_loss(td: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Half the squared errors, each row by its importance weight, per real step."""
    return (0.5 * td.square() * weight[:, None]).sum() / mask.sum().clamp(min=1.0)


def sequence_priorities(td: Tensor, mask: Tensor, eta: float) -> Tensor:
    """eta max|td| + (1 - eta) mean|td| over the real steps of each row."""
    absolute = td.abs() * mask
    mean = absolute.sum(dim=1) / mask.sum(dim=1).clamp(min=1.0)
    return eta * absolute.amax(dim=1) + (1.0 - eta) * mean


def large_margin_loss(
    q_tm1: Tensor, a_tm1: Tensor, mask: Tensor, is_demo: Tensor, margin: float
) -> Tensor:
    """DQfD's: the demonstrated action shall beat every other by `margin`. Demonstrations only."""
    taken = q_tm1.gather(-1, a_tm1[..., None])
    rivals = (q_tm1 + margin).scatter(-1, a_tm1[..., None], taken)
    shortfall = rivals.amax(dim=-1) - taken.squeeze(-1)
    counted = mask * is_demo.to(mask.dtype)[:, None]
    return (shortfall * counted).sum() / counted.sum().clamp(min=1.0)


def cross_entropy(logits: Tensor, a_tm1: Tensor, mask: Tensor) -> Tensor:
    """Behavioural cloning: minus the log-probability of the demonstrated action, [B, L]."""
    log_probability = F.log_softmax(logits, dim=-1)
    chosen = log_probability.gather(-1, a_tm1[..., None]).squeeze(-1)
    return torch.where(mask > 0, -chosen, 0.0)
