"""The avatar and its hand, in bare rooms: holding, pressing, slipping, throwing, turning, walking.

The worlds here are no task's: each test lays out just what it needs. They run through the same
compiled batch as the environments do, one frame at a time.
"""

import itertools
from collections import Counter

import mujoco
import numpy as np
import pytest

from hard_eight.actions import ACTION_INDEX, ACTIONS, CONTROL_INDEX, CONTROL_TABLE, CONTROLS
from hard_eight.batch import ADVANCE, DRAW_ONLY, Batch, Options
from hard_eight.looks import Look
from hard_eight.native import constants as c
from hard_eight.parts import Thing, ball, block, key, stick
from hard_eight.rooms import room, wall
from hard_eight.task import Task
from hard_eight.world import BOX

FRAME = 1 / c.FRAMES_PER_SECOND
RED = Look((225, 40, 35))
KEY_AT = (1.2, 0.0, 0.2)
SPEED = {"": 1.0, "_fine": 0.375}
LOOK = {"": 1.0, "_fine": 0.25}


class Bench:
    """One bare room, 8 m square, with some parts; the avatar starts in the middle, facing +x."""

    def __init__(self, *parts, layout=None, at=(0.0, 0.0, 0.0)):
        def lay_out(world):
            room(world, (-4.0, 4.0), (-4.0, 4.0))
            for part in parts:
                world.add(part)
            if layout:
                layout(world)
            world.start_avatar(*at)

        task = Task("bench", "bench", "", (), lay_out)
        self.batch = Batch(task, 1, Options(height=8, width=8, action_repeat=1, time_limit=1e4))
        self.world = self.batch.load(0, 0)
        self.batch.moving[0] = DRAW_ONLY
        self.batch.run()
        self.batch.moving[0] = ADVANCE

    def frame(self, name="noop"):
        """One frame of an action; returns its proprioception by name."""
        self.batch.controls[0] = CONTROL_TABLE[ACTION_INDEX[name]]
        _, sensed = self.batch.run()
        return {
            "acceleration": sensed[0, :3],
            "hand_force": float(sensed[0, 3]),
            "hand_is_holding": float(sensed[0, 4]),
            "hand_distance": float(sensed[0, 5]),
        }

    def act(self, name, frames=1):
        """Some frames of an action; returns the last one's proprioception."""
        sensed = {}
        for _ in range(frames):
            sensed = self.frame(name)
        return sensed

    def aim(self, point, grasping=False):
        """Turn and tilt the gaze to a point, within a fine step."""
        suffix = "_grasp" if grasping else ""
        for _ in range(200):
            x, y, z = np.subtract(point, self.world.eye)
            turn = (np.arctan2(y, x) - self.world.yaw + np.pi) % (2 * np.pi) - np.pi
            tilt = np.arctan2(z, np.hypot(x, y)) - self.world.pitch
            if abs(turn) > 0.02:
                fine = "" if abs(turn) > 0.07 else "_fine"
                self.frame(f"look_{'left' if turn > 0 else 'right'}{fine}{suffix}")
            elif abs(tilt) > 0.02:
                fine = "" if abs(tilt) > 0.055 else "_fine"
                self.frame(f"look_{'up' if tilt > 0 else 'down'}{fine}{suffix}")
            else:
                return
        raise AssertionError("the gaze did not arrive")

    def take(self, thing):
        """Take hold of a thing that is in reach and lift it before the face."""
        self.aim(thing.position)
        self.frame("grasp")
        assert self.world.held is thing
        while self.world.pitch < -0.02:
            self.frame("look_up_grasp")
        self.act("grasp", 30)
        return thing

    def place(self, thing, at, velocity=(0.0, 0.0, 0.0)):
        """Test set-up: put a thing somewhere, moving."""
        qpos, dof = self.world.movables[thing.index, [c.M_QPOS, c.M_DOF]]
        self.world.data.qpos[qpos : qpos + 3] = at
        self.world.data.qvel[dof : dof + 6] = [*velocity, 0, 0, 0]
        mujoco.mj_forward(self.world.model, self.world.data)


def holding(layout=None):
    """A bench whose avatar holds a key, level before its face."""
    bench = Bench(key("key", KEY_AT, RED), layout=layout)
    bench.take(bench.world["key"])
    return bench


