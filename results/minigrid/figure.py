"""Draws success against training time from a folder that run.py wrote.

python results/minigrid/figure.py results/minigrid/unlock_pickup
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    curves: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for line in (folder / "runs.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["kind"] in ("evaluation", "final"):
            seconds = row["time"].get("trained_s", row["time"]["elapsed_s"])
            curves[row["run"], row["seed"]].append((seconds, row["success"]))
    names = list(dict.fromkeys(name for name, _ in curves))
    columns = min(len(names), 4)
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), sharex=True, sharey=True, squeeze=False
    )
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    for ax, name in zip(axes.flat, names, strict=False):
        for (run, seed), points in curves.items():
            if run == name:
                ax.plot(*zip(*points, strict=True), label=f"seed {seed}", linewidth=1.2)
                ax.plot(*points[-1], "o", markersize=4, color=ax.lines[-1].get_color())
        ax.set_title(name)
        ax.set_ylim(-0.03, 1.03)
        ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("seconds of training, one core")
    for ax in axes[:, 0]:
        ax.set_ylabel("success")
    axes[0][0].legend(fontsize=7)
    figure.suptitle(
        f"{folder.name}: 20 evaluation episodes a point, the dot: 200 at the end", fontsize=9
    )
    figure.tight_layout()
    figure.savefig(folder / "figure.png", dpi=130)
    print(folder / "figure.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
