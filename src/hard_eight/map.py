"""A picture of a world from above, for figures and for looking over an agent's shoulder.

Plain numpy, not fast: a few tens of milliseconds. Nothing is supersampled; every shape has a
signed distance to its border, in pixels, and half a pixel around zero is blended.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hard_eight.native.shade import BOX, CAPSULE, CYLINDER, FLOOR, OUTLINED, VISIBLE
from hard_eight.textures import LEVELS, SIDE, TEXTURES

Color = tuple[float, float, float]

CEILING_ABOVE, CEILING_HALF_SIDE = 2.2, 1.0  # m: higher and wider than this hides what is below
MARGIN = 0.5  # m around the world
AVATAR_LENGTH = 0.45  # m from centre to tip
CONE_LENGTH = 3.0  # m
VOID: Color = (38.0, 43.0, 58.0)
VOID_LINES: Color = (48.0, 54.0, 71.0)
AVATAR: Color = (38.0, 96.0, 235.0)
CONE: Color = (255.0, 225.0, 90.0)
INK: Color = (24.0, 24.0, 30.0)

_CIRCLE = np.stack([np.cos(np.arange(40) * np.pi / 20), np.sin(np.arange(40) * np.pi / 20)], 1)


class _Canvas:
    """A float picture and the way from metres to its pixels; north (+y) is up."""

    def __init__(self, height: int, width: int, bounds: tuple[float, float, float, float]) -> None:
        x0, x1, y0, y1 = bounds
        self.scale = min(width / max(x1 - x0, 1e-6), height / max(y1 - y0, 1e-6))  # pixels / m
        self.left = (x0 + x1) / 2 - width / 2 / self.scale
        self.top = (y0 + y1) / 2 + height / 2 / self.scale
        self.ground = np.zeros((height, width), np.float32)  # where a floor was painted
        self.pixels = np.empty((height, width, 3), np.float32)
        self.pixels[:] = VOID
        rows, columns = np.ogrid[:height, :width]
        self.pixels[(rows + columns) % 9 == 0] = VOID_LINES

    def to_pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return (points - (self.left, self.top)) * (self.scale, -self.scale) - 0.5

    def window(
        self, points: NDArray[np.float64], margin: float
    ) -> tuple[slice, slice, NDArray[np.float32], NDArray[np.float32]] | None:
        """The part of the picture around some points in pixels, and its coordinates."""
        height, width, _ = self.pixels.shape
        low = np.floor(points.min(0) - margin).clip(0, (width, height)).astype(int)
        high = np.ceil(points.max(0) + margin + 1).clip(0, (width, height)).astype(int)
        if (low >= high).any():
            return None
        rows, columns = slice(low[1], high[1]), slice(low[0], high[0])
        y, x = np.ogrid[rows, columns]
        return rows, columns, x.astype(np.float32), y.astype(np.float32)

    def blend(
        self,
        rows: slice,
        columns: slice,
        color: ArrayLike,
        alpha: NDArray[np.float32],
    ) -> None:
        below = self.pixels[rows, columns]
        below += alpha[..., None].astype(np.float32) * (np.asarray(color, np.float32) - below)

    def polygon(
        self, hull: NDArray[np.float64], color: ArrayLike, outline: float = 0.0, grow: float = 0.0
    ) -> None:
        """Fill a convex polygon in pixels, anticlockwise as seen on the page's y-up plane."""
        found = self.window(hull, grow + 1.0)
        if found is None:
            return
        rows, columns, x, y = found
        distance = _distance_to_hull(hull, x, y) - grow
        self.blend(rows, columns, INK if outline else color, np.clip(0.5 - distance, 0, 1))
        if outline:
            self.blend(rows, columns, color, np.clip(0.5 - distance - outline, 0, 1))

    def polyline(self, points: NDArray[np.float64], color: ArrayLike, thickness: float) -> None:
        """A line through points in pixels."""
        height, width, _ = self.pixels.shape
        alpha = np.zeros((height, width), np.float32)
        for start, end in pairwise(points):
            found = self.window(np.stack([start, end]), thickness + 1.0)
            if found is None:
                continue
            rows, columns, x, y = found
            along, here = end - start, (x - start[0], y - start[1])
            share = (here[0] * along[0] + here[1] * along[1]) / max(float(along @ along), 1e-9)
            share = np.clip(share, 0, 1)
            distance = np.hypot(here[0] - share * along[0], here[1] - share * along[1])
            cover = np.clip(thickness / 2 + 0.5 - distance, 0, 1)
            np.maximum(alpha[rows, columns], cover, out=alpha[rows, columns])
        found = self.window(points, thickness + 1.0)
        if found is not None:
            self.blend(found[0], found[1], color, alpha[found[:2]])


