"""Everything about an episode follows from its seed: in any process, on any x86-64 machine."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from hard_eight.task import all_tasks
from hard_eight.world import World

ONE_TASK = "wall_sensor"
# What another machine would do differently: no AVX2, no FMA in compiled code nor in the C library.
PLAINEST_CPU = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL "
    "AVX512_ICL AVX512_SPR",
}

# Plays each task with random actions; prints a hash of the pictures and of the rest, for each.
PLAY = """
import hashlib, json, sys
import numpy as np
from hard_eight.env import HardEightEnv

def play(task, decisions):
    env = HardEightEnv(task, action_repeat=2)
    pictures, rest = hashlib.sha256(), hashlib.sha256()
    observation, info = env.reset(seed=17)
    draw = np.random.default_rng(17)
    # Walking and turning far more often than chance has it: more of the world is met.
    actions = draw.choice([0, 0, 0, 8, 10, *range(46)], size=decisions)
    for action in actions.tolist():
        observation, reward, terminated, truncated, info = env.step(action)
        pictures.update(observation.pop("rgb").tobytes())
        for name in sorted(observation):
            rest.update(observation[name].tobytes())
        rest.update(repr((reward, terminated, truncated, info)).encode())
        rest.update(env.world.data.qpos.tobytes())
    return pictures.hexdigest(), rest.hexdigest()

tasks, decisions = json.loads(sys.argv[1])
print(json.dumps({task: play(task, decisions) for task in tasks}))
"""


def play_in_a_process(tasks, decisions, **environment):
    child = subprocess.run(
        [sys.executable, "-c", PLAY, json.dumps([tasks, decisions])],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


def test_two_processes_play_the_same():
    tasks = [task.name for task in all_tasks()]
    # Python's own hashing differs between the two: no order of a set or dict may matter.
    first = play_in_a_process(tasks, 120, PYTHONHASHSEED="1")
    second = play_in_a_process(tasks, 120, PYTHONHASHSEED="2")
    assert first == second
    assert len({pictures for pictures, _ in first.values()}) == len(tasks)


@pytest.mark.slow
def test_a_machine_without_avx2_and_fma_plays_the_same(tmp_path):
    here = play_in_a_process([ONE_TASK], 300)[ONE_TASK]
    plainest = PLAINEST_CPU | {"NUMBA_CACHE_DIR": str(tmp_path)}
    there = play_in_a_process([ONE_TASK], 300, **plainest)[ONE_TASK]
    assert there[0] == here[0], "pictures differ"
    assert there[1] == here[1], "proprioception, rewards or physics differ"


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
