"""Batches drawn, fetched and decoded ahead of the learner, in a thread beside it.

This thread is also the one that talks to the replay shards: it tells them how many sequences the
rate limiter still lets the actors send, and hears how many have come.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from r2d3.launch.ray.sharded import NothingToDraw, ShardedReplay
from r2d3.launch.ray.shipping import Weights
from r2d3.mixture import DemoMixture, Origin
from r2d3.rate_limiter import RateLimiter
from r2d3.replay import SequenceBatch

REFRESH_SECONDS = 0.1
HUNGRY_SECONDS = 0.02  # between two questions while the learner has nothing to learn from

Drawn = tuple[SequenceBatch, list[Origin]]


class Prefetcher:
    """Holds up to `depth` batches ready, as far as the rate limiter allows."""

    def __init__(
        self,
        mixture: DemoMixture,
        replay: ShardedReplay | None,
        limiter: RateLimiter,
        demo_ratio: Callable[[], float],
        depth: int,
    ):
        self.mixture, self.replay, self.limiter = mixture, replay, limiter
        self.demo_ratio, self.depth = demo_ratio, depth
        self.ready: deque[Drawn] = deque()
        self.talking = threading.Lock()  # held while shards are talked to, or batches drawn
        self.changed = threading.Condition()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and, through the shards, the actors' acting."""
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.replay is not None:
            self.replay.stop = True
            self.replay.refresh()

    def publish(self, weights: Weights) -> None:
        if self.replay is not None:
            self.replay.weights = weights

    def take(self) -> Drawn:
        with self.changed:
            drawn = self.ready.popleft()
            self.changed.notify_all()
            return drawn

    def wait(self, seconds: float) -> bool:
        """Until a batch is ready; whether one is. Raises what the thread died of."""
        with self.changed:
            self._raise_error()
            if not self.ready:
                before = time.monotonic()
                self.changed.wait(seconds)
                self.limiter.waited_s["learner"] += time.monotonic() - before
            return bool(self.ready)

    @contextlib.contextmanager
    def paused(self) -> Iterator[int]:
        """Between two draws; gives the samples drawn and not learned from."""
        with self.talking:
            yield len(self.ready) * self.mixture.batch_size

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self.talking:
                    drawn = self._next()
                with self.changed:
                    if drawn is not None:
                        self.ready.append(drawn)
                        self.changed.notify_all()
                    if len(self.ready) >= self.depth:
                        self.changed.wait(REFRESH_SECONDS)
                if drawn is None:
                    self._stop.wait(HUNGRY_SECONDS)
        except BaseException as error:  # handed to the learner's thread, which raises it
            with self.changed:
                self._error = error
                self.changed.notify_all()

    def _next(self) -> Drawn | None:
        full = len(self.ready) >= self.depth
        size = self.mixture.batch_size
        if self.replay is None:
            return None if full else self.mixture.sample(self.demo_ratio())
        hungry = not full and not self.limiter.may_sample(size)
        self._grant()
        if hungry or time.monotonic() - self.replay.refreshed > REFRESH_SECONDS:
            self.replay.refresh()
        self.limiter.inserted = self.replay.total("inserted")
        self.limiter.waited_s["actors"] = self.replay.held_s
        if full or not self.limiter.may_sample(size):
            return None
        try:
            drawn = self.mixture.sample(self.demo_ratio())
        except NothingToDraw:  # every shard is empty or silent: ask again before long
            self.replay.refresh()
            return None
        self.limiter.sampled += size
        return drawn

    def _grant(self) -> None:
        """What the actors may still insert, for the shards to hold them to."""
        assert self.replay is not None
        limiter = self.limiter
        first = max(limiter.min_size, 1) - limiter.inserted
        ahead = math.floor((limiter.slack - limiter.balance) / limiter.samples_per_insert) + 1
        self.replay.room = max(first, ahead, 0)

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
