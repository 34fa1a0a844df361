"""Pictures for people: larger first-person views and maps of a running world."""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import FIELD_OF_VIEW
from .map import draw_map
from .native.step import draw_view
from .textures import TEXTURES
from .world import World


def first_person(world: World, *, height: int, width: int) -> np.ndarray:
    """What the avatar sees, at any size."""
    picture = np.empty((height, width, 3), np.uint8)
    draw_view(world.row, FIELD_OF_VIEW, TEXTURES, picture)
    return picture


def top_down(world: World, *, height: int, width: int, **options: Any) -> np.ndarray:
    """The map: walls, things, avatar and gaze from above."""
    data = world.data
    x, y, _ = world.position
    return draw_map(
        world.kind, world.size, world.rgb, world.texture, world.flags, data.geom_xpos,
        data.geom_xmat, height=height, width=width, avatar=(x, y, world.yaw), **options,
    )  # fmt: skip
