"""The agent's network: torsos -> joined features -> LSTM or feed-forward core -> head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from r2d3.losses import clip_asymmetrically
from r2d3.spaces import ObservationSpec
from r2d3.torsos import NO_AUTOCAST, make_torso

State = tuple[Tensor, Tensor]  # LSTM's h and c, [B, hidden] each


@dataclass
class Inputs:
    """What the network sees, all [B, T, ...]."""

    observations: dict[str, Tensor]
    prev_action: Tensor  # -1: there was none
    prev_reward: Tensor

    def slice(self, start: int, end: int | None) -> Inputs:
        return Inputs(
            {name: x[:, start:end] for name, x in self.observations.items()},
            self.prev_action[:, start:end],
            self.prev_reward[:, start:end],
        )

    def rows(self, rows: Tensor) -> Inputs:
        return Inputs(
            {name: x[rows] for name, x in self.observations.items()},
            self.prev_action[rows],
            self.prev_reward[rows],
        )


class DuelingHead(nn.Module):
    """Value of the state plus each action's advantage over the mean."""

    def __init__(self, inputs: int, hidden: int, actions: int):
        super().__init__()
        self.value = _two_layers(inputs, hidden, 1)
        self.advantage = _two_layers(inputs, hidden, actions)

    def forward(self, x: Tensor) -> Tensor:
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=-1, keepdim=True)


class SoftmaxHead(nn.Module):
    """Logits of a policy: what behavioural cloning trains."""

    def __init__(self, inputs: int, hidden: int, actions: int):
        super().__init__()
        self.logits = _two_layers(inputs, hidden, actions)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x)


def _two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    last = nn.Linear(hidden, outputs)
    with torch.no_grad():
        last.weight.mul_(0.1)  # first values near zero, so that no action is preferred by chance
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), last)


def _module_key(name: str) -> str:
    """ModuleDict refuses dots in names, and those of its own methods, such as "keys". What
    observations are called is the user's business."""
    key = name.replace(".", "_")
    return f"{key}_" if hasattr(nn.ModuleDict(), key) else key


class AgentNetwork(nn.Module):
    """Values (or logits) of every action for every step of a batch of sequences."""

    def __init__(
        self,
        spec: ObservationSpec,
        actions: int,
        *,
        torso: str,
        core: str,
        head: str,
        features: int,
        hidden: int,
        layer_norm: bool,
        precision: str = "float32",
    ):
        super().__init__()
        self.actions, self.hidden, self.recurrent = actions, hidden, core == "lstm"
        self.torso_precision = precision
        self.keys = {field.name: _module_key(field.name) for field in spec.fields}
        self.torsos = nn.ModuleDict()
        self.linears = nn.ModuleDict()
        joined = actions + 1  # previous action, previous reward
        for field in spec.fields:
            made = make_torso(field, torso, features)
            key = self.keys[field.name]
            self.torsos[key] = made
            if made.needs_linear:
                self.linears[key] = nn.Sequential(
                    nn.Linear(made.outputs, features),
                    # Without it a prototype learned nothing from pixels: features were all alike.
                    nn.LayerNorm(features) if layer_norm else nn.Identity(),
                    nn.ReLU(),
                )
                joined += features
            else:
                joined += made.outputs
        self.core: nn.Module
        if self.recurrent:
            self.core = nn.LSTM(joined, hidden, batch_first=True)
        else:
            self.core = nn.Sequential(nn.Linear(joined, hidden), nn.ReLU())
        head_type = {"dueling": DuelingHead, "softmax": SoftmaxHead}[head]
        self.head = head_type(hidden, hidden, actions)

    def initial_state(self, batch: int) -> State:
        zeros = next(self.parameters()).new_zeros(batch, self.hidden)
        return zeros, zeros.clone()

    def embed(self, inputs: Inputs) -> Tensor:
        """Everything that does not walk through time: [B, T, joined]."""
        batch, time = inputs.prev_action.shape
        parts = [
            # Row 0 of the one-hot stands for "no action yet" and is cut off.
            F.one_hot(inputs.prev_action + 1, self.actions + 1)[..., 1:].float(),
            # Squashed as in the loss: a reward of 10 must not drown the other inputs.
            clip_asymmetrically(inputs.prev_reward)[..., None],
        ]
        autocast = (
            torch.autocast(inputs.prev_reward.device.type, torch.bfloat16)
            if self.torso_precision == "bfloat16"
            else NO_AUTOCAST
        )
        for name, x in inputs.observations.items():
            key = self.keys[name]
            with autocast:
                features = self.torsos[key](x.flatten(0, 1))
                if key in self.linears:
                    features = self.linears[key](features)
            parts.append(features.float().unflatten(0, (batch, time)))
        return torch.cat(parts, dim=-1)

    def unroll(self, inputs: Inputs, state: State) -> tuple[Tensor, State]:
        """[B, T] steps from the given state: values [B, T, actions], and the state after them."""
        core, state = self.walk(self.embed(inputs), state)
        return self.head(core), state

    def walk(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Through time, the only part that has to go one step after another."""
        if not self.recurrent:
            return self.core(embedded), state
        output, (h, c) = self.core(embedded, (state[0][None], state[1][None]))
        return output, (h[0], c[0])

    @torch.no_grad()
    def burn_in(self, inputs: Inputs, left_pad: Tensor, stored: State | None = None) -> State:
        """The state after the given steps. No gradient, and padded steps leave no trace.

        Row i is padded on its first left_pad[i] steps. Its state is zero (or the stored one)
        before its first real step, whatever the padding did.
        """
        batch, time = inputs.prev_action.shape
        start = stored if stored is not None else self.initial_state(batch)
        if not self.recurrent or time == 0:
            return start
        # Episodes' first sequences have nothing but padding here: no need to compute them.
        rows = torch.nonzero(left_pad < time).squeeze(1)
        if len(rows) == 0:
            return start
        if len(rows) < batch:
            some = self._burn_in_rows(
                inputs.rows(rows), left_pad[rows], (start[0][rows], start[1][rows])
            )
            h, c = start[0].clone(), start[1].clone()
            h[rows], c[rows] = some
            return h, c
        return self._burn_in_rows(inputs, left_pad, start)

    def _burn_in_rows(self, inputs: Inputs, left_pad: Tensor, start: State) -> State:
        embedded, state, at = self.embed(inputs), start, 0
        # Rows start at few different places (mostly one), so walk from one to the next.
        for pad in [*sorted(set(left_pad.tolist()) - {0}), embedded.shape[1]]:
            _, state = self.walk(embedded[:, at:pad], state)
            at = pad
            waiting = (left_pad >= pad)[:, None]
            state = (
                torch.where(waiting, start[0], state[0]),
                torch.where(waiting, start[1], state[1]),
            )
        return state


def copy_weights(source: nn.Module, destination: nn.Module) -> None:
    """Into existing memory, so that views and layouts of the destination stay."""
    with torch.no_grad():
        for into, out_of in zip(_tensors(destination), _tensors(source), strict=True):
            into.copy_(out_of)


def _tensors(module: nn.Module) -> Iterable[Tensor]:
    yield from module.parameters()
    yield from module.buffers()
