"""Baseball: its rules played out through the physics."""

import contextlib

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from hard_eight import experts
from hard_eight.actions import ACTION_INDEX
from hard_eight.experts.baseball import CARRY, Expert
from hard_eight.experts.player import Player, Stuck
from hard_eight.native import constants as c
from hard_eight.task import find_task
from hard_eight.tasks import baseball as layout

TASK = find_task("baseball")
SEEDS = range(60)
EYE = c.BODY_BOTTOM + c.EYE_ABOVE_CENTRE
ROUND = np.linspace(-np.pi, np.pi, 6, endpoint=False) + 0.3


@pytest.fixture(scope="module")
def worlds():
    return [TASK.build(seed) for seed in SEEDS]


def new_env(seed, **options):
    env = gym.make(TASK.gym_id, disable_env_checker=True, **options)
    env.reset(seed=seed)
    return env, env.unwrapped.world


def do(env, name, times=1):
    """Repeat an action; the rewards."""
    return [float(env.step(ACTION_INDEX[name])[1]) for _ in range(times)]


def put_avatar(world, x, y, yaw, pitch=0.0):
    """Spare the test the way there."""
    world.data.qpos[c.AVATAR_X], world.data.qpos[c.AVATAR_Y] = x, y
    world.state[c.S_YAW], world.state[c.S_PITCH] = yaw, pitch


def put_thing(world, thing, at, quat=(1.0, 0.0, 0.0, 0.0)):
    """Spare the test the way there; the thing lies still."""
    start, dof = world.movables[thing.index, [c.M_QPOS, c.M_DOF]]
    world.data.qpos[start : start + 7] = *at, *quat
    world.data.qvel[dof : dof + 6] = 0.0
    mujoco.mj_forward(world.model, world.data)


def play(env, player, limit=500):
    """Let a demonstrator act until its plan ends; everything it was rewarded with."""
    player.reset(env)
    rewards = []
    for _ in range(limit):
        _, reward, terminated, _, _ = env.step(player.act(env))
        rewards.append(float(reward))
        if terminated or getattr(player, "done", False):
            return rewards
    raise AssertionError("the player came to no end")


# --- what varies --------------------------------------------------------------------------------


def arrangement(world):
    return {
        "avatar": (*world.position[:2], world.yaw),
        "stick": (*world["stick"].position, *world["stick"].rotation[:, 0]),
        "plinth": tuple(world["plinth"].position),
    }


def test_each_element_varies_over_seeds(worlds):
    for element in ("avatar", "stick", "plinth"):
        values = np.array([arrangement(world)[element] for world in worlds])
        assert len(np.unique(values.round(6), axis=0)) == len(worlds), element
        assert np.ptp(values[:, 0]) > 2.0, element
        assert np.ptp(values[:, 1]) > 2.0, element
    yaws = np.array([world.yaw for world in worlds])
    assert (yaws > 1.6).any()
    assert (yaws < -1.6).any()
    assert (abs(yaws) < 1.0).any()
    for of in (
        lambda w: w.surroundings.wall,
        lambda w: w.surroundings.floor,
        *(lambda w, name=name: w[name].look for name in ("ball", "stick", "plinth")),
    ):
        assert len({of(w).rgb for w in worlds}) >= 4
        assert len({of(w).texture for w in worlds}) >= 3


def test_everything_follows_from_the_seed(worlds):
    again = TASK.build(7)
    assert arrangement(again) == arrangement(worlds[7])
    assert again.surroundings == worlds[7].surroundings
    assert [again[n].look for n in ("ball", "stick", "plinth", "sensor")] == [
        worlds[7][n].look for n in ("ball", "stick", "plinth", "sensor")
    ]


def test_no_two_things_share_a_colour_and_the_sensor_can_glow(worlds):
    for world in worlds:
        colours = [world[name].look.rgb for name in ("ball", "stick", "plinth", "sensor")]
        assert len(set(colours)) == 4
        assert min(world["sensor"].look.rgb) < 150


def test_every_layout_leaves_room_to_play(worlds):
    for world in worlds:
        plinth, stick, sensor = (world[n].position for n in ("plinth", "stick", "sensor"))
        assert np.abs(plinth[:2]).max() < 3.0 - 1.2  # one can walk round it
        ends = [stick[:2] + side * 0.7 * world["stick"].rotation[:2, 0] for side in (1, -1)]
        assert np.abs(ends).max() < 2.9
        assert min(np.hypot(*(end - plinth[:2])) for end in ends) > 0.4
        assert np.hypot(*(sensor - plinth)[:2]) >= layout.SENSOR_CLEARANCE - 1e-9


def test_what_matters_is_not_all_in_view_at_the_start(worlds):
    whole = 0
    for seed in SEEDS:
        env, _ = new_env(seed)
        player = Expert()
        player.reset(env)
        assert "apple" not in player.seen
        whole += {"stick", "ball", "sensor", "door"} <= player.seen
    assert whole <= 2