# --- the table ------------------------------------------------------------------------------------


def test_there_are_46_actions_of_the_stated_kinds():
    def kind(name):
        base = name.replace("_grasp", "").replace("_fine", "")
        if base.startswith("rotate"):
            return "rotate"
        return base if base.startswith("hand") or base in ("grasp", "noop") else "move_or_look"

    counts = Counter((kind(action.name), action.grasps) for action in ACTIONS)
    assert counts == {
        ("move_or_look", False): 16,
        ("move_or_look", True): 16,
        ("hand_nearer", False): 1,
        ("hand_farther", False): 1,
        ("hand_nearer", True): 2,
        ("hand_farther", True): 2,
        ("rotate", True): 6,
        ("grasp", True): 1,
        ("noop", False): 1,
    }
    assert len(ACTIONS) == 46
    directions = {a.name.replace("_grasp", "") for a in ACTIONS if kind(a.name) == "move_or_look"}
    moves = ("forward", "back", "strafe_left", "strafe_right")
    looks = ("look_left", "look_right", "look_up", "look_down")
    assert directions == {d + fine for d in (*moves, *looks) for fine in ("", "_fine")}


def test_the_actions_are_different_settings_of_the_nine_controls_within_their_ranges():
    assert len(CONTROLS) == 9
    assert len({action.controls for action in ACTIONS}) == 46
    assert len({action.key for action in ACTIONS}) == 46
    low, high = np.array([[control.minimum, control.maximum] for control in CONTROLS]).T
    assert np.all((low <= CONTROL_TABLE) & (high >= CONTROL_TABLE))
    # One thing at a time, besides the grip.
    grip = CONTROL_INDEX["HAND_GRIP"]
    assert np.all((np.delete(CONTROL_TABLE, grip, axis=1) != 0).sum(axis=1) <= 1)
    assert set(CONTROL_TABLE[:, grip]) == {0.0, 1.0}


# --- body and gaze --------------------------------------------------------------------------------

WAYS = {"forward": (1, 0), "back": (-1, 0), "strafe_left": (0, 1), "strafe_right": (0, -1)}


@pytest.mark.parametrize(("way", "fine"), list(itertools.product(WAYS, SPEED)))
def test_walking_goes_the_stated_way_at_the_stated_speed(way, fine):
    for yaw in (0.0, 2.0):
        bench = Bench(at=(0.0, 0.0, yaw))
        bench.act(way + fine, 10)
        before = bench.world.position
        bench.act(way + fine, 15)
        x, y, z = (bench.world.position - before) / (15 * FRAME)
        ahead, left = WAYS[way]
        speed = c.WALK_SPEED * SPEED[fine]
        turned = (
            ahead * np.cos(yaw) - left * np.sin(yaw),
            ahead * np.sin(yaw) + left * np.cos(yaw),
            0.0,
        )
        assert np.allclose([x, y, z], np.multiply(turned, speed), atol=0.02 * c.WALK_SPEED)
        bench.act("noop", 10)
        assert np.allclose(bench.world.data.qvel[:3], 0.0, atol=1e-3)


@pytest.mark.parametrize(("side", "fine"), list(itertools.product(("left", "right"), LOOK)))
def test_turning_at_the_stated_speed(side, fine):
    bench = Bench()
    bench.act(f"look_{side}{fine}", 15)
    rate = bench.world.yaw / (15 * FRAME)
    assert rate == pytest.approx({"left": 1, "right": -1}[side] * c.TURN_SPEED * LOOK[fine])
    assert np.allclose(bench.world.position[:2], 0.0, atol=1e-6)


@pytest.mark.parametrize(("side", "fine"), list(itertools.product(("up", "down"), LOOK)))
def test_tilting_at_the_stated_speed_up_to_its_limit(side, fine):
    bench = Bench()
    sign = {"up": 1, "down": -1}[side]
    bench.act(f"look_{side}{fine}", 15)
    assert bench.world.pitch / (15 * FRAME) == pytest.approx(sign * c.TILT_SPEED * LOOK[fine])
    bench.act(f"look_{side}{fine}", 120)
    assert bench.world.pitch == pytest.approx(sign * c.PITCH_LIMIT)


