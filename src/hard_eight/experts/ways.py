"""Ways round things that stand about: the shortest chain of straight walks that keeps clear."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

Spot = Sequence[float] | np.ndarray
Extent = tuple[float, float]
CORNERS = 8


def gap_to_segment(point: Spot, start: Spot, end: Spot) -> float:
    """How near a straight walk passes to a point, m."""
    a, b, p = (np.asarray(spot, float)[:2] for spot in (start, end, point))
    along = b - a
    share = np.clip((p - a) @ along / max(along @ along, 1e-9), 0.0, 1.0)
    return float(np.linalg.norm(a + share * along - p))


def way_round(
    start: Spot,
    goal: Spot,
    obstacles: Sequence[Spot],
    clearance: float,
    x: Extent,
    y: Extent,
) -> list[np.ndarray] | None:
    """Points to walk to, the goal last, `clearance` metres from all obstacles; None: no way.

    x and y bound the floor that may be walked on. Where the start or the goal itself is closer to
    an obstacle, walking away from or up to it is allowed.
    """
    turns = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    ring = 1.12 * clearance * np.stack([np.cos(turns), np.sin(turns)], 1)
    corners = [np.asarray(o, float)[:2] + step for o in obstacles for step in ring]
    inside = [p for p in corners if x[0] < p[0] < x[1] and y[0] < p[1] < y[1]]
    points = [np.asarray(start, float)[:2], np.asarray(goal, float)[:2], *inside]

    def free(a: np.ndarray, b: np.ndarray) -> bool:
        for obstacle in obstacles:
            ends = min(np.hypot(*(a - obstacle[:2])), np.hypot(*(b - obstacle[:2])))
            if gap_to_segment(obstacle, a, b) < min(clearance, ends - 1e-6):
                return False
        return True

    best = {0: 0.0}
    came_from: dict[int, int] = {}
    queue = [(0.0, 0)]
    while queue:
        length, i = heapq.heappop(queue)
        if i == 1:
            way = [1]
            while came_from[way[-1]] != 0:
                way.append(came_from[way[-1]])
            return [points[k] for k in reversed(way)]
        if length > best[i]:
            continue
        for j in range(1, len(points)):
            longer = length + float(np.hypot(*(points[j] - points[i])))
            if longer < best.get(j, np.inf) and free(points[i], points[j]):
                best[j] = longer
                came_from[j] = i
                heapq.heappush(queue, (longer, j))
    return None
