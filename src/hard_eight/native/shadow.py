"""Blob shadows: a dark ellipse on the floor beneath a thing shows where it stands or hovers.

Painted over the finished picture, on those pixels only that show the top of that floor.
"""

import math

import numpy as np

from hard_eight.native.jit import lean
from hard_eight.native.shade import (
    BOX,
    CASTS_SHADOW,
    FLOOR,
    HALF,
    ONE,
    TOP_FACE,
    TWO,
    VISIBLE,
    ZERO,
    clamp,
    half_extents,
)

f4 = np.float32

SHADOW_DARKEST = f4(0.55)
SHADOW_SPREAD = f4(1.5)  # of the footprint
SHADOW_RIM, SHADOW_RIM_PER_METRE = f4(0.06), f4(0.15)  # m, and m per m of height
SHADOW_FAINTEST = f4(0.04)


@lean
def floor_beneath(g, floors, n_floors, size, xpos, xmat):
    """The highest floor under geom g's centre and how far below it lies (m); -1 if there is none.

    Floors may be tilted: the drop is measured along the vertical, in the floor's own frame."""
    best, least_drop = -1, f4(1e9)
    for k in range(n_floors):
        f = floors[k]
        steep = f4(xmat[f, 8])  # cosine between the floor's normal and the vertical
        if f == g or steep < f4(0.3):
            continue
        dx, dy, dz = xpos[g, 0] - xpos[f, 0], xpos[g, 1] - xpos[f, 1], xpos[g, 2] - xpos[f, 2]
        z = f4(dx * xmat[f, 2] + dy * xmat[f, 5] + dz * xmat[f, 8])
        drop = (z - size[f, 2]) / steep
        if drop <= ZERO or drop >= least_drop:
            continue
        x = f4(dx * xmat[f, 0] + dy * xmat[f, 3] + dz * xmat[f, 6]) - drop * f4(xmat[f, 6])
        y = f4(dx * xmat[f, 1] + dy * xmat[f, 4] + dz * xmat[f, 7]) - drop * f4(xmat[f, 7])
        if abs(x) <= size[f, 0] and abs(y) <= size[f, 1]:
            best, least_drop = f, drop
    return best, least_drop


@lean
def shadow_rect(f, x, y, z, reach_x, reach_y, pixel, scratch, height, width):
    """Pixels that a patch of floor f about (x, y, z), in its frame, can touch."""
    eye, axes, rect = scratch.eye[f], scratch.axes[f], scratch.rect[f]
    least_i, most_i, least_j, most_j = f4(1e9), f4(-1e9), f4(1e9), f4(-1e9)
    behind = 0
    for corner in range(4):
        px = x + (reach_x if corner & 1 else -reach_x) - eye[0]
        py = y + (reach_y if corner & 2 else -reach_y) - eye[1]
        pz = z - eye[2]
        depth = axes[6] * px + axes[7] * py + axes[8] * pz
        if depth < f4(0.05):
            behind += 1
            continue
        per_pixel = ONE / (depth * pixel)
        i = (axes[0] * px + axes[1] * py + axes[2] * pz) * per_pixel
        j = -(axes[3] * px + axes[4] * py + axes[5] * pz) * per_pixel
        least_i, most_i = min(least_i, i), max(most_i, i)
        least_j, most_j = min(least_j, j), max(most_j, j)
    if behind == 4:
        return 1, 0, 1, 0
    if behind > 0:
        return int(rect[0]), int(rect[1]), int(rect[2]), int(rect[3])
    middle_i, middle_j = HALF * f4(width - 1), HALF * f4(height - 1)
    left, right, top, bottom = f4(rect[0]), f4(rect[1]), f4(rect[2]), f4(rect[3])
    return (
        int(clamp(least_i + middle_i, left, right + ONE)),
        int(clamp(most_i + middle_i + ONE, left - ONE, right)),
        int(clamp(least_j + middle_j, top, bottom + ONE)),
        int(clamp(most_j + middle_j + ONE, top - ONE, bottom)),
    )


