"""A software rasteriser: from a table of geoms to a uint8 picture, without vertices or clipping.

Seen from a box's own frame, the ray through pixel (i, j) is linear in i and j. On the plane of one
of its faces 1 / depth is then linear in (i, j) too, and so is 'inside the face's border' once it is
divided by depth. A row of a face is therefore one span of pixels, found by intersecting five
half-lines; the camera may sit anywhere, even inside the box's slabs. Spheres, capsules and
cylinders are intersected ray by ray within a bounding rectangle.

Depth is along the camera's axis, not along the ray. The depth buffer holds 1 / depth (0: nothing),
the face buffer 8 * geom + face (-1: nothing); `shade` turns these into colours.

Only + - * / sqrt and comparisons, so that pictures are the same bits on every x86-64 machine.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hard_eight.native.jit import entry, fingerprint, inlined, inner, lean
from hard_eight.native.shade import (
    BOX,
    CAPSULE,
    CASTS_SHADOW,
    CURVED_FACE,
    CYLINDER,
    FARTHEST,
    FLOOR,
    OUTLINED,
    SPHERE,
    SUN_X,
    SUN_Y,
    SUN_Z,
    VISIBLE,
    half_extents,
    shade,
)
from hard_eight.native.shadow import cast_shadows

__all__ = [
    "BOX",
    "CAPSULE",
    "CASTS_SHADOW",
    "CYLINDER",
    "FLOOR",
    "OUTLINED",
    "SPHERE",
    "VISIBLE",
    "Scratch",
    "draw",
    "make_scratch",
    "new_scratch",
]

f4 = np.float32
ZERO, HALF, ONE, TWO = f4(0), f4(0.5), f4(1), f4(2)
NEAR = f4(0.02)  # m; things that cross this depth get the whole screen as bounding rectangle
TOUCHING = f4(1e-4)  # m; a face this close to the eye, edge-on, is left out
FLAT_SLOPE = f4(1e-9)


class Scratch(NamedTuple):
    """Working memory of one thread; nothing in it survives from one picture to the next."""

    depth: NDArray[np.float32]  # [H, W] 1 / depth
    face: NDArray[np.int32]  # [H, W] 8 * geom + face
    rect: NDArray[np.int32]  # [n, 4] first and last column, first and last row; empty: unseen
    eye: NDArray[np.float32]  # [n, 3] the camera, in the geom's frame
    axes: NDArray[np.float32]  # [n, 9] the camera's right, up and forward, in the geom's frame
    ray: NDArray[np.float32]  # [n, 9] ray of pixel (0, 0), its change per column, per row
    sun: NDArray[np.float32]  # [n, 3] SUN in the geom's frame
    edges: NDArray[np.float32]  # [2, 5, 2] left and right borders of a face: column at row 0, slope
    floors: NDArray[np.int32]  # [n] geoms that may receive shadows
    metres: NDArray[np.float32]  # [W] a row's depths
    clear: NDArray[np.float32]  # [W] shares of colour left by the haze
    texel: NDArray[np.int32]  # [W] places in a texture
    dim: NDArray[np.float32]  # [W] darkening by outlines


@inner  # it allocates, so it is not lean
def make_scratch(n_geoms_max: int, height: int, width: int) -> Scratch:
    n = max(1, n_geoms_max)
    return Scratch(
        np.zeros((height, width), np.float32),
        np.zeros((height, width), np.int32),
        np.zeros((n, 4), np.int32),
        np.zeros((n, 3), np.float32),
        np.zeros((n, 9), np.float32),
        np.zeros((n, 9), np.float32),
        np.zeros((n, 3), np.float32),
        np.zeros((2, 5, 2), np.float32),
        np.zeros(n, np.int32),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        np.zeros(width, np.int32),
        np.zeros(width, np.float32),
    )


@inlined
def half_angle_tangent(fovy_deg: float) -> float:
    """tan(fovy / 2) by series: a libm's tan may differ in its last bit between machines."""
    x = min(max(fovy_deg, 1.0), 170.0) * (math.pi / 360.0)
    square = x * x
    sine, cosine, term = 0.0, 0.0, 1.0
    for k in range(12):  # |x| < pi / 2: the first term left out is below 1e-19
        cosine += term
        term *= x / (2 * k + 1)
        sine += term
        term *= -x / (2 * k + 2)
    return sine / cosine if square > 0.0 else 0.0


