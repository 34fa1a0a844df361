"""`r2d3 demos stats`: what the demonstrations are like, beside the paper's people."""

import argparse
import json
from pathlib import Path

from r2d3.cli.table import print_table
from r2d3.errors import UserError

HELP = """\
Returns, lengths (frames, 30 a second), successes and the actions used: over all episodes of a
dataset, then for each demonstrator, beside the paper's table of people. 'actions' is how many kinds
of actions occur, 'fine' the share of decisions that are fine ones. Spreads are standard deviations.
"""
EPILOG = """\
examples:
  r2d3 demos stats                                         all datasets there are
  r2d3 demos stats hardeight/wall-sensor/scripted-v0       this one
  r2d3 demos stats ./demos --json                          those in a folder, for a program
  r2d3 demos stats --into docs/demonstrations.md           put the table into a page
"""
MARK = "demos stats"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "datasets", nargs="*", metavar="DATASET", help="a name, or a folder (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--into",
        metavar="FILE",
        help="also write the table into this Markdown page, between its marks",
    )
    parser.add_argument(
        "--mark",
        default=MARK,
        help=f"the marks are <!-- MARK --> and <!-- end of MARK --> (default: {MARK})",
    )


def run(args: argparse.Namespace) -> int:
    from studio import datasets, pages, stats

    folders = datasets.find(args.datasets)
    if not folders:
        raise UserError(f"no datasets in {datasets.root()}; 'r2d3 demos make TASK' makes one")
    facts = [fact for folder in folders for fact in stats.facts(folder)]
    lines = [stats.cells(fact) for fact in facts]
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        print_table(stats.TITLES, lines)
    if args.into:
        pages.fill(Path(args.into), args.mark, pages.table(stats.TITLES, lines))
    return 0
