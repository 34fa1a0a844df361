"""Luminance textures with mip levels, one repeat per metre.

Built from integers, comparisons and sums only (no library of random numbers, no sine), so that
every machine and every numpy makes the same bits, hence the same pixels.
"""

import numpy as np
from numpy.typing import NDArray

SIDE = 64  # texels per metre at the finest level
LEVELS = 7  # 64, 32, ..., 1

_ROW, _COLUMN = np.mgrid[:SIDE, :SIDE]


def _grain(cells: int, salt: int) -> NDArray[np.float64]:
    """Uniform noise in [0, 1) on a cells x cells grid, blown up to SIDE x SIDE."""
    state = np.arange(cells * cells, dtype=np.uint64) + np.uint64(salt * 7919 + 1)
    for _ in range(3):  # xorshift-multiply: enough to hide the grid order
        state = (state ^ (state >> np.uint64(15))) * np.uint64(0x2C1B3C6D) & np.uint64(0xFFFFFFFF)
    coarse = (state >> np.uint64(8)).astype(np.float64) / 2.0**24
    return coarse.reshape(cells, cells).repeat(SIDE // cells, 0).repeat(SIDE // cells, 1)


def _plain() -> NDArray[np.float64]:
    return np.ones((SIDE, SIDE))


def _checker() -> NDArray[np.float64]:
    dark = (_ROW // 32 + _COLUMN // 32) % 2 == 0
    return np.where(dark, 0.74, 0.98) * (0.96 + 0.04 * _grain(16, 1))


def _brick() -> NDArray[np.float64]:
    course = _ROW // 16
    along = (_COLUMN + (course % 2) * 16) % SIDE
    mortar = (_ROW % 16 < 2) | (along % 32 < 2)
    tone = 0.84 + 0.16 * _grain(8, 2)[(course * 8) % SIDE, (along // 32) * 32]
    return np.where(mortar, 0.62, tone)


def _stone() -> NDArray[np.float64]:
    return 0.72 + 0.16 * _grain(8, 3) + 0.08 * _grain(16, 4) + 0.04 * _grain(32, 5)


def _planks() -> NDArray[np.float64]:
    board = _COLUMN // 16
    tone = 0.82 + 0.06 * (board % 2) + 0.04 * (board // 2) + 0.08 * _grain(16, 6)[board * 4, _ROW]
    joint = (_COLUMN % 16 < 1) | ((_ROW + 24 * board) % SIDE < 1)
    return np.where(joint, 0.58, tone)


def _tiles() -> NDArray[np.float64]:
    groove = (_ROW % 32 < 2) | (_COLUMN % 32 < 2)
    lit_edge = (_ROW % 32 < 4) | (_COLUMN % 32 < 4)
    return np.where(groove, 0.66, np.where(lit_edge, 1.0, 0.88 + 0.04 * _grain(2, 7)))


def _stripes() -> NDArray[np.float64]:
    return np.where((_ROW + _COLUMN) // 16 % 2 == 0, 0.76, 1.0)


def _diamonds() -> NDArray[np.float64]:
    from_centre = np.abs(_ROW % 32 - 15.5) + np.abs(_COLUMN % 32 - 15.5)
    return np.where(from_centre < 9, 0.7, 0.97)


def _dots() -> NDArray[np.float64]:
    from_centre = (_ROW % 16 - 7.5) ** 2 + (_COLUMN % 16 - 7.5) ** 2
    return np.where(from_centre < 16, 0.68, 0.98)


def _grass() -> NDArray[np.float64]:
    return 0.7 + 0.18 * _grain(64, 8) + 0.12 * _grain(32, 9)


_MAKERS = (
    _plain,
    _checker,
    _brick,
    _stone,
    _planks,
    _tiles,
    _stripes,
    _diamonds,
    _dots,
    _grass,
)

TEXTURE_NAMES: tuple[str, ...] = tuple(make.__name__.lstrip("_") for make in _MAKERS)


def _mipmaps(finest: NDArray[np.float64]) -> NDArray[np.float32]:
    """Every level sits in the top-left corner of its own SIDE x SIDE plane."""
    levels = np.zeros((LEVELS, SIDE, SIDE), np.float32)
    level = np.minimum(finest, 1.0).astype(np.float32)
    for k in range(LEVELS):
        side = SIDE >> k
        levels[k, :side, :side] = level
        if side > 1:  # sums written out: numpy's mean() may add in another order elsewhere
            rows = level[0::2] + level[1::2]
            level = (rows[:, 0::2] + rows[:, 1::2]) * np.float32(0.25)
    return levels


TEXTURES: NDArray[np.float32] = np.stack([_mipmaps(make()) for make in _MAKERS])
