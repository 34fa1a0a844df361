"""Keeps a running run's page up to date, without holding up the training."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from r2d3.errors import UserError

from . import Media, write_report

QUIET_SECONDS = 60.0  # between two pages of a running run
PATIENCE = 30.0  # s for the process that writes a page, before it is given up


class PageKeeper:
    """Another, less important process writes the page: it films the agent, which takes a while."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self._writer: subprocess.Popen[bytes] | None = None
        self._last = -QUIET_SECONDS

    def renew(self) -> None:
        """Begin a new page, unless one is being written or is hardly a minute old."""
        busy = self._writer is not None and self._writer.poll() is None
        if busy or time.monotonic() - self._last < QUIET_SECONDS:
            return
        self._last = time.monotonic()
        self._writer = subprocess.Popen(
            [sys.executable, "-m", "studio.report", str(self.folder), "--running"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def close(self, *, interrupted: bool = False) -> None:
        """Write the last page. Whoever interrupts a run does not wait for its pictures."""
        if self._writer is not None and self._writer.poll() is None:
            self._writer.kill()
            self._writer.wait(PATIENCE)
        try:
            path = write_report(self.folder, Media() if interrupted else None)
        except (UserError, OSError) as error:
            self.say(f"no report: {error}")
            return
        self.say(f"report: {path}")
