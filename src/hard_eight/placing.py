"""Where things go: spots that keep apart, plates on walls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numpy.random import Generator

from .errors import HardEightError

Span = Sequence[float]
Spot = tuple[float, float]
PLATE_THICKNESS = 0.06


class Plate(NamedTuple):
    """Where a plate hangs: its middle and half sizes, and the spot of floor before it."""

    at: tuple[float, float, float]
    half: tuple[float, float, float]
    front: Spot


def wall_plate(
    side: str,
    along: float,
    x: Span,
    y: Span,
    height: float,
    half: float,
    *,
    half_height: float | None = None,
    out: float = PLATE_THICKNESS,
) -> Plate:
    """A plate on the inner face of a room's wall (sides by compass, +x is east).

    Square unless `half_height` is given; it stands out from the wall by twice `out`.
    """
    high = half if half_height is None else half_height
    if side == "west":
        return Plate((x[0] + out, along, height), (out, half, high), (x[0] + 0.6, along))
    if side == "east":
        return Plate((x[1] - 0.1 - out, along, height), (out, half, high), (x[1] - 0.7, along))
    if side == "south":
        return Plate((along, y[0] + out, height), (half, out, high), (along, y[0] + 0.6))
    return Plate((along, y[1] - out, height), (half, out, high), (along, y[1] - 0.6))


def scatter(
    draw: Generator,
    x: Span,
    y: Span,
    margins: Sequence[float],
    apart: float,
    keep_clear: Sequence[tuple[float, float, float]] = (),
) -> list[Spot]:
    """One spot for each margin (m from the walls), `apart` from each other.

    `keep_clear` holds circles (x, y, radius) that no spot may lie in. All are redrawn together, so
    the spots are uniform over the arrangements that fit.
    """
    for _ in range(2000):
        spots: list[Spot] = []
        for margin in margins:
            spot = (
                float(draw.uniform(x[0] + margin, x[1] - margin)),
                float(draw.uniform(y[0] + margin, y[1] - margin)),
            )
            crowded = any(distance_squared(spot, other) < apart**2 for other in spots)
            if crowded or any(distance_squared(spot, c) < c[2] ** 2 for c in keep_clear):
                break
            spots.append(spot)
        else:
            return spots
    raise HardEightError(
        f"no room for {len(margins)} spots {apart} m apart in x {tuple(x)}, y {tuple(y)}; "
        "make the room larger or the gaps smaller"
    )


def distance_squared(a: Sequence[float], b: Sequence[float]) -> float:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2