@inlined
def bounding_rect(x, y, z, reach, pixel, height, width, rect):
    """Pixels that a box at camera coordinates (x, y, z) can touch; `reach` holds its half sides
    as vectors (right, up, forward parts of each). False if it lies wholly behind or outside."""
    ahead = abs(reach[0][2]) + abs(reach[1][2]) + abs(reach[2][2])
    if z + ahead < ZERO:
        return False
    left, right, top, bottom = 0, width - 1, 0, height - 1
    if z - ahead > NEAR:
        least_u, most_u, least_v, most_v = f4(1e9), f4(-1e9), f4(1e9), f4(-1e9)
        for corner in range(8):
            a = ONE if corner & 1 else -ONE
            b = ONE if corner & 2 else -ONE
            c = ONE if corner & 4 else -ONE
            inverse = ONE / (z + a * reach[0][2] + b * reach[1][2] + c * reach[2][2])
            u = (x + a * reach[0][0] + b * reach[1][0] + c * reach[2][0]) * inverse
            v = (y + a * reach[0][1] + b * reach[1][1] + c * reach[2][1]) * inverse
            least_u, most_u = min(least_u, u), max(most_u, u)
            least_v, most_v = min(least_v, v), max(most_v, v)
        per_pixel = ONE / pixel
        middle_i, middle_j = HALF * f4(width - 1), HALF * f4(height - 1)
        # Clamped as floats: a corner just beyond NEAR may be thousands of screens away.
        columns, rows = f4(width), f4(height)
        left = int(min(max(least_u * per_pixel + middle_i, ZERO), columns))
        right = int(min(max(most_u * per_pixel + middle_i + ONE, -ONE), columns - ONE))
        top = int(min(max(middle_j - most_v * per_pixel, ZERO), rows))
        bottom = int(min(max(middle_j - least_v * per_pixel + ONE, -ONE), rows - ONE))
    rect[0], rect[1], rect[2], rect[3] = left, right, top, bottom
    return left <= right and top <= bottom


@lean
def look_at_geom(g, kind, size, radius, xpos, xmat, cam_pos, cam_mat, tangent, scratch):
    """Cull geom g; if it may be seen, put its rectangle, eye, axes, rays and sun in scratch."""
    height, width = scratch.depth.shape
    rect = scratch.rect[g]
    rect[0], rect[1] = 1, 0
    dx, dy, dz = xpos[g, 0] - cam_pos[0], xpos[g, 1] - cam_pos[1], xpos[g, 2] - cam_pos[2]
    x = f4(dx * cam_mat[0] + dy * cam_mat[3] + dz * cam_mat[6])
    y = f4(dx * cam_mat[1] + dy * cam_mat[4] + dz * cam_mat[7])
    z = f4(-(dx * cam_mat[2] + dy * cam_mat[5] + dz * cam_mat[8]))
    r = radius[g]
    wide = tangent * f4(width) / f4(height)
    if z < -r or abs(x) - z * wide > r * math.sqrt(ONE + wide * wide):
        return False
    if abs(y) - z * tangent > r * math.sqrt(ONE + tangent * tangent):
        return False

    axes, ray, eye, sun = scratch.axes[g], scratch.ray[g], scratch.eye[g], scratch.sun[g]
    for k in range(3):
        mx, my, mz = xmat[g, k], xmat[g, 3 + k], xmat[g, 6 + k]  # local axis k, in the world
        axes[k] = f4(cam_mat[0] * mx + cam_mat[3] * my + cam_mat[6] * mz)
        axes[3 + k] = f4(cam_mat[1] * mx + cam_mat[4] * my + cam_mat[7] * mz)
        axes[6 + k] = -f4(cam_mat[2] * mx + cam_mat[5] * my + cam_mat[8] * mz)
        eye[k] = -f4(dx * mx + dy * my + dz * mz)
        sun[k] = SUN_X * f4(mx) + SUN_Y * f4(my) + SUN_Z * f4(mz)

    pixel = TWO * tangent / f4(height)
    hx, hy, hz = half_extents(kind[g], size[g])
    if kind[g] == SPHERE:  # any orientation will do: the camera's gives the smallest rectangle
        reach = ((r, ZERO, ZERO), (ZERO, r, ZERO), (ZERO, ZERO, r))
    else:
        reach = (
            (hx * axes[0], hx * axes[3], hx * axes[6]),
            (hy * axes[1], hy * axes[4], hy * axes[7]),
            (hz * axes[2], hz * axes[5], hz * axes[8]),
        )
    if not bounding_rect(x, y, z, reach, pixel, height, width, rect):
        rect[0], rect[1] = 1, 0
        return False

    left, upper = HALF - HALF * f4(width), HALF * f4(height) - HALF  # pixel (0, 0), in pixels
    for k in range(3):
        ray[3 + k] = axes[k] * pixel
        ray[6 + k] = -axes[3 + k] * pixel
        ray[k] = axes[6 + k] + left * ray[3 + k] - upper * ray[6 + k]
    return True


