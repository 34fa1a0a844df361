"""Everything about an episode follows from its seed: in any process, on any x86-64 machine."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from hard_eight import experts
from hard_eight.env import HardEightEnv
from hard_eight.task import all_tasks
from hard_eight.world import World

ONE_TASK = "wall_sensor"
# What an older machine would do differently: no AVX2 and no FMA in what numba compiles, in the C
# library's mathematics (sin, exp and others do differ then) and in numpy.
PLAINEST_CPU = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
}

SEED = 17

# Plays the given actions; prints a hash of the pictures, and one of all the rest, for each task.
PLAY = """
import hashlib, json, sys
from hard_eight.env import HardEightEnv

def play(task, seed, actions):
    env = HardEightEnv(task)
    pictures, rest = hashlib.sha256(), hashlib.sha256()
    observation, info = env.reset(seed=seed)
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        pictures.update(observation.pop("rgb").tobytes())
        for name in sorted(observation):
            rest.update(observation[name].tobytes())
        rest.update(repr((reward, terminated, truncated, info)).encode())
        rest.update(env.world.data.qpos.tobytes())
    return pictures.hexdigest(), rest.hexdigest(), info["success"]

seed, plays = json.load(sys.stdin)
print(json.dumps({task: play(task, seed, actions) for task, actions in plays.items()}))
"""


def play_in_a_process(plays, seed=SEED, before="", **environment):
    child = subprocess.run(
        [sys.executable, "-c", before + PLAY],
        input=json.dumps([seed, plays]),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


def random_actions(decisions):
    # Walking and turning far more often than chance has it: more of the world is met.
    draw = np.random.default_rng(SEED)
    return draw.choice([0, 0, 0, 8, 10, *range(46)], size=decisions).tolist()


def experts_actions(task, seed=SEED):
    """A whole episode: things are held, carried and pressed on others, doors open."""
    env = HardEightEnv(task, height=8, width=8)
    env.reset(seed=seed)
    player = experts.make(task, seed=0)
    player.reset(env)
    actions, over = [], False
    while not over:
        actions.append(player.act(env))
        _, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated
    return actions


def test_two_processes_play_the_same():
    plays = {task.name: random_actions(120) for task in all_tasks()}
    # Python's own hashing differs between the two: no order of a set or dict may matter.
    first = play_in_a_process(plays, PYTHONHASHSEED="1")
    second = play_in_a_process(plays, PYTHONHASHSEED="2")
    assert first == second
    assert len({pictures for pictures, *_ in first.values()}) == len(plays)


@pytest.mark.slow
def test_a_machine_without_avx2_and_fma_plays_the_same(tmp_path):
    plays = {ONE_TASK: experts_actions(ONE_TASK)}
    here = play_in_a_process(plays)[ONE_TASK]
    # In a cache of its own: compiled anew for the plainest machine.
    there = play_in_a_process(plays, **PLAINEST_CPU, NUMBA_CACHE_DIR=str(tmp_path))[ONE_TASK]
    assert there[0] == here[0], "pictures differ"
    assert there[1] == here[1], "proprioception, rewards or physics differ"
    assert here[2], "the expert was to succeed"


def test_a_process_that_flushes_small_numbers_to_zero_plays_the_same():
    """As whoever trains on a CPU does: resting things keep velocities of 1e-310 m/s."""
    seed = 2**31  # an episode in which that would show
    plays = {"baseball": experts_actions("baseball", seed)}
    flushing = "import torch; torch.set_flush_denormal(True)\n"
    assert play_in_a_process(plays, seed, flushing) == play_in_a_process(plays, seed)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_looks_and_dynamics_never_move_anything(task, monkeypatch):
    plain = task.build(seed=5)

    class OtherLooks(World):
        """The same episode, its looks and dynamics drawn from other streams."""

        def __init__(self, seed):
            super().__init__(seed)
            others = {name: np.random.default_rng(99) for name in ("looks", "dynamics")}
            self.draw = self.draw._replace(**others)

    monkeypatch.setattr("hard_eight.task.World", OtherLooks)
    other = task.build(seed=5)
    np.testing.assert_array_equal(plain.model.geom_pos, other.model.geom_pos)
    np.testing.assert_array_equal(plain.model.geom_size, other.model.geom_size)
    np.testing.assert_array_equal(plain.data.qpos, other.data.qpos)
    assert (plain.yaw, plain.pitch) == (other.yaw, other.pitch)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_seeds_differ_in_where_things_are(task):
    poses = [task.build(seed).data.qpos.tobytes() for seed in range(8)]
    assert len(set(poses)) == 8
