"""Random play: nothing breaks, nothing leaves the world, no memory grows, no large apple falls.

    python benchmarks/random_play.py                           200 000 decisions a task
    python benchmarks/random_play.py wall_sensor --decisions 20000

Exit status 1 when a claim does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from hard_eight.native import constants as c
from hard_eight.task import all_tasks, find_task
from hard_eight.vector import HardEightVectorEnv
from hard_eight.world import ABYSS_TOP, World

# Into these voids things may fall, and lie at the bottom from then on. Nowhere else.
TASKS_WITH_A_VOID = ("drawbridge", "throw_across")
LOWEST_FLOOR = -2.0  # m; what is below has fallen out, or into a void
VOID_HALF_WIDTH = 40.0  # m; its bottom reaches 60 m
SLACK = 0.1  # m by which a thing may press into what holds it
REWARDS = (-1.0, 1.0, 10.0)  # penalty, small apple, large apple
# MiB for each environment. A world takes about 3; its working memory counts only once it is used,
# which in a heap of cubes is late. Worlds kept by mistake would be dozens.
ALLOWED_GROWTH = 1.0


@dataclass
class Outcome:
    """What was seen in one task."""

    task: str
    decisions: int = 0
    episodes: int = 0
    rewards: float = 0.0
    large_apples: int = 0
    in_the_void: int = 0
    growth: float = 0.0  # MiB
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def blame(self, fault: str) -> None:
        if fault not in self.faults and len(self.faults) < 5:
            self.faults.append(fault)


def play(task: str, decisions: int, *, batch: int = 32, seed: int = 0, **options) -> Outcome:
    """Play a task at random and note every fault."""
    began = time.perf_counter()
    outcome = Outcome(task)
    envs = HardEightVectorEnv(task, batch, **options)
    envs.reset(seed=seed)
    _spread_the_ends(envs)
    boxes = [_extent(world) for world in envs.worlds]
    actions = np.random.default_rng(seed)
    proprioception = {name: s for name, s in envs.observation_space.items() if name != "rgb"}
    steps = max(1, decisions // batch)
    resident = 0.0
    for step in range(steps):
        before = list(envs.worlds)
        observations, rewards, terminated, truncated, infos = envs.step(
            actions.integers(46, size=batch)
        )
        for i, world in enumerate(envs.worlds):
            if world is not before[i]:
                boxes[i] = _extent(world)
            _look_at(world, boxes[i], outcome)
        for name, space in proprioception.items():
            if observations[name] not in space:  # NaN is in no space
                outcome.blame(f"{name} out of its space")
        _judge_rewards(rewards, outcome)
        outcome.rewards += float(rewards.sum())
        outcome.large_apples += int(infos["success"].sum())
        outcome.episodes += int((terminated | truncated).sum())
        if step == steps // 3:
            resident = _resident()
    outcome.growth = _resident() - resident
    outcome.decisions = steps * batch
    outcome.in_the_void = sum(_fallen(world) for world in envs.worlds)
    envs.close()
    if outcome.large_apples:
        outcome.blame("a large apple was collected")
    if outcome.growth > ALLOWED_GROWTH * batch:
        outcome.blame(f"memory grew by {outcome.growth:.0f} MiB")
    outcome.seconds = time.perf_counter() - began
    return outcome


def _spread_the_ends(envs: HardEightVectorEnv) -> None:
    """Let the episodes end one after the other, so that worlds come and go all the time."""
    for i, world in enumerate(envs.worlds):
        world.state[c.S_FRAMES] = envs.options.frame_limit * i // envs.num_envs


def _extent(world: World) -> tuple[np.ndarray, np.ndarray]:
    """The corners of all that stands still: what moves must stay between them."""
    model, data = world.model, world.data
    above = data.geom_xpos[:, 2] > ABYSS_TOP  # the bottom of the void reaches far beyond the walls
    still = np.flatnonzero((model.geom_bodyid == 0) & (model.geom_contype != 0) & above)
    half = np.abs(data.geom_xmat[still].reshape(-1, 3, 3)) @ model.geom_size[still][:, :, None]
    centre = data.geom_xpos[still]
    return (centre - half[..., 0]).min(axis=0), (centre + half[..., 0]).max(axis=0)


def _look_at(world: World, box: tuple[np.ndarray, np.ndarray], outcome: Outcome) -> None:
    if not (np.isfinite(world.data.qpos).all() and np.isfinite(world.data.qvel).all()):
        outcome.blame(f"NaN in the physics of seed {world.seed}")
        return
    low, high = box
    avatar = world.data.qpos[c.AVATAR_X : c.AVATAR_Z + 1]
    inside = (avatar > low - SLACK).all() and (avatar < high + SLACK).all()
    if not inside or avatar[2] < LOWEST_FLOOR:
        outcome.blame(f"the avatar left the world of seed {world.seed}: {avatar.round(2)}")
    for row in world.movables:
        if row[c.M_DESTROYED]:
            continue
        at = world.data.qpos[row[c.M_QPOS] : row[c.M_QPOS] + 3]
        if at[2] < LOWEST_FLOOR and outcome.task in TASKS_WITH_A_VOID:
            kept = at[2] > ABYSS_TOP - SLACK and (abs(at[:2]) < VOID_HALF_WIDTH).all()
        else:
            inside = (at[:2] > low[:2] - SLACK).all() and (at < high + SLACK).all()
            kept = inside and at[2] > LOWEST_FLOOR
        if not kept:
            outcome.blame(f"a thing left the world of seed {world.seed}: {at.round(2)}")


def _fallen(world: World) -> int:
    rows = world.movables[world.movables[:, c.M_DESTROYED] == 0]
    return int((world.data.qpos[rows[:, c.M_QPOS] + 2] < LOWEST_FLOOR).sum())


def _judge_rewards(rewards: np.ndarray, outcome: Outcome) -> None:
    if not np.isfinite(rewards).all():
        outcome.blame("a reward is NaN")
    elif not np.isin(rewards, (0.0, *REWARDS, -2.0, 2.0)).all():  # two apples or strips at once
        outcome.blame(f"a reward that there is not: {rewards.min()} to {rewards.max()}")


def _resident() -> float:
    """MiB of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="default: all")
    parser.add_argument("--decisions", type=int, default=200_000, help="for each task")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tasks = [find_task(name).name for name in args.tasks] or [task.name for task in all_tasks()]
    form = "{:<18} {:>9} {:>8} {:>7} {:>12} {:>8} {:>11} {:>8}  {}"
    print(
        form.format(
            "task", "decisions", "episodes", "return", "large apples", "in void", "growth, MiB",
            "seconds", "verdict",
        )
    )  # fmt: skip
    faulty = False
    for task in tasks:
        o = play(task, args.decisions, seed=args.seed)
        faulty |= bool(o.faults)
        print(
            form.format(
                o.task, o.decisions, o.episodes, f"{o.rewards:.0f}", o.large_apples,
                o.in_the_void, f"{o.growth:.1f}", f"{o.seconds:.0f}", "; ".join(o.faults) or "good",
            ),
            flush=True,
        )  # fmt: skip
    return int(faulty)


if __name__ == "__main__":
    sys.exit(main())
