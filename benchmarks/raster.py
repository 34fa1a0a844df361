"""How long one picture takes, scene set-up included, against a naive ray caster.

    taskset -c 0 python benchmarks/raster.py

The naive caster is also what the tests hold the rasteriser against: every pixel tries every geom,
in float64 and world coordinates, with nothing in common with `hard_eight.native.raster`.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np
from numba import njit
from numpy.typing import NDArray

from hard_eight.native import raster
from hard_eight.textures import TEXTURE_NAMES, TEXTURES

FOVY = 60.0  # degrees


class Table(NamedTuple):
    """The arguments of `raster.render` up to the camera, in its order."""

    kind: NDArray[np.int32]
    size: NDArray[np.float32]
    rgb: NDArray[np.float32]
    texture: NDArray[np.int32]
    flags: NDArray[np.uint8]
    radius: NDArray[np.float32]
    xpos: NDArray[np.float64]
    xmat: NDArray[np.float64]


def camera(
    position: tuple[float, float, float], yaw: float, pitch: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A camera's position and matrix (right, up, backward in columns); yaw 0 looks east."""
    forward = np.array(
        [math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)]
    )
    right = np.array([math.sin(yaw), -math.cos(yaw), 0.0])
    axes = np.stack([right, np.cross(right, forward), -forward], 1)
    return np.array(position, dtype=float), axes.reshape(9)


@njit
def _hit_sphere(o, d, radius):
    a, b = (d * d).sum(), (o * d).sum()
    discriminant = b * b - a * ((o * o).sum() - radius * radius)
    return (-b - math.sqrt(discriminant)) / a if discriminant > 0 else -1.0


@njit
def _hit(kind, size, o, d):
    """Depth at which the ray o + t d enters a geom from outside, or -1."""
    if kind == raster.BOX:
        near, far = -1e30, 1e30
        for k in range(3):
            step = d[k] if abs(d[k]) > 1e-300 else 1e-300
            t0, t1 = (-size[k] - o[k]) / step, (size[k] - o[k]) / step
            near, far = max(near, min(t0, t1)), min(far, max(t0, t1))
        return near if near <= far else -1.0
    radius, half = size[0], size[1]
    if kind == raster.SPHERE:
        return _hit_sphere(o, d, radius)
    best = 1e30
    a = d[0] * d[0] + d[1] * d[1]
    b = o[0] * d[0] + o[1] * d[1]
    discriminant = b * b - a * (o[0] * o[0] + o[1] * o[1] - radius * radius)
    if a > 1e-14 and discriminant > 0:
        t = (-b - math.sqrt(discriminant)) / a
        if t > 0 and abs(o[2] + t * d[2]) <= half:
            best = t
    for end in (-half, half):
        if kind == raster.CAPSULE:
            t = _hit_sphere(o - np.array([0.0, 0.0, end]), d, radius)
        elif (o[2] - end) * end > 0 and d[2] * end < 0:
            t = (end - o[2]) / d[2]
            if (o[0] + t * d[0]) ** 2 + (o[1] + t * d[1]) ** 2 > radius * radius:
                t = -1.0
        else:
            t = -1.0
        if t > 0:
            best = min(best, t)
    return best if best < 1e30 else -1.0


@njit
def cast_rays(kind, size, flags, xpos, xmat, cam_pos, cam_mat, fovy_deg, ids, depths):
    """The nearest geom through the middle of every pixel (-1: none), and its depth."""
    height, width = ids.shape
    pixel = 2 * math.tan(math.radians(fovy_deg) / 2) / height
    o, d = np.empty(3), np.empty(3)
    for j in range(height):
        for i in range(width):
            x, y = (i + 0.5 - width / 2) * pixel, (height / 2 - j - 0.5) * pixel
            ids[j, i], depths[j, i] = -1, 1e3
            for g in range(len(kind)):
                if not flags[g] & raster.VISIBLE:
                    continue
                for k in range(3):
                    o[k], d[k] = 0.0, 0.0
                    for m in range(3):
                        ray = x * cam_mat[3 * m] + y * cam_mat[3 * m + 1] - cam_mat[3 * m + 2]
                        o[k] += xmat[g, 3 * m + k] * (cam_pos[m] - xpos[g, m])
                        d[k] += xmat[g, 3 * m + k] * ray
                t = _hit(kind[g], size[g], o, d)
                if 0 < t < depths[j, i]:
                    ids[j, i], depths[j, i] = g, t


