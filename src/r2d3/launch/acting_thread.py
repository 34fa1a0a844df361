"""Acting beside learning: a second thread that steps the environments."""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections.abc import Iterator

from r2d3.actor import Actor
from r2d3.learner import Learner
from r2d3.networks import copy_weights
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import PrioritisedReplay

POLL_SECONDS = 0.05
STOP_SECONDS = 30.0  # a step of an environment, however slow, is shorter


class ActingThread:
    """Steps the actor whenever the rate limiter lets it, until stopped.

    Environments, decompression and tensor operations release Python's lock, so two cores are busy.
    """

    def __init__(self, actor: Actor, replay: PrioritisedReplay, limiter: RateLimiter):
        self.actor, self.replay, self.limiter = actor, replay, limiter
        self._thread = threading.Thread(target=self._run, name="acting", daemon=True)
        self._moved = threading.Condition()  # notified after each step of either side
        self._stepping = threading.Lock()  # held while the actor steps
        self._pause = threading.Event()
        self._resume = threading.Event()
        self._stop = threading.Event()
        self._staged = copy.deepcopy(actor.policy.network)
        self._staging = threading.Lock()
        self._fresh = False
        self._error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; raises what it died of, if it did.

        An environment that never comes back from a step keeps its thread: it is a daemon, and
        ends with the process.
        """
        self._stop.set()
        self._thread.join(STOP_SECONDS)
        self._raise_error()

    def publish(self, learner: Learner) -> None:
        """New weights, to be taken before the next step."""
        with self._staging:
            copy_weights(learner.acting_network(), self._staged)
            self._fresh = True

    def learner_moved(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def wait_for_experience(self) -> None:
        """The learner's wait. Short, so that the caller can look after other things."""
        self._raise_error()
        before = time.monotonic()
        with self._moved:
            self._moved.wait(POLL_SECONDS)
        self.limiter.waited_s["learner"] += time.monotonic() - before

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Between two steps, for a checkpoint."""
        self._resume.clear()
        self._pause.set()
        with self._stepping:
            self._take_weights()
            yield
        self._pause.clear()
        self._resume.set()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._pause.is_set():
                    self._resume.wait(POLL_SECONDS)
                elif self.limiter.may_insert():
                    with self._stepping:
                        self._take_weights()
                        self.actor.step()
                    self.limiter.inserted = self.replay.next_key
                    self.learner_moved()
                else:
                    before = time.monotonic()
                    with self._moved:
                        self._moved.wait(POLL_SECONDS)
                    self.limiter.waited_s["actors"] += time.monotonic() - before
        except BaseException as error:  # handed to the learner's thread, which raises it
            self._error = error
            self.learner_moved()

    def _take_weights(self) -> None:
        with self._staging:
            if self._fresh:
                copy_weights(self._staged, self.actor.policy.network)
                self._fresh = False

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
