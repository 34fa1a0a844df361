"""Pictures for people: larger views and maps of a running world, and the pages of docs/tasks/.

`python -m hard_eight.pictures --out docs/tasks` lets the demonstrator of each task play an episode
and writes a filmstrip of what it saw when it reached each milestone, a map with its way, and a
page that shows both.
"""

from __future__ import annotations

import argparse
import struct
import zlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from .actions import ACTIONS, CONTROLS
from .batch import FIELD_OF_VIEW
from .floats import StandardFloats
from .map import draw_map
from .native.step import draw_view
from .task import Task, all_tasks, find_task
from .textures import TEXTURES
from .world import World

VIEW_SIZE = (288, 216)  # width, height of one picture of a filmstrip
MAP_SIZE = 512
COLUMNS = 4  # pictures in a row
GAP = 6  # pixels of white between them
TRAIL_RGB = (40, 110, 235)


def first_person(world: World, *, height: int, width: int) -> np.ndarray:
    """What the avatar sees, at any size."""
    picture = np.empty((height, width, 3), np.uint8)
    with StandardFloats():
        draw_view(world.row, FIELD_OF_VIEW, TEXTURES, picture)
    return picture


def top_down(world: World, *, height: int, width: int, **options: Any) -> np.ndarray:
    """The map: walls, things, avatar and gaze from above."""
    data = world.data
    x, y, _ = world.position
    return draw_map(
        world.kind, world.size, world.rgb, world.texture, world.flags, data.geom_xpos,
        data.geom_xmat, height=height, width=width, avatar=(x, y, world.yaw), **options,
    )  # fmt: skip


