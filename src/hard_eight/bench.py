"""How fast the environments step on this machine, and where a decision's time goes.

`r2d3 bench env` prints this. All is measured in child processes, one job each: a start-up must be
fresh, and the clock that is put round `mj_step` stays for the life of a process.

How the parts of a decision are told apart:

mj_step   a clock round each call of MuJoCo's mj_step that the environments themselves make while
          they play: the same steps from the same states, with the caches as they are then. The
          clock costs about 0.05 us a call. This is the bare physics that ratios refer to.
drawing   the scenes just drawn are drawn once more, with no physics, every eighth decision.
python    the decision's time less that of the one compiled call that it makes; crossing into that
          call (the time of one that does nothing) counts as python.
rules     what is left of the compiled call: controls, hand, sensors, doors, apples, milestones.
          A small difference of large figures: its noise is theirs.

Decisions during which another process takes the core are left out of this account, unless the
machine is so busy that none goes undisturbed: then they count, and the report says so.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

ROUNDS = 5
RESETS = 200
STARTS = 3
WARM_UP = 300  # decisions, until things lie still and sleep as they do for most of an episode
DRAW_AGAIN_EVERY = 8  # decisions
PATIENCE = 2  # rounds' lengths past a round's end: how long an undisturbed decision is awaited
SEED = 0

Report = dict[str, Any]


def measure(task: str, *, seconds: float = 1.0, batch: int = 32, threads: int = 2) -> Report:
    """All that is measured about one task; about 18 * `seconds` + 10 s of work."""
    job = {"task": task, "seconds": seconds, "batch": batch, "threads": min(threads, cores())}
    report: Report = {"task": task, **_in_a_child({"what": "speed", **job})}
    report["breakdown"] = _in_a_child({"what": "breakdown", **job})
    starts = [_in_a_child({"what": "start", **job})["start_s"] for _ in range(STARTS)]
    report["start_s"] = statistics.median(starts)
    return report


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """What a reader needs to compare the figures with others."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    packages = ("numpy", "mujoco-core", "numba", "gymnasium")
    return {
        "cpu": name,
        "cores_usable": cores(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


# --- in the parent --------------------------------------------------------------------------------


def _in_a_child(job: dict[str, Any]) -> Report:
    child = subprocess.run(
        [sys.executable, "-m", "hard_eight.bench", json.dumps(job)],
        capture_output=True,
        text=True,
    )
    if child.returncode != 0:
        raise RuntimeError(f"measuring {job['task']} failed: {child.stderr.strip()[-2000:]}")
    report: Report = json.loads(child.stdout.splitlines()[-1])
    return report


# --- in the child ---------------------------------------------------------------------------------


def _start(job: dict[str, Any]) -> Report:
    """From the first import to the first picture after an action; Python itself already runs."""
    began = time.perf_counter()
    env = _single(job)
    env.step(0)
    return {"start_s": time.perf_counter() - began}


def _single(job: dict[str, Any]) -> Any:
    import gymnasium

    import hard_eight  # noqa: F401  registers the ids
    from hard_eight.registration import gym_id

    env = gymnasium.make(gym_id(job["task"]), disable_env_checker=True)
    env.reset(seed=SEED)
    return env


def _batch(job: dict[str, Any], threads: int = 1) -> Any:
    """A batch whose episodes end at different times, as they do in a long run."""
    import gymnasium

    import hard_eight  # noqa: F401
    from hard_eight.native.constants import S_FRAMES
    from hard_eight.registration import gym_id

    envs: Any = gymnasium.make_vec(gym_id(job["task"]), num_envs=job["batch"], threads=threads)
    envs.reset(seed=SEED)
    limit = envs.unwrapped.options.frame_limit
    for i, world in enumerate(envs.unwrapped.worlds):
        world.state[S_FRAMES] = limit * i // job["batch"]
    return envs


def _actions(*shape: int) -> np.ndarray:
    from hard_eight.actions import ACTIONS

    return np.random.default_rng(SEED).integers(len(ACTIONS), size=shape)


def _endless(rows: Any) -> Iterator[Any]:
    while True:
        yield from rows


def _speed(job: dict[str, Any]) -> Report:
    """Decisions a second, resets included as they come: single, batched, and on more threads."""
    players = {"single": _single_player(_single(job)), "batched": _batch_player(_batch(job))}
    if job["threads"] > 1:
        players["threaded"] = _batch_player(_batch(job, job["threads"]))
    rates: dict[str, list[float]] = {name: [] for name in players}
    for play in players.values():
        play(0.2)  # the first calls touch new memory
    paid: dict[str, list[float]] = {name: [] for name in players}  # core seconds a second
    for _ in range(ROUNDS):  # in turns, so that all see the same moods of the machine
        for name, play in players.items():
            began, used = time.perf_counter(), time.process_time()
            rates[name].append(play(job["seconds"]))
            share = (time.process_time() - used) / (time.perf_counter() - began)
            paid[name].append(share)
    report: Report = {"threads": job["threads"], "cpu_share": statistics.mean(paid["batched"])}
    for name, rounds in rates.items():
        report[name] = statistics.median(rounds)
        report[f"{name}_rounds"] = rounds
        if name != "threaded":  # what it would be with the core to itself
            per_core_second = [n / share for n, share in zip(rounds, paid[name], strict=True)]
            report[f"{name}_per_core_second"] = statistics.median(per_core_second)
    if "threaded" in rates:
        pairs = zip(rates["threaded"], rates["batched"], strict=True)
        report["cores_had"] = statistics.mean(paid["threaded"])
        report["speed_up"] = statistics.median(many / one for many, one in pairs)
    return report | _resets(job)


def _resets(job: dict[str, Any]) -> Report:
    env = _single(job)
    taken = []
    for seed in range(RESETS):
        began = time.perf_counter()
        env.reset(seed=seed)
        taken.append(1e3 * (time.perf_counter() - began))
    return {"reset_ms": statistics.mean(taken), "reset_worst_ms": max(taken)}


def _single_player(env: Any) -> Callable[[float], float]:
    actions = _endless(_actions(10_000).tolist())
    for _ in range(WARM_UP):
        env.step(next(actions))

    def play(seconds: float) -> float:
        began = time.perf_counter()
        decisions = 0
        while time.perf_counter() - began < seconds:
            for _ in range(100):
                _, _, terminated, truncated, _ = env.step(next(actions))
                if terminated or truncated:
                    env.reset()
            decisions += 100
        return decisions / (time.perf_counter() - began)

    return play


def _batch_player(envs: Any) -> Callable[[float], float]:
    actions = _endless(_actions(1000, envs.num_envs))
    for _ in range(WARM_UP):
        envs.step(next(actions))

    def play(seconds: float) -> float:
        began = time.perf_counter()
        decisions = 0
        while time.perf_counter() - began < seconds:
            for _ in range(4):
                envs.step(next(actions))
            decisions += 4 * envs.num_envs
        return decisions / (time.perf_counter() - began)

    return play


# --- where the time goes --------------------------------------------------------------------------


def _breakdown(job: dict[str, Any]) -> Report:
    clock = _put_a_clock_round_mj_step()
    single, batched = _single(job), _batch(job)
    return {
        "single": _split(single, _actions(10_000).tolist(), 1, clock, job["seconds"]),
        "batched": _split(
            batched, _actions(1000, job["batch"]), job["batch"], clock, job["seconds"]
        ),
    }


def _put_a_clock_round_mj_step() -> np.ndarray:
    """Have compiled code call mj_step through a clock; returns [ns inside it, calls], live.

    Must come before the first environment: compiled code looks the function up when it is loaded.
    """
    import ctypes

    import llvmlite.binding
    from numba import carray, cfunc, types

    from hard_eight.native.calls import _LIBRARY, at_address

    def known_as(name: str, function: Any) -> None:
        address = ctypes.cast(function, ctypes.c_void_p).value
        llvmlite.binding.add_symbol(name, address)

    known_as("hard_eight_bare_mj_step", _LIBRARY.mj_step)
    known_as("hard_eight_clock", ctypes.CDLL(None).clock_gettime)
    pointer = types.intp
    bare = types.ExternalFunction("hard_eight_bare_mj_step", types.void(pointer, pointer))
    read = types.ExternalFunction("hard_eight_clock", types.int32(types.int32, pointer))
    book = np.zeros(6, np.int64)  # ns inside, calls, then two readings of (s, ns)
    page = book.ctypes.data
    monotonic = time.CLOCK_MONOTONIC

    @cfunc(types.void(pointer, pointer))
    def timed(model: int, data: int) -> None:
        entries = carray(at_address(page), (6,), np.int64)
        read(monotonic, page + 16)
        bare(model, data)
        read(monotonic, page + 32)
        entries[0] += (entries[4] - entries[2]) * 1_000_000_000 + entries[5] - entries[3]
        entries[1] += 1

    llvmlite.binding.add_symbol("mj_step", timed.address)
    _KEEP.append((timed, book))
    return book[:2]


_WHOSE = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # this thread's, where known
_KEEP: list[Any] = []  # what compiled code refers to by address must not be collected


def _split(env: Any, actions: Any, size: int, clock: np.ndarray, seconds: float) -> Report:
    """Microseconds a decision, by part, of the round with the median total; resets left out."""
    from hard_eight.batch import DRAW_ONLY, LEAVE

    native = _time_compiled_calls(env)
    stream = _endless(actions)
    for _ in range(WARM_UP):
        env.step(next(stream))
    crossing = statistics.median(_compiled_call(env, LEAVE, native) for _ in range(200))
    rounds = []
    for _ in range(ROUNDS):
        sums = dict.fromkeys(("total", "native", "mj_step", "drawing", "calls"), 0.0)
        steps = drawings = 0
        fresh = disturbed = False
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or drawings == 0:
            interrupted, native_before, clock_before = _interruptions(), native[0], clock.copy()
            began = time.perf_counter()
            disturbed = began > until + PATIENCE * seconds
            _, _, terminated, truncated, _ = env.step(next(stream))
            took = time.perf_counter() - began
            over = bool(np.any(terminated) or np.any(truncated))
            if not fresh and (disturbed or _interruptions() == interrupted):
                sums["total"] += took
                sums["native"] += native[0] - native_before - crossing
                inside, calls = clock - clock_before
                sums["mj_step"] += 1e-9 * inside
                sums["calls"] += calls
                steps += 1
                if steps % DRAW_AGAIN_EVERY == 0:
                    took = _compiled_call(env, DRAW_ONLY, native)
                    if disturbed or _interruptions() == interrupted:
                        sums["drawing"] += took - crossing
                        drawings += 1
            fresh = over and size > 1  # a batch loads the next episode within its next step
            if over and size == 1:
                env.reset()
        parts = _parts(sums, steps * size, drawings * size)
        rounds.append({**parts, "disturbed": disturbed})
    return sorted(rounds, key=lambda parts: parts["total_us"])[len(rounds) // 2]


def _parts(sums: dict[str, float], decisions: int, drawn: int) -> Report:
    total, native, mj_step = (
        1e6 * sums[name] / decisions for name in ("total", "native", "mj_step")
    )
    drawing = 1e6 * sums["drawing"] / drawn
    return {
        "total_us": total,
        "mj_step_us": mj_step,
        "rules_us": native - mj_step - drawing,
        "drawing_us": drawing,
        "python_us": total - native,
        "mj_steps": sums["calls"] / decisions,
        "ratio": total / mj_step,
    }


def _interruptions() -> int:
    """How often the kernel has taken the core away."""
    return resource.getrusage(_WHOSE).ru_nivcsw


def _time_compiled_calls(env: Any) -> list[float]:
    """Time the one compiled call of a decision; returns its seconds so far, live."""
    batch = env.unwrapped._batch
    bare, seconds = batch._run_slice, [0.0]

    def timed(*arguments: Any) -> None:
        began = time.perf_counter()
        bare(*arguments)
        seconds[0] += time.perf_counter() - began

    batch._run_slice = timed
    return seconds


def _compiled_call(env: Any, moving: int, native: list[float]) -> float:
    """Seconds of one compiled call in which all environments are only drawn, or left alone."""
    batch = env.unwrapped._batch
    batch.moving[:] = moving
    before = native[0]
    batch.run()
    return native[0] - before


_JOBS = {"speed": _speed, "breakdown": _breakdown, "start": _start}

if __name__ == "__main__":
    _job = json.loads(sys.argv[1])
    print(json.dumps(_JOBS[_job["what"]](_job)))
