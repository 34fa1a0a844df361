"""Work spread over the cores of one machine, by processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from r2d3.errors import UserError

Job = TypeVar("Job")
Result = TypeVar("Result")


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    function: Callable[[Job], Result], jobs: Sequence[Job], workers: int
) -> Iterator[Result]:
    """The results of `function` on every job, as they become ready."""
    workers = min(workers, len(jobs))
    if workers <= 1:
        yield from map(function, jobs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin)
    try:
        for future in as_completed([pool.submit(function, job) for job in jobs]):
            yield future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process died, perhaps for lack of memory; "
            "the same command goes on where it stopped, --workers 1 needs least"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """A worker ends by its parent's word or by its parent's end, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