def _distance_to_hull(
    hull: NDArray[np.float64], x: NDArray[np.float32], y: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Signed distance in pixels to a convex polygon's nearest side line; negative inside."""
    distance = np.full(np.broadcast_shapes(x.shape, y.shape), -np.inf, np.float32)
    for start, end in zip(hull, np.roll(hull, -1, 0), strict=True):
        side = end - start
        length = float(np.hypot(*side))
        if length > 1e-9:
            nx, ny = np.float32(-side[1] / length), np.float32(side[0] / length)
            offset = nx * start[0] + ny * start[1]
            np.maximum(distance, nx * x + (ny * y - np.float32(offset)), out=distance)
    return distance


def _convex_hull(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Andrew's monotone chain; the order makes `_distance_to_hull` positive outside in pixels."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]

    def chain(candidates: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        kept: list[NDArray[np.float64]] = []
        for point in candidates:
            while len(kept) >= 2:
                a, b = kept[-1] - kept[-2], point - kept[-1]
                if a[0] * b[1] - a[1] * b[0] < -1e-9:
                    break
                kept.pop()
            kept.append(point)
        return kept

    return np.array(chain(ordered)[:-1] + chain(ordered[::-1])[:-1])


def _surface_points(kind: int, size: NDArray[np.float32]) -> NDArray[np.float64]:
    """Points of a geom, in its own frame, whose hull seen from above is its footprint."""
    if kind == BOX:
        corners = np.array(np.meshgrid((-1, 1), (-1, 1), (-1, 1))).reshape(3, 8).T
        return corners * size[:3].astype(float)
    ring = np.concatenate([_CIRCLE * float(size[0]), np.zeros((40, 1))], 1)
    end = np.array([0.0, 0.0, float(size[1])])
    if kind == CYLINDER:
        return np.concatenate([ring + end, ring - end])
    return np.array([end, -end]) if kind == CAPSULE else np.zeros((1, 3))


def _footprint(
    kind: int, size: NDArray[np.float32], position: NDArray[np.float64], turn: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Points (x, y) whose hull is the footprint, and the height of the geom's top."""
    points = _surface_points(kind, size) @ turn.reshape(3, 3).T + position
    if kind in (BOX, CYLINDER):
        return points[:, :2], float(points[:, 2].max())
    discs = [point[:2] + _CIRCLE * float(size[0]) for point in points]
    return np.concatenate(discs), float(points[:, 2].max()) + float(size[0])


def _is_ceiling(
    kind: int, size: NDArray[np.float32], position: NDArray[np.float64], turn: NDArray[np.float64]
) -> bool:
    bottom = 2 * position[2] - _footprint(kind, size, position, turn)[1]
    wide = kind == BOX and min(size[0], size[1]) > CEILING_HALF_SIDE
    return bool(bottom > CEILING_ABOVE and wide)


def _paint_floor(
    canvas: _Canvas,
    points: NDArray[np.float64],
    color: NDArray[np.float64],
    texture: int,
    position: NDArray[np.float64],
    turn: NDArray[np.float64],
) -> None:
    """A floor: lightened, with a trace of its pattern."""
    hull = _convex_hull(canvas.to_pixels(points))
    found = canvas.window(hull, 1.0)
    if found is None:
        return
    rows, columns, x, y = found
    level = int(np.clip(np.ceil(np.log2(max(SIDE / canvas.scale, 1.0))), 0, LEVELS - 1))
    side = SIDE >> level
    east = (x + 0.5) / canvas.scale + canvas.left - position[0]
    north = canvas.top - (y + 0.5) / canvas.scale - position[1]
    axes = turn.reshape(3, 3)
    u = np.floor((east * axes[0, 0] + north * axes[1, 0]) * side).astype(np.int32) & (side - 1)
    v = np.floor((east * axes[0, 1] + north * axes[1, 1]) * side).astype(np.int32) & (side - 1)
    pattern = 0.82 + 0.18 * TEXTURES[texture, level, v, u]
    shade = (0.5 * color + 0.5 * 245.0) * pattern[..., None]
    cover = np.clip(0.5 - _distance_to_hull(hull, x, y), 0, 1)
    canvas.blend(rows, columns, shade, cover)
    np.maximum(canvas.ground[rows, columns], cover, out=canvas.ground[rows, columns])


def _paint_avatar(canvas: _Canvas, avatar: tuple[float, float, float]) -> None:
    x, y, yaw = avatar
    ahead, left = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
    length = max(AVATAR_LENGTH, 9.0 / canvas.scale)
    corners = [(1.0, 0.0), (-0.7, 0.72), (-0.7, -0.72)]
    shape = np.array([(x, y) + length * (a * ahead + b * left) for a, b in corners])
    canvas.polygon(_convex_hull(canvas.to_pixels(shape)), (255.0, 255.0, 255.0), grow=2.0)
    canvas.polygon(_convex_hull(canvas.to_pixels(shape)), AVATAR, outline=1.2, grow=0.5)


def _paint_view_cone(
    canvas: _Canvas, avatar: tuple[float, float, float], opening_deg: float
) -> None:
    """A wedge that fades with distance."""
    x, y, yaw = avatar
    reach = CONE_LENGTH * canvas.scale
    eye = canvas.to_pixels(np.array([[x, y]]))
    found = canvas.window(eye, reach)
    if found is None or opening_deg <= 0:
        return
    rows, columns, px, py = found
    dx, dy = px - eye[0, 0], eye[0, 1] - py
    distance = np.hypot(dx, dy)
    off = np.abs((np.arctan2(dy, dx) - yaw + np.pi) % (2 * np.pi) - np.pi)
    from_side = (off - np.radians(opening_deg) / 2) * np.maximum(distance, 1.0)  # pixels
    fade = np.clip(1 - distance / reach, 0, 1)
    cover = np.clip(0.5 - from_side, 0, 1) * canvas.ground[rows, columns]
    canvas.blend(rows, columns, CONE, 0.55 * fade * cover)


def _paint_scale_bar(canvas: _Canvas) -> None:
    """One metre, at the lower left, with ticks at its ends."""
    height, width, _ = canvas.pixels.shape
    if canvas.scale > width - 24 or height < 40:
        return
    y, x0, x1 = height - 10.0, 10.0, 10.0 + canvas.scale
    bar = np.array([[x0, y - 3], [x0, y + 3], [x0, y], [x1, y], [x1, y - 3], [x1, y + 3]])
    canvas.polyline(bar, INK, 4.0)
    canvas.polyline(bar, (250.0, 250.0, 250.0), 1.8)


def draw_map(
    kind: NDArray[np.int32],
    size: NDArray[np.float32],
    rgb: NDArray[np.float32],
    texture: NDArray[np.int32],
    flags: NDArray[np.uint8],
    xpos: NDArray[np.float64],
    xmat: NDArray[np.float64],
    *,
    height: int,
    width: int,
    avatar: tuple[float, float, float] | None = None,
    gaze_yaw_fov_deg: float = 75.2,
    bounds: tuple[float, float, float, float] | None = None,
    trails: Sequence[tuple[ArrayLike, ArrayLike]] = (),
) -> NDArray[np.uint8]:
    """The world from above as uint8[height, width, 3], north up, equal scale in x and y.

    avatar: x, y (m) and yaw (rad, anticlockwise from east). gaze_yaw_fov_deg: the horizontal
    opening of its view cone (75.2 is a 4:3 picture with a vertical field of 60). bounds: x0, x1,
    y0, y1 (m); by default all that is drawn. trails: polylines (points[k, 2], rgb).
    """
    shown = []
    for g in range(len(kind)):
        if flags[g] & VISIBLE and not _is_ceiling(int(kind[g]), size[g], xpos[g], xmat[g]):
            points, top = _footprint(int(kind[g]), size[g], xpos[g], xmat[g])
            shown.append((top, g, points))
    if bounds is None:
        corners = np.concatenate([p for _, _, p in shown]) if shown else np.zeros((1, 2))
        (x0, y0), (x1, y1) = corners.min(0) - MARGIN, corners.max(0) + MARGIN
        bounds = (float(x0), float(x1), float(y0), float(y1))
    canvas = _Canvas(height, width, bounds)

    coned = avatar is None
    for top, g, points in sorted(shown, key=lambda entry: entry[:2]):
        color = np.clip(rgb[g].astype(float), 0, 255)
        hull = _convex_hull(canvas.to_pixels(points))
        if flags[g] & FLOOR:
            _paint_floor(canvas, points, color, int(texture[g]), xpos[g], xmat[g])
        elif flags[g] & OUTLINED:
            # The outline lies outside: a thin stick would be nothing but outline.
            canvas.polygon(hull, color, outline=1.3, grow=1.3)
        else:
            if not coned and avatar is not None and top > 1.0:  # walls hide the cone, floors do not
                _paint_view_cone(canvas, avatar, gaze_yaw_fov_deg)
                coned = True
            canvas.polygon(hull, 0.42 * color, outline=1.0)
    if not coned and avatar is not None:
        _paint_view_cone(canvas, avatar, gaze_yaw_fov_deg)
    for trail, trail_rgb in trails:
        points = np.asarray(trail, dtype=float).reshape(-1, 2)
        canvas.polyline(canvas.to_pixels(points), trail_rgb, 2.0)
    if avatar is not None:
        _paint_avatar(canvas, avatar)
    _paint_scale_bar(canvas)
    return np.clip(canvas.pixels + 0.5, 0, 255).astype(np.uint8)
