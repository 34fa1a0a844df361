"""Tables: drawn for a terminal, plain aligned lines for a pipe."""

import sys
from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        _draw(columns, rows)
    else:
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        # The last column may wrap; the others hold names, which are copied whole.
        table.add_column(column, no_wrap=column != columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # Text: a cell may hold [brackets]
    Console().print(table)
