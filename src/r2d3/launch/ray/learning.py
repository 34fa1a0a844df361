"""The learner's process: the training loop, with batches from the prefetcher.

It begins from the newest checkpoint if there is one. So when it is killed, Ray's starting it anew
is all that is needed; the actors go on meanwhile, as far as the rate limiter had allowed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError

from r2d3.config import Config
from r2d3.errors import UserError
from r2d3.launch.loop import TrainingLoop, demo_ratio_now
from r2d3.launch.parts import Seeds, first_network, learning_parts
from r2d3.launch.ray.acting import weight_arrays
from r2d3.launch.ray.prefetch import Prefetcher
from r2d3.launch.ray.sharded import ShardedReplay
from r2d3.launch.ray.shipping import Weights
from r2d3.machine import choose_device, prepare
from r2d3.metrics import rewind_metrics
from r2d3.mixture import Origin
from r2d3.replay import SequenceBatch, SequenceReader
from r2d3.sequences import SequenceShape
from r2d3.spaces import ObservationSpec
from r2d3.terminal import Reporter

EVALUATOR = "evaluator"  # its name in Ray
WAIT_SECONDS = 0.05
SAVE_SECONDS = 120.0  # that the last save of the shards may take


class RelayReporter(Reporter):
    """Keeps what there is to say until the driver asks for it."""

    seconds = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, Any]] = []
        self.state: dict[str, Any] | None = None
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        with self.lock:
            self.lines.append(("say", text))

    def row(self, kind: str, row: dict[str, Any]) -> None:
        with self.lock:
            self.lines.append((kind, row))

    def progress(self, state: dict[str, Any]) -> None:
        self.state = state

    def take(self) -> list[tuple[str, Any]]:
        with self.lock:
            lines, self.lines = self.lines, []
            return lines


class RayLoop(TrainingLoop):
    """The loop of inline's `Run`, acting and evaluation being elsewhere."""

    def __init__(
        self,
        config: Config,
        reporter: Reporter,
        spec: ObservationSpec,
        actions: int,
        shards: list[Any],
        evaluator: Any,
    ):
        super().__init__(config, reporter)
        prepare(config.torch_threads)
        self.incarnation = uuid.uuid4().hex[:8]
        self.evaluator = evaluator
        self.replay: ShardedReplay | None = None
        if shards:
            shape = SequenceShape(config.sequence_length, config.burn_in, config.overlap)
            reader = SequenceReader(spec, shape, config.hidden if config.stored_state else 0)
            seed = Seeds.of(config).agent_replay
            self.replay = ShardedReplay(shards, reader, seed, reporter.say, self._episode_ended)
        network = first_network(config, spec, actions)
        device = choose_device(config.device)
        self.parts = learning_parts(config, device, network, spec, actions, self.replay)
        self.prefetcher = Prefetcher(
            self.parts.mixture,
            self.replay,
            self.parts.limiter,
            lambda: demo_ratio_now(config, self.parts.learner.steps),
            config.prefetch,
        )
        # The evaluation under way: what it will answer, the counters when it was asked for.
        self.asked: tuple[Any, dict[str, Any]] | None = None
        self.asked_at = 0.0
        self.published: Any = None  # held, or the object store would drop it

    def begin(self) -> None:
        """From the newest checkpoint; from nothing if there is none yet."""
        if self.store.steps():
            self.resume()
            return
        rewind_metrics(self.folder, 0)  # of a process that died before its first checkpoint
        for name, reason in self.parts.spec.left_out:
            self.reporter.say(f"observation '{name}' is left out: {reason}")
        self._begin_log()
        self.checkpoint()

    # -- acting, elsewhere ---------------------------------------------------------------------

    def _begin_acting(self) -> None:
        self._publish()
        self.prefetcher.start()

    def _stop_acting(self) -> None:
        self.prefetcher.stop()

    def _may_learn(self) -> bool:
        return bool(self.prefetcher.ready)

    def _gain_experience(self) -> bool:
        before = self._inserted()
        return self.prefetcher.wait(WAIT_SECONDS) or self._inserted() > before

    def _inserted(self) -> int:
        return self.replay.total("inserted") if self.replay is not None else 0

    def _next_batch(self) -> tuple[SequenceBatch, list[Origin]]:
        return self.prefetcher.take()

    def _publish(self) -> None:
        """Once into the object store, whoever wants it takes it from there."""
        self.published = ray.put(weight_arrays(self.parts.learner.acting_network()))
        version = f"{self.incarnation}-{self.parts.learner.steps}"
        self.prefetcher.publish(Weights(version, [self.published]))

    # -- evaluation, elsewhere too -------------------------------------------------------------

    def _evaluate(self) -> None:
        if self.asked is not None:
            self._collect(0.0)
        if self.asked is not None:
            self.reporter.say(
                f"no evaluation at learner step {self.parts.learner.steps}: the one before is "
                "still being played"
            )
            return
        video = self._video_due()
        self.asked = (self._ask(self.config.evaluation_episodes, video), self._counters())
        self.asked_at = time.monotonic()

    def _ask(self, episodes: int, video: Any = None) -> Any:
        weights = weight_arrays(self.parts.learner.acting_network())
        return self.evaluator.play.remote(weights, episodes, str(video) if video else None)

    def _collect(self, seconds: float | None) -> None:
        """Logs the evaluation under way, if it has come."""
        if self.asked is None:
            return
        answer, counters = self.asked
        if not ray.wait([answer], timeout=seconds)[0]:
            return
        self.asked = None
        try:
            result = ray.get(answer)
        except RayActorError:
            self.reporter.say("the evaluator was killed; its evaluation is lost")
            return
        self._log_evaluation(counters, result)

    def _played(self, episodes: int) -> dict[str, Any]:
        self._collect(None)
        for _ in range(3):
            try:
                result: dict[str, Any] = ray.get(self._ask(episodes))
            except RayActorError:
                self.reporter.say("the evaluator was killed; it is asked again")
                time.sleep(1.0)
            else:
                return result
        raise UserError("the evaluator was killed three times in the final evaluation")

    # -- counters ------------------------------------------------------------------------------

    def _decisions(self) -> int:
        return self.replay.total("decisions") if self.replay is not None else 0

    def _replay_counters(self) -> dict[str, Any]:
        assert self.replay is not None
        return {
            "bad_env_steps": self.replay.total("bad_steps"),
            "replay_sequences": len(self.replay),
            "replay_bytes": self.replay.bytes,
            "late_updates": self.replay.total("late_updates"),
            "inserted": self.replay.total("inserted"),
            "lost_sequences": self.replay.lost() + self.replay.total("orphans"),
            "repeated_shipments": self.replay.total("duplicates"),
        }

    def _waiting(self) -> str:
        words = [super()._waiting()]
        if self.replay is not None:
            words += self.replay.silent()
        if self.asked is not None:
            seconds = time.monotonic() - self.asked_at
            if seconds > self.config.hang_seconds:
                words.append(f"an evaluation has been going on for {seconds:.0f} s")
        return "; ".join(words)

    def _report_now_and_then(self) -> None:
        if time.monotonic() - self.last_report >= self.reporter.seconds:
            self._collect(0.0)
        super()._report_now_and_then()

    # -- checkpoints ---------------------------------------------------------------------------

    def _time_for_checkpoint(self) -> bool:
        # When a shard has lost something at once, lest a learner that is killed next forgets it.
        news = self.replay is not None and self.replay.news
        return news or super()._time_for_checkpoint()

    def checkpoint(self) -> None:
        if self.replay is not None:
            self.replay.news = False
            self.replay.save(self.parts.learner.steps)  # each shard by itself, beside its work
        super().checkpoint()

    @contextlib.contextmanager
    def _standing_still(self) -> Iterator[None]:
        with self.prefetcher.paused() as unused:
            self.parts.limiter.sampled -= unused
            try:
                yield
            finally:
                self.parts.limiter.sampled += unused

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if self.replay is not None:
            state["sharded_replay"] = self.replay.state_dict()
        return state

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        if self.replay is not None:
            self.replay.load_state_dict(saved["sharded_replay"])
            self.parts.limiter.inserted = self.replay.total("inserted")

    def _final_evaluation(self) -> dict[str, Any]:
        if self.replay is not None:
            steps = self.parts.learner.steps
            answers = [shard.handle.wait_until_saved.remote(steps) for shard in self.replay.shards]
            _, late = ray.wait(answers, num_returns=len(answers), timeout=SAVE_SECONDS)
            if late:
                self.reporter.say(f"{len(late)} replay shards have not saved themselves in time")
        return super()._final_evaluation()

    def _close(self) -> None:
        """Processes are the driver's to end."""


