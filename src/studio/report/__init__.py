"""`report.html`: what a run did, in one file."""

from __future__ import annotations

import os
from pathlib import Path

from .media import Media, make_media
from .page import page
from .reading import read_run

__all__ = ["Media", "write_report"]


def write_report(folder: Path, media: Media | None = None, *, running: bool = False) -> Path:
    """Write the run's report from what lies in its folder; whole or not at all."""
    run = read_run(folder)
    text = page(run, make_media(run) if media is None else media, running=running)
    path, growing = folder / "report.html", folder / ".report.html.part"
    growing.write_text(text, encoding="utf-8")
    os.replace(growing, path)
    return path