# --- the ball is out of reach -------------------------------------------------------------------


def sweep_for_the_ball(seed, ball_at):
    """Stand all round the plinth, near and far, look up at the ball by all pitches, and grasp.

    Spots, gaze and the ball's place on the plinth are set, which any player could do by walking;
    the grasps are actions.
    """
    env, world = new_env(seed, time_limit=1000.0)
    plinth, ball = world["plinth"].position[:2], world["ball"]
    top = layout.PLINTH_HEIGHT + layout.BALL_RADIUS
    put_thing(world, ball, (plinth[0] + ball_at[0], plinth[1] + ball_at[1], top))
    nearest = layout.PLINTH_RADIUS + c.BODY_RADIUS
    taken = 0
    for angle in ROUND:
        for away in np.arange(nearest, nearest + 0.9, 0.06):
            x, y = plinth + away * np.array([np.cos(angle), np.sin(angle)])
            at = ball.position
            yaw = float(np.arctan2(at[1] - y, at[0] - x))
            rise = float(np.arctan2(at[2] - EYE, np.hypot(at[0] - x, at[1] - y)))
            # From just under the ball's middle to above its top, past the rim that hides it.
            for pitch in np.arange(rise - 0.06, rise + 0.2, 0.02):
                put_avatar(world, x, y, yaw, min(pitch, c.PITCH_LIMIT))
                do(env, "grasp")
                taken += world.held is ball
                do(env, "noop")
                put_thing(world, ball, (plinth[0] + ball_at[0], plinth[1] + ball_at[1], top))
    return taken


@pytest.mark.parametrize("ball_at", [(0.0, 0.0), (0.15, 0.0), (-0.1, 0.1)])
def test_the_hand_never_reaches_the_ball_on_its_plinth(ball_at):
    assert sweep_for_the_ball(3, ball_at) == 0


def test_the_same_sweep_takes_the_ball_from_a_lower_plinth(monkeypatch):
    monkeypatch.setattr(layout, "PLINTH_HEIGHT", 2.4)
    assert sweep_for_the_ball(3, (0.0, 0.0)) > 0


def test_no_place_to_stand_has_the_ball_within_the_hands_reach():
    nearest_surface = layout.PLINTH_HEIGHT - EYE  # straight above the eye
    assert nearest_surface > c.REACH_FAR + c.GRASP_MARGIN


@pytest.mark.parametrize("slope", [0.2, 0.35, 0.5, 0.7])
@pytest.mark.parametrize("against", ["wall", "plinth"])
def test_a_leaned_stick_is_no_ramp(slope, against):
    """The stick is put as a player could lean it; then the avatar runs up along it."""
    env, world = new_env(5)
    x, y = world["plinth"].position[:2]
    face = layout.ROOM_X[0] if against == "wall" else x + layout.PLINTH_RADIUS
    along = y if against == "plinth" else -2.0
    sine, cosine = np.sin(slope), np.cos(slope)
    at = (face + 0.7 * cosine + 0.05 * sine + 0.01, along, 0.7 * sine + 0.05 * cosine + 0.005)
    put_thing(world, world["stick"], at, (np.cos(slope / 2), 0.0, np.sin(slope / 2), 0.0))
    put_avatar(world, face + 1.4 * cosine + 0.7, along, np.pi)
    for name in ("forward", "forward_fine"):
        for _ in range(30):
            do(env, name)
            assert world.eye[2] < EYE + 0.03


def test_the_ball_stays_put_until_something_strikes_it():
    env, world = new_env(2)
    before = world["ball"].position
    x, y = world["plinth"].position[:2]
    put_avatar(world, x + 1.0, y, np.pi)
    do(env, "forward", 20)  # into the plinth
    do(env, "noop", 280)
    assert np.hypot(*(world.position - world["plinth"].position)[:2]) < 0.6
    np.testing.assert_allclose(world["ball"].position, before, atol=0.01)
    assert not any(world.reached)


# --- knocking it down -----------------------------------------------------------------------------


class Knocker(Expert):
    """Knocks the ball off from a given side, then stands by until it lies still."""

    def __init__(self, side):
        super().__init__()
        self.side, self.done = side, False

    def _run_up_spot(self):
        return self.plinth.position[:2] + 2.4 * np.array([np.cos(self.side), np.sin(self.side)])

    def play(self):
        self.stick, self.ball, self.plinth = (self.world[n] for n in ("stick", "ball", "plinth"))
        if self._ball_is_up():
            yield from self._knock_down()
        yield from self.let_go()
        for _ in range(120):
            yield "noop"
        self.done = True
        yield "noop"


def sides_with_a_run_up(world):
    spots = [
        (side, world["plinth"].position[:2] + 2.4 * np.array([np.cos(side), np.sin(side)]))
        for side in np.linspace(-np.pi, np.pi, 8, endpoint=False)
    ]
    return [side for side, spot in spots if np.abs(spot).max() < 2.2]


