"""What a run shows while it trains: a live table on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

PLAIN_SECONDS, LIVE_SECONDS = 10.0, 0.5


class Reporter:
    """Plain lines; `LiveReporter` draws instead."""

    seconds = PLAIN_SECONDS

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream if stream is not None else sys.stdout

    def say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def row(self, kind: str, row: dict[str, Any]) -> None:
        if kind != "train":
            self.say(_line(kind, row, ("learner_steps", "episodes", "return", "success", "length")))

    def progress(self, state: dict[str, Any]) -> None:
        names = ("learner_steps", "decisions", "learner_steps_per_s", "decisions_per_s")
        line = _line("train", state, names)
        left = state.get("seconds_left")
        tail = f", {_duration(left)} left" if left is not None else ""
        troubles = "".join(f"; {trouble}" for trouble in state.get("troubles", ()))
        self.say(f"{line}, {_megabytes(state)}{state['waiting']}{tail}{troubles}")

    def close(self) -> None:
        pass


class LiveReporter(Reporter):
    """A table that stays in place."""

    seconds = LIVE_SECONDS

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self.console = Console()
        self.live = Live(console=self.console, auto_refresh=False)
        self.live.start()
        self.last: dict[str, Any] = {}
        self.last_evaluation: dict[str, Any] = {}

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)

    def row(self, kind: str, row: dict[str, Any]) -> None:
        if kind == "train":
            self.last = row
        else:
            self.last_evaluation = row
            super().row(kind, row)

    def progress(self, state: dict[str, Any]) -> None:
        self.live.update(self._table(state), refresh=True)

    def _table(self, state: dict[str, Any]) -> Any:
        from rich.table import Table

        def now(name: str) -> str:
            return _number(state.get(name))

        def last(name: str) -> str:
            return _number(self.last.get(name))

        def evaluated(name: str) -> str:
            return f"evaluated {_number(self.last_evaluation.get(name))}"

        left, trained = _duration(state.get("seconds_left")), _duration(state["elapsed_s"])
        table = Table.grid(padding=(0, 2))
        rows = [
            ("learner steps", now("learner_steps"), _per_s(state, "learner_steps_per_s")),
            ("decisions", now("decisions"), _per_s(state, "decisions_per_s")),
            ("return", last("return"), evaluated("return")),
            ("success", last("success"), evaluated("success")),
            ("value at start", last("predicted_return"), f"was {last('discounted_return')}"),
            ("loss", last("loss"), f"gradient {last('gradient_norm')}"),
            ("demonstrations", last("demo_share"), "share of the batches' elements"),
            ("replay", now("replay_sequences"), _megabytes(state).rstrip(", ")),
            ("samples per insert", now("samples_per_insert"), state["waiting"]),
            ("skipped (NaN)", now("skipped_steps"), ""),
            ("time left", left, f"trained {trained}"),
        ]
        rows += [("trouble", "", trouble) for trouble in state.get("troubles", ())]
        for name, value, remark in rows:
            table.add_row(name, value, remark)
        return table

    def close(self) -> None:
        self.live.stop()


def make_reporter() -> Reporter:
    return LiveReporter() if sys.stdout.isatty() else Reporter()


def _line(kind: str, row: dict[str, Any], names: tuple[str, ...]) -> str:
    parts = [f"{name} {_number(row[name])}" for name in names if name in row]
    return f"{time.strftime('%H:%M:%S')} {kind}: " + ", ".join(parts)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _per_s(state: dict[str, Any], name: str) -> str:
    return f"{_number(state.get(name))} a second"


def _megabytes(state: dict[str, Any]) -> str:
    size = state.get("replay_bytes")
    return f"replay {size / 1e6:.1f} MB, " if size is not None else ""


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "no limit"
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    return f"{minutes}:{rest:02d}"