# --- scenes -------------------------------------------------------------------------------------

_BOX, _SPHERE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE
_CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER
_STRUCTURE = {"floor": "checker", "wall": "brick", "ceiling": "planks"}


def _room(length: float, width: float, height: float = 3.0) -> mujoco.MjSpec:
    """A room from (0, 0) to (length, width) with walls 0.5 m thick."""
    spec = mujoco.MjSpec()
    grey, brown = [0.55, 0.55, 0.6, 1], [0.75, 0.5, 0.4, 1]
    x, y, z = length / 2, width / 2, height / 2
    for name, position, half, rgba in (
        ("floor", [x, y, -0.5], [x + 0.5, y + 0.5, 0.5], grey),
        ("ceiling", [x, y, height + 0.1], [x + 0.5, y + 0.5, 0.1], [0.8, 0.8, 0.85, 1]),
        ("wall0", [-0.25, y, z], [0.25, y, z], brown),
        ("wall1", [length + 0.25, y, z], [0.25, y, z], brown),
        ("wall2", [x, -0.25, z], [x + 0.5, 0.25, z], brown),
        ("wall3", [x, width + 0.25, z], [x + 0.5, 0.25, z], brown),
    ):
        spec.worldbody.add_geom(name=name, type=_BOX, pos=position, size=half, rgba=rgba)
    return spec


def _apple(spec: mujoco.MjSpec, x: float, y: float) -> None:
    green, brown = [0.2, 0.85, 0.2, 1], [0.35, 0.2, 0.1, 1]
    spec.worldbody.add_geom(type=_SPHERE, pos=[x, y, 0.35], size=[0.3, 0, 0], rgba=green)
    spec.worldbody.add_geom(type=_CYLINDER, pos=[x, y, 0.7], size=[0.03, 0.08, 0], rgba=brown)


def wall_sensor() -> mujoco.MjSpec:
    """A room of 20 geoms: door, sensor, keys, plinth, a stick, an apple behind the door."""
    spec = _room(9.0, 6.0)
    add = spec.worldbody.add_geom
    brown, red, blue = [0.75, 0.5, 0.4, 1], [0.9, 0.1, 0.1, 1], [0.1, 0.2, 0.9, 1]
    add(name="wall4", type=_BOX, pos=[6, 1.2, 1.5], size=[0.1, 1.2, 1.5], rgba=brown)
    add(name="wall5", type=_BOX, pos=[6, 4.8, 1.5], size=[0.1, 1.2, 1.5], rgba=brown)
    add(name="wall6", type=_BOX, pos=[6, 3, 2.5], size=[0.1, 0.6, 0.5], rgba=brown)
    add(type=_BOX, pos=[6, 3, 1], size=[0.08, 0.6, 1], rgba=[0.45, 0.3, 0.15, 1])
    add(type=_BOX, pos=[5.86, 4.6, 1.1], size=[0.05, 0.25, 0.25], rgba=red)
    add(type=_BOX, pos=[3.6, 3.9, 0.2], size=[0.2, 0.2, 0.2], rgba=red)
    add(type=_BOX, pos=[2.6, 2.6, 0.2], size=[0.2, 0.2, 0.2], rgba=blue, euler=[0, 0, 30])
    add(type=_CYLINDER, pos=[4.3, 1.7, 0.6], size=[0.3, 0.6, 0], rgba=[0.7, 0.7, 0.75, 1])
    add(type=_SPHERE, pos=[4.3, 1.7, 1.35], size=[0.15, 0, 0], rgba=blue)
    add(type=_BOX, pos=[3, 3.2, 0.05], size=[0.6, 0.05, 0.05], rgba=[0.6, 0.4, 0.2, 1])
    add(type=_BOX, pos=[5, 5.2, 0.02], size=[0.5, 0.5, 0.02], rgba=blue)
    add(type=_BOX, pos=[3.5, 5.3, 0.3], size=[0.3, 0.3, 0.3], rgba=[0.9, 0.8, 0.2, 1])
    _apple(spec, 8.0, 3.0)
    return spec


