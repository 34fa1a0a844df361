"""The map: what lies where, in the colours one expects."""

import math

import numpy as np
import pytest

from hard_eight.map import draw_map
from hard_eight.native import raster

FLOOR = raster.VISIBLE | raster.FLOOR
THING = raster.VISIBLE | raster.OUTLINED
BOUNDS = (-4.0, 4.0, -4.0, 4.0)
SIDE = 256  # pixels: 32 a metre


def draw(*rows, **keywords):
    """Each row: kind, size, position, colour, flags[, yaw]."""
    turns = []
    for row in rows:
        yaw = row[5] if len(row) > 5 else 0.0
        c, s = math.cos(yaw), math.sin(yaw)
        turns.append([c, -s, 0, s, c, 0, 0, 0, 1])
    return draw_map(
        np.array([r[0] for r in rows], np.int32),
        np.array([r[1] for r in rows], np.float32).reshape(-1, 3),
        np.array([r[3] for r in rows], np.float32).reshape(-1, 3),
        np.zeros(len(rows), np.int32),
        np.array([r[4] for r in rows], np.uint8),
        np.array([r[2] for r in rows], float).reshape(-1, 3),
        np.array(turns, float).reshape(-1, 9),
        **{"height": SIDE, "width": SIDE, "bounds": BOUNDS, **keywords},
    )


def at(picture, x, y):
    """The colour at a place in metres."""
    row = round((4.0 - y) / 8.0 * SIDE - 0.5)
    return picture[row, round((x + 4.0) / 8.0 * SIDE - 0.5)].astype(int)


def box(half, position, color, flags=THING, yaw=0.0):
    return (raster.BOX, half, position, color, flags, yaw)


GROUND = box((3, 3, 0.5), (0, 0, -0.5), (140, 140, 150), FLOOR)
RED, BLUE, BROWN = (220, 30, 30), (30, 60, 220), (190, 130, 100)


def test_floor_is_light_walls_are_dark_and_the_void_is_darker_still():
    picture = draw(GROUND, box((0.2, 1, 1.5), (2, 0, 1.5), BROWN, raster.VISIBLE))
    ground, wall, void = at(picture, 0, 0), at(picture, 2, 0), at(picture, 3.6, 3.6)
    assert ground.min() > 140
    assert 40 < wall.sum() / 3 < 100
    assert void.sum() / 3 < 60
    assert void[2] > void[0]  # bluish


def test_north_is_up_and_east_is_right():
    picture = draw(GROUND, box((0.3, 0.3, 0.3), (2, 1, 0.3), RED))
    rows, columns = np.nonzero((picture[..., 0] > 180) & (picture[..., 1] < 80))
    assert rows.mean() == pytest.approx((4 - 1) / 8 * SIDE - 0.5, abs=0.6)
    assert columns.mean() == pytest.approx((4 + 2) / 8 * SIDE - 0.5, abs=0.6)


def test_a_turned_box_shows_its_turned_footprint():
    picture = draw(GROUND, box((1.5, 0.1, 0.1), (0, 0, 0.1), RED, THING, math.pi / 4))
    assert at(picture, 0.8, 0.8)[0] > 180 > 80 > at(picture, 0.8, 0.8)[1]
    for elsewhere in ((0.8, -0.8), (1.2, 0.0), (0.0, 1.2)):
        assert at(picture, *elsewhere)[1] > 140  # floor


def red_area(picture):
    """In m²."""
    return (picture[..., 0] > 130).sum() / (SIDE / 8) ** 2


@pytest.mark.parametrize("width", [1.0, 0.15])  # thin things too are more than their outline
def test_a_footprint_has_its_true_area_in_its_colour(width):
    picture = draw(box((1, width / 2, 0.1), (0, 0, 0), RED, THING, 0.3))
    assert red_area(picture) == pytest.approx(2.0 * width, abs=0.1)


