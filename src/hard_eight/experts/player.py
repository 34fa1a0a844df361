"""What every demonstrator has: eyes, a memory of what it has seen, and skills.

A skill is a generator of action names. It may read the world's state to steer, but goes for nothing
that has not been in view: `find` turns until it is. Skills act through the 46 actions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import mujoco
import numpy as np

from hard_eight.actions import ACTION_INDEX
from hard_eight.batch import FIELD_OF_VIEW
from hard_eight.native import constants as c
from hard_eight.parts import Apple, Door, Part, Thing
from hard_eight.world import World

from .habits import PLAIN, Habits, Manner, with_skill
from .ways import Extent, way_round

Plan = Iterator[str]
Point = Sequence[float] | np.ndarray

# What one decision of two frames does.
DECISION = 2 / c.FRAMES_PER_SECOND  # s
TURN, FINE_TURN = c.TURN_SPEED * DECISION, 0.25 * c.TURN_SPEED * DECISION  # rad
TILT, FINE_TILT = c.TILT_SPEED * DECISION, 0.25 * c.TILT_SPEED * DECISION  # rad
STRIDE, FINE_STRIDE = c.WALK_SPEED * DECISION, 0.375 * c.WALK_SPEED * DECISION  # m
HAND, FINE_HAND = 10 * c.PUSH_PULL_SCALE * DECISION, 3 * c.PUSH_PULL_SCALE * DECISION  # m

SAME_PLACE, NOT_THERE = 0.01, 0.4  # m by which a thing has moved since it was last seen

HALF_HEIGHT = np.tan(np.radians(FIELD_OF_VIEW) / 2)
HALF_WIDTH = HALF_HEIGHT * 96 / 72


def wrap(angle: float) -> float:
    """An angle brought to -pi..pi."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


class Stuck(Exception):
    """A skill has made no progress; the plan may try another way."""


