"""Colours and materials: what a surface looks like, and how looks are drawn for an episode."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from numpy.random import Generator

T = TypeVar("T")
RGB = tuple[float, float, float]


class Look(NamedTuple):
    """A surface: its colour (0..255) and the name of its texture (see textures.py)."""

    rgb: RGB
    texture: str = "plain"


# Colours that tell keys, blocks and sensors apart. Green is left to the apples; white is none, as
# a sensor of that colour could not be seen to glow.
COLOURS: dict[str, RGB] = {
    "red": (225, 40, 35),
    "blue": (40, 80, 235),
    "yellow": (240, 205, 40),
    "purple": (150, 60, 200),
    "orange": (245, 130, 30),
    "cyan": (40, 200, 215),
    "pink": (245, 130, 180),
    "black": (52, 52, 62),
}

APPLE_RGB: RGB = (70, 200, 50)
STEM_RGB: RGB = (95, 60, 30)
DOOR = Look((140, 90, 45), "planks")
METAL = Look((165, 170, 180), "plain")

# Pale enough that things stand out before them.
WALL_RGBS: tuple[RGB, ...] = (
    (205, 175, 150),
    (170, 190, 205),
    (200, 195, 150),
    (190, 165, 195),
    (165, 195, 175),
    (205, 160, 150),
    (185, 185, 185),
)
FLOOR_RGBS: tuple[RGB, ...] = (
    (150, 150, 160),
    (165, 140, 115),
    (130, 145, 165),
    (150, 160, 130),
    (160, 140, 160),
)
CEILING_RGBS: tuple[RGB, ...] = ((215, 215, 225), (220, 210, 195), (200, 215, 220))
WALL_TEXTURES = ("brick", "stone", "stripes", "tiles")
FLOOR_TEXTURES = ("checker", "tiles", "planks", "stone")
THING_TEXTURES = ("plain", "stone", "dots", "stripes")


class Surroundings(NamedTuple):
    """What the walls, floor and ceiling of one episode look like."""

    wall: Look
    floor: Look
    ceiling: Look


# For tasks whose looks do not vary.
PLAIN_SURROUNDINGS = Surroundings(
    wall=Look((200, 175, 150), "brick"),
    floor=Look((150, 150, 160), "checker"),
    ceiling=Look((215, 215, 225), "planks"),
)
GREY_SURROUNDINGS = Surroundings(
    wall=Look((175, 175, 180), "tiles"),
    floor=Look((140, 140, 145), "checker"),
    ceiling=Look((215, 215, 220), "plain"),
)


def pick(draw: Generator, options: Sequence[T]) -> T:
    return options[int(draw.integers(len(options)))]


def draw_surroundings(draw: Generator) -> Surroundings:
    return Surroundings(
        wall=Look(pick(draw, WALL_RGBS), pick(draw, WALL_TEXTURES)),
        floor=Look(pick(draw, FLOOR_RGBS), pick(draw, FLOOR_TEXTURES)),
        ceiling=Look(pick(draw, CEILING_RGBS), "planks"),
    )


def draw_colours(draw: Generator, count: int) -> list[str]:
    """The names of `count` different colours."""
    names = list(COLOURS)
    return [names[i] for i in draw.permutation(len(names))[:count]]


def draw_thing_look(draw: Generator, colour: str | None = None) -> Look:
    name = colour if colour is not None else draw_colours(draw, 1)[0]
    return Look(COLOURS[name], pick(draw, THING_TEXTURES))


def lit(rgb: RGB) -> RGB:
    """How a surface of this colour looks when it glows."""
    r, g, b = rgb
    return (r + 0.65 * (255 - r), g + 0.65 * (255 - g), b + 0.65 * (255 - b))
