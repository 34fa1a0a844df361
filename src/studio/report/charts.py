"""Line charts as SVG text: crisp at any width, a few kilobytes each, coloured by the page's CSS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 40
MOST_POINTS = 400  # of one line; more are thinned out to means


@dataclass(frozen=True)
class Line:
    """`look` is a class of the page's style sheet: a to f for the colours."""

    name: str
    points: Points
    look: str
    dots: bool = False


@dataclass(frozen=True)
class Level:
    """A horizontal line to compare with."""

    name: str
    value: float
    look: str


@dataclass(frozen=True)
class Chart:
    title: str
    x_name: str
    y_name: str
    lines: Sequence[Line]
    levels: Sequence[Level] = ()
    y_range: tuple[float, float] | None = None
    percent: bool = False
    note: str = ""
    empty: str = field(default="Nothing measured yet.")


def draw(chart: Chart) -> str:
    """The chart as a <figure>, its legend below the title."""
    lines = [line for line in chart.lines if len(line.points)]
    head = f"<figcaption>{escape(chart.title)}</figcaption>"
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    if not lines:
        return f'<figure>{head}<p class="note">{escape(chart.empty)}</p></figure>'
    named: list[Line | Level] = [*lines, *chart.levels]
    legend = "".join(
        f'<span class="key {item.look}"><i></i>{escape(item.name)}</span>' for item in named
    )
    svg = _svg(chart, lines)
    return f'<figure>{head}<div class="legend">{legend}</div>{svg}{note}</figure>'


def _svg(chart: Chart, lines: Sequence[Line]) -> str:
    x_most = max(x for line in lines for x, _ in line.points) or 1.0
    low, high = chart.y_range or _spread(chart, lines)
    x_ticks, y_ticks = ticks(0.0, x_most), ticks(low, high)

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / x_most

    def down(y: float) -> float:
        share = (min(max(y, low), high) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}">']
    for y in y_ticks:
        at = down(y)
        label = f"{y:.0%}" if chart.percent else short(y)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="tick" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for x in x_ticks:
        parts.append(
            f'<text class="tick" x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 17}" '
            f'text-anchor="middle">{short(x)}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">{escape(chart.x_name)}</text>'
        f'<text class="axis" transform="translate(13 {middle}) rotate(-90)" '
        f'text-anchor="middle">{escape(chart.y_name)}</text>'
    )
    for level in chart.levels:
        at = down(level.value)
        parts.append(
            f'<line class="level {level.look}" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
            f'y1="{at:.1f}" y2="{at:.1f}"><title>{escape(level.name)}</title></line>'
        )
    for line in lines:
        points = thinned(line.points)
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line {line.look}" points="{path}"/>')
        if line.dots or len(points) == 1:
            parts += [
                f'<circle class="dot {line.look}" cx="{across(x):.1f}" cy="{down(y):.1f}" r="3.5">'
                f"<title>{escape(line.name)}: "
                f"{f'{y:.1%}' if chart.percent else short(y)} at {short(x)}</title></circle>"
                for x, y in points
            ]
    return "".join(parts) + "</svg>"


def _spread(chart: Chart, lines: Sequence[Line]) -> tuple[float, float]:
    values = [y for line in lines for _, y in line.points] + [v.value for v in chart.levels]
    low, high = min(0.0, *values), max(values)
    return (low, high) if high > low else (low, low + 1.0)


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """At most so many points: means of neighbours, so that no spike is left to chance."""
    if len(points) <= most:
        return points
    edges = [round(i * len(points) / most) for i in range(most + 1)]
    groups = [points[a:b] for a, b in pairwise(edges)]
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers from low to high."""
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / 4))
    for factor in (1, 2, 2.5, 5, 10):
        if span / (step * factor) <= 6:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """3 significant digits: 0.25, 12.5, 1.3k, 2.5M."""
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
