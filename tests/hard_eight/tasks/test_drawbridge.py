"""Drawbridge: its rules played out through the physics."""

from itertools import pairwise

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from hard_eight import experts
from hard_eight.actions import ACTION_INDEX, ACTIONS
from hard_eight.experts.player import Player
from hard_eight.native import constants as c
from hard_eight.platforms import BRIDGE_WIDTH
from hard_eight.task import find_task
from hard_eight.tasks.drawbridge import (
    HALF_WIDTH,
    LAYERS_X,
    PLATFORMS,
    WAYS,
    WITH_APPLES,
)

TASK = find_task("drawbridge")
SEEDS = range(60)
SURFACES = ("wall", "floor", "ceiling")


@pytest.fixture(scope="module")
def worlds():
    return [TASK.build(seed) for seed in SEEDS]


def new_env(seed, **options):
    env = gym.make(TASK.gym_id, disable_env_checker=True, **options)
    env.reset(seed=seed)
    return env


def put_avatar(world, x, y, yaw):
    """Start the test on another platform, or before an edge, without playing the way there."""
    world.data.qpos[c.AVATAR_X], world.data.qpos[c.AVATAR_Y] = x, y
    world.state[c.S_YAW], world.state[c.S_PITCH] = yaw, 0.0


def put_thing(world, thing, x, y, z=0.2):
    at = world.movables[thing.index, c.M_QPOS]
    world.data.qpos[at : at + 3] = x, y, z


def do(env, name, times):
    return [float(env.step(ACTION_INDEX[name])[1]) for _ in range(times)]


class Bringer(Player):
    """Takes one key to one post."""

    def __init__(self, key, post):
        super().__init__(0)
        self.key, self.post = key, post

    def play(self):
        key, post = self.world[self.key], self.world[self.post]
        if key.is_destroyed:
            return
        yield from self.grasp(key)
        yield from self.reach_to(0.75)
        yield from self.touch(lambda: post.position, lambda: post.is_on, limit=60)


def bring(env, key, post, decisions=150):
    bringer = Bringer(key, post)
    bringer.reset(env)
    for _ in range(decisions):
        env.step(bringer.act(env))


def small_apples(world):
    return [part for name, part in world.parts.items() if name.startswith("apple_")]


def worth_of_routes(world):
    """Small apples on each of the ways from start to end, found by walking the bridges."""
    onward = {}
    for name in world.parts:
        if name.startswith("bridge_"):
            start, end = name.removeprefix("bridge_").split("_to_")
            onward.setdefault(start, []).append(end)

    def walk(here, worth):
        worth += sum(a.name.rsplit("_", 1)[0] == f"apple_{here}" for a in small_apples(world))
        return [worth] if here == "end" else [w for to in onward[here] for w in walk(to, worth)]

    return walk("start", 0)


def test_exactly_one_route_has_the_most_apples(worlds):
    for world in worlds:
        *_, second, best = sorted(worth_of_routes(world))
        assert best > second
        assert best in (3, 4)  # so that the best return is 13 or 14
    assert {max(worth_of_routes(w)) for w in worlds} == {3, 4}


def test_no_platform_has_more_than_three_ways_on_and_all_lead_to_the_end():
    for name in PLATFORMS:
        onward = [way for way in WAYS if way.start == name]
        assert len(onward) <= 3
        assert bool(onward) is (name != "end")
        assert all(PLATFORMS[w.end].x[0] > PLATFORMS[name].x[1] for w in onward)


def test_everything_listed_varies(worlds):
    def count(look):
        return len({look(world) for world in worlds})

    parts = "key_start", "post_start_to_left", "bridge_start_to_left"
    for look in (
        *(lambda w, n=name: w[n].look.rgb for name in parts),
        *(lambda w, n=name: w[n].look.texture for name in parts),
        *(lambda w, n=name: getattr(w.surroundings, n).rgb for name in SURFACES),
        *(lambda w, n=name: getattr(w.surroundings, n).texture for name in SURFACES),
    ):
        assert count(look) >= 3
    assert count(lambda w: tuple(w.position)) == count(lambda w: w.yaw) == len(worlds)
    assert count(lambda w: tuple(w["key_middle"].position)) == len(worlds)
    assert count(lambda w: tuple(tuple(a.position) for a in small_apples(w))) == len(worlds)
    for platform in WITH_APPLES:  # each may have none, one or two
        of = f"apple_{platform}_"
        assert count(lambda w, of=of: sum(a.name.startswith(of) for a in small_apples(w))) == 3


