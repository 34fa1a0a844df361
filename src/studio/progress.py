"""How far a long command has come: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
LINES = 10  # about as many as a log wants of one command


def progress(items: Iterable[Item], total: int, what: str, done: int = 0) -> Iterator[Item]:
    """Pass the items on, telling on stderr how many of `total` there are, `done` included."""
    if sys.stderr.isatty():
        yield from _bar(items, total, what, done)
        return
    step = max(1, total // LINES)
    for count, item in enumerate(items, start=done + 1):
        yield item
        if count % step == 0 or count == total:
            print(f"{what}: {count} of {total}", file=sys.stderr, flush=True)


def _bar(items: Iterable[Item], total: int, what: str, done: int) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for item in items:
            yield item
            bar.advance(task)