@dataclass(frozen=True)
class Status:
    """What the driver is told."""

    incarnation: str
    pid: int
    lines: list[tuple[str, Any]] = field(default_factory=list)
    progress: dict[str, Any] | None = None
    finished: bool = False
    result: dict[str, Any] = field(default_factory=dict)
    mistake: str = ""  # a user's, in words
    error: str = ""  # any other


class LearningProcess:
    """Trains in a thread from its construction on, and answers the driver beside that."""

    def __init__(
        self,
        config: Config,
        spec: ObservationSpec,
        actions: int,
        shards: list[str],
    ):
        self.arguments = (spec, actions, shards)
        self.config = config
        self.reporter = RelayReporter()
        self.incarnation = uuid.uuid4().hex
        self.finished, self.mistake, self.error = False, "", ""
        self.result: dict[str, Any] = {}
        threading.Thread(target=self._live, name="learning", daemon=True).start()

    def _live(self) -> None:
        try:
            spec, actions, names = self.arguments
            shards = [ray.get_actor(name) for name in names]
            evaluator = ray.get_actor(EVALUATOR)
            loop = RayLoop(self.config, self.reporter, spec, actions, shards, evaluator)
            loop.begin()
            self.result = loop.train()
            self.finished = True
        except UserError as error:
            self.mistake = str(error)
        except Exception as error:  # told to the driver, which raises it
            self.error = f"{type(error).__name__}: {error}"
            raise

    def status(self) -> Status:
        finished = self.finished  # read before the lines: the last of them must not be missed
        mistake, error = self.mistake, self.error
        return Status(
            self.incarnation,
            os.getpid(),
            self.reporter.take(),
            self.reporter.state,
            finished,
            self.result,
            mistake,
            error,
        )
