"""Demonstrators are honest: what they steer by, they have seen in the very picture agents get.

Every reading of where a part is, by anything but the skills that look for it, is held against what
has been drawn: a part reads as seen once a pixel of it was in a picture, and what has moved since
(unless it is in the hand) may not be known about; nor that a sensor has come on where it does not
show. What is the same on every seed may be known.
"""

import sys
from collections import defaultdict

import gymnasium
import numpy as np
import pytest

import hard_eight  # noqa: F401  registers the ids
from hard_eight import experts
from hard_eight.experts import baseball, push_blocks, wall_sensor
from hard_eight.experts.player import Player
from hard_eight.parts import Door, Part, Sensor
from hard_eight.pictures import first_person
from hard_eight.task import all_tasks, find_task

# What looks for a part may read where it is.
LOOKING = {"_look_around", "in_view", "shows", "search", "find_ramp"}
UNNOTICED = 0.1  # m
PICTURE = {"height": 72, "width": 96}


class Watcher:
    """Knows what has been drawn, and notes what is read without."""

    def __init__(self, world, known):
        self.world, self.reading = world, False
        self.parts = [part for part in world.parts.values() if hasattr(part, "geom")]
        self.drawn = {part.name: part.position for part in self.parts if part.name in known}
        self.lit = {part.name: False for part in self.parts if isinstance(part, Sensor)}
        self.dishonest = set()

    def look(self):
        """Note which parts the picture shows: other colours of theirs give another picture."""
        self.reading = False
        picture = first_person(self.world, **PICTURE)
        for part in self.parts:
            at, colour = part.position, self.world.rgb[part.geom.id].copy()
            has_moved = np.linalg.norm(at - self.drawn.get(part.name, at + 1.0)) >= 0.02
            is_lit = isinstance(part, Sensor) and part.is_on
            if not has_moved and is_lit == self.lit.get(part.name, False):
                continue
            self.world.rgb[part.geom.id] = 1.0 - colour
            if not np.array_equal(first_person(self.world, **PICTURE), picture):
                self.drawn[part.name] = at
                self.lit[part.name] = is_lit
            self.world.rgb[part.geom.id] = colour
        self.reading = True

    def read(self, part, value, readers):
        if not self.reading or part is self.world.held or LOOKING & readers:
            return
        if isinstance(value, bool):
            if value != self.lit[part.name]:
                self.dishonest.add(f"{part.name} had changed unseen")
        elif part.name not in self.drawn:
            self.dishonest.add(f"{part.name} had not been seen")
        elif value.ndim == 1 and np.linalg.norm(value - self.drawn[part.name]) > UNNOTICED:
            self.dishonest.add(f"{part.name} had moved unseen")


@pytest.fixture
def watchers(monkeypatch):
    """Who is told of every reading: put a Watcher in this list."""
    listening = []

    def spy(cls, name):
        read = cls.__dict__[name].fget

        def get(part):
            value = read(part)
            frame, readers = sys._getframe(1), set()
            while frame is not None and len(readers) < 12:
                readers.add(frame.f_code.co_name)
                frame = frame.f_back
            for watcher in listening:
                watcher.read(part, value, readers)
            return value

        monkeypatch.setattr(cls, name, property(get))

    for cls in (Part, Door):
        spy(cls, "position")
    spy(Part, "rotation")
    spy(Sensor, "is_on")
    return listening


def same_on_every_seed(task):
    env = gymnasium.make(find_task(task).gym_id, disable_env_checker=True)
    places = defaultdict(list)
    for seed in range(6):
        env.reset(seed=seed)
        for part in env.unwrapped.world.parts.values():
            if hasattr(part, "geom"):
                places[part.name].append(tuple(part.position.round(2)))
    return {name for name, at in places.items() if len(at) == 6 and len(set(at)) == 1}


def watch(task, player, seed, watchers, meddle=lambda world: None):
    """Play an episode; what the player knew without having seen it, and whether it won."""
    known = same_on_every_seed(task)
    env = gymnasium.make(find_task(task).gym_id, disable_env_checker=True)
    env.reset(seed=seed)
    watcher = Watcher(env.unwrapped.world, known)
    watchers[:] = [watcher]
    watcher.look()
    player.reset(env)
    ended = False
    while not ended:
        action = player.act(env)
        watcher.reading = False
        *_, terminated, truncated, info = env.step(action)
        meddle(env.unwrapped.world)
        ended = terminated or truncated
        watcher.look()
    watchers.clear()
    return watcher.dishonest, info["success"]


