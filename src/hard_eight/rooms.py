"""Floors, walls, openings and ceilings, out of upright boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .looks import Look
from .native.raster import FLOOR, VISIBLE
from .parts import DOOR_HEIGHT, DOOR_WIDTH
from .world import AVATAR_ONLY

if TYPE_CHECKING:
    from .world import World

Span = Sequence[float]
WALL_THICKNESS = 0.2
FLOOR_THICKNESS = 1.0  # deeper than the recess of push_blocks
ROOM_HEIGHT = 3.0


class Opening(NamedTuple):
    """A gap in a wall, from the floor up: its middle along the wall, width and height."""

    at: float
    width: float = DOOR_WIDTH
    height: float = DOOR_HEIGHT


class Hole(NamedTuple):
    """A rectangular recess in a floor."""

    x: tuple[float, float]
    y: tuple[float, float]
    depth: float


def floor(
    world: World,
    x: Span,
    y: Span,
    *,
    top: float = 0.0,
    thickness: float = FLOOR_THICKNESS,
    hole: Hole | None = None,
    look: Look | None = None,
) -> None:
    """A slab, with at most one recess in it."""
    look = look or world.surroundings.floor

    def slab(x: Span, y: Span, top: float = top) -> None:
        if x[1] > x[0] and y[1] > y[0]:
            world.solid(x, y, (min(top, 0) - thickness, top), look, flags=VISIBLE | FLOOR)

    if hole is None:
        slab(x, y)
        return
    slab((x[0], hole.x[0]), y)
    slab((hole.x[1], x[1]), y)
    slab(hole.x, (y[0], hole.y[0]))
    slab(hole.x, (hole.y[1], y[1]))
    slab(hole.x, hole.y, top - hole.depth)


def wall(
    world: World,
    along: str,
    at: float,
    span: Span,
    openings: Sequence[Opening] = (),
    *,
    height: float = ROOM_HEIGHT,
    bottom: float = 0.0,
    thickness: float = WALL_THICKNESS,
    look: Look | None = None,
) -> None:
    """A wall along the axis `along` ('x' or 'y'), centred on `at` of the other axis."""
    look = look or world.surroundings.wall
    across = (at - thickness / 2, at + thickness / 2)

    def piece(start: float, end: float, low: float, high: float) -> None:
        if end > start and high > low:
            x, y = ((start, end), across) if along == "x" else (across, (start, end))
            world.solid(x, y, (low, high), look)

    cursor = span[0]
    for opening in sorted(openings):
        left, right = opening.at - opening.width / 2, opening.at + opening.width / 2
        piece(cursor, left, bottom, bottom + height)
        piece(left, right, bottom + opening.height, bottom + height)
        cursor = right
    piece(cursor, span[1], bottom, bottom + height)


def ceiling(world: World, x: Span, y: Span, height: float = ROOM_HEIGHT) -> None:
    world.solid(x, y, (height, height + 0.2), world.surroundings.ceiling)


def room(
    world: World,
    x: Span,
    y: Span,
    *,
    west: Sequence[Opening] = (),
    east: Sequence[Opening] = (),
    south: Sequence[Opening] = (),
    north: Sequence[Opening] = (),
    height: float = ROOM_HEIGHT,
    hole: Hole | None = None,
) -> None:
    """A closed room by the inner faces of its walls; openings are given by side (+x is east)."""
    half = WALL_THICKNESS / 2
    wide_x = (x[0] - WALL_THICKNESS, x[1] + WALL_THICKNESS)
    wide_y = (y[0] - WALL_THICKNESS, y[1] + WALL_THICKNESS)
    floor(world, wide_x, wide_y, hole=hole)
    ceiling(world, wide_x, wide_y, height)
    wall(world, "y", x[0] - half, wide_y, west, height=height)
    wall(world, "y", x[1] + half, wide_y, east, height=height)
    wall(world, "x", y[0] - half, x, south, height=height)
    wall(world, "x", y[1] + half, x, north, height=height)


def railing(
    world: World, along: str, at: float, span: Span, *, bottom: float = 0.0, height: float = 0.4
) -> None:
    """A low wall that keeps the avatar, but not a thrown thing, from falling off an edge.

    The unseen upper part stops only the avatar, so that nothing piled against it makes a step.
    """
    wall(world, along, at, span, height=height, bottom=bottom)
    across = (at - WALL_THICKNESS / 2, at + WALL_THICKNESS / 2)
    x, y = (span, across) if along == "x" else (across, span)
    world.solid(x, y, (bottom, bottom + 2 * ROOM_HEIGHT), None, collide=AVATAR_ONLY)