class Player:
    """Base of the demonstrators. Subclasses write `play`, a generator of action names."""

    def __init__(self, seed: int = 0, skill: float = 1.0, habits: Habits | None = None) -> None:
        self.random = np.random.default_rng((seed, 7))
        self.seed = seed
        self.habits = with_skill(PLAIN, skill) if habits is None else habits

    def reset(self, env: Any) -> None:
        """Begin the episode that `env`, which may be wrapped, has just begun."""
        self.world: World = env.unwrapped.world
        self.seen: set[str] = set()
        self.last_seen: dict[str, np.ndarray] = {}  # where; of things, also of those now lost
        self.manner = Manner(self.habits, self.seed)
        self.search_side = self.manner.side()
        self._look_around()
        self._plan = self.play()

    def act(self, env: Any) -> int:
        """The next action."""
        self._look_around()
        name = self.manner.next_action(
            self._next_name, lambda: self._letting_go, holding=self.world.held is not None
        )
        return ACTION_INDEX[name]

    @property
    def has_given_up(self) -> bool:
        """Whether this person would have stopped playing by now."""
        return self.world.seconds >= self.manner.patience

    def play(self) -> Plan:
        """The whole task from wherever it stands: it is begun again when a skill is stuck."""
        raise NotImplementedError

    def _next_name(self) -> str:
        try:
            return next(self._plan, "noop")
        except Stuck:
            self.manner.lose_heart(self.world.seconds)
            self._plan = chain(self._shake_loose(), self.play())
            return next(self._plan)

    def _shake_loose(self) -> Plan:
        """A few steps back and aside, as one does when something is in the way."""
        side = "left" if self.random.random() < 0.5 else "right"
        for _ in range(int(self.random.integers(2, 5))):
            yield "back"
        for _ in range(int(self.random.integers(1, 4))):
            yield f"strafe_{side}"

    # --- seeing ---------------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Remember what is in view; what is not where it was last seen must be found again."""
        for part in self.world.parts.values():
            if part.name not in self.seen and hasattr(part, "geom") and self.in_view(part):
                self.seen.add(part.name)
                self.last_seen.pop(part.name, None)
        for thing in self.world.things:
            if thing.name not in self.seen:
                continue
            at = thing.position
            before = self.last_seen.setdefault(thing.name, at)
            moved = float(np.abs(at - before).max())
            if moved > SAME_PLACE and (thing.is_held or self.shows(thing)):
                self.last_seen[thing.name] = at
            elif moved > NOT_THERE and self.place_in_view(thing, before):
                self.seen.discard(thing.name)

    def in_view(self, part: Part) -> bool:
        """Whether the middle of a part is in the picture with nothing in between."""
        return self.point_in_view(part.position, part.geom.id)

    def place_in_view(self, thing: Thing, at: np.ndarray) -> bool:
        """Whether one would see the thing if it still were where it was."""
        return self.point_in_view(at)

    def shows(self, thing: Thing) -> bool:
        """Whether anything of it is in the picture: its middle, or that of a face or an end."""
        if self.in_view(thing):
            return True
        x, y, z = thing.half
        half = (x, y, z) if z else (x, x, y or x)  # boxes; cylinders and balls
        to_faces = [0.95 * size * axis for size, axis in zip(half, thing.rotation.T, strict=True)]
        spots = [thing.position + side * way for side in (1, -1) for way in to_faces]
        return any(self.point_in_view(spot, thing.geom.id) for spot in spots)

    def point_in_view(self, point: Point, geom: int | None = None) -> bool:
        eye = self.world.eye
        offset = np.asarray(point, float) - eye
        distance = float(np.linalg.norm(offset))
        sy, cy = np.sin(self.world.yaw), np.cos(self.world.yaw)
        sp, cp = np.sin(self.world.pitch), np.cos(self.world.pitch)
        depth = offset @ (cp * cy, cp * sy, sp)
        if depth < 0.05:
            return False
        right, up = offset @ (sy, -cy, 0.0), offset @ (-sp * cy, -sp * sy, cp)
        if abs(right) > HALF_WIDTH * depth or abs(up) > HALF_HEIGHT * depth:
            return False
        met = np.zeros(1, np.int32)
        hit = mujoco.mj_ray(
            self.world.model, self.world.data, eye, offset / distance, None, True,
            self.world.avatar_body.id, met,
        )  # fmt: skip
        return hit < 0 or hit > distance - 0.05 or (geom is not None and met[0] == geom)

    def turn_until(self, done: Callable[[], bool], pitch: float, tolerance: float = 0.1) -> Plan:
        """Turn once round, the gaze at a pitch, or until something is so."""
        for _ in range(round(2 * np.pi / TURN)):
            if done():
                return
            yield self.tilt_step(pitch, tolerance) or f"look_{self.search_side}"

    def find(self, part: Part) -> Plan:
        """Turn until a part has been in view."""
        for pitch, tolerance in ((0.0, 0.3), (-0.6, 0.1), (0.5, 0.1), (0.0, 0.3)):
            yield from self.turn_until(lambda: part.name in self.seen, pitch, tolerance)
            if part.name in self.seen:
                return
        raise Stuck(f"never saw {part.name}")

    def search(self, done: Callable[[], bool], pitch: float) -> Plan:
        """Turn until something is so; where other things may hide it, go elsewhere and turn."""
        for _ in range(6):
            yield from self.turn_until(done, pitch)
            if done():
                return
            spot = self.random.uniform(-2.0, 2.0, 2)
            yield from self.walk_round(lambda: spot, stop=0.4)  # noqa: B023
        raise Stuck("never saw it")

    # --- measuring --------------------------------------------------------------------------------

    def bearing(self, point: Point) -> float:
        """How far to the left of the gaze a point lies, rad."""
        x, y, _ = self.world.position
        return wrap(np.arctan2(point[1] - y, point[0] - x) - self.world.yaw)

    def distance(self, point: Point) -> float:
        """Distance over the floor, m."""
        x, y, _ = self.world.position
        return float(np.hypot(point[0] - x, point[1] - y))

    def elevation(self, point: Point) -> float:
        """The pitch that looks at a point, rad."""
        return float(np.arctan2(point[2] - self.world.eye[2], max(self.distance(point), 1e-3)))

    # --- looking and walking ----------------------------------------------------------------------

    def turn_step(self, bearing: float, tolerance: float) -> str | None:
        if abs(bearing) <= tolerance:
            return None
        side = "left" if bearing > 0 else "right"
        return f"look_{side}" + ("" if abs(bearing) > 0.7 * TURN else "_fine")

    def tilt_step(self, pitch: float, tolerance: float) -> str | None:
        error = np.clip(pitch, -c.PITCH_LIMIT, c.PITCH_LIMIT) - self.world.pitch
        if abs(error) <= tolerance:
            return None
        return ("look_up" if error > 0 else "look_down") + (
            "" if abs(error) > 0.7 * TILT else "_fine"
        )

    def face(self, point: Callable[[], Point], tolerance: float = 0.06) -> Plan:
        while step := self.turn_step(self.bearing(point()), tolerance):
            yield step

    def tilt(self, pitch: float, tolerance: float = 0.06) -> Plan:
        while step := self.tilt_step(pitch, tolerance):
            yield step

    def aim(self, point: Callable[[], Point], tolerance: float = 0.03) -> Plan:
        """Bring a point under the gaze."""
        while True:
            target = point()
            step = self.turn_step(self.bearing(target), tolerance) or self.tilt_step(
                self.elevation(target), tolerance
            )
            if step is None:
                return
            yield step

    def walk_to(
        self,
        point: Callable[[], Point],
        stop: float = 0.3,
        limit: int = 200,
        tolerance: float = 0.12,
    ) -> Plan:
        """Walk straight to within `stop` metres of a point."""
        best, stalled = np.inf, 0
        for _ in range(limit):
            target = point()
            gap = self.distance(target) - stop
            if gap <= 0:
                return
            # Close by, a small sideways miss is a large angle: accept what still gets there.
            enough = max(tolerance, float(np.arctan2(0.5 * stop, gap + stop)) * 0.5)
            step = self.turn_step(self.bearing(target), enough)
            if step is None:
                step = "forward" if gap > 0.7 * STRIDE else "forward_fine"
                if gap < best - 0.02:
                    best, stalled = gap, 0
                else:
                    stalled += 1
                    if stalled > 12:
                        raise Stuck("walking against something")
            yield step
        raise Stuck("did not arrive")

    floor: tuple[Extent, Extent] = (-9.0, 9.0), (-9.0, 9.0)  # x and y of where one may walk, m
    clearances: tuple[float, ...] = ()  # from obstacles, m; the next where there is no way

    def obstacles(self) -> list[np.ndarray]:
        """What stands about, as far as it has been seen."""
        return []

    def walk_round(self, point: Callable[[], Point], stop: float = 0.3) -> Plan:
        """Walk to a point, round what stands about."""
        here, goal, obstacles = self.world.position, point(), self.obstacles()
        ways = (way_round(here, goal, obstacles, gap, *self.floor) for gap in self.clearances)
        for corner in next(filter(None, ways), [])[:-1]:
            yield from self.walk_to(partial(np.asarray, corner), stop=0.2)
        yield from self.walk_to(point, stop=stop)

    def walk_through(self, door: Door) -> Plan:
        """Go through a door to the east, straight enough not to catch on its frame."""
        yield from self.tilt(0.0, tolerance=0.15)
        yield from self.find(door)
        x, y, _ = door.position
        if abs(self.world.position[1] - y) > 0.4 * (x - self.world.position[0]):
            yield from self.walk_round(lambda: (x - 1.0, y))
        yield from self.walk_round(lambda: (x + 0.6, y))

    def collect(self, apple: Apple) -> Plan:
        yield from self.find(apple)
        yield from self.walk_to(lambda: apple.position, stop=0.0)

    # --- hand -------------------------------------------------------------------------------------

    _letting_go = False

    def let_go(self) -> Plan:
        self._letting_go = True
        yield "noop"
        self._letting_go = False

    def reach_to(self, distance: float, tolerance: float = 0.06) -> Plan:
        """Bring the hand to a distance along the gaze."""
        distance = float(np.clip(distance, c.REACH_NEAR, c.REACH_FAR))
        while abs(error := distance - self.world.reach) > tolerance:
            side = "hand_farther" if error > 0 else "hand_nearer"
            fine = "_fine" if abs(error) < 0.7 * HAND and self.world.held is not None else ""
            yield side + fine

    def grasp(
        self,
        thing: Thing,
        tries: int = 6,
        stand_off: float = 1.1,
        at: Callable[[], Point] | None = None,
    ) -> Plan:
        """Find a thing, go to it and take hold of it: `at` a point of it, or by its middle."""
        spot = at or (lambda: self.last_seen[thing.name])
        for _ in range(tries):
            yield from self.find(thing)
            yield from self.walk_to(spot, stop=stand_off)
            yield from self.aim(spot)
            yield "grasp"
            if self.world.held is thing:
                return
            if not self.shows(thing):
                self.seen.discard(thing.name)
            stand_off = max(0.75, stand_off - 0.12)
        raise Stuck(f"could not take hold of {thing.name}")

    def touch(
        self, target: Callable[[], Point], done: Callable[[], bool], limit: int = 120
    ) -> Plan:
        """Carry the held thing against a point until `done`."""
        for _ in range(limit):
            if done():
                return
            if self.world.held is None:
                raise Stuck("dropped it on the way")
            point = target()
            step = self.turn_step(self.bearing(point), 0.06) or self.tilt_step(
                self.elevation(point), 0.08
            )
            if step is None:
                near = self.distance(point) < self.world.reach + 0.7
                step = "forward_fine" if near else "forward"
            yield step
        raise Stuck("could not touch it")