def test_with_grasp_every_direction_moves_as_without():
    for action in ACTIONS:
        name = action.name
        if action.grasps or f"{name}_grasp" not in ACTION_INDEX or name.startswith("hand"):
            continue
        free, gripping = Bench(), Bench()
        free.act(name, 10)
        gripping.act(f"{name}_grasp", 10)
        assert np.array_equal(free.world.position, gripping.world.position)
        assert (free.world.yaw, free.world.pitch) == (gripping.world.yaw, gripping.world.pitch)


# --- holding --------------------------------------------------------------------------------------


def test_a_still_key_weighs_its_share_of_the_grip():
    bench = holding()
    assert bench.frame("grasp")["hand_force"] == pytest.approx(9.81 / 60.0, rel=0.02)
    assert bench.frame("noop")["hand_force"] == 0.0


def test_a_held_key_keeps_still():
    bench = holding()
    key = bench.world["key"]
    places, turns = [], []
    for _ in range(90):
        bench.frame("grasp")
        places.append(key.position)
        turns.append(key.rotation)
    assert np.ptp(places, axis=0).max() < 1e-3
    assert np.ptp(turns, axis=0).max() < 1e-3


def test_what_is_held_hangs_from_the_hand_as_it_was_taken():
    bench = Bench(key("key", KEY_AT, RED))

    def from_hand():
        world = bench.world
        gaze = [np.cos(world.pitch), 0.0, np.sin(world.pitch)]
        return world["key"].position - world.eye - np.multiply(gaze, world.reach)

    bench.aim(bench.world["key"].position)
    bench.frame("grasp")
    taken = from_hand()
    while bench.world.pitch < -0.02:
        bench.frame("look_up_grasp")
    bench.act("grasp", 30)
    assert np.allclose(from_hand(), taken, atol=5e-3)  # neither does its weight draw it down


def test_what_is_held_is_held_until_the_first_action_without_grasp():
    bench = holding()
    key = bench.world["key"]
    for action in ACTIONS:
        if action.grasps:
            sensed = bench.frame(action.name)
            assert bench.world.held is key, action.name
            assert sensed["hand_is_holding"] == 1.0
    assert bench.frame("look_left")["hand_is_holding"] == 0.0
    assert bench.world.held is None
    height = key.position[2]
    bench.act("noop", 6)
    assert key.position[2] < height - 0.05


def test_the_hold_follows_the_gaze_and_the_walk():
    bench = holding()
    key = bench.world["key"]
    arm = key.position - bench.world.eye
    bench.act("look_left_grasp", 30)
    bench.act("forward_grasp", 20)
    bench.act("grasp", 20)
    sine, cosine = np.sin(bench.world.yaw), np.cos(bench.world.yaw)
    turned = [cosine * arm[0] - sine * arm[1], sine * arm[0] + cosine * arm[1], arm[2]]
    assert np.allclose(key.position - bench.world.eye, turned, atol=5e-3)


def test_hand_distance_is_nought_with_nothing_held_and_else_the_share_of_the_reach():
    bench = Bench(key("key", KEY_AT, RED))
    assert bench.frame()["hand_distance"] == 0.0
    assert bench.act("hand_farther", 5)["hand_distance"] == 0.0
    bench.take(bench.world["key"])
    sensed = bench.act("hand_nearer_grasp", 60)
    assert sensed["hand_distance"] == pytest.approx(0.0, abs=1e-6)
    assert bench.world.reach == pytest.approx(c.REACH_NEAR)
    farther = [bench.frame("hand_farther_grasp")["hand_distance"] for _ in range(60)]
    assert np.all(np.diff(farther) >= 0)
    assert farther[-1] == pytest.approx(1.0)
    assert bench.world.reach == pytest.approx(c.REACH_FAR)
    thing = bench.world["key"]
    bench.act("grasp", 20)
    far = np.linalg.norm(thing.position - bench.world.eye)
    bench.act("hand_nearer_grasp", 60)
    bench.act("grasp", 20)
    near = np.linalg.norm(thing.position - bench.world.eye)
    assert far - near == pytest.approx(c.REACH_FAR - c.REACH_NEAR, abs=0.03)
    assert bench.frame("noop")["hand_distance"] == 0.0