@inlined
def half_line(constant, per_column, per_row, n_left, n_right, edges):
    """Add the border constant + per_column * i + per_row * j >= 0 to the left or right ones."""
    if abs(per_column) < FLAT_SLOPE:  # a horizontal border: i >= -huge or i >= +huge
        per_column = FLAT_SLOPE
    inverse = -ONE / per_column
    side, k = (0, n_left) if per_column > ZERO else (1, n_right)
    edges[side, k, 0] = constant * inverse
    edges[side, k, 1] = per_row * inverse
    return (n_left + 1, n_right) if per_column > ZERO else (n_left, n_right + 1)


@lean
def fill_spans(code, inverse, slope_i, slope_j, n_left, n_right, rect, scratch):
    """Draw the part of a plane that lies within the borders in scratch.edges."""
    depth, face, edges = scratch.depth, scratch.face, scratch.edges
    for j in range(rect[2], rect[3] + 1):
        row = f4(j)
        # Bounds stay within the rectangle before they become integers: borders may lie 1e12
        # pixels away, where float32 has no fractions and int32 no values.
        first, last = f4(rect[0]), f4(rect[1])
        for k in range(n_left):
            first = max(first, edges[0, k, 0] + edges[0, k, 1] * row)
        for k in range(n_right):
            last = min(last, edges[1, k, 0] + edges[1, k, 1] * row)
        if last < first:
            continue
        start, stop = math.ceil(first), int(last) + 1
        row_value = inverse + slope_j * row
        for i in range(np.uint64(start), np.uint64(stop)):
            here = row_value + slope_i * f4(np.int32(i))
            nearer = here > depth[j, i]
            depth[j, i] = here if nearer else depth[j, i]
            face[j, i] = code if nearer else face[j, i]


@lean
def raster_box(g, half, scratch):
    eye, ray, rect, edges = scratch.eye[g], scratch.ray[g], scratch.rect[g], scratch.edges
    for a in range(3):
        if eye[a] > half[a] + TOUCHING:
            sign, code = ONE, np.int32(8 * g + 2 * a)
        elif eye[a] < -half[a] - TOUCHING:
            sign, code = -ONE, np.int32(8 * g + 2 * a + 1)
        else:
            continue  # between the two planes of this axis: neither face shows its outside
        scale = ONE / (sign * half[a] - eye[a])
        inverse, slope_i, slope_j = ray[a] * scale, ray[3 + a] * scale, ray[6 + a] * scale
        n_left, n_right = half_line(inverse - FARTHEST, slope_i, slope_j, 0, 0, edges)
        for turn in range(1, 3):
            b = (a + turn) % 3
            for side in (ONE, -ONE):  # half - side * (eye + ray / inverse) >= 0, times inverse
                room = half[b] - side * eye[b]
                n_left, n_right = half_line(
                    room * inverse - side * ray[b],
                    room * slope_i - side * ray[3 + b],
                    room * slope_j - side * ray[6 + b],
                    n_left,
                    n_right,
                    edges,
                )
        fill_spans(code, inverse, slope_i, slope_j, n_left, n_right, rect, scratch)


@inlined
def hit_sphere(ox, oy, oz, dx, dy, dz, radius):
    """Depth at which the ray o + t d enters a sphere about the origin, or -1.

    The discriminant by the cross product: B * B - A * C cancels badly for small, distant things.
    """
    a = dx * dx + dy * dy + dz * dz
    cx, cy, cz = oy * dz - oz * dy, oz * dx - ox * dz, ox * dy - oy * dx
    discriminant = radius * radius * a - (cx * cx + cy * cy + cz * cz)
    if discriminant <= ZERO:
        return -ONE
    return (-(ox * dx + oy * dy + oz * dz) - math.sqrt(discriminant)) / a


