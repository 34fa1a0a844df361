"""Success against training time, from a folder that run.py wrote: a figure and a table.

    python results/minigrid/figure.py results/minigrid/unlock_pickup \\
        --picture docs/learning/unlock_pickup.png --into docs/learning.md

The figure has one panel a setting and one line a seed; a point is an evaluation of 20 episodes,
the dot at the end the final one. The table goes between the page's marks `<!-- FOLDER'S NAME -->`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections import defaultdict
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from studio.pages import fill, table

SOLVED = 0.95
Curve = list[tuple[float, float]]  # seconds of training, share of episodes that succeeded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path, help="default: figure.png in the folder")
    parser.add_argument("--into", type=pathlib.Path, help="page to write the table to")
    args = parser.parse_args()
    curves, finals = read(args.folder)
    picture = args.picture or args.folder / "figure.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(curves, finals).savefig(picture, dpi=110)
    text = describe(curves, finals)
    print(text)
    print(picture)
    if args.into:
        fill(args.into, args.folder.name, text)
    return 0


def read(
    folder: pathlib.Path,
) -> tuple[dict[str, dict[int, Curve]], dict[str, dict[int, dict[str, Any]]]]:
    """By setting and seed: the evaluations while training, and the final one."""
    curves: dict[str, dict[int, Curve]] = defaultdict(lambda: defaultdict(list))
    finals: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for line in (folder / "runs.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["kind"] in ("evaluation", "final"):
            seconds = row["time"].get("trained_s", row["time"]["elapsed_s"])
            curves[row["run"]][row["seed"]].append((seconds, row["success"]))
        if row["kind"] == "final":
            finals[row["run"]][row["seed"]] = row
    return curves, finals


def describe(
    curves: dict[str, dict[int, Curve]], finals: dict[str, dict[int, dict[str, Any]]]
) -> str:
    titles = ["setting", "success, each seed", "mean", "95% first seen after", "decisions"]
    rows = []
    for name, by_seed in finals.items():
        last = [by_seed[seed] for seed in sorted(by_seed)]
        reached = [first_at(curves[name][seed], SOLVED) for seed in sorted(by_seed)]
        rows.append(
            [
                name,
                ", ".join(f"{row['success']:.1%}" for row in last),
                f"{sum(row['success'] for row in last) / len(last):.1%}",
                ", ".join("–" if t is None else f"{t:.0f} s" for t in reached),
                ", ".join(f"{row['decisions'] / 1e3:.0f} k" for row in last),
            ]
        )
    return table(titles, rows)


def first_at(curve: Curve, success: float) -> float | None:
    return next((seconds for seconds, reached in curve if reached >= success), None)


def draw(
    curves: dict[str, dict[int, Curve]], finals: dict[str, dict[int, dict[str, Any]]]
) -> Figure:
    columns = min(len(curves), 4)
    rows = -(-len(curves) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.7 * columns, 2.3 * rows), sharex=True, sharey=True, squeeze=False
    )
    used = []
    for ax, (name, by_seed) in zip(axes.flat, curves.items(), strict=False):
        used.append(ax)
        for seed, curve in sorted(by_seed.items()):
            (line,) = ax.plot(*zip(*curve, strict=True), label=f"seed {seed}", linewidth=1.2)
            if seed in finals[name]:
                ax.plot(*curve[-1], "o", markersize=4, color=line.get_color())
        ax.set_title(name, fontsize=10)
        ax.set_ylim(-0.03, 1.03)
        ax.grid(alpha=0.3)
    for ax in axes.flat[len(used) :]:
        ax.axis("off")
    for i, ax in enumerate(used):
        if i + columns >= len(used):
            ax.set_xlabel("seconds of training, one core", fontsize=8)
            ax.tick_params(labelbottom=True)
    for ax in axes[:, 0]:
        ax.set_ylabel("success", fontsize=8)
    used[0].legend(fontsize=7)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    raise SystemExit(main())
