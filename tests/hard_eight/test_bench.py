"""Measuring: it must end, and tell the truth, on a busy machine too."""

import itertools
import time

import numpy as np

from hard_eight import bench


def split(monkeypatch, interruptions):
    env = bench._single({"task": "wall_sensor"})
    stuck_at = time.perf_counter() + 20.0

    def counted():
        assert time.perf_counter() < stuck_at, "it waits for an undisturbed decision for ever"
        return next(interruptions)

    monkeypatch.setattr(bench, "_interruptions", counted)
    clock = np.array([1, 1])  # stands still: what mj_step takes is not the point
    with np.errstate(divide="ignore"):
        return bench._split(env, bench._actions(1000).tolist(), 1, clock, seconds=0.02)


def test_a_breakdown_on_a_machine_that_interrupts_every_decision_ends_and_says_so(monkeypatch):
    assert split(monkeypatch, itertools.count())["disturbed"]


def test_a_breakdown_leaves_interrupted_decisions_out_where_it_can(monkeypatch):
    assert not split(monkeypatch, itertools.repeat(0))["disturbed"]
