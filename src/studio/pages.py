"""Tables that a command writes into a page of the docs, between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from r2d3.errors import UserError


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill(page: Path, mark: str, text: str) -> None:
    """Put a text between `<!-- mark -->` and `<!-- end of mark -->`, for what was there."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    try:
        before, rest = page.read_text().split(begin)
        _, after = rest.split(end)
    except OSError as error:
        raise UserError(f"{page} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{page} must hold '{begin}' and '{end}', once each") from None
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
