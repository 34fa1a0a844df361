"""One machine, one process, no server: acting and learning in turn, or in two threads."""

from __future__ import annotations

import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

from r2d3.actor import EpisodeSummary
from r2d3.checkpoint import CheckpointStore
from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.launch.acting_thread import ActingThread
from r2d3.launch.parts import Parts, build
from r2d3.machine import choose_device, prepare
from r2d3.metrics import MetricLog, MetricWindow, rewind_metrics
from r2d3.mixture import DemoMixture
from r2d3.networks import copy_weights
from r2d3.terminal import Reporter

STALL_SECONDS = 600.0  # so long without a step of either side, and the run stops and says why


class Run:
    """A training run in its folder. `start` or `resume`, then `train`."""

    def __init__(
        self, config: Config, reporter: Reporter, evaluated: Callable[[], None] = lambda: None
    ):
        """`evaluated` is called after each evaluation."""
        self.config, self.reporter, self.evaluated = config, reporter, evaluated
        self.folder = pathlib.Path(config.out)
        prepare(config.torch_threads)
        self.window = MetricWindow()
        self.window_lock = threading.Lock()
        self.parts: Parts = build(config, choose_device(config.device), self._episode_ended)
        self.store = CheckpointStore(self.folder / "checkpoints", reporter.say)
        self.elapsed_before = 0.0  # seconds trained before this process
        self.lines = 0  # of metrics.jsonl
        self.evaluations = 0
        self.episodes = 0
        self.started = self.last_checkpoint = self.last_report = time.monotonic()
        self.last_row: dict[str, float] = {}
        self.acting: ActingThread | None = None

    # -- beginning -----------------------------------------------------------------------------

    def start(self) -> None:
        if (self.folder / "metrics.jsonl").exists():
            raise UserError(f"{self.folder} holds a run already: choose another --out, or --resume")
        (self.folder / "config.json").write_text(self.config.to_json() + "\n")
        for name, reason in self.parts.spec.left_out:
            self.reporter.say(f"observation '{name}' is left out: {reason}")
        if self.parts.actor is not None:
            self.parts.actor.start()
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
            if self.config.threads and self.parts.actor is not None:
                assert self.parts.agent_replay is not None
                self.acting = ActingThread(
                    self.parts.actor, self.parts.agent_replay, self.parts.limiter
                )
                self.acting.start()
            stalled_since = time.monotonic()
            while not self._finished():
                if self._may_learn():
                    self._learn_once()
                    if self.acting is not None:
                        self.acting.learner_moved()
                    stalled_since = time.monotonic()
                elif self.acting is None:
                    assert self.parts.actor is not None
                    self.parts.actor.step()
                    stalled_since = time.monotonic()
                else:
                    before = self._decisions()
                    self.acting.wait_for_experience()
                    if self._decisions() > before:
                        stalled_since = time.monotonic()
                    elif time.monotonic() - stalled_since > STALL_SECONDS:
                        raise UserError(
                            f"stopped: nothing moved for {STALL_SECONDS:.0f} s; "
                            + self.parts.limiter.waiting(self.config.batch_size)
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
            self.parts.close()

    def _warm_up(self) -> None:
        while self.parts.learner.steps < self.config.warmup_steps and not self._finished():
            self._learn_once()
            self._report_now_and_then()
            if self._time_for_checkpoint():
                self.checkpoint()

    def _may_learn(self) -> bool:
        limiter, replay = self.parts.limiter, self.parts.agent_replay
        if replay is None:
            return True
        limiter.inserted = replay.next_key
        return limiter.may_sample(self.config.batch_size)

    def _learn_once(self) -> None:
        learner, c = self.parts.learner, self.config
        warming = learner.steps < c.warmup_steps
        ratio = 1.0 if warming else demo_ratio_now(c, learner.steps)
        batch, origins = self.parts.mixture.sample(ratio)
        if not warming:
            self.parts.limiter.sampled += c.batch_size
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

    def _publish(self) -> None:
        """Gives the actors the newest weights."""
        if self.parts.actor is None:
            return
        if self.acting is not None:
            self.acting.publish(self.parts.learner)
        else:
            copy_weights(self.parts.learner.acting_network(), self.parts.actor.policy.network)

    def _finished(self) -> bool:
        c = self.config
        return bool(
            (c.minutes and self.elapsed() >= 60.0 * c.minutes)
            or (c.learner_steps and self.parts.learner.steps >= c.learner_steps)
        )

    def _stop_acting(self) -> None:
        if self.acting is not None:
            acting, self.acting = self.acting, None
            acting.stop()

    # -- what is said --------------------------------------------------------------------------

    def elapsed(self) -> float:
        return self.elapsed_before + time.monotonic() - self.started

    def _decisions(self) -> int:
        return self.parts.actor.decisions if self.parts.actor is not None else 0

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
        if parts.agent_replay is not None and parts.actor is not None:
            counters["bad_env_steps"] = parts.actor.bad_steps
            counters["replay_sequences"] = len(parts.agent_replay)
            counters["replay_bytes"] = parts.agent_replay.bytes
            counters["late_updates"] = parts.agent_replay.late_updates
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

    def _evaluate(self) -> None:
        parts, c = self.parts, self.config
        result = parts.evaluator.evaluate(parts.learner.acting_network(), c.evaluation_episodes)
        self._log(
            "evaluation", {**self._counters(), **result, "time": {"elapsed_s": self.elapsed()}}
        )
        self.evaluated()
        self.evaluations += 1
        if c.video_every and self.evaluations % c.video_every == 0:
            path = self.folder / "videos" / f"step-{parts.learner.steps:09d}.mp4"
            parts.evaluator.record(parts.learner.acting_network(), path)

    def _final_evaluation(self) -> dict[str, Any]:
        c, trained = self.config, self.elapsed()
        if not c.final_episodes:
            return {}
        result = self.parts.evaluator.evaluate(
            self.parts.learner.acting_network(), c.final_episodes
        )
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
                "waiting": self.parts.limiter.waiting(self.config.batch_size)
                if self.parts.agent_replay is not None
                else "nobody waits",
                "seconds_left": budget - self.elapsed() if budget else None,
            }
        )

    # -- checkpoints ---------------------------------------------------------------------------

    def _time_for_checkpoint(self) -> bool:
        seconds = 60.0 * self.config.checkpoint_minutes
        return bool(seconds) and time.monotonic() - self.last_checkpoint >= seconds

    def checkpoint(self) -> None:
        if self.acting is not None:
            with self.acting.paused():
                state = self.state_dict()
        else:
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
        if parts.actor is not None and parts.agent_replay is not None:
            state["actor"] = parts.actor.state_dict()
            state["actor_network"] = {
                "tensors": {"network": parts.actor.policy.network.state_dict()}
            }
            state["agent_replay"] = parts.agent_replay.state_dict()
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
        if parts.actor is not None and parts.agent_replay is not None:
            parts.agent_replay.load_state_dict(saved["agent_replay"])
            parts.actor.policy.network.load_state_dict(saved["actor_network"]["tensors"]["network"])
            begun_anew = parts.actor.load_state_dict(saved["actor"])
            if begun_anew:
                self.reporter.say(
                    f"{begun_anew} running episodes could not be rebuilt and were begun anew"
                )
        run = saved["run"]
        self.elapsed_before, self.lines = run["elapsed_s"], run["lines"]
        self.evaluations, self.episodes = run["evaluations"], run["episodes"]


def demo_ratio_now(config: Config, learner_steps: int) -> float:
    """Constant, or changing linearly over the first `demo_ratio_steps`."""
    if not config.demo_ratio_steps:
        return config.demo_ratio
    done = min(learner_steps / config.demo_ratio_steps, 1.0)
    return config.demo_ratio_start + done * (config.demo_ratio - config.demo_ratio_start)