def test_a_fine_hand_moves_at_three_tenths_of_the_speed():
    for way in ("hand_nearer", "hand_farther"):
        moved = []
        for fine in ("", "_fine"):
            bench = holding()
            other = {"hand_nearer": "hand_farther", "hand_farther": "hand_nearer"}[way]
            bench.act(f"{other}_grasp", 60)
            before = bench.world.reach
            bench.act(f"{way}{fine}_grasp", 10)
            moved.append(bench.world.reach - before)
        assert abs(moved[0]) == pytest.approx(10 * c.PUSH_PULL_SCALE * 10 * FRAME)
        assert moved[1] == pytest.approx(0.3 * moved[0])


AXES = {"forward": (1, 0, 0), "right": (0, -1, 0), "up": (0, 0, 1)}


@pytest.mark.parametrize("yaw", [0.0, 1.3])
@pytest.mark.parametrize(("axis", "sign"), list(itertools.product(AXES, ("positive", "negative"))))
def test_rotations_turn_the_held_thing_about_the_stated_axis(axis, sign, yaw):
    bench = holding()
    while bench.world.yaw < yaw:
        bench.frame("look_left_grasp")
    bench.act("grasp", 15)
    before = bench.world["key"].rotation
    bench.act(f"rotate_{axis}_{sign}_grasp", 12)
    bench.act("grasp", 30)
    turned = bench.world["key"].rotation @ before.T
    angle = np.arccos((np.trace(turned) - 1) / 2)
    assert angle == pytest.approx(c.ROTATE_SPEED * 12 * FRAME, rel=0.02)
    about = np.array([turned[2, 1], turned[0, 2], turned[1, 0]])
    about -= [turned[1, 2], turned[2, 0], turned[0, 1]]
    about /= np.linalg.norm(about) * {"positive": 1, "negative": -1}[sign]
    sine, cosine = np.sin(bench.world.yaw), np.cos(bench.world.yaw)
    x, y, z = AXES[axis]
    assert np.allclose(about, [cosine * x - sine * y, sine * x + cosine * y, z], atol=0.02)


# --- taking hold ----------------------------------------------------------------------------------


def test_what_is_under_the_gaze_is_taken_and_nothing_else():
    bench = Bench(key("left", (1.2, 0.35, 0.2), RED), key("right", (1.2, -0.35, 0.2), RED))
    bench.aim(bench.world["right"].position)
    bench.frame("grasp")
    assert bench.world.held is bench.world["right"]
    bench = Bench(key("left", (1.2, 0.35, 0.2), RED), key("right", (1.2, -0.35, 0.2), RED))
    bench.aim((1.2, 0.0, 0.2))  # between the two
    bench.frame("grasp")
    assert bench.world.held is None
    bench = Bench(key("near", (0.9, 0.0, 0.2), RED), key("far", (1.35, 0.0, 0.2), RED))
    bench.aim((1.2, 0.0, 0.2))  # the far one lies behind the near one's top
    bench.frame("grasp")
    assert bench.world.held is bench.world["near"]


@pytest.mark.parametrize("make", [key, ball, stick])
def test_keys_ball_and_stick_can_be_lifted(make):
    bench = Bench(make("thing", (1.2, 0.0, 0.2), RED))
    bench.act("noop", 30)
    thing = bench.take(bench.world["thing"])
    assert thing.position[2] > 0.8
    rotation = thing.rotation
    bench.act("look_left_grasp", 60)
    bench.act("look_right_grasp", 60)
    bench.act("grasp", 60)
    assert np.allclose(thing.rotation, rotation, atol=0.02)
    assert np.linalg.norm(thing.velocity) < 0.01


@pytest.mark.parametrize("mass", [6.2, 25.0])
def test_what_is_heavier_than_the_grip_is_never_held(mass):
    heavy = Thing("heavy", KEY_AT, RED, mass=mass)
    bench = Bench(heavy)
    bench.aim(heavy.position)
    for _ in range(30):
        assert bench.frame("grasp")["hand_is_holding"] == 0.0
        bench.frame("noop")
    assert heavy.position[2] == pytest.approx(0.2, abs=0.01)
    assert np.allclose(heavy.position[:2], KEY_AT[:2], atol=0.01)
    pushed = block("block", (1.2, 0.0, 0.3), RED)
    bench = Bench(pushed)
    bench.aim(pushed.position)
    assert bench.act("grasp", 10)["hand_is_holding"] == 0.0


