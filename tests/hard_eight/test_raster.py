"""The software rasteriser: what is seen, from where, and that it is the same on every machine."""

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hard_eight.native import raster
from hard_eight.textures import LEVELS, SIDE, TEXTURE_NAMES, TEXTURES

_BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "raster.py"
_SPEC = importlib.util.spec_from_file_location("raster_benchmark", _BENCHMARK)
assert _SPEC is not None
assert _SPEC.loader is not None
bench = importlib.util.module_from_spec(_SPEC)
sys.modules["raster_benchmark"] = bench  # numba looks the module up by its name
_SPEC.loader.exec_module(bench)

RED, BLUE, GREY = (220, 30, 30), (30, 60, 220), (140, 140, 150)
THING = raster.VISIBLE | raster.OUTLINED
UPRIGHT = np.eye(3)


def radius_of(kind, size):
    if kind == raster.BOX:
        return float(np.linalg.norm(size))
    extra = {raster.SPHERE: 0.0, raster.CAPSULE: size[1], raster.CYLINDER: size[1]}[kind]
    joined = np.hypot(size[0], extra) if kind == raster.CYLINDER else size[0] + extra
    return float(joined)


def make_table(*rows):
    """Each row: kind, size, position, colour, flags, texture's name, 3x3 matrix."""
    return bench.Table(
        np.array([r[0] for r in rows], np.int32),
        np.array([r[1] for r in rows], np.float32),
        np.array([r[3] for r in rows], np.float32),
        np.array([TEXTURE_NAMES.index(r[5]) for r in rows], np.int32),
        np.array([r[4] for r in rows], np.uint8),
        np.array([radius_of(r[0], r[1]) for r in rows], np.float32),
        np.array([r[2] for r in rows], float),
        np.array([np.asarray(r[6], float).reshape(9) for r in rows], float),
    )


def thing(kind, size, position, color=RED, flags=raster.VISIBLE, texture="plain", turn=UPRIGHT):
    return (kind, size, position, color, flags, texture, turn)


def floor(color=GREY):
    return thing(
        raster.BOX, (6, 6, 0.5), (0, 0, -0.5), color, raster.VISIBLE | raster.FLOOR, "plain"
    )


def look(table, view, height=72, width=96, fovy=60.0, scratch=None):
    """The picture and the geom seen in every pixel."""
    if scratch is None:
        scratch = raster.new_scratch(len(table.kind), height, width)
    out = np.full((height, width, 3), 77, np.uint8)
    raster.draw(*table, *view, fovy, scratch, TEXTURES, out)
    return out, scratch.face >> 3


def level_view(x=-4.0, y=0.0, z=1.0, yaw=0.0, pitch=0.0):
    return bench.camera((x, y, z), yaw, pitch)


def brightness(picture):
    return picture.astype(float).sum(-1)