def navigate_cubes() -> mujoco.MjSpec:
    """A wall of 36 cubes across a room."""
    spec, rng = _room(12.0, 7.4, 4.0), np.random.default_rng(0)
    for column in range(9):
        for row in range(4):
            spec.worldbody.add_geom(
                type=_BOX,
                pos=[5, 0.42 + 0.82 * column, 0.4 + 0.8 * row],
                size=[0.4, 0.4, 0.4],
                rgba=[*rng.uniform(0.3, 0.95, 3), 1],
            )
    _apple(spec, 11.0, 3.7)
    return spec


def table_of(spec: mujoco.MjSpec) -> Table:
    """Drawing tables: named geoms are floor, ceiling and walls, all others are things."""
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    texture, flags = np.zeros(model.ngeom, np.int32), np.zeros(model.ngeom, np.uint8)
    for g in range(model.ngeom):
        part = model.geom(g).name.rstrip("0123456789")
        flags[g] = raster.VISIBLE | (raster.FLOOR if part == "floor" else 0)
        if part:
            texture[g] = TEXTURE_NAMES.index(_STRUCTURE[part])
        else:
            flags[g] |= raster.OUTLINED | raster.CASTS_SHADOW
    return Table(
        model.geom_type.astype(np.int32),
        model.geom_size.astype(np.float32),
        (model.geom_rgba[:, :3] * 255).astype(np.float32),
        texture,
        flags,
        model.geom_rbound.astype(np.float32),
        data.geom_xpos.copy(),
        data.geom_xmat.copy(),
    )


SCENES = {
    "room of 20": (wall_sensor, camera((0.8, 2.6, 1.25), 0.2, -0.15)),
    "36 cubes": (navigate_cubes, camera((1.2, 3.0, 1.25), 0.1)),
}


def _microseconds(call: Callable[[], object], calls: int) -> float:
    """The best of many short bouts: other work on the machine only ever adds time."""
    call()
    best = math.inf
    for _ in range(30):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def main() -> None:
    print(f"{'scene':12} {'geoms':>5} {'picture':>9} {'us':>8} {'naive us':>10} {'ratio':>6}")
    for name, (build, (cam_pos, cam_mat)) in SCENES.items():
        table = table_of(build())
        for height, width in ((72, 96), (240, 320)):
            out = np.zeros((height, width, 3), np.uint8)
            ids, depths = np.zeros((height, width), np.int32), np.zeros((height, width))
            scratch = raster.new_scratch(len(table.kind), height, width)
            ours = (*table, cam_pos, cam_mat, FOVY, scratch, TEXTURES, out)
            naive = (table.kind, table.size, table.flags, table.xpos, table.xmat)
            naive = (*naive, cam_pos, cam_mat, FOVY, ids, depths)
            calls = 200_000 // (height * width)
            t_ours = _microseconds(lambda ours=ours: raster.draw(*ours), calls)
            t_naive = _microseconds(lambda naive=naive: cast_rays(*naive), 1)
            size = f"{width}x{height}"
            print(
                f"{name:12} {len(table.kind):5} {size:>9} {t_ours:8.1f} {t_naive:10.0f} "
                f"{t_naive / t_ours:6.1f}"
            )


if __name__ == "__main__":
    main()