def write_png(path: Path, picture: np.ndarray) -> None:
    """Save an RGB picture; twelve lines that spare the world a dependency."""
    height, width, _ = picture.shape
    rows = np.concatenate(
        [np.zeros((height, 1), np.uint8), picture.reshape(height, width * 3)], axis=1
    )

    def chunk(kind: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def filmstrip(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures in rows of COLUMNS, in reading order, on white."""
    height, width, _ = pictures[0].shape
    lines = -(-len(pictures) // COLUMNS)
    sheet = np.full((lines * (height + GAP) - GAP, COLUMNS * (width + GAP) - GAP, 3), 255, np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // COLUMNS) * (height + GAP), (i % COLUMNS) * (width + GAP)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def play(task: Task, seed: int) -> tuple[list[tuple[str, np.ndarray]], np.ndarray, bool, int]:
    """An episode of the demonstrator: views on its way, map with trail, success, frames.

    The views are those at the start, at each milestone, and halfway between them.
    """
    from . import experts

    env = gymnasium.make(task.gym_id, disable_env_checker=True)
    env.reset(seed=seed)
    world: World = env.unwrapped.world  # type: ignore[attr-defined]
    expert = experts.make(task.name, seed=seed)
    expert.reset(env)
    width, height = VIEW_SIZE
    seen = [first_person(world, height=height, width=width)]
    trail, moments = [world.position[:2]], {"start": 0}
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(expert.act(env))
        over = terminated or truncated
        seen.append(first_person(world, height=height, width=width))
        trail.append(world.position[:2])
        for name, reached in info["milestones"].items():
            if reached and name not in moments:
                now = len(seen) - 1
                if "apple" in name:  # gone once it is collected: show it from some steps before
                    now = min(max(now - 5, max(moments.values()) + 1), now - 1)
                moments[name] = now
    views: list[tuple[str, np.ndarray]] = []
    before = 0
    for name, at in sorted(moments.items(), key=lambda item: item[1]):
        if at - before > 4:
            views.append(("on the way", seen[(before + at) // 2]))
        views.append((f"`{name}`", seen[at]))
        before = at
    # The things as they stood at first, with the way that was taken.
    overview = top_down(
        task.build(seed), height=MAP_SIZE, width=MAP_SIZE, trails=[(np.array(trail), TRAIL_RGB)]
    )
    return views, overview, bool(info["success"]), 2 * (len(seen) - 1)


def write_page(task: Task, seed: int, out: Path) -> None:
    views, overview, success, frames = play(task, seed)
    write_png(out / f"{task.name}.png", filmstrip([view for _, view in views]))
    write_png(out / f"{task.name}_map.png", overview)
    human = f"return {task.human_return}, {task.human_length} frames" if task.human else "none"
    lines = [
        f"# {task.name}",
        "",
        task.summary,
        "",
        f"Gymnasium id `{task.gym_id}`, original level `{task.level}`.",
        f"Humans in the paper: {human}.",
        "",
        f"![What the demonstrator saw]({task.name}.png)",
        "",
        "In reading order: " + ", ".join(name for name, _ in views) + ".",
        "",
        f"![Map with the demonstrator's way]({task.name}_map.png)",
        "",
        f"Seed {seed}: {'won' if success else 'not won'} in {frames} frames.",
        "",
        "**Varies from episode to episode:** " + "; ".join(task.varies) + ".",
        "",
        "**Milestones, in order:** " + ", ".join(f"`{name}`" for name in task.milestones) + ".",
        "",
        f"Made by `python -m hard_eight.pictures {task.name} --seed {seed} --out docs/tasks`.",
        "",
    ]
    (out / f"{task.name}.md").write_text("\n".join(lines))


def write_overview(tasks: list[Task], out: Path) -> None:
    """The page that leads to the tasks' pages, and the table of actions."""
    lines = [
        "# The eight tasks",
        "",
        "Every episode begins somewhere else, looks different, and is rewarded only for what it "
        "reaches: 10 for the large apple, which ends it; 1 for a small apple; -1 for a crossed "
        "penalty strip. Lengths are frames, 30 a second; the figures are the paper's people.",
        "",
        "| | task | people: return | length |",
        "| --- | --- | --- | --- |",
    ]
    for task in tasks:
        picture = f"[![{task.name}]({task.name}_map.png){{ width=150 }}]({task.name}.md)"
        lines.append(
            f"| {picture} | [{task.name}]({task.name}.md)<br>{task.summary} "
            f"| {task.human_return or ''} | {task.human_length or ''} |"
        )
    made = "Made by `python -m hard_eight.pictures --out docs/tasks`."
    (out / "index.md").write_text("\n".join([*lines, "", made, ""]))

    lines = [
        "# The 46 actions",
        "",
        "Each is a setting of the original's nine continuous controls, held for two frames. "
        "A fine action is a smaller value of the same control. What is not named is 0.",
        "",
        "| | action | keys | controls |",
        "| --- | --- | --- | --- |",
    ]
    for action in ACTIONS:
        controls = ", ".join(
            f"{control.name} {value:g}"
            for control, value in zip(CONTROLS, action.controls, strict=True)
            if value
        )
        lines.append(f"| {action.number} | `{action.name}` | {action.key} | {controls} |")
    lines += ["", "| control | from | to |", "| --- | --- | --- |"]
    lines += [
        f"| {control.name} | {control.minimum:g} | {control.maximum:g} |" for control in CONTROLS
    ]
    (out / "actions.md").write_text("\n".join([*lines, "", made, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hard_eight.pictures", description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of tasks; all, if none are given")
    parser.add_argument(
        "--seed",
        type=int,
        default=3,
        help="the first task's seed; each next task takes the next, so that looks differ",
    )
    parser.add_argument("--out", type=Path, default=Path("docs/tasks"), help="the folder to fill")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tasks = [find_task(name) for name in args.tasks] or all_tasks()
    for seed, task in enumerate(tasks, args.seed):
        write_page(task, seed, args.out)
        print(f"{args.out / task.name}.md")
    if not args.tasks:
        write_overview(tasks, args.out)


if __name__ == "__main__":
    main()