def test_nothing_is_taken_beyond_reach():
    for distance, reachable in ((1.5, True), (1.75, False), (2.5, False)):
        # At eye height, on a shelf: its near face is 20 cm nearer than its middle.
        shelf = lambda world, x=distance: world.geom(BOX, [x, 0, 0.525], [0.25, 0.25, 0.525], RED)  # noqa: E731
        bench = Bench(key("key", (distance + 0.2, 0.0, 1.25), RED), layout=shelf)
        bench.act("noop", 3)
        bench.frame("grasp")
        assert (bench.world.held is not None) == reachable, distance


def test_nothing_is_taken_through_a_wall():
    def screen(world):
        wall(world, "y", 0.7, (-2.0, 2.0), thickness=0.05)

    for layout, reachable in ((None, True), (screen, False)):
        bench = Bench(key("key", KEY_AT, RED), layout=layout)
        bench.aim(KEY_AT)
        for _ in range(10):
            bench.frame("grasp")
            assert (bench.world.held is not None) == reachable
            bench.frame("noop" if not reachable else "grasp")


# --- pressing and slipping ------------------------------------------------------------------------


def press_until_slip(bench):
    """Walk against the wall with the held key; returns hand_force frame by frame while held."""
    forces = []
    for _ in range(200):
        force = bench.frame("forward_fine_grasp")["hand_force"]
        if bench.world.held is None:
            return forces
        forces.append(force)
    raise AssertionError("it never slipped")


def test_pressing_raises_the_force_until_the_key_slips_at_one():
    bench = holding()
    while bench.world["key"].position[0] < 3.79:
        bench.frame("forward_fine_grasp")
    bench.act("grasp", 30)
    forces = press_until_slip(bench)
    rising = [force for force in forces if force > 0.2]
    assert len(rising) > 5
    assert np.all(np.diff(rising) > 0)
    assert 0.9 < rising[-1] <= 1.0
    assert bench.world.hand_force == 0.0


def test_after_a_slip_the_hand_must_be_opened_first():
    bench = holding()
    thing = bench.world["key"]
    press_until_slip(bench)
    assert bench.frame("grasp")["hand_is_holding"] == 0.0
    bench.act("grasp", 30)
    assert thing.position[2] == pytest.approx(0.2, abs=0.02)  # loose: it fell
    bench.aim(thing.position, grasping=True)
    for _ in range(10):  # under the gaze and in reach, but the hand is still closed
        assert bench.frame("grasp")["hand_is_holding"] == 0.0
    bench.frame("noop")
    assert bench.frame("grasp")["hand_is_holding"] == 1.0


def test_a_held_key_stuck_behind_a_post_slips():
    def post(world):
        wall(world, "x", 0.9, (0.6, 1.8))

    bench = holding(layout=post)
    thing = bench.world["key"]
    for _ in range(60):
        bench.frame("strafe_left_fine_grasp")
        if bench.world.held is None:
            break
    assert bench.world.held is None
    assert thing.position[1] < 0.8


# --- throwing and hard pushing --------------------------------------------------------------------


def test_a_released_key_keeps_its_velocity():
    bench = holding()
    thing = bench.world["key"]
    bench.act("look_left_grasp", 20)
    bench.act("forward_grasp", 6)
    before = thing.velocity
    assert np.linalg.norm(before[:2]) > 2.0
    bench.frame("noop")
    assert np.allclose(thing.velocity - before, [0, 0, -9.81 * FRAME], atol=1e-6)


def test_a_swing_throws_farther_than_a_drop():
    landed = {}
    for name, swing in (("drop", "grasp"), ("swing", "look_left_grasp")):
        bench = holding()
        bench.act(swing, 15)
        at = bench.world["key"].position
        bench.act("noop", 15)
        landed[name] = np.linalg.norm((bench.world["key"].position - at)[:2])
    assert landed["drop"] < 0.02
    assert landed["swing"] > 0.8


