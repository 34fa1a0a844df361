"""Torsos: one per kind of observation, each from [N, ...] to [N, outputs]."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from r2d3.errors import UserError
from r2d3.spaces import ObservationField, picture_shape

NO_AUTOCAST: contextlib.AbstractContextManager[None] = contextlib.nullcontext()

# So many frames of activations stay in a CPU core's cache; a whole batch at once does not.
FRAMES_AT_A_TIME = 64
# Frames are centred: with x/255 features were nearly constant and nothing was learned.
PIXEL_CENTRE, PIXEL_SPREAD = 104.0, 50.0
SYMBOLS = 256  # a grid's numbers are bytes
EMBEDDING = 8
FULL_STRIDES_FROM = 60  # rows of a picture


class Torso(nn.Module):
    """`needs_linear`: its output is raw convolution, to be followed by linear, norm and ReLU."""

    outputs: int
    needs_linear: bool


class ConvTorso(Torso):
    """Any stack of convolutions over uint8 frames [N, height, width, channels], or the other
    layouts of `picture_shape`."""

    needs_linear = True

    def __init__(self, layers: nn.Sequential, shape: tuple[int, ...]):
        super().__init__()
        self.layers = layers
        for module in layers.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.orthogonal_(module.weight, math.sqrt(2.0))
                assert module.bias is not None
                nn.init.zeros_(module.bias)
        picture = picture_shape(shape)
        assert picture is not None
        height, width, channels = picture
        self.frames_first = tuple(shape) != picture
        with torch.no_grad():
            probe = layers(torch.zeros(1, channels, height, width))
        self.outputs = probe.numel()
        # Twice as fast as the default layout on CPUs, and what tensor cores want on GPUs.
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Tensor) -> Tensor:
        first = self.layers[0]
        assert isinstance(first, nn.Conv2d)
        assert first.bias is not None
        # Centring is linear, so it goes into the weights, which are few, instead of the pixels.
        weight = first.weight * (1.0 / PIXEL_SPREAD)
        bias = first.bias - PIXEL_CENTRE * weight.sum(dim=(1, 2, 3))
        at_once = len(frames) if frames.device.type != "cpu" else FRAMES_AT_A_TIME
        parts = [self._convolve(part, weight, bias) for part in frames.split(max(at_once, 1))]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _convolve(self, frames: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        first = self.layers[0]
        assert isinstance(first, nn.Conv2d)
        x = self._channels_first(frames).float()
        if first.padding != (0, 0):
            # The border must be padded with the centre's value, which is 0 after centring.
            x = F.pad(x, _both_sides(first.padding), value=PIXEL_CENTRE)
        x = self.layers[1:](F.conv2d(x, weight, bias, first.stride))
        return x.permute(0, 2, 3, 1).flatten(1)  # in the order of memory: no copy

    def _channels_first(self, frames: Tensor) -> Tensor:
        if frames.dim() == 3:
            return frames[:, None]
        if frames.dim() == 5:
            return frames.permute(0, 1, 4, 2, 3).flatten(1, 2)
        # permute of [N, H, W, C] is channels_last already: no copy.
        return frames if self.frames_first else frames.permute(0, 3, 1, 2)


def _both_sides(padding: tuple[int, ...] | str) -> list[int]:
    """Conv2d's (rows, columns) as F.pad wants it: left, right, top, bottom."""
    assert isinstance(padding, tuple)
    rows, columns = padding
    return [columns, columns, rows, rows]