def test_key_and_post_are_of_different_colours(worlds):
    for world in worlds:
        assert world["key_start"].look.rgb != world["post_start_to_left"].look.rgb


def test_an_episode_follows_from_its_seed():
    one, same, other = TASK.build(4), TASK.build(4), TASK.build(5)
    assert np.array_equal(one.data.qpos, same.data.qpos)
    assert np.array_equal(one.data.geom_xpos, same.data.geom_xpos)
    assert np.array_equal(one.rgb, same.rgb)
    assert not np.array_equal(one.data.qpos, other.data.qpos)


def test_all_lies_on_its_platform(worlds):
    for world in worlds:
        for part in (*world.things, *small_apples(world)):
            platform = PLATFORMS[part.name.split("_", 1)[1].rstrip("_012")]
            x, y, _ = part.position
            assert platform.x[0] + 0.3 < x < platform.x[1] - 0.3
            assert platform.y[0] + 0.3 < y < platform.y[1] - 0.3


def test_the_avatar_starts_clear_of_posts_and_key():
    for seed in range(300):
        world = TASK.build(seed)
        for name, part in world.parts.items():
            if name.startswith(("post_start", "key_start")):
                gap = np.hypot(*(part.position - world.position)[:2])
                assert gap > c.BODY_RADIUS + 0.12 * np.sqrt(2)


def test_no_small_apple_is_within_reach_from_another_platform(worlds):
    """Barriers end where platforms do; an apple is collected 0.5 m from the avatar's middle."""
    for world in worlds:
        for apple in small_apples(world):
            own = PLATFORMS[apple.name.split("_", 1)[1].rstrip("_012")]
            for other in PLATFORMS.values():
                if other is not own:
                    gap = [
                        max(low - at, at - high, 0.0)
                        for at, (low, high) in zip(apple.position, (other.x, other.y), strict=False)
                    ]
                    assert np.hypot(*gap) > 0.5


class Grabber(Player):
    """Goes as near to a key as the edge allows, looks at it, and grasps."""

    def __init__(self, key):
        super().__init__(0)
        self.key = key

    def play(self):
        for _ in range(6):
            yield "forward_fine"
        for _ in range(10):
            yield from self.aim(lambda: self.world[self.key].position)
            yield "grasp"


@pytest.mark.parametrize(("beyond_the_edge", "taken"), [(0.6, True), (1.1, False)])
def test_a_key_lies_out_of_the_neighbours_reach(beyond_the_edge, taken):
    env = new_env(3)
    world = env.unwrapped.world
    put_avatar(world, 6.0, PLATFORMS["middle"].y[0] + 0.5, -np.pi / 2)
    put_thing(world, world["key_right"], 6.0, PLATFORMS["right"].y[1] - beyond_the_edge)
    grabber, held = Grabber("key_right"), False
    grabber.reset(env)
    for _ in range(60):
        env.step(grabber.act(env))
        held = held or world.held is not None
    assert held is taken


def test_no_hand_reaches_a_key_on_another_platform(worlds):
    """Else one takes two keys on a platform, and goes back for a third way's apples."""
    corner, height = c.REACH_FAR, c.BODY_BOTTOM + c.EYE_ABOVE_CENTRE - 0.4
    within = np.sqrt(corner**2 - height**2) + 0.2 * np.sqrt(2)
    nearest = np.inf
    for world in worlds:
        for thing in world.things:
            own = PLATFORMS[thing.name.removeprefix("key_")]
            for other in PLATFORMS.values():
                if other is not own:
                    gap = [
                        max(low + c.BODY_RADIUS - at, at - high + c.BODY_RADIUS, 0.0)
                        for at, (low, high) in zip(thing.position, (other.x, other.y), strict=False)
                    ]
                    nearest = min(nearest, np.hypot(*gap))
    assert within < nearest < 2.0


