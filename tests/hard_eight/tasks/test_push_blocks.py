"""Push Blocks, played out through the physics."""

import gymnasium
import mujoco
import numpy as np
import pytest

import hard_eight  # noqa: F401  registers the ids
from hard_eight import experts
from hard_eight.actions import ACTION_INDEX
from hard_eight.native import constants as c
from hard_eight.task import find_task
from hard_eight.tasks.push_blocks import APART, FROM_WALLS, RECESS_HALF, ROOM_X, free_order

TASK = find_task("push_blocks")
WRONG = ("wrong_block_1", "wrong_block_2", "wrong_block_3")


def begin(seed=0, behind=None, before=None, **options):
    """An episode; with `behind`, one block is put west of the recess and the avatar behind it.

    Only the layout before the first step is edited: from there on the physics plays it out. The
    other blocks are put out of the way, in the corners.
    """
    env = gymnasium.make(TASK.gym_id, disable_env_checker=True, **options)
    env.reset(seed=seed)
    world = env.unwrapped.world
    x, y = world["frame"].at
    if behind is not None:
        corners = iter([(-3.2, -3.2), (-3.2, 3.2), (3.2, -3.2)])
        for thing in world.things:
            place(world, thing, *((x - 1.3, y) if thing.name == behind else next(corners)))
        x -= 1.0
    if before is not None or behind is not None:
        world.data.qpos[c.AVATAR_X : c.AVATAR_Z] = x - 1.2, y
        world.state[c.S_YAW] = 0.0
        mujoco.mj_forward(world.model, world.data)
    return env, world


def place(world, thing, x, y):
    at = world.movables[thing.index, c.M_QPOS]
    world.data.qpos[at : at + 2] = x, y


def act(env, name, times):
    """Repeat an action; the rewards and what the last step said."""
    rewards = []
    for _ in range(times):
        _, reward, terminated, truncated, info = env.step(ACTION_INDEX[name])
        rewards.append(reward)
        if terminated or truncated:
            break
    return rewards, terminated, truncated, info


def push_in(env, world, name):
    """Push the block before the avatar eastwards until it drops."""
    for _ in range(80):
        act(env, "forward", 1)
        if world[name].position[2] < 0.2:
            break
    return act(env, "back", 45)  # it may lean on the recess's edge for a second


def test_the_matching_block_in_the_recess_opens_the_door_for_good():
    env, world = begin(behind="matching_block")
    door, sensor = world["door"], world["sensor"]
    assert not sensor.is_on
    assert door.openness == 0
    rewards, _, _, info = push_in(env, world, "matching_block")
    assert sensor.is_on
    assert door.openness == 1
    assert np.allclose(world["matching_block"].position[:2], world["frame"].at, atol=0.15)
    assert sum(rewards) == 0, "only the apple is rewarded"
    reached = [name for name, done in info["milestones"].items() if done]
    assert reached == ["block_pushed", "any_block_in_recess", "block_in_recess", "sensor_on"]
    act(env, "noop", 60)
    assert door.openness == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_block_in_the_recess_stays_there_and_opens_nothing(name):
    env, world = begin(behind=name, time_limit=40.0)
    info = push_in(env, world, name)[3]
    assert world[name].position[2] < 0
    assert info["milestones"]["any_block_in_recess"]
    assert not info["milestones"]["block_in_recess"]
    # The hand cannot get it out.
    act(env, "forward", 3)
    act(env, "look_down", 12)
    act(env, "grasp", 10)
    assert world.held is None
    assert -0.05 < world[name].position[2] + 0.3 < 0.02, "flush with the floor"
    rewards, terminated, truncated, info = act(env, "noop", 1000)
    assert not world["sensor"].is_on
    assert world["door"].openness == 0
    assert truncated
    assert not terminated
    assert sum(rewards) == 0
    assert not info["success"]


def test_once_filled_by_a_wrong_block_the_recess_takes_no_other():
    env, world = begin(behind="wrong_block_1")
    right, wrong = world["matching_block"], world["wrong_block_1"]
    x, y = world["frame"].at
    place(world, right, x - 1.95, y)  # the avatar pushes it, and it the wrong one
    world.data.qpos[c.AVATAR_X] = x - 2.9
    mujoco.mj_forward(world.model, world.data)
    for _ in range(150):
        act(env, "forward", 1)
        if right.position[0] > x:
            break
    assert wrong.position[2] < 0
    assert abs(right.position[1] - y) < RECESS_HALF, "it stands over the recess"
    act(env, "back", 30)
    assert right.position[2] > 0.25
    assert not world["sensor"].is_on


def test_the_sensor_is_not_pleased_by_a_block_that_only_stands_near():
    env, world = begin(behind="matching_block")
    act(env, "forward", 6)
    assert np.linalg.norm(world["matching_block"].velocity) < 3
    act(env, "noop", 30)
    assert not world["sensor"].is_on