class ResidualBlock(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(F.relu_(self.first(F.relu(x))))


def resnet_layers(channels_in: int) -> nn.Sequential:
    """The ResNet of the paper (IMPALA's): three stages of 16, 32 and 32 channels."""
    layers: list[nn.Module] = []
    for channels in (16, 32, 32):
        layers += [
            nn.Conv2d(channels_in, channels, 3, padding=1),
            nn.MaxPool2d(3, stride=2, padding=1),
            ResidualBlock(channels),
            ResidualBlock(channels),
        ]
        channels_in = channels
    return nn.Sequential(*layers, nn.ReLU(inplace=True))


def small_cnn_layers(channels_in: int, height: int) -> nn.Sequential:
    """Three strided convolutions: a tenth of the ResNet's time or less."""
    # Small pictures take smaller strides, so that some places are left to tell apart.
    (first, stride), second = ((8, 4), 4) if height >= FULL_STRIDES_FROM else ((6, 3), 3)
    return nn.Sequential(
        nn.Conv2d(channels_in, 16, first, stride=stride),
        nn.ReLU(inplace=True),
        nn.Conv2d(16, 32, second, stride=2),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(inplace=True),
    )


class _SumOfRows(torch.autograd.Function):
    """embedding_bag(mode="sum") with a plain backward: PyTorch's own sorts all indices first, which
    for so small a table takes twice as long as adding up."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.table_length = len(table)
        return F.embedding_bag(rows, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        (gradient,), (rows,) = gradients, ctx.saved_tensors
        into_table = gradient.new_zeros(ctx.table_length, gradient.shape[1])
        for column in rows.unbind(1):
            into_table.index_add_(0, column, gradient)
        return None, into_table


class GridTorso(Torso):
    """Small maps of symbols, such as MiniGrid's 7x7x3: numbers are names, so they are embedded."""

    needs_linear = True

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        height, width, channels = shape
        # One table per channel, all in one, so that one gather sums a cell's channels.
        self.table = nn.Parameter(torch.randn(SYMBOLS * channels, EMBEDDING))
        self.register_buffer("first_row", torch.arange(channels) * SYMBOLS)
        self.first_row: Tensor
        kernel = min(3, height, width)
        self.layers = nn.Sequential(nn.Conv2d(EMBEDDING, 16, kernel), nn.ReLU())
        if min(height, width) >= 5:
            self.layers.extend([nn.Conv2d(16, 32, 3), nn.ReLU()])
        with torch.no_grad():
            self.outputs = self.layers(torch.zeros(1, EMBEDDING, height, width)).numel()

    def forward(self, grid: Tensor) -> Tensor:
        count, height, width, channels = grid.shape
        rows = (grid.long() + self.first_row).view(-1, channels)
        x = _SumOfRows.apply(rows, self.table)
        # With so few channels the default layout is the faster one, unlike for pictures.
        x = x.view(count, height, width, EMBEDDING).permute(0, 3, 1, 2).contiguous()
        return self.layers(x).flatten(1)


class VectorTorso(Torso):
    """Numbers without a picture: bounded ones are scaled to -1..1, others squashed by symlog."""

    needs_linear = False

    def __init__(self, field: ObservationField, mlp: bool, features: int):
        super().__init__()
        size = math.prod(field.shape)
        low = torch.tensor(field.low) if field.low is not None else None
        high = torch.tensor(field.high) if field.high is not None else None
        self.bounded = low is not None and high is not None
        if low is not None and high is not None:
            self.register_buffer("centre", ((low + high) / 2).float())
            self.register_buffer("reach", ((high - low) / 2).clamp(min=1e-6).float())
        self.centre: Tensor
        self.reach: Tensor
        self.layers: nn.Module = nn.Identity()
        self.outputs = size
        if mlp:
            self.layers = nn.Sequential(nn.Linear(size, features), nn.ReLU())
            self.layers.extend([nn.Linear(features, features), nn.ReLU()])
            self.outputs = features

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1).float()
        if self.bounded:
            x = (x - self.centre) / self.reach
        else:
            x = torch.sign(x) * torch.log1p(torch.abs(x))
        return self.layers(x)


class CategoryTorso(Torso):
    needs_linear = False

    def __init__(self, field: ObservationField):
        super().__init__()
        self.outputs = field.categories

    def forward(self, x: Tensor) -> Tensor:
        return F.one_hot(x.long(), self.outputs).float()


def make_torso(field: ObservationField, torso: str, features: int) -> Torso:
    """`torso` chooses what looks at pictures: "resnet" or "cnn". Other kinds have one torso each.

    "mlp" puts two layers before the core for vectors; otherwise they join it as they are.
    """
    if field.kind == "vector":
        return VectorTorso(field, mlp=torso == "mlp", features=features)
    if field.kind == "category":
        return CategoryTorso(field)
    if field.kind == "grid":
        return GridTorso(field.shape)
    shape = picture_shape(field.shape)
    assert shape is not None
    height, width, channels = shape
    if torso == "resnet":
        return ConvTorso(resnet_layers(channels), field.shape)
    if min(height, width) < 30:
        raise UserError(
            f"observation '{field.name}' of {field.shape} is too small for torso '{torso}': "
            "use --torso resnet"
        )
    return ConvTorso(small_cnn_layers(channels, height), field.shape)
