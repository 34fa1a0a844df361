"""`r2d3 demos list`: the datasets there are."""

import argparse
import json
from pathlib import Path
from typing import Any

from r2d3.cli.table import print_table
from r2d3.errors import UserError

HELP = "List the datasets in a folder: names, episodes, steps, sizes, and how many succeeded."
EPILOG = """\
examples:
  r2d3 demos list            what is in Minari's folder
  r2d3 demos list ./demos    what is in this folder
  r2d3 demos list --json     the same for a program
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="(default: where Minari keeps its datasets)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from studio import datasets

    folder = Path(args.folder).expanduser() if args.folder else datasets.root()
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    facts = [_facts(found) for found in datasets.find_below(folder)]
    half = [_half(growing) for growing in datasets.find_half_made(folder)]
    if args.json:
        print(json.dumps({"datasets": facts, "half_made": half}, indent=2))
        return 0
    if not facts and not half:
        print(f"no datasets in {folder}; 'r2d3 demos make TASK' makes one")
        return 0
    if facts:
        print_table(["dataset", "episodes", "steps", "MB", "success"], [_cells(f) for f in facts])
    for partial in half:
        print(
            f"half made: {partial['name']}, {partial['done']} of {partial['episodes']} episodes; "
            "the same 'demos make' goes on with it"
        )
    return 0


def _facts(folder: Path) -> dict[str, Any]:
    """What a dataset's metadata says; a damaged one is listed with the reason."""
    from studio import datasets
    from studio.stats import size_in_bytes

    facts: dict[str, Any] = {"name": str(folder), "size_mb": size_in_bytes(folder) / 1e6}
    try:
        dataset = datasets.open_dataset(folder)
    except UserError as error:
        return facts | {"error": str(error)}
    known = [m["success"] for m in dataset.episodes if "success" in m]
    return facts | {
        "name": dataset.name,
        "episodes": len(dataset),
        "steps": int(dataset.minari.total_steps),
        "success": sum(known) / len(known) if known else None,
    }


def _half(growing: Path) -> dict[str, Any]:
    plan = json.loads((growing / "plan.json").read_text())
    done = sum(1 for path in (growing / "data").glob("[0-9]*"))
    return {"name": plan["dataset_id"], "episodes": plan["episodes"], "done": done}


def _cells(facts: dict[str, Any]) -> list[str]:
    size = f"{facts['size_mb']:.1f}"
    if "error" in facts:
        return [facts["name"], "-", "-", size, facts["error"]]
    success = "unknown" if facts["success"] is None else f"{facts['success']:.0%}"
    return [facts["name"], str(facts["episodes"]), str(facts["steps"]), size, success]