def test_a_ball_knocked_off_from_any_side_lies_within_reach_and_sets_nothing_off():
    sides = set()
    for seed in range(14):
        for side in sides_with_a_run_up(TASK.build(seed)):
            sides.add(round(side, 2))
            env, world = new_env(seed)
            rewards = play(env, Knocker(side))
            x, y, z = world["ball"].position
            assert z == pytest.approx(layout.BALL_RADIUS, abs=0.01)
            assert max(abs(x), abs(y)) < 3.0
            assert not world["sensor"].is_on
            assert world["door"].openness == 0.0
            assert not any(rewards)
            assert list(world.reached[:3]) == [1, 1, 0]
            Taker.take(env)
            assert world.held is world["ball"]
    assert len(sides) >= 7


class Taker(Expert):
    """Picks up the ball where it lies."""

    done = False

    def play(self):
        self.ball, self.plinth = self.world["ball"], self.world["plinth"]
        yield from self._look_for_fallen_ball()
        yield from self.walk_round(lambda: self.ball.position, stop=1.1)
        yield from self.grasp(self.ball)
        self.done = True
        yield "grasp"

    @classmethod
    def take(cls, env):
        play(env, cls())


# --- sensor and door ------------------------------------------------------------------------------


class StickToSensor(Expert):
    """Presses the stick on the sensor for a while."""

    done = False
    pressed = 0

    def play(self):
        self.stick, self.plinth = self.world["stick"], self.world["plinth"]
        sensor = self.world["sensor"]
        if self.world.held is not self.stick:
            yield from self.find(self.stick)
            yield from self.grasp(self.stick, stand_off=0.9)
        yield from self._hold_level()
        yield from self.find(sensor)
        yield from self.walk_round(lambda: sensor.position, stop=2.0)
        with contextlib.suppress(Stuck):
            yield from self.touch(lambda: sensor.position, self.has_pressed)
        self.done = True
        yield "grasp"

    def _hold_level(self):
        yield from self.reach_to(CARRY[1])
        yield from self.tilt(0.0, tolerance=0.15)

    def has_pressed(self):
        world = self.world
        gap = mujoco.mj_geomDistance(
            world.model, world.data, self.stick.geom.id, world["sensor"].geom.id, 1.0, None
        )
        self.pressed += gap < c.TOUCH_DISTANCE
        return self.pressed > 5


def test_only_the_ball_sets_the_sensor_off():
    env, world = new_env(4)
    player = StickToSensor()
    play(env, player)
    assert player.pressed > 5
    assert not world["sensor"].is_on
    assert world["door"].openness == 0.0


def test_the_door_stays_shut_without_the_sensor():
    env, world = new_env(1)
    put_avatar(world, 1.5, 0.0, 0.0)
    do(env, "forward", 60)
    assert 2.4 < world.position[0] < layout.NEXT_X[0]


class Presser(Player):
    """Presses the ball, which lies at its feet, on the sensor and lets it fall."""

    done = False

    def play(self):
        ball, sensor = self.world["ball"], self.world["sensor"]
        yield from self.grasp(ball)
        yield from self.tilt(0.0)
        yield from self.find(sensor)
        yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)
        yield from self.let_go()
        for _ in range(40):
            yield "back"
        self.done = True
        yield "noop"


def test_one_touch_of_the_ball_opens_the_door_for_good():
    env, world = new_env(1)
    sensor, ball, door = world["sensor"], world["ball"], world["door"]
    put_avatar(world, 0.8, 1.9, 0.0)
    put_thing(world, ball, (1.8, 1.9, layout.BALL_RADIUS))
    off = world.rgb[sensor.geom.id].copy()
    play(env, Presser())
    assert np.linalg.norm(ball.position - sensor.position) > 0.6  # long fallen off
    assert sensor.is_on
    assert door.openness == 1.0
    assert np.abs(world.rgb[sensor.geom.id] - off).max() > 40  # it glows


# --- the whole task -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [11, 12, 13, 14])
def test_the_expert_wins_in_order_for_one_reward_of_ten(seed):
    env, _ = new_env(seed)
    player = experts.make("baseball", seed=seed)
    player.reset(env)
    rewards, first = [], {}
    for decision in range(900):
        _, reward, terminated, truncated, info = env.step(player.act(env))
        rewards.append(float(reward))
        for name, reached in info["milestones"].items():
            if reached:
                first.setdefault(name, decision)
        if terminated or truncated:
            break
    assert terminated
    assert not truncated
    assert info["success"]
    assert rewards[-1] == 10.0
    assert not any(rewards[:-1])
    names = ["stick_held", "ball_off", "ball_held", "sensor_on", "door_passed", "apple"]
    assert list(info["milestones"]) == names
    assert sorted(first, key=lambda name: first[name]) == names
    assert len(set(first.values())) == 6