def test_things_lie_over_floors_by_the_height_of_their_tops():
    key = box((0.2, 0.2, 0.2), (0, 0, 0.7), RED)
    platform = box((1, 1, 0.25), (0, 0, 0.25), BLUE, FLOOR)
    for rows in ((GROUND, platform, key), (key, platform, GROUND)):
        picture = draw(*rows)
        assert at(picture, 0, 0)[0] > 180 > 80 > at(picture, 0, 0)[1]
        blue = at(picture, 0.7, 0.7)
        assert blue[2] > blue[0] + 40


def test_ceilings_are_left_out_but_high_lintels_are_not():
    key = box((0.3, 0.3, 0.3), (0, 0, 0.3), RED)
    ceiling = box((3, 3, 0.1), (0, 0, 3.1), BROWN, raster.VISIBLE)
    lintel = box((0.1, 0.6, 0.3), (2, 0, 2.7), BROWN, raster.VISIBLE)
    picture = draw(GROUND, key, ceiling, lintel)
    np.testing.assert_array_equal(picture, draw(GROUND, key, lintel))
    assert at(picture, 2, 0).max() < 100


def test_a_thin_dark_line_runs_around_things():
    picture = draw(GROUND, box((1, 1, 0.3), (0, 0, 0.3), (250, 220, 60)))
    row = picture[SIDE // 2].astype(int).sum(-1)
    left = SIDE // 8 * 3
    assert row[left - 3 : left + 4].min() < 250  # the line
    assert row[left - 6] > 400  # floor
    assert row[left + 6] > 400  # thing


@pytest.mark.parametrize(
    ("kind", "size"), [(raster.SPHERE, (0.5, 0, 0)), (raster.CYLINDER, (0.5, 0.2, 0))]
)
def test_spheres_and_upright_cylinders_are_discs(kind, size):
    picture = draw(GROUND, (kind, size, (0, 0, 0.5), RED, THING))
    for angle in np.arange(8) * math.pi / 4:
        x, y = math.cos(angle), math.sin(angle)
        assert at(picture, 0.42 * x, 0.42 * y)[1] < 80
        assert at(picture, 0.58 * x, 0.58 * y)[1] > 140


def test_the_avatar_points_where_it_looks_and_its_cone_lies_ahead():
    picture = draw(GROUND, avatar=(0.0, 0.0, math.pi / 2))
    plain = draw(GROUND)
    assert at(picture, 0, 0)[2] > at(picture, 0, 0)[0] + 100  # blue
    ahead, behind = (0.0, 1.0), (0.0, -1.0)
    assert (at(picture, *ahead) != at(plain, *ahead)).any()
    np.testing.assert_array_equal(at(picture, *behind), at(plain, *behind))
    narrow = draw(GROUND, avatar=(0.0, 0.0, math.pi / 2), gaze_yaw_fov_deg=20.0)
    off = (0.6, 1.0)  # 31 degrees from ahead
    assert (at(picture, *off) != at(plain, *off)).any()
    np.testing.assert_array_equal(at(narrow, *off), at(plain, *off))


def test_trails_are_drawn_along_their_points():
    trail = (np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0]]), (230, 60, 160))
    picture = draw(GROUND, trails=[trail])
    for place in ((0.0, -2.0), (2.0, 0.0)):
        assert abs(at(picture, *place) - (230, 60, 160)).max() < 70
    assert at(picture, 0, 0)[1] > 140


def test_scale_is_equal_in_both_directions_and_the_world_is_centred():
    square = box((1, 1, 0.3), (5, -7, 0.3), RED)
    picture = draw(square, bounds=None, height=120, width=300)
    rows, columns = np.nonzero((picture[..., 0] > 180) & (picture[..., 1] < 80))
    assert np.ptp(rows) == pytest.approx(np.ptp(columns), abs=1)
    assert rows.mean() == pytest.approx(59.5, abs=1)
    assert columns.mean() == pytest.approx(149.5, abs=1)
    assert np.ptp(rows) > 60  # and it fills the picture


def test_invisible_geoms_are_left_out_and_an_empty_world_can_be_drawn():
    ghost = box((1, 1, 1), (0, 0, 1), RED, raster.OUTLINED)
    np.testing.assert_array_equal(draw(GROUND, ghost), draw(GROUND))
    assert draw(ghost, bounds=None).shape == (SIDE, SIDE, 3)