@pytest.mark.parametrize("seed", [700, 701])
@pytest.mark.parametrize("task", [task.name for task in all_tasks()])
def test_nothing_is_steered_by_that_has_not_been_seen(task, seed, watchers):
    dishonest, won = watch(task, experts.make(task, seed=seed), seed, watchers)
    assert dishonest == set()
    assert won


class Clairvoyant(wall_sensor.Expert):
    """Goes for the key at once, wherever it is."""

    def play(self):
        key = self.world["key"]
        yield from self.walk_to(lambda: key.position, stop=1.1)
        self.seen.add("key")
        yield from super().play()


class Tracker(baseball.Expert):
    """Looks away while the ball falls, and knows where it has rolled."""

    def play(self):
        for step in super().play():
            yield step
            if not self._ball_is_up():
                break
        for _ in range(15):
            yield "look_left"
        yield from self.walk_to(lambda: self.ball.position, stop=1.1)


class Feeler(baseball.Expert):
    """Feels the ball fall, behind the plinth or the stick."""

    def _ball_is_up(self):
        return bool(self.ball.position[2] > baseball.PLINTH_HEIGHT)


class Hearer(push_blocks.Expert):
    """Hears the sensor come on under the block."""

    def is_home(self, block):
        return self.world["sensor"].is_on


@pytest.mark.parametrize(
    ("task", "cheat", "seed", "what"),
    [
        ("wall_sensor", Clairvoyant, 3, "key had not been seen"),
        ("baseball", Tracker, 3, "ball had moved unseen"),
        ("baseball", Feeler, 801, "ball had moved unseen"),
        ("push_blocks", Hearer, 3, "sensor had changed unseen"),
    ],
)
def test_who_knows_what_nobody_has_seen_is_found_out(task, cheat, seed, what, watchers):
    dishonest, _ = watch(task, cheat(seed), seed, watchers)
    assert what in dishonest


def test_a_demonstrator_begins_each_episode_anew():
    """What it did in the last one, such as which column of cubes it dug, is forgotten."""
    env = gymnasium.make("HardEight/NavigateCubes-v0", disable_env_checker=True)
    player, columns = experts.make("navigate_cubes", seed=0), set()
    for seed in range(6):
        env.reset(seed=seed)
        player.reset(env)
        while player.column is None:
            env.step(player.act(env))
        columns.add(player.column)
    assert len(columns) > 1


def test_that_the_stack_has_fallen_is_known_by_the_door_alone(watchers):
    fallen = []

    def topple(world):
        """Take the upper key away behind the back of who stands before the door."""
        near = np.abs(world.position - world["door"].position)[:2].max() < 1.5
        if near and world["sensor"].is_on and not fallen:
            keys = world["first_key"], world["second_key"]
            fallen.append(max(keys, key=lambda key: key.position[2]))
            at = world.model.jnt_qposadr[fallen[0].joint.id]
            world.data.qpos[at : at + 3] = 0.0, 0.0, 0.25

    player = experts.make("wall_sensor_stack", seed=3)
    dishonest, won = watch("wall_sensor_stack", player, 3, watchers, topple)
    assert fallen
    assert dishonest == set()
    assert won


class Turner(Player):
    def play(self):
        while True:
            yield "look_left"


def test_a_thing_that_moves_unseen_must_be_found_again():
    env = gymnasium.make("HardEight/WallSensor-v0", disable_env_checker=True)
    env.reset(seed=3)
    world, player = env.unwrapped.world, Turner(0)
    player.reset(env)
    key = world["key"]
    while "key" not in player.seen:
        env.step(player.act(env))
    before = player.last_seen["key"]
    for _ in range(12):
        env.step(player.act(env))
    assert not player.shows(key)
    at = world.model.jnt_qposadr[key.joint.id]
    elsewhere = 1.5, -2.2
    world.data.qpos[at : at + 2] = elsewhere
    env.step(player.act(env))
    assert "key" in player.seen
    assert np.allclose(player.last_seen["key"], before)
    for _ in range(60):
        env.step(player.act(env))
    assert np.allclose(player.last_seen["key"][:2], elsewhere, atol=0.1)
