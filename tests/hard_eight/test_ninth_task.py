"""Anybody can add a task: one decorated function, and every door leads to it."""

import gymnasium
import numpy as np
import pytest
from dm_env import StepType

import hard_eight.task
from hard_eight import dm
from hard_eight.actions import ACTION_INDEX
from hard_eight.looks import COLOURS, Look
from hard_eight.milestones import AvatarIn, Collected, Held
from hard_eight.parts import Apple, PenaltyStrip, key
from hard_eight.rooms import room
from hard_eight.task import find_task, task
from r2d3.cli.main import main


@pytest.fixture
def ninth():
    """A corridor with an apple at its end and a strip of penalty before it, in 25 lines."""

    @task(
        "dash",
        level="dash_corridor",
        summary="Run to the end of the corridor.",
        varies=("the apple's distance",),
    )
    def dash(world):
        far = 3.0 + world.draw.layout.uniform(0.0, 2.0)
        room(world, (-1.0, 6.5), (-1.5, 1.5))
        cube = world.add(key("key", (0.0, 1.0, 0.2), Look(COLOURS["red"], "dots")))
        world.add(PenaltyStrip("strip", (1.5, 2.0), (-1.5, 1.5)))
        apple = world.add(Apple("apple", (far, 0.0, 0.0), large=True))
        world.start_avatar(0.0, 0.0, yaw=0.0)
        world.milestones = {
            "key_held": Held(cube),
            "half_way": AvatarIn(x=(1.5, 9.0)),
            "apple": Collected(apple),
        }

    yield dash
    hard_eight.task.unregister("dash")


def test_it_is_played_through_gymnasium(ninth):
    env = gymnasium.make("HardEight/Dash-v0")
    assert env.reset(seed=4)[0]["rgb"].shape == (72, 96, 3)
    rewards = []
    terminated = False
    while not terminated:
        _, reward, terminated, truncated, info = env.step(ACTION_INDEX["forward"])
        rewards.append(reward)
        assert not truncated
    assert [r for r in rewards if r] == [-1.0, 10.0]
    assert info["success"]
    assert info["milestones"] == {"key_held": False, "half_way": True, "apple": True}
    assert 10 < len(rewards) < 40


def test_its_batch_is_made_too(ninth):
    envs = gymnasium.make_vec("HardEight/Dash-v0", num_envs=3)
    envs.reset(seed=0)
    rewards = sum(envs.step(np.zeros(3, int))[1] for _ in range(40))
    assert (rewards >= 9.0).all()


def test_it_is_played_through_dm_env(ninth):
    env = dm.load(dm.EnvironmentSettings(seed=1, level_name="dash_corridor", num_action_repeats=2))
    step = env.reset()
    while step.step_type != StepType.LAST:
        step = env.step({"MOVE_BACK_FORWARD": 1.0})
    assert step.reward == 10.0
    assert step.observation["Score"] == 9.0


def test_the_command_line_lists_and_measures_it(ninth, capsys):
    assert main(["tasks"]) == 0
    assert "HardEight/Dash-v0" in capsys.readouterr().out
    assert main(["tasks", "dash"]) == 0
    assert "half_way" in capsys.readouterr().out


def test_a_second_task_of_the_same_name_is_refused(ninth):
    with pytest.raises(hard_eight.HardEightError, match="'dash' exists already"):
        task("dash", level="x", summary="", varies=())(lambda world: None)


def test_afterwards_it_is_gone():
    with pytest.raises(hard_eight.HardEightError, match="no task 'dash'"):
        find_task("dash")
    with pytest.raises(gymnasium.error.NameNotFound):
        gymnasium.make("HardEight/Dash-v0")


def test_one_crossing_of_a_strip_costs_once_however_one_dithers_on_it(ninth):
    env = gymnasium.make("HardEight/Dash-v0")
    env.reset(seed=4)
    world = env.unwrapped.world

    def do(name):
        return float(env.step(ACTION_INDEX[name])[1])

    paid = 0.0
    while world.position[0] < 1.5:
        paid += do("forward_fine")
    assert paid == -1.0
    dithered = []
    for _ in range(12):  # the body's middle leaves the strip, its edge does not
        dithered += [do("back_fine"), do("back_fine")]
        assert world.position[0] < 1.5 - 0.02
        dithered += [do("forward_fine"), do("forward_fine")]
        assert world.position[0] > 1.5
    assert sum(dithered) == 0.0
    paid = sum(do("back") for _ in range(4))  # wholly off it: the next time counts again
    assert world.position[0] < 1.2
    paid += sum(do("forward") for _ in range(6))
    assert paid == -1.0


def test_a_strip_costs_nothing_to_those_who_pass_above_it(ninth):
    """As on a bridge over it."""
    env = gymnasium.make("HardEight/Dash-v0")
    env.reset(seed=4)
    world = env.unwrapped.world
    strip = world["strip"]
    world.rule_floats[strip.rule_index, 5] -= 2.5  # the strip lies a storey below
    rewards = []
    while world.position[0] < 2.5:
        rewards.append(float(env.step(ACTION_INDEX["forward"])[1]))
    assert sum(rewards) == 0.0