def test_touching_the_key_to_a_post_lowers_that_bridge_alone_and_destroys_the_key():
    env = new_env(3)
    world = env.unwrapped.world
    put_avatar(world, 0.8, 0.75, 0.0)
    put_thing(world, world["key_start"], 1.8, 0.75)
    assert world["bridge_start_to_middle"].openness == 0
    bring(env, "key_start", "post_start_to_middle")
    assert world["key_start"].is_destroyed
    assert world.held is None
    lowered = {n: p.openness for n, p in world.parts.items() if n.startswith("bridge_")}
    assert lowered.pop("bridge_start_to_middle") == 1.0
    assert set(lowered.values()) == {0.0}
    # One walks over it, level.
    put_avatar(world, LAYERS_X[0][1] - 0.6, 0.0, 0.0)
    heights = []
    for _ in range(25):
        do(env, "forward", 1)
        heights.append(world.position[2])
    assert world.position[0] > LAYERS_X[1][0] + 0.3
    assert np.ptp(heights) < 0.02


def test_a_post_takes_no_other_platforms_key():
    env = new_env(3)
    world = env.unwrapped.world
    put_avatar(world, 0.8, 0.75, 0.0)
    put_thing(world, world["key_start"], 1.5, -4.0)
    put_thing(world, world["key_middle"], 1.8, 0.75)
    post, key = world["post_start_to_middle"], world["key_middle"]
    bringer, nearest = Bringer("key_middle", "post_start_to_middle"), np.inf
    bringer.reset(env)
    for _ in range(150):
        env.step(bringer.act(env))
        gap = mujoco.mj_geomDistance(world.model, world.data, post.geom.id, key.geom.id, 5.0, None)
        nearest = min(nearest, gap)
    assert nearest < 0.01  # it was brought there, and touched
    assert not post.is_on
    assert not key.is_destroyed
    assert world["bridge_start_to_middle"].openness == 0


def test_a_key_let_go_beyond_the_rail_is_lost_and_the_episode_goes_on_to_its_limit():
    env = new_env(6, time_limit=12.0)
    world = env.unwrapped.world
    key = world["key_start"]
    put_avatar(world, 1.2, 1.7, 0.0)  # between two raised bridges
    put_thing(world, key, 2.2, 1.7)
    thrower = Player(0)
    thrower.play = lambda: thrower.grasp(key)
    thrower.reset(env)
    while world.held is not key:
        env.step(thrower.act(env))
    do(env, "look_up_grasp", 8)
    do(env, "forward_fine_grasp", 30)  # up to the rail, the key held out over the void
    do(env, "grasp", 10)
    assert LAYERS_X[0][1] + 0.3 < key.position[0] < LAYERS_X[1][0] - 0.3
    over, reward = False, 0.0
    while not over:
        _, r, terminated, truncated, _ = env.step(ACTION_INDEX["noop"])
        reward += r
        over = terminated or truncated
    assert key.position[2] < -5
    assert truncated
    assert not terminated
    assert reward == 0
    assert not any(p.is_on for n, p in world.parts.items() if n.startswith("post_"))


def come_by(env, way):
    """Have a bridge come down, as though its key had been brought: whoever stands on a platform
    has come by one."""
    world = env.unwrapped.world
    world.signals[world[f"post_{way.name}"].signal] = 1.0
    do(env, "noop", 14)
    assert world[f"bridge_{way.name}"].openness == 1.0


def way_to(platform, among=WAYS):
    return next(way for way in among if way.end == platform)


def edges():
    """Spots on every platform from which to walk at its rim, the way to walk, and the bridge by
    which one has come."""
    for name, platform in PLATFORMS.items():
        came = way_to(name) if name != "start" else None
        middle = (sum(platform.x) / 2, sum(platform.y) / 2)
        for y in np.linspace(platform.y[0] + 0.5, platform.y[1] - 0.5, 9):
            yield came, middle[0], y, 0.0
            yield came, middle[0], y, np.pi
        for x in np.linspace(platform.x[0] + 0.4, platform.x[1] - 0.4, 4):
            yield came, x, middle[1], np.pi / 2
            yield came, x, middle[1], -np.pi / 2
        for way in WAYS:  # straight and askew at bridges that are up, from either side
            for turn in (-0.5, 0.0, 0.5):
                if way.start == name:
                    yield came, platform.x[1] - 0.9, way.y, turn
                if way.end == name and way is not came:
                    yield came, platform.x[0] + 0.9, way.y, np.pi + turn