@lean
def cast_shadow(g, kind, size, xpos, xmat, n_floors, pixel, scratch, out):
    """Darken the floor under geom g by an ellipse: the higher g, the wider and fainter."""
    f, drop = floor_beneath(g, scratch.floors, n_floors, size, xpos, xmat)
    if f < 0 or scratch.rect[f, 1] < scratch.rect[f, 0]:
        return
    # The footprint's ellipse, in the floor's frame: each half side of the geom, slid down along
    # the vertical onto the plane, adds its square to `xx`, `xy`, `yy`.
    half = half_extents(kind[g], size[g])
    up_x, up_y, up_z = f4(xmat[f, 6]), f4(xmat[f, 7]), f4(xmat[f, 8])
    xx, xy, yy, below, square = ZERO, ZERO, ZERO, ZERO, ZERO
    for k in range(3):
        wx, wy, wz = xmat[g, k], xmat[g, 3 + k], xmat[g, 6 + k]
        az = f4(wx * xmat[f, 2] + wy * xmat[f, 5] + wz * xmat[f, 8]) / up_z
        ax = (f4(wx * xmat[f, 0] + wy * xmat[f, 3] + wz * xmat[f, 6]) - az * up_x) * half[k]
        ay = (f4(wx * xmat[f, 1] + wy * xmat[f, 4] + wz * xmat[f, 7]) - az * up_y) * half[k]
        xx, xy, yy = xx + ax * ax, xy + ax * ay, yy + ay * ay
        below += abs(az) * half[k]
        square += az * az * half[k] * half[k]
    gap = max(ZERO, drop - (below if kind[g] == BOX else math.sqrt(square)))
    darkest = SHADOW_DARKEST / (ONE + f4(2.5) * gap * gap)
    if darkest < SHADOW_FAINTEST:
        return
    rim, spread = SHADOW_RIM + SHADOW_RIM_PER_METRE * gap, SHADOW_SPREAD * SHADOW_SPREAD
    xx, xy, yy = xx * spread + rim * rim, xy * spread, yy * spread + rim * rim

    eye, ray = scratch.eye[f], scratch.ray[f]
    dx, dy, dz = xpos[g, 0] - xpos[f, 0], xpos[g, 1] - xpos[f, 1], xpos[g, 2] - xpos[f, 2]
    x = f4(dx * xmat[f, 0] + dy * xmat[f, 3] + dz * xmat[f, 6]) - drop * up_x
    y = f4(dx * xmat[f, 1] + dy * xmat[f, 4] + dz * xmat[f, 7]) - drop * up_y
    height, width = scratch.depth.shape
    i0, i1, j0, j1 = shadow_rect(
        f, x, y, size[f, 2], math.sqrt(xx), math.sqrt(yy), pixel, scratch, height, width
    )
    inverse = ONE / (xx * yy - xy * xy)
    a, b, c = yy * inverse, -TWO * xy * inverse, xx * inverse
    code = 8 * f + TOP_FACE
    for j in range(j0, j1 + 1):
        start_x, start_y = ray[0] + ray[6] * f4(j), ray[1] + ray[7] * f4(j)
        for i in range(i0, i1 + 1):
            if scratch.face[j, i] != code:
                continue
            t, column = ONE / scratch.depth[j, i], f4(i)
            u = eye[0] + t * (start_x + ray[3] * column) - x
            v = eye[1] + t * (start_y + ray[4] * column) - y
            inside = ONE - (a * u * u + b * u * v + c * v * v)
            if inside > ZERO:
                kept = ONE - darkest * min(ONE, f4(1.6) * inside)
                for channel in range(3):
                    out[j, i, channel] = np.uint8(f4(out[j, i, channel]) * kept)


@lean
def cast_shadows(kind, size, flags, xpos, xmat, pixel, scratch, out):
    n_floors = 0
    for f in range(kind.shape[0]):
        if flags[f] & FLOOR and flags[f] & VISIBLE and kind[f] == BOX:
            scratch.floors[n_floors] = f
            n_floors += 1
    for g in range(kind.shape[0]):
        if flags[g] & CASTS_SHADOW and flags[g] & VISIBLE:
            cast_shadow(g, kind, size, xpos, xmat, n_floors, pixel, scratch, out)