def random_turn(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_scene(rng, n=25):
    rows = []
    for _ in range(n):
        kind = int(rng.choice([raster.SPHERE, raster.CAPSULE, raster.CYLINDER, raster.BOX]))
        flags = int(rng.integers(16)) | raster.VISIBLE
        texture = str(rng.choice(TEXTURE_NAMES))
        turn = random_turn(rng) if rng.random() < 0.7 else UPRIGHT
        size, position = rng.uniform(0.05, 0.8, 3), rng.uniform(-4, 4, 3)
        rows.append(thing(kind, size, position, rng.uniform(0, 255, 3), flags, texture, turn))
    return make_table(*rows)


def inside_something(table, position, margin=0.03):
    """Whether a point lies in, or almost in, a geom: what is seen from there is a convention."""
    for g in range(len(table.kind)):
        local = table.xmat[g].reshape(3, 3).T @ (position - table.xpos[g])
        size, kind = table.size[g], table.kind[g]
        if kind == raster.BOX:
            distance = np.max(np.abs(local) - size)
        elif kind == raster.CYLINDER:
            distance = max(np.hypot(local[0], local[1]) - size[0], abs(local[2]) - size[1])
        else:
            half = size[1] if kind == raster.CAPSULE else 0.0
            local[2] -= np.clip(local[2], -half, half)
            distance = np.linalg.norm(local) - size[0]
        if distance < margin:
            return True
    return False


# --- what is seen -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_random_scene_shows_the_same_things_as_a_naive_ray_caster(seed):
    rng = np.random.default_rng(seed)
    table, compared = random_scene(rng), 0
    while compared < 3:
        position = rng.uniform(-5, 5, 3)
        if inside_something(table, position):
            continue
        view = bench.camera(tuple(position), rng.uniform(-3, 3), rng.uniform(-1.4, 1.4))
        _, seen = look(table, view)
        ids, depths = np.zeros((72, 96), np.int32), np.zeros((72, 96))
        bench.cast_rays(
            *(table.kind, table.size, table.flags, table.xpos, table.xmat),
            *(*view, 60.0, ids, depths),
        )
        # Rounding decides pixels whose centre lies on a border; there is no other excuse.
        assert (seen != ids).mean() < 0.002
        compared += 1


def test_the_depth_buffer_holds_one_over_depth():
    table = random_scene(np.random.default_rng(3))
    view = level_view(-6, 0.3, 0.2, 0.1, -0.1)
    scratch = raster.new_scratch(len(table.kind), 72, 96)
    _, seen = look(table, view, scratch=scratch)
    ids, depths = np.zeros((72, 96), np.int32), np.zeros((72, 96))
    bench.cast_rays(
        *(table.kind, table.size, table.flags, table.xpos, table.xmat), *(*view, 60.0, ids, depths)
    )
    same = (seen == ids) & (ids >= 0)
    assert same.sum() > 500
    np.testing.assert_allclose(1 / scratch.depth[same], depths[same], rtol=2e-3)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_nearer_thing_hides_the_farther_one_in_whatever_order_they_come(order):
    rows = (
        thing(raster.BOX, (0.3, 0.3, 0.3), (-1, 0, 1), BLUE),
        thing(raster.BOX, (0.5, 2, 2), (2, 0, 1), RED),
    )
    picture, _ = look(make_table(*(rows[k] for k in order)), level_view())
    middle, side = picture[36, 48].astype(int), picture[36, 28].astype(int)
    assert middle[2] > middle[0] + 60
    assert side[0] > side[2] + 60


def test_up_is_up_and_right_is_right():
    table = make_table(
        thing(raster.SPHERE, (0.3, 0, 0), (0, 0, 2), RED),  # above
        thing(raster.SPHERE, (0.3, 0, 0), (0, -1, 1), BLUE),  # looking east, south is right
    )
    _, seen = look(table, level_view())
    above, right = np.argwhere(seen == 0).mean(0), np.argwhere(seen == 1).mean(0)
    assert above[0] < 25
    assert abs(above[1] - 47.5) < 1
    assert right[1] > 60
    assert abs(right[0] - 35.5) < 1


def test_a_wider_field_of_view_makes_things_smaller_by_the_tangent():
    table = make_table(thing(raster.BOX, (0.01, 1, 1), (0, 0, 1)))
    counts = [
        (look(table, level_view(), 480, 640, fovy)[1] == 0).sum() for fovy in (30.0, 60.0, 120.0)
    ]
    tangents = [np.tan(np.radians(fovy / 2)) for fovy in (30.0, 60.0, 120.0)]
    assert counts[0] / counts[1] == pytest.approx((tangents[1] / tangents[0]) ** 2, rel=0.05)
    assert counts[1] / counts[2] == pytest.approx((tangents[2] / tangents[1]) ** 2, rel=0.05)


def test_invisible_geoms_are_not_drawn_and_throw_no_shadow():
    hidden = thing(
        raster.BOX, (0.3, 0.3, 0.3), (0, 0, 0.3), flags=raster.OUTLINED | raster.CASTS_SHADOW
    )
    with_it, _ = look(make_table(floor(), hidden), level_view(pitch=-0.2))
    without, _ = look(make_table(floor()), level_view(pitch=-0.2))
    np.testing.assert_array_equal(with_it, without)


# --- shading, outlines, shadows -----------------------------------------------------------------


def test_the_faces_of_a_box_differ_in_brightness():
    lights = []
    for yaw in (0.0, np.pi / 2, np.pi, -np.pi / 2):
        position = (-3 * np.cos(yaw), -3 * np.sin(yaw), 0.0)
        picture, _ = look(
            make_table(thing(raster.BOX, (0.5, 0.5, 0.5), (0, 0, 0), GREY)),
            bench.camera(position, yaw),
        )
        lights.append(brightness(picture)[36, 48])
    around = np.abs(np.diff([*lights, lights[0]]))  # neighbouring faces
    assert around.min() > 25


def test_an_outline_separates_two_things_of_one_colour():
    def rows(flags):
        return make_table(
            thing(raster.BOX, (0.05, 0.6, 0.6), (0, 0, 1), RED, flags),
            thing(raster.BOX, (0.2, 0.2, 0.2), (-0.3, 0, 1), RED, flags),
        )

    plain, _ = look(rows(raster.VISIBLE), level_view(-3))
    outlined, seen = look(rows(THING), level_view(-3))
    row = slice(36, 37)
    inside = (seen[row] >= 0)[0]
    assert np.ptp(brightness(plain)[row][0, inside]) < 10
    across = brightness(outlined)[row][0, inside]
    dark = across < 0.6 * across.max()
    edges = np.flatnonzero(np.diff(dark.astype(int)) == 1).size + int(dark[0])
    assert edges == 4  # left and right of each


@pytest.mark.parametrize("kind", [raster.SPHERE, raster.CAPSULE, raster.CYLINDER])
def test_curved_things_have_dark_rims_and_keep_their_colour_inside(kind):
    table = make_table(thing(kind, (0.4, 0.4, 0), (0, 0, 1), RED, THING))
    picture, seen = look(table, level_view(-3))
    columns = np.flatnonzero(seen[36] == 0)
    light = brightness(picture)[36, columns]
    assert max(light[0], light[-1]) < 0.6 * light.max()
    assert (light > 0.7 * light.max()).mean() > 0.6


def test_far_outlined_things_keep_their_colour():
    table = make_table(thing(raster.BOX, (0.2, 0.2, 0.2), (0, 0, 1), RED, THING))
    picture, seen = look(table, level_view(-6))
    pixels = picture[seen == 0].astype(int)
    assert pixels.shape[0] >= 6
    assert (pixels[:, 0] > 120).any()


def shadow_under(height):
    """How much darker the floor gets, per pixel, by a box hovering at that height."""
    view = bench.camera((-2.5, 0.0, 2.5), 0.0, -0.75)
    row = (raster.BOX, (0.2, 0.2, 0.2), (0, 0, 0.2 + height))
    with_shadow, seen = look(
        make_table(floor(), thing(*row, flags=THING | raster.CASTS_SHADOW)), view
    )
    without, _ = look(make_table(floor(), thing(*row, flags=THING)), view)
    loss = brightness(without) - brightness(with_shadow)
    assert (loss[seen != 0] == 0).all()  # on the floor, and nowhere else
    return loss


def test_a_shadow_lies_under_a_thing_and_fades_and_widens_when_it_is_lifted():
    # Standing on the floor it hides the darkest part of its shadow itself.
    assert shadow_under(0.0).max() > 100
    losses = [shadow_under(height) for height in (0.3, 0.7, 1.2)]
    darkest = [loss.max() for loss in losses]
    assert darkest[0] > 1.3 * darkest[1]
    assert darkest[1] > 1.3 * darkest[2] > 0
    assert (losses[1] > 0).sum() > (losses[0] > 0).sum()
    assert shadow_under(5.0).max() == 0


def test_a_shadow_falls_on_the_highest_floor_beneath():
    platform = thing(raster.BOX, (1, 1, 0.25), (0, 0, 0.25), BLUE, raster.VISIBLE | raster.FLOOR)
    row = (raster.BOX, (0.1, 0.1, 0.1), (0, 0, 0.65))
    view = bench.camera((-2.5, 0.0, 2.5), 0.0, -0.75)
    with_shadow, seen = look(
        make_table(floor(), platform, thing(*row, flags=THING | raster.CASTS_SHADOW)), view
    )
    without, _ = look(make_table(floor(), platform, thing(*row, flags=THING)), view)
    changed = (with_shadow != without).any(-1)
    assert changed.sum() > 5
    assert (seen[changed] == 1).all()


def test_a_shadow_falls_on_a_ramp():
    slope = 0.4
    turn = np.array(
        [[np.cos(slope), 0, -np.sin(slope)], [0, 1, 0], [np.sin(slope), 0, np.cos(slope)]]
    )
    ramp = thing(raster.BOX, (2, 1, 0.05), (0, 0, 0.8), GREY, raster.VISIBLE | raster.FLOOR,
                 "plain", turn)  # fmt: skip
    row = (raster.SPHERE, (0.15, 0, 0), (0.5, 0, 1.3))
    view = bench.camera((-2.5, 0.0, 2.5), 0.0, -0.6)
    with_shadow, _ = look(
        make_table(ramp, thing(*row, flags=THING | raster.CASTS_SHADOW)), view, 240, 320
    )
    without, _ = look(make_table(ramp, thing(*row, flags=THING)), view, 240, 320)
    loss = (brightness(without) - brightness(with_shadow))[:, 160]
    assert loss.max() > 60


def test_colours_at_and_beyond_the_limits_do_not_wrap_around():
    for color, low, high in (((255, 255, 255), 140, 255), ((400, 400, 400), 140, 255),
                             ((0, 0, 0), 0, 60), ((-50, -50, -50), 0, 60)):  # fmt: skip
        for kind in (raster.BOX, raster.SPHERE, raster.CYLINDER):
            # From above, where the light comes from.
            view = bench.camera((-0.01, 0.0, 3.0), 0.0, -1.57)
            table = make_table(thing(kind, (0.5, 0.5, 0.5), (0, 0, 0), color))
            picture, seen = look(table, view)
            assert picture[seen == 0].min() >= low
            assert picture[seen == 0].max() <= high


def test_every_texture_looks_different_from_every_other():
    pictures = {}
    for name in TEXTURE_NAMES:
        table = make_table(thing(raster.BOX, (0.1, 2, 2), (0, 0, 1), GREY, texture=name))
        pictures[name] = look(table, level_view(-2))[0].astype(float)
    for a in TEXTURE_NAMES:
        for b in TEXTURE_NAMES:
            if a < b:
                assert np.abs(pictures[a] - pictures[b]).mean() > 3, (a, b)


def test_texels_have_the_same_size_on_large_and_small_boxes():
    stripes = []
    for half in (0.5, 2.0):
        table = make_table(thing(raster.BOX, (half, half, half), (half, 0, 1), texture="planks"))
        picture, _ = look(table, level_view(-2), 240, 320)
        stripes.append(picture[110:130, 140:180])  # well within the smaller one
    np.testing.assert_array_equal(stripes[0], stripes[1])


def test_mip_levels_are_the_means_of_the_finest():
    assert TEXTURES.shape == (len(TEXTURE_NAMES), LEVELS, SIDE, SIDE)
    assert TEXTURES.dtype == np.float32
    assert len(TEXTURE_NAMES) >= 8
    np.testing.assert_allclose(TEXTURES[:, -1, 0, 0], TEXTURES[:, 0].mean((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(
        TEXTURES[:, 2, 3, 5], TEXTURES[:, 0, 12:16, 20:24].mean((1, 2)), rtol=1e-5
    )


def test_distant_patterns_do_not_flicker():
    """Half a pixel of camera shift changes a far textured wall hardly at all."""
    table = make_table(thing(raster.BOX, (0.1, 6, 4), (0, 0, 1), GREY, texture="checker"))
    a = look(table, level_view(-30))[0].astype(float)
    b = look(table, level_view(-30, 0.18))[0].astype(float)
    middle = (slice(32, 40), slice(40, 56))
    assert np.abs(a[middle] - b[middle]).mean() < 6


# --- awkward places -----------------------------------------------------------------------------


def test_the_camera_may_sit_in_a_box_in_its_face_or_right_before_it():
    table = make_table(thing(raster.BOX, (1, 1, 1), (0, 0, 0), RED, THING, "brick"), floor())
    for x in (0.0, -0.999999, -1.0, -1.000001, -1.00005, -1.0002, -1.001):
        for yaw in (0.0, np.pi / 2, np.pi, 1e-9):
            look(table, bench.camera((x, 0.0, 0.0), yaw))
    _, seen = look(table, bench.camera((-1.001, 0.0, 0.0), 0.0))
    assert (seen == 0).all()  # the nose on the wall sees wall and nothing else
    _, seen = look(table, bench.camera((-1.001, 0.0, 0.0), np.pi))
    assert (seen != 0).all()


def test_a_level_camera_aligned_with_the_grid_sees_whole_walls():
    """Borders exactly along rows and columns: slopes are zero and infinite."""
    table = make_table(thing(raster.BOX, (0.5, 100, 100), (3, 0, 0)))
    _, seen = look(table, level_view(0, 0, 0))
    assert (seen == 0).all()


def test_degenerate_cameras_and_scenes_never_crash():
    rng = np.random.default_rng(0)
    scratch = raster.new_scratch(25, 40, 56)
    for k in range(500):
        table = random_scene(rng, 25)
        g = int(rng.integers(25))
        position = table.xpos[g] + rng.choice([0.0, 1e-7, 0.1, 3.0, 1e4]) * rng.normal(size=3)
        matrix = random_turn(rng).reshape(9)
        if k % 5 == 0:  # axis-aligned, from a face's centre or an edge
            matrix = bench.camera((0, 0, 0), rng.integers(4) * np.pi / 2)[1]
            position = table.xpos[g] + table.size[g] * rng.integers(-1, 2, 3)
        if k % 7 == 0:
            table.size[g] = 0
        if k % 11 == 0:
            table.size[g], table.radius[g] = 1e3, 2e3
        fovy = float(rng.choice([0.0, 1.0, 60.0, 179.0]))
        picture, seen = look(table, (position, matrix), 40, 56, fovy, scratch)
        assert seen.min() >= -1
        assert seen.max() < 25
        assert np.isfinite(scratch.depth).all()
        assert picture.shape == (40, 56, 3)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (8, 300), (72, 96), (301, 9), (1024, 1024)])
def test_every_size_of_picture_is_filled(height, width):
    table = make_table(thing(raster.BOX, (5, 5, 5), (7, 0, 0), (255, 255, 255)))
    picture, seen = look(table, level_view(1.9, 0, 0), height, width)
    assert (seen == 0).all()
    assert (picture > 100).all()


def test_nothing_is_carried_from_one_picture_to_the_next():
    rng = np.random.default_rng(1)
    scenes = [random_scene(rng) for _ in range(4)]
    view = level_view(-6, 0, 0)
    scratch = raster.new_scratch(60, 72, 96)  # larger than needed, as for many environments
    for table in [*scenes, *scenes]:
        fresh, _ = look(table, view)
        used, _ = look(table, view, scratch=scratch)
        np.testing.assert_array_equal(fresh, used)


# --- the same on every machine ------------------------------------------------------------------


def digest_of_many_pictures():
    """Prints a digest in the other process, returns it in this one."""
    rng, digest = np.random.default_rng(5), hashlib.sha256(TEXTURES.tobytes())
    for build, view in bench.SCENES.values():
        digest.update(look(bench.table_of(build()), view)[0].tobytes())
    for size in ((72, 96), (67, 101), (240, 320)):
        for _ in range(6):
            table = random_scene(rng, 40)
            view = (rng.uniform(-5, 5, 3), random_turn(rng).reshape(9))
            digest.update(look(table, view, *size)[0].tobytes())
    return digest.hexdigest()


@pytest.mark.slow
def test_pictures_are_the_same_bits_without_vector_extensions(tmp_path):
    program = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('t', {str(Path(__file__))!r})\n"
        "t = importlib.util.module_from_spec(spec); spec.loader.exec_module(t)\n"
        "print(t.digest_of_many_pictures())\n"
    )
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": tmp_path}
    environment = {**os.environ, **{key: str(value) for key, value in plain.items()}}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == digest_of_many_pictures()


def test_the_compiled_code_estimates_no_reciprocals(tmp_path):
    """rcpps and rsqrtps give different bits on processors of different makers; a comparison of two
    processes on one machine cannot show that."""
    program = (
        "import numpy as np\n"
        "from hard_eight.native import raster\n"
        "from hard_eight.textures import TEXTURES\n"
        "t = [np.zeros(1, np.int32), np.ones((1, 3), np.float32), np.ones((1, 3), np.float32)]\n"
        "t += [np.zeros(1, np.int32), np.ones(1, np.uint8), np.ones(1, np.float32)]\n"
        "t += [np.zeros((1, 3)), np.zeros((1, 9)), np.zeros(3), np.zeros(9)]\n"
        "out = np.zeros((8, 8, 3), np.uint8)\n"
        "raster.draw(*t, 60.0, raster.new_scratch(1, 8, 8), TEXTURES, out)\n"
        "asm = ''.join(raster.draw.inspect_asm().values())\n"
        "print(asm.count('divss'), asm.count('rcpps') + asm.count('rcpss')"
        " + asm.count('rsqrt') + asm.count('vrcp'))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    divisions, estimates = map(int, found.stdout.split())
    assert divisions > 0  # the assembly was there to be read
    assert estimates == 0