def beyond(thing, x=4.0, y=4.0, z=3.0):
    """How far the farthest corner of a key is beyond the inner faces of the room's walls, m."""
    corners = [thing.position + 0.2 * thing.rotation @ s for s in CORNERS]
    over = np.abs(corners) - (x, y, np.inf)
    return max(over.max(), np.max(corners, axis=0)[2] - z, -np.min(corners, axis=0)[2])


CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def throw(bench, thing, at, velocity, rng):
    """Test set-up: a thing in flight, turned in any way (hands alone reach some 6 m/s)."""
    bench.place(thing, at, velocity)
    qpos = bench.world.movables[thing.index, c.M_QPOS]
    bench.world.data.qpos[qpos + 3 : qpos + 7] = rng.normal(size=4)
    mujoco.mj_normalizeQuat(bench.world.model, bench.world.data.qpos)
    mujoco.mj_forward(bench.world.model, bench.world.data)


@pytest.mark.parametrize(("speed", "dent"), [(2.5, 0.11), (6.0, 0.16), (15.0, 0.2), (50.0, 0.5)])
def test_thrown_keys_bounce_off_the_walls_at_any_speed(speed, dent):
    """A corner dents a wall for a frame or two; nothing comes through, or stays inside."""
    rng = np.random.default_rng(0)
    bench = Bench(key("key", KEY_AT, RED), at=(-3.0, -3.0, 0.0))
    thing = bench.world["key"]
    for _ in range(50):
        way = rng.normal(size=3)
        at = (rng.uniform(-3, 3), rng.uniform(-2, 3), 1.5)
        throw(bench, thing, at, speed * way / np.linalg.norm(way), rng)
        for _ in range(12):
            bench.frame()
            assert beyond(thing) < dent
        bench.act("noop", 60)
        assert beyond(thing) < 0.02


def test_thrown_keys_do_not_come_through_a_slab_as_thin_as_a_door():
    def screen(world):
        wall(world, "y", 2.0, (-4.0, 4.0), thickness=0.12)

    rng = np.random.default_rng(1)
    bench = Bench(key("key", KEY_AT, RED), layout=screen)
    thing = bench.world["key"]
    for speed in (3.0, 6.0, 10.0, 20.0):
        for _ in range(25):
            yaw = rng.uniform(-0.6, 0.6)
            velocity = (speed * np.cos(yaw), speed * np.sin(yaw), rng.uniform(-1.0, 2.0))
            throw(bench, thing, (rng.uniform(0.9, 1.5), rng.uniform(-2, 2), 1.5), velocity, rng)
            for _ in range(40):
                bench.frame()
                assert thing.position[0] < 1.94


def test_a_key_pressed_hard_against_a_wall_or_a_thin_screen_stays_on_its_side():
    def screen(world):
        wall(world, "y", 2.0, (-4.0, 4.0), thickness=0.05)

    rng = np.random.default_rng(1)
    names = ("forward", "forward", "hand_farther", "look_left", "look_right")
    for layout, edge in ((None, 4.0), (screen, 1.975)):
        for trial in range(6):
            bench = holding(layout=layout)
            thing = bench.world["key"]
            bench.act("look_left_grasp", trial)
            for _ in range(150):
                bench.frame(names[rng.integers(5)] + "_grasp")
                assert beyond(thing) < 0.12
                assert thing.position[0] < edge - 0.1


def test_a_key_squeezed_between_body_and_wall_does_not_explode():
    rng = np.random.default_rng(2)
    names = ("forward", "forward", "forward", "strafe_left", "strafe_right")
    for trial in range(8):
        thing = key("key", (3.6, 0.0, 0.2), RED, yaw=trial * 0.2)
        bench = Bench(thing, at=(2.6, 0.0, 0.0))
        for _ in range(120):
            bench.frame(names[rng.integers(5)] + ("_grasp" if trial % 2 else ""))
            assert np.linalg.norm(thing.velocity) < 6.0
            assert np.abs(bench.world.data.qvel[:3]).max() < 6.0
            assert beyond(thing) < 0.1
            assert 0.6 < bench.world.position[2] < 1.2