def test_nobody_walks_off_a_platform():
    env = new_env(0)
    for came, x, y, yaw in edges():
        env.reset(seed=0)
        world = env.unwrapped.world
        for key in world.things:  # out of the way
            put_thing(world, key, -3.0 - 2 * key.index, 9.0, -11.0)
        world.rule_state[world["apple"].rule_index, 0] = 1.0  # and nothing ends the walk
        if came:
            come_by(env, came)
        put_avatar(world, x, y, yaw)
        do(env, "forward", 22)
        do(env, "strafe_left", 8)
        do(env, "strafe_right", 16)
        x_now, y_now, z = world.position
        assert abs(z - c.BODY_BOTTOM) < 0.1, (came, x, y, yaw)
        on_floor = any(
            p.x[0] < x_now < p.x[1] and p.y[0] < y_now < p.y[1] for p in PLATFORMS.values()
        )
        assert on_floor or abs(y_now - came.y) < BRIDGE_WIDTH / 2, (came, x, y, yaw)


def test_nobody_falls_off_a_lowered_bridge():
    env = new_env(0)
    world = env.unwrapped.world
    for way in WAYS:
        env.reset(seed=0)
        world = env.unwrapped.world
        put_avatar(world, PLATFORMS[way.start].x[1] - 0.8, way.y, 0.0)
        come_by(env, way)
        do(env, "forward", 8)
        assert PLATFORMS[way.start].x[1] < world.position[0] < PLATFORMS[way.end].x[0]
        for side in ("strafe_left", "strafe_right"):
            do(env, side, 15)
            assert abs(world.position[1] - way.y) < BRIDGE_WIDTH / 2
        do(env, "forward", 14)
        do(env, "back", 40)
        assert world.position[0] < PLATFORMS[way.start].x[1]  # and back again: not stuck
        assert abs(world.position[2] - c.BODY_BOTTOM) < 0.05


def test_random_play_falls_nowhere():
    """20 000 decisions, begun on every platform in turn."""
    draw = np.random.default_rng(0)
    names = [name for name in PLATFORMS if name != "end"]
    for episode in range(10):
        env = new_env(episode, time_limit=1000.0)
        world = env.unwrapped.world
        name = names[episode % len(names)]
        if name != "start":
            came = way_to(name)
            come_by(env, came)
            put_avatar(world, PLATFORMS[name].x[0] + 0.3, came.y, draw.uniform(-3, 3))
        for _ in range(400):
            action = int(draw.integers(len(ACTIONS)))
            for _ in range(5):
                env.step(action)
            x, y, z = world.position
            assert abs(z - c.BODY_BOTTOM) < 0.5  # on the floor, or on a key
            assert 0.0 < x < LAYERS_X[-1][1]
            assert abs(y) < HALF_WIDTH
        assert np.isfinite(world.data.qpos).all()


# On the last two, the key lies on the way to where one looks out from, and near a post.
@pytest.mark.parametrize("seed", [0, 1, 4, 5, 2**31 + 60, 2**31 + 65])
def test_expert_takes_the_best_route_with_the_milestones_in_order(seed):
    env = new_env(seed)
    world = env.unwrapped.world
    most = max(worth_of_routes(world))
    expert = experts.make("drawbridge", seed=seed)
    expert.reset(env)
    rewards, reached, over = [], [], False
    while not over:
        _, reward, terminated, truncated, info = env.step(expert.act(env))
        over = terminated or truncated
        rewards += [reward] if reward else []
        reached.append([int(done) for done in info["milestones"].values()])
        if expert.world.held is not None:
            assert expert.world.held.name in expert.seen
    assert terminated
    assert info["success"]
    assert rewards == [1.0] * most + [10.0]
    assert sum(thing.is_destroyed for thing in world.things) == 3
    first = [next(i for i, row in enumerate(reached) if row[k]) for k in range(len(reached[0]))]
    assert all(a < b for a, b in pairwise(first))