def test_the_avatar_walks_over_the_empty_recess():
    env, world = begin(before="recess")
    for thing, corner in zip(world.things, [(-3, -3), (-3, 3), (3, -3), (3, 3)], strict=True):
        place(world, thing, *corner)
    heights = []
    for _ in range(14):
        act(env, "forward", 1)
        heights.append(world.position[2])
    assert world.position[0] > world["frame"].at[0] + RECESS_HALF
    assert min(heights) > c.BODY_BOTTOM - 0.03


def test_the_avatar_walks_over_the_filled_recess():
    env, world = begin(behind="matching_block")
    push_in(env, world, "matching_block")
    top = world["matching_block"].position[2] + 0.3
    assert -0.05 < top < 0.02, "about flush with the floor"
    heights = []
    for _ in range(24):
        act(env, "forward", 1)
        heights.append(world.position[2])
    assert world.position[0] > world["frame"].at[0] + RECESS_HALF
    assert min(heights) > c.BODY_BOTTOM - 0.03


def test_blocks_are_too_heavy_for_the_hand():
    env, world = begin(behind="matching_block")
    act(env, "forward", 1)
    act(env, "look_down", 6)
    act(env, "grasp", 5)
    assert world.held is None


def test_a_block_pushed_a_little_off_its_middle_keeps_its_course():
    env, world = begin(behind="matching_block")
    block = world["matching_block"]
    place(world, block, block.position[0] - 0.4, block.position[1] + 0.05)
    start = world["frame"].at[0] - 1.7, world["frame"].at[1] + 0.05
    while block.position[0] < start[0] + 0.8:
        act(env, "forward_fine", 1)
    assert abs(block.position[1] - start[1]) < 0.15
    stopped = block.position[0]
    act(env, "noop", 15)
    assert block.position[0] - stopped < 0.2, "it stops when the push does"


def test_every_seed_leaves_room_to_push_the_matching_block_home():
    for seed in range(60):
        world = TASK.build(seed)
        recess = world["frame"].at
        first, *others = spots = [tuple(t.position[:2]) for t in world.things]
        assert free_order(first, recess, others) is not None
        assert np.abs(spots).max() <= ROOM_X[1] - FROM_WALLS + 1e-9
        for i, a in enumerate(spots):
            assert np.hypot(a[0] - recess[0], a[1] - recess[1]) > 1.4
            for b in spots[:i]:
                assert np.hypot(a[0] - b[0], a[1] - b[1]) > APART - 1e-9


def traits(seed):
    world = TASK.build(seed)
    rgb = {name: tuple(world.rgb[world[name].geom.id]) for name in ("frame", "matching_block")}
    return {
        "avatar's place": tuple(world.position),
        "avatar's facing": world.yaw,
        "walls": world.surroundings.wall,
        "floor": world.surroundings.floor,
        "blocks' looks": tuple(thing.look for thing in world.things),
        "blocks' materials": tuple(thing.look.texture for thing in world.things),
        "blocks' places": tuple(map(tuple, (thing.position for thing in world.things))),
        "recess": world["frame"].at,
        "sensor's colour": world["sensor"].look.rgb,
        "colours shown": rgb["frame"],
    }


def test_each_element_varies_and_follows_from_the_seed():
    drawn = [traits(seed) for seed in range(30)]
    for name in drawn[0]:
        assert len({trait[name] for trait in drawn}) > 3, name
    assert traits(7) == drawn[7]


def test_only_the_matching_block_has_the_sensors_colour():
    for seed in range(20):
        world = TASK.build(seed)
        colours = [tuple(world.rgb[thing.geom.id]) for thing in world.things]
        assert len(set(colours)) == len(colours)
        for part in ("frame", "sensor"):
            assert tuple(world.rgb[world[part].geom.id]) == colours[0]


# On the last, the block lies askew on the sensor: only the door shows that it is on.
@pytest.mark.parametrize("seed", [101, 102, 103, 104, 2**31 + 90])
def test_the_expert_wins_through_the_milestones_in_order(seed):
    env = gymnasium.make(TASK.gym_id, disable_env_checker=True)
    env.reset(seed=seed)
    expert = experts.make(TASK.name, seed=seed)
    expert.reset(env)
    rewards, when = [], {}
    terminated = truncated = False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(expert.act(env))
        rewards.append(reward)
        for name, done in info["milestones"].items():
            if done:
                when.setdefault(name, len(rewards))
    assert terminated
    assert info["success"]
    assert list(when) == list(TASK.milestones)
    assert list(when.values()) == sorted(when.values())
    assert rewards[-1] == 10
    assert not any(rewards[:-1])
