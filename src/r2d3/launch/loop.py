"""The loop of a run: learn, log, evaluate, save, report. Launchers say who acts, and where.

`inline.py` acts in the same process, `ray/` in others. What differs between them is a handful of
methods, at the end of the class; everything that a run folder holds is written here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from r2d3.actor import EpisodeSummary
from r2d3.checkpoint import CheckpointStore
from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.launch.parts import LearningParts
from r2d3.metrics import MetricLog, MetricWindow, rewind_metrics
from r2d3.mixture import DemoMixture, Origin
from r2d3.replay import SequenceBatch
from r2d3.terminal import Reporter

STALL_SECONDS = 600.0  # so long without a step of either side, and the run stops and says why


class TrainingLoop(ABC):
    """A training run in its folder. `start` or `resume`, then `train`."""

    parts: LearningParts

    def __init__(
        self, config: Config, reporter: Reporter, evaluated: Callable[[], None] = lambda: None
    ):
        """`evaluated` is called after each evaluation."""
        self.config, self.reporter, self.evaluated = config, reporter, evaluated
        self.folder = pathlib.Path(config.out)
        self.window = MetricWindow()
        self.window_lock = threading.Lock()
        self.store = CheckpointStore(self.folder / "checkpoints", reporter.say)
        self.elapsed_before = 0.0  # seconds trained before this process
        self.lines = 0  # of metrics.jsonl
        self.evaluations = 0
        self.episodes = 0
        self.started = self.last_checkpoint = self.last_report = time.monotonic()
        self.last_row: dict[str, float] = {}

    # -- beginning -----------------------------------------------------------------------------

    def start(self) -> None:
        claim_folder(self.config)
        for name, reason in self.parts.spec.left_out:
            self.reporter.say(f"observation '{name}' is left out: {reason}")
        self._begin_log()

    def resume(self) -> None:
        """Goes on from the last whole checkpoint."""
        saved = self.store.load()
        if saved is None:
            raise UserError(f"{self.folder}: no checkpoint to resume from")
        self.load_state_dict(saved)
        self.reporter.say(
            f"resumed at learner step {self.parts.learner.steps}, decision {self._decisions()}"
        )
        rewind_metrics(self.folder, self.lines)
        self._begin_log()

    def _begin_log(self) -> None:
        self.log = MetricLog(self.folder, self.config.tensorboard)
        self.started = self.last_checkpoint = self.last_report = time.monotonic()
        self.last_row = self._rate_counters()

    # -- the loop ------------------------------------------------------------------------------

    def train(self) -> dict[str, Any]:
        """Until the budget is used up; returns the final evaluation."""
        try:
            self._warm_up()
            self._begin_acting()
            moved = time.monotonic()
            while not self._finished():
                if self._may_learn():
                    self._learn_once()
                    moved = time.monotonic()
                elif self._gain_experience():
                    moved = time.monotonic()
                elif time.monotonic() - moved > STALL_SECONDS:
                    raise UserError(
                        f"stopped: nothing moved for {STALL_SECONDS:.0f} s; {self._waiting()}"
                    )
                self._report_now_and_then()
                if self._time_for_checkpoint():  # also while the replay fills, which may take hours
                    self.checkpoint()
            self._stop_acting()
            self.checkpoint()
            return self._final_evaluation()
        finally:
            self._stop_acting()
            self.log.close()
            self.reporter.close()
            self._close()

    def _warm_up(self) -> None:
        while self.parts.learner.steps < self.config.warmup_steps and not self._finished():
            self._learn_once()
            self._report_now_and_then()
            if self._time_for_checkpoint():
                self.checkpoint()

    def _learn_once(self) -> None:
        learner, c = self.parts.learner, self.config
        if learner.steps < c.warmup_steps:
            batch, origins = self.parts.mixture.sample(1.0)
        else:
            batch, origins = self._next_batch()
        metrics, priorities = learner.step(batch)
        self.window.add(metrics)
        if priorities is None:
            return
        DemoMixture.update_priorities(origins, priorities)
        if learner.steps % c.actor_update_period == 0 or learner.steps == c.warmup_steps:
            self._publish()
        if learner.steps % c.log_every == 0:
            self._write_row()
        if c.evaluate_every and learner.steps % c.evaluate_every == 0:
            self._evaluate()
        if c.checkpoint_steps and learner.steps % c.checkpoint_steps == 0:
            self.checkpoint()

    def _finished(self) -> bool:
        c = self.config
        return bool(
            (c.minutes and self.elapsed() >= 60.0 * c.minutes)
            or (c.learner_steps and self.parts.learner.steps >= c.learner_steps)
        )

    # -- what is said --------------------------------------------------------------------------

    def elapsed(self) -> float:
        return self.elapsed_before + time.monotonic() - self.started

    def _episode_ended(self, summary: EpisodeSummary) -> None:
        with self.window_lock:
            self.episodes += 1
            self.window.add_episode(summary)

    def _counters(self) -> dict[str, Any]:
        parts = self.parts
        counters: dict[str, Any] = {
            "learner_steps": parts.learner.steps,
            "decisions": self._decisions(),
            "episodes": self.episodes,
            "skipped_steps": parts.learner.skipped,
            "demo_ratio": demo_ratio_now(self.config, parts.learner.steps),
        }
        if self.config.actors:
            counters.update(self._replay_counters())
            paid = max(parts.limiter.inserted - parts.limiter.min_size, 1)
            counters["samples_per_insert"] = parts.limiter.sampled / paid
        return counters

    def _rate_counters(self) -> dict[str, float]:
        return {
            "t": self.elapsed(),
            "steps": self.parts.learner.steps,
            "decisions": self._decisions(),
        }

    def _rates(self) -> dict[str, float]:
        now, then = self._rate_counters(), self.last_row
        seconds = max(now["t"] - then["t"], 1e-9)
        return {
            "elapsed_s": round(now["t"], 3),
            "cpu_s": round(time.process_time(), 3),  # of this process; counts every thread
            "learner_steps_per_s": (now["steps"] - then["steps"]) / seconds,
            "decisions_per_s": (now["decisions"] - then["decisions"]) / seconds,
            "learner_waited_s": self.parts.limiter.waited_s["learner"],
            "actors_waited_s": self.parts.limiter.waited_s["actors"],
        }

    def _write_row(self) -> None:
        with self.window_lock:
            row = {**self._counters(), **self.window.row(), "time": self._rates()}
            self.window.clear()
        self._log("train", row)
        self.last_row = self._rate_counters()

    def _log(self, kind: str, row: dict[str, Any]) -> None:
        self.log.write(kind, row)
        self.lines += 1
        self.reporter.row(kind, row)

    def _log_evaluation(self, counters: dict[str, Any], result: dict[str, Any]) -> None:
        self._log("evaluation", {**counters, **result, "time": {"elapsed_s": self.elapsed()}})
        self.evaluated()

    def _video_due(self) -> pathlib.Path | None:
        """Counts an evaluation; where to put its video, if it is one of those filmed."""
        self.evaluations += 1
        every = self.config.video_every
        if not every or self.evaluations % every:
            return None
        return self.folder / "videos" / f"step-{self.parts.learner.steps:09d}.mp4"

    def _final_evaluation(self) -> dict[str, Any]:
        c, trained = self.config, self.elapsed()
        if not c.final_episodes:
            return {}
        result = self._played(c.final_episodes)
        times = {"trained_s": trained, "elapsed_s": self.elapsed()}
        row = {**self._counters(), **result, "time": times}
        self._log("final", row)
        return row

    def _report_now_and_then(self) -> None:
        if time.monotonic() - self.last_report < self.reporter.seconds:
            return
        self.last_report = time.monotonic()
        budget = 60.0 * self.config.minutes
        self.reporter.progress(
            {
                **self._counters(),
                **self._rates(),
                "waiting": self._waiting(),
                "seconds_left": budget - self.elapsed() if budget else None,
            }
        )

    def _waiting(self) -> str:
        if not self.config.actors:
            return "nobody waits"
        return self.parts.limiter.waiting(self.config.batch_size)

    # -- checkpoints ---------------------------------------------------------------------------

    def _time_for_checkpoint(self) -> bool:
        seconds = 60.0 * self.config.checkpoint_minutes
        return bool(seconds) and time.monotonic() - self.last_checkpoint >= seconds

    def checkpoint(self) -> None:
        with self._standing_still():
            state = self.state_dict()
        try:
            self.store.save(self.parts.learner.steps, state)
        except OSError as error:  # the disk is full, most likely; the one before is still whole
            raise UserError(f"no checkpoint written: {error}") from None
        self.last_checkpoint = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        parts = self.parts
        with self.window_lock:
            window = self.window.state_dict()
        state: dict[str, Any] = {
            "config": dataclasses.asdict(self.config),
            "run": {
                "elapsed_s": self.elapsed(),
                "lines": self.lines,
                "evaluations": self.evaluations,
                "episodes": self.episodes,
            },
            "window": window,
            "learner": parts.learner.state_dict(),
            "mixture": parts.mixture.state_dict(),
            "limiter": parts.limiter.state_dict(),
        }
        if parts.demo_replay is not None:
            state["demo_replay"] = parts.demo_replay.state_dict()
        return state

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        parts = self.parts
        parts.learner.load_state_dict(saved["learner"])
        parts.mixture.load_state_dict(saved["mixture"])
        parts.limiter.load_state_dict(saved["limiter"])
        self.window.load_state_dict(saved["window"])
        if parts.demo_replay is not None:
            parts.demo_replay.load_state_dict(saved["demo_replay"])
        run = saved["run"]
        self.elapsed_before, self.lines = run["elapsed_s"], run["lines"]
        self.evaluations, self.episodes = run["evaluations"], run["episodes"]

    # -- what a launcher says ------------------------------------------------------------------

    @abstractmethod
    def _begin_acting(self) -> None: ...

    @abstractmethod
    def _stop_acting(self) -> None:
        """May be called twice."""

    @abstractmethod
    def _may_learn(self) -> bool: ...

    @abstractmethod
    def _gain_experience(self) -> bool:
        """What to do while there is nothing to learn from; not for long. Whether it helped."""

    @abstractmethod
    def _next_batch(self) -> tuple[SequenceBatch, list[Origin]]: ...

    @abstractmethod
    def _publish(self) -> None:
        """Gives the actors the newest weights."""

    @abstractmethod
    def _evaluate(self) -> None:
        """Has the newest weights played and logged, now or before long."""

    @abstractmethod
    def _played(self, episodes: int) -> dict[str, Any]:
        """The newest weights, played now."""

    @abstractmethod
    def _decisions(self) -> int: ...

    @abstractmethod
    def _replay_counters(self) -> dict[str, Any]: ...

    @contextlib.contextmanager
    def _standing_still(self) -> Iterator[None]:
        """While the state is read for a checkpoint."""
        yield

    @abstractmethod
    def _close(self) -> None:
        """The end, whichever way it came."""


def claim_folder(config: Config) -> None:
    """A folder holds one run."""
    folder = pathlib.Path(config.out)
    if (folder / "metrics.jsonl").exists():
        raise UserError(f"{folder} holds a run already: choose another --out, or --resume")
    (folder / "config.json").write_text(config.to_json() + "\n")


def demo_ratio_now(config: Config, learner_steps: int) -> float:
    """Constant, or changing linearly over the first `demo_ratio_steps`."""
    if not config.demo_ratio_steps:
        return config.demo_ratio
    done = min(learner_steps / config.demo_ratio_steps, 1.0)
    return config.demo_ratio_start + done * (config.demo_ratio - config.demo_ratio_start)
