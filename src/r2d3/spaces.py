"""What an environment shows, sorted into the few kinds of input the network knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from r2d3.errors import UserError

Kind = Literal["pixels", "grid", "vector", "category"]
Arrays = dict[str, np.ndarray]

# A uint8 picture smaller than this on both sides is a map of symbols (MiniGrid's 7x7 view),
# not a photograph: its numbers are names, and are embedded instead of being scaled.
SMALLEST_PICTURE = 16
# Numbers without channels are a grey picture from this size on; smaller ones are boards of games.
SMALLEST_GREY_PICTURE = 30


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, channels) of bytes of this shape, or None where they are no picture.

    Gymnasium's wrappers make grey pictures [h, w], and put stacked frames in front: [n, h, w] and
    [n, h, w, c]. Each frame's channels are channels of the picture.
    """
    if len(shape) == 2 and min(shape) >= SMALLEST_GREY_PICTURE:
        return shape[0], shape[1], 1
    if len(shape) == 3 and shape[0] < SMALLEST_PICTURE <= min(shape[1:]):
        return shape[1], shape[2], shape[0]
    if len(shape) == 3 and max(shape[:2]) >= SMALLEST_PICTURE:
        return shape[0], shape[1], shape[2]
    if len(shape) == 4 and max(shape[1:3]) >= SMALLEST_PICTURE:
        return shape[1], shape[2], shape[0] * shape[3]
    return None


@dataclass(frozen=True)
class ObservationField:
    """One named part of an observation."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    categories: int = 0  # how many values a "category" can take
    first_category: int = 0  # Discrete spaces may start above zero
    low: tuple[float, ...] | None = None  # bounds of a "vector", where all of them are finite
    high: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ObservationSpec:
    """The fields that are used, in a fixed order, and the names of those left out, with reasons."""

    fields: tuple[ObservationField, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def extract(self, observation: Any) -> Arrays:
        """Copies the used fields out of one observation or a batch of them.

        The copy matters: some environments write the next observation into the same memory.
        """
        if not isinstance(observation, Mapping):
            observation = {"observation": observation}
        arrays = {}
        for field in self.fields:
            array = np.array(observation[field.name])
            if field.first_category:
                array = array - field.first_category
            arrays[field.name] = array.astype(field.dtype, copy=False)
        return arrays

    def zeros(self, *leading: int) -> Arrays:
        return {f.name: np.zeros((*leading, *f.shape), f.dtype) for f in self.fields}


def observation_spec(space: gym.Space) -> ObservationSpec:
    """Reads a Gymnasium space; raises UserError when nothing in it can be used."""
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"observation": space}
    fields, left_out = [], []
    for name, part in parts.items():
        field = _field(name, part)
        if isinstance(field, str):
            left_out.append((name, field))
        else:
            fields.append(field)
    if not fields:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out)
        raise UserError(f"no part of the observation can be used ({reasons})")
    # Dict spaces iterate in their own order; ours is by name, so that it survives a checkpoint.
    return ObservationSpec(tuple(sorted(fields, key=lambda f: f.name)), tuple(left_out))


def _field(name: str, space: gym.Space) -> ObservationField | str:
    """The field, or the reason why this space cannot be one."""
    if isinstance(space, spaces.Discrete):
        return ObservationField(
            name, "category", (), "int32", categories=int(space.n), first_category=int(space.start)
        )
    if isinstance(space, spaces.Box):
        if space.dtype == np.uint8 and picture_shape(space.shape) is not None:
            return ObservationField(name, "pixels", space.shape, "uint8")
        if space.dtype == np.uint8 and len(space.shape) == 3:
            return ObservationField(name, "grid", space.shape, "uint8")
        if not np.issubdtype(space.dtype, np.number):
            return f"a Box of {space.dtype} holds no numbers"
        low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
        dtype = "uint8" if space.dtype == np.uint8 else "float32"
        # The largest floats stand for "no bound" in many environments.
        if max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0)) > 1e6:
            return ObservationField(name, "vector", space.shape, dtype)
        return ObservationField(
            name, "vector", space.shape, dtype, low=tuple(low.tolist()), high=tuple(high.tolist())
        )
    return f"{type(space).__name__} is no Box or Discrete"


def number_of_actions(space: gym.Space) -> int:
    """Inside the agent they count from 0; the environment's own may start elsewhere."""
    if not isinstance(space, spaces.Discrete):
        raise UserError(f"the agent needs a Discrete action space, this one is {space}")
    return int(space.n)


def finite_rows(arrays: Arrays, rows: int) -> np.ndarray:
    """For each row of a batch: True when every float in it is finite."""
    fine = np.ones(rows, dtype=bool)
    for array in arrays.values():
        if array.dtype.kind == "f":
            fine &= np.isfinite(array.reshape(rows, -1)).all(axis=1)
    return fine
