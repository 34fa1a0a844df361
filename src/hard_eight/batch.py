"""A batch of running episodes: one compiled call steps and draws them all.

Single and vector environments are both this, with one slot or many, so they cannot differ.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np

from .actions import CONTROLS
from .errors import HardEightError
from .floats import StandardFloats
from .native import constants as c
from .native.jit import compilation_announced
from .native.step import step_batch
from .task import Task
from .textures import TEXTURES
from .world import World

FIELD_OF_VIEW = 60.0  # degrees, vertical
LARGEST_SIDE, SMALLEST_SIDE = 1024, 8
MOST_REPEATS = 60

ADVANCE, DRAW_ONLY, LEAVE = 1, 0, 2

Share = tuple[int, int]


class Options:
    """What may be chosen about an environment; bad choices are refused here, by name."""

    def __init__(
        self,
        height: int,
        width: int,
        action_repeat: int,
        time_limit: float,
        max_episode_steps: int | None = None,
    ) -> None:
        self.height = whole_number("height", height, SMALLEST_SIDE, LARGEST_SIDE)
        self.width = whole_number("width", width, SMALLEST_SIDE, LARGEST_SIDE)
        self.action_repeat = whole_number("action_repeat", action_repeat, 1, MOST_REPEATS)
        if not _is_number(time_limit) or not 0.1 <= float(time_limit) <= 86_400:
            raise HardEightError(
                f"time_limit is {time_limit!r}; it must be a number of seconds from 0.1 to 86400"
            )
        self.time_limit = float(time_limit)
        self.max_decisions = max_episode_steps
        if max_episode_steps is not None:
            self.max_decisions = whole_number("max_episode_steps", max_episode_steps, 1, 10**9)

    @property
    def frame_limit(self) -> int:
        """Frames after which an episode is cut off, by the clock or by the count of decisions."""
        by_time = max(1, round(self.time_limit * c.FRAMES_PER_SECOND))
        if self.max_decisions is None:
            return by_time
        return min(by_time, self.max_decisions * self.action_repeat)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """The value of an option, as an int; anything else is refused by the option's name."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise HardEightError(f"{name} is {value!r}; it must be a whole number")
    if not low <= int(value) <= high:
        raise HardEightError(f"{name} is {value}; it must be from {low} to {high}")
    return int(value)


def shares(size: int, threads: int) -> list[Share]:
    """Runs of slots, first and last + 1, for threads to take: a long one each, then short ones.

    Environments differ in what they cost and threads in when they wake; the short ones even it out.
    """
    if threads == 1:
        return [(0, size)]
    long_ones = 3 * size // 4
    edges = {long_ones * i // threads for i in range(threads + 1)}
    edges |= {long_ones + (size - long_ones) * i // threads for i in range(threads + 1)}
    return list(pairwise(sorted(edges)))


class Batch:
    """Slots for worlds, the table of their addresses, and the call that advances them."""

    def __init__(self, task: Task, size: int, options: Options, threads: int = 1) -> None:
        self.task, self.size, self.options = task, size, options
        self.worlds: list[World | None] = [None] * size
        self.rows = np.zeros((size, c.POINTER_COLUMNS), np.int64)
        self.controls = np.zeros((size, len(CONTROLS)))
        self.repeats = np.full(size, options.action_repeat, np.int64)
        self.moving = np.full(size, LEAVE, np.uint8)
        self.rewards = np.zeros(size)
        self.terminated = np.zeros(size, np.bool_)
        self._max_geoms = 1
        self._threads = threads
        self._shares = shares(size, threads)
        self._start_pool()

    def _start_pool(self) -> None:
        # The calling thread works as well: one thread less to wake at every step.
        helpers = self._threads - 1
        self._pool = ThreadPoolExecutor(helpers, "hard-eight") if helpers else None
        self._process = os.getpid()

    def load(self, slot: int, seed: int) -> World:
        """Put the episode with this seed into a slot; it is drawn by the next `run`."""
        world = self.task.build(seed)
        self.worlds[slot] = world
        self.rows[slot] = world.row
        self._max_geoms = max(self._max_geoms, world.model.ngeom)
        return world

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        """Advance or draw each slot as `moving` says; fresh pictures and proprioception."""
        size, height, width = self.size, self.options.height, self.options.width
        pictures = np.empty((size, height, width, 3), np.uint8)
        proprioception = np.empty((size, c.PROPRIOCEPTION_COLUMNS), np.float32)
        if not step_batch.overloads:
            with compilation_announced():
                self._run_slice(0, 0, pictures, proprioception)
        if self._pool is not None and self._process != os.getpid():
            self._start_pool()  # a fork leaves its threads behind
        if self._pool is None:
            self._run_slice(0, size, pictures, proprioception)
        else:
            waiting = deque(self._shares)
            futures = [
                self._pool.submit(self._run_shares, waiting, pictures, proprioception)
                for _ in range(self._threads - 1)
            ]
            try:
                self._run_shares(waiting, pictures, proprioception)
            finally:
                wait(futures)
            for future in futures:
                future.result()
        return pictures, proprioception

    def _run_shares(
        self, waiting: deque[Share], pictures: np.ndarray, proprioception: np.ndarray
    ) -> None:
        """Take shares of the batch, one after the other, until none waits."""
        while waiting:
            try:
                first, last = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            self._run_slice(first, last, pictures, proprioception)

    def _run_slice(
        self, first: int, last: int, pictures: np.ndarray, proprioception: np.ndarray
    ) -> None:
        with StandardFloats():
            step_batch(
                self.rows, first, last, self.moving, self.controls, self.repeats, FIELD_OF_VIEW,
                TEXTURES, self._max_geoms, pictures, proprioception, self.rewards, self.terminated,
            )  # fmt: skip

    def truncated(self, slot: int) -> bool:
        """Whether a slot's episode has run out of time without ending by itself."""
        world = self.worlds[slot]
        assert world is not None
        out_of_time = world.state[c.S_FRAMES] >= self.options.frame_limit
        return bool(out_of_time and not self.terminated[slot])

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
