"""The learner: one batch in, better weights and new priorities out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from r2d3 import losses
from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.networks import AgentNetwork, Inputs, copy_weights
from r2d3.replay import SequenceBatch


class TrainingDiverged(UserError):
    """NaN or infinity, several times in a row: going on would only burn time."""


class Learner:
    """Owns the weights that are trained, their target copy and the optimiser. Fetches nothing."""

    def __init__(self, network: AgentNetwork, config: Config, device: str = "cpu"):
        self.config, self.device = config, torch.device(device)
        self.network = network.to(self.device)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.average = copy.deepcopy(self.target) if config.averaged_weights else None
        self.optimizer = torch.optim.Adam(
            self.network.parameters(),
            lr=config.learning_rate,
            eps=config.adam_epsilon,
            foreach=True,
        )
        self.steps = 0
        self.skipped = 0
        self.skipped_in_a_row = 0

    def step(self, batch: SequenceBatch) -> tuple[dict[str, float], np.ndarray | None]:
        """One step of learning. Priorities are None when the step was skipped (NaN or infinity)."""
        if self.config.objective == "imitation":
            loss, priorities, metrics = self._imitation(batch)
        else:
            loss, priorities, metrics = self._value(batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        gradient_norm = nn.utils.clip_grad_norm_(
            self.network.parameters(), self.config.clip_norm, foreach=True
        )
        metrics["loss"] = float(loss.detach())
        metrics["gradient_norm"] = float(gradient_norm)
        if not np.isfinite(metrics["loss"]) or not np.isfinite(metrics["gradient_norm"]):
            self._skip(metrics)
            return metrics, None
        self.optimizer.step()
        self.steps += 1
        self.skipped_in_a_row = 0
        if self.steps % self.config.target_period == 0:
            copy_weights(self.network, self.target)
        if self.average is not None:
            keep = self.config.averaged_weights
            pairs = zip(self.average.parameters(), self.network.parameters(), strict=True)
            with torch.no_grad():
                for slow, fast in pairs:
                    slow.lerp_(fast, 1.0 - keep)
        return metrics, priorities

    def acting_network(self) -> AgentNetwork:
        """Whose weights actors and the evaluator take."""
        return self.average if self.average is not None else self.network

    # -- the two objectives --------------------------------------------------------------------

    def _value(self, batch: SequenceBatch) -> tuple[Tensor, np.ndarray, dict[str, float]]:
        c, burn_in = self.config, self.config.burn_in
        inputs = self._inputs(batch)
        warm_up, trained = inputs.slice(0, burn_in), inputs.slice(burn_in, None)
        left_pad = torch.as_tensor(batch.left_pad, device=self.device)
        stored = self._stored_state(batch)
        a_tm1, r_t, terminal_t, mask = self._trained_part(batch)
        if c.clip_rewards:
            r_t = losses.clip_asymmetrically(r_t)
        discount_t = c.discount * (1.0 - terminal_t)

        q, _ = self.network.unroll(trained, self.network.burn_in(warm_up, left_pad, stored))
        with torch.no_grad():
            q_target, _ = self.target.unroll(
                trained, self.target.burn_in(warm_up, left_pad, stored)
            )
            # One entry per state; the first is never bootstrapped from, but keeps indices plain.
            v_t = losses.double_q_values(q.detach(), q_target)
        q_tm1 = q[:, :-1]
        td = losses.td_errors(
            q_tm1, a_tm1, r_t, discount_t, v_t, mask, n=c.n_step, rescaled=c.rescale_values
        )
        weight = torch.as_tensor(batch.weight, device=self.device)
        is_demo = torch.as_tensor(batch.is_demo, device=self.device)
        loss = losses.weighted_td_loss(td, mask, weight)
        if c.margin_weight:
            loss = loss + c.margin_weight * losses.large_margin_loss(
                q_tm1, a_tm1, mask, is_demo, c.margin
            )
        priorities = losses.sequence_priorities(td.detach(), mask, c.priority_eta).cpu().numpy()
        return (
            loss,
            priorities,
            self._value_metrics(q_tm1.detach(), a_tm1, mask, is_demo, priorities),
        )

    def _value_metrics(
        self, q: Tensor, action: Tensor, mask: Tensor, is_demo: Tensor, priorities: np.ndarray
    ) -> dict[str, float]:
        best = q.amax(dim=-1)
        if self.config.rescale_values:
            best = losses.unrescale(best)
        demos = is_demo.to(mask.dtype)[:, None] * mask
        own = mask - demos
        metrics = {
            "priority_mean": float(priorities.mean()),
            "priority_max": float(priorities.max()),
            "demo_share": float(is_demo.float().mean()),
        }
        own_steps, demo_steps = float(own.sum()), float(demos.sum())
        if own_steps:
            metrics["q_agent"] = float((best * own).sum()) / own_steps
        if demo_steps:
            metrics["q_demo"] = float((best * demos).sum()) / demo_steps
            agrees = (q.argmax(dim=-1) == action).to(mask.dtype)
            metrics["demo_agreement"] = float((agrees * demos).sum()) / demo_steps
        return metrics

    def _imitation(self, batch: SequenceBatch) -> tuple[Tensor, np.ndarray, dict[str, float]]:
        burn_in = self.config.burn_in
        inputs = self._inputs(batch)
        left_pad = torch.as_tensor(batch.left_pad, device=self.device)
        a_tm1, _, _, mask = self._trained_part(batch)
        state = self.network.burn_in(inputs.slice(0, burn_in), left_pad)
        logits, _ = self.network.unroll(inputs.slice(burn_in, -1), state)
        surprise = losses.cross_entropy(logits, a_tm1, mask)
        loss = surprise.sum() / mask.sum().clamp(min=1.0)
        agrees = (logits.detach().argmax(dim=-1) == a_tm1).to(mask.dtype)
        metrics = {"demo_agreement": float((agrees * mask).sum() / mask.sum()), "demo_share": 1.0}
        # Every demonstrated step counts alike: priorities stay what they were.
        return loss, np.ones(len(batch.weight)), metrics

    # -- small parts ---------------------------------------------------------------------------

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def _inputs(self, batch: SequenceBatch) -> Inputs:
        return Inputs(
            {name: self._tensor(array) for name, array in batch.observations.items()},
            self._tensor(batch.prev_action),
            self._tensor(batch.prev_reward),
        )

    def _trained_part(self, batch: SequenceBatch) -> tuple[Tensor, ...]:
        arrays = (batch.action, batch.reward, batch.terminal, batch.mask)
        return tuple(self._tensor(array)[:, self.config.burn_in :] for array in arrays)

    def _stored_state(self, batch: SequenceBatch) -> tuple[Tensor, Tensor] | None:
        if not self.config.stored_state or batch.state is None:
            return None
        state = self._tensor(batch.state)
        return state[:, 0].contiguous(), state[:, 1].contiguous()

    def _skip(self, metrics: dict[str, float]) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row >= self.config.bad_steps_allowed:
            raise TrainingDiverged(
                f"stopped: loss {metrics['loss']}, gradient norm {metrics['gradient_norm']} in "
                f"{self.skipped_in_a_row} learner steps in a row (after {self.steps} good ones). "
                "The weights are still the last good ones. Look for NaN in the demonstrations, "
                "or try a lower --learning-rate"
            )

    # -- the checkpoint ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        optimizer = {}
        for i, parameter in enumerate(self.network.parameters()):
            for name, value in self.optimizer.state.get(parameter, {}).items():
                optimizer[f"{i}/{name}"] = value
        tensors = {"network": self.network.state_dict(), "target": self.target.state_dict()}
        tensors["optimizer"] = optimizer
        if self.average is not None:
            tensors["average"] = self.average.state_dict()
        names = ("steps", "skipped", "skipped_in_a_row")
        return {"tensors": tensors, "numbers": {name: getattr(self, name) for name in names}}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        tensors = saved["tensors"]
        self.network.load_state_dict(tensors["network"])
        self.target.load_state_dict(tensors["target"])
        if self.average is not None:
            self.average.load_state_dict(tensors["average"])
        for i, parameter in enumerate(self.network.parameters()):
            state = {
                name.split("/")[1]: value.to("cpu" if name.endswith("/step") else self.device)
                for name, value in tensors["optimizer"].items()
                if name.startswith(f"{i}/")
            }
            if state:
                # Adam keeps its moments in the layout of the weights (channels_last).
                for key in ("exp_avg", "exp_avg_sq"):
                    state[key] = torch.empty_like(parameter).copy_(state[key]).detach()
                self.optimizer.state[parameter] = state
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