@inlined
def hit_tube(ox, oy, oz, dx, dy, dz, radius, half_length, is_cylinder):
    """Depth and face at which a ray enters a cylinder or capsule along z; depth -1 if it does not.

    From inside the tube's infinite side there is no way in but through an end.
    """
    a = dx * dx + dy * dy
    across = ox * dy - oy * dx
    discriminant = radius * radius * a - across * across
    side_depth = -ONE
    if a > f4(1e-12):
        if discriminant <= ZERO:
            return -ONE, CURVED_FACE
        side_depth = (-(ox * dx + oy * dy) - math.sqrt(discriminant)) / a
        if side_depth > ZERO and abs(oz + side_depth * dz) <= half_length:
            return side_depth, CURVED_FACE
    if is_cylinder:
        end = half_length if oz > ZERO else -half_length
        if abs(oz) <= half_length or dz * oz >= ZERO:
            return -ONE, CURVED_FACE
        t = (end - oz) / dz
        x, y = ox + t * dx, oy + t * dy
        if x * x + y * y > radius * radius:
            return -ONE, CURVED_FACE
        return t, 4 if oz > ZERO else 5
    top = hit_sphere(ox, oy, oz - half_length, dx, dy, dz, radius)
    bottom = hit_sphere(ox, oy, oz + half_length, dx, dy, dz, radius)
    if top > ZERO and bottom > ZERO:
        return min(top, bottom), CURVED_FACE
    return max(top, bottom), CURVED_FACE


@lean
def raster_curved(g, kind, size, scratch):
    depth, face, rect = scratch.depth, scratch.face, scratch.rect[g]
    eye, ray = scratch.eye[g], scratch.ray[g]
    ox, oy, oz, radius, half_length = eye[0], eye[1], eye[2], size[0], size[1]
    for j in range(rect[2], rect[3] + 1):
        row = f4(j)
        x0, y0, z0 = ray[0] + ray[6] * row, ray[1] + ray[7] * row, ray[2] + ray[8] * row
        for i in range(rect[0], rect[1] + 1):
            column = f4(i)
            dx, dy, dz = x0 + ray[3] * column, y0 + ray[4] * column, z0 + ray[5] * column
            if kind == SPHERE:
                t, side = hit_sphere(ox, oy, oz, dx, dy, dz, radius), CURVED_FACE
            else:
                t, side = hit_tube(ox, oy, oz, dx, dy, dz, radius, half_length, kind == CYLINDER)
            if t > TOUCHING:
                inverse = ONE / t
                if inverse > depth[j, i]:
                    depth[j, i] = inverse
                    face[j, i] = 8 * g + side


def _make_entries(fingerprint: int):
    """The entry points: for `step`, for tests and for pictures; see `jit`.

    Cached by themselves, so that an edited rule of the world leaves them compiled.
    """

    @entry
    def new_scratch(n_geoms_max, height, width):
        _ = fingerprint
        return make_scratch(n_geoms_max, height, width)

    @entry
    def draw(
        kind, size, rgb, texture, flags, radius, xpos, xmat, cam_pos, cam_mat, fovy_deg, scratch,
        textures, out,
    ):  # fmt: skip
        """Draw one picture of the geoms into out, uint8[H, W, 3]; scratch is of the same H, W."""
        _ = fingerprint
        tangent = f4(half_angle_tangent(fovy_deg))
        scratch.depth[:] = ZERO
        scratch.face[:] = -1
        for g in range(kind.shape[0]):
            if not flags[g] & VISIBLE:
                scratch.rect[g, 0], scratch.rect[g, 1] = 1, 0
                continue
            if look_at_geom(g, kind, size, radius, xpos, xmat, cam_pos, cam_mat, tangent, scratch):
                if kind[g] == BOX:
                    raster_box(g, size[g], scratch)
                else:
                    raster_curved(g, kind[g], size[g], scratch)
        pixel = TWO * tangent / f4(out.shape[0])
        shade(kind, size, rgb, texture, flags, cam_mat, pixel, scratch, textures, out)
        cast_shadows(kind, size, flags, xpos, xmat, pixel, scratch, out)

    return new_scratch, draw


new_scratch, draw = _make_entries(fingerprint("raster", "shade", "shadow"))
