"""Baseball: the stick by its end, raised; walk it into the ball; ball to the sensor; apple."""

from contextlib import suppress

import numpy as np

from hard_eight.native import constants as c
from hard_eight.parts import Part, Sensor, Thing
from hard_eight.tasks.baseball import PLINTH_HEIGHT

from .player import DECISION, HAND, STRIDE, Plan, Player, Point, Stuck

GRIP_FROM_MIDDLE = 0.6  # m along the stick: near its end
# Pitch of the gaze, reach of the hand and slope of the stick (rad, m, rad): near and upright to
# carry it past walls, then far and slanting to poke at what lies high up.
CARRY = 0.3, 0.9, 1.25
POKE = 0.75, 1.45, 0.85
RUN_UP = 2.4  # m from the plinth: there the slanting stick is short of it, and the ball in view
ROOM_TO_STAND = 1.75  # m from the middle of the room, with the stick before one
TURNING_STICK, TURNING_BALL = 1.35, 1.15  # m about the avatar that what it holds sweeps over
ROOM_HALF = 3.0  # m

ROTATIONS = {
    f"rotate_{name}_{side}": sign * np.array(axis)
    for name, axis in (("forward", (1, 0, 0)), ("right", (0, -1, 0)), ("up", (0, 0, 1)))
    for side, sign in (("positive", 1.0), ("negative", -1.0))
}
ROTATION_STEP = c.ROTATE_SPEED * DECISION  # rad


class Expert(Player):
    floor = (-2.6, 2.6), (-2.6, 2.6)
    clearances = 0.8, 0.65

    def obstacles(self) -> list[np.ndarray]:
        return [self.plinth.position] if "plinth" in self.seen else []

    def play(self) -> Plan:
        self.stick, self.ball, self.plinth = (self.world[n] for n in ("stick", "ball", "plinth"))
        sensor, door, apple = self.world["sensor"], self.world["door"], self.world["apple"]
        if not sensor.is_on:
            if self._ball_is_up():
                yield from self._knock_down()
            if self.world.held is self.stick:
                yield from self.let_go()
            if self.world.held is not self.ball:
                yield from self._look_for_fallen_ball()
                yield from self.walk_round(lambda: self.last_seen["ball"], stop=1.1)
                yield from self.grasp(self.ball)
            yield from self._keeping(self.ball, self._carry_to(sensor))
            yield from self.let_go()
        yield from self.walk_through(door)
        yield from self.collect(apple)

    def _carry_to(self, sensor: Sensor) -> Plan:
        yield from self.reach_to(0.9)
        yield from self.tilt(0.0, tolerance=0.15)
        yield from self._make_room(TURNING_BALL)
        yield from self.find(sensor)
        yield from self.walk_round(lambda: sensor.position, stop=2.0)
        yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)

    def _keeping(self, thing: Thing, plan: Plan) -> Plan:
        """Go on with a plan for as long as a thing stays in the hand."""
        for step in plan:
            if self.world.held is not thing:
                self.seen.discard(thing.name)
                raise Stuck(f"{thing.name} slipped out of the hand")
            yield step

    def in_view(self, part: Part) -> bool:
        """The ball shows over the plinth's rim by its upper part, the stick also by its ends."""
        points = [part.position]
        if part.name == "ball":
            points = [part.position + np.array((0, 0, 0.1))]
        elif part.name == "stick":
            points += [part.position + at * part.rotation[:, 0] for at in (-0.6, 0.6)]
        return any(self.point_in_view(point, part.geom.id) for point in points)

    def place_in_view(self, thing: Thing, at: np.ndarray) -> bool:
        """Of the ball on the plinth its upper part would show, beside the stick."""
        if thing.name != "ball":
            return super().place_in_view(thing, at)
        left = 0.12 * np.array([-np.sin(self.world.yaw), np.cos(self.world.yaw), 0.0])
        return any(self.point_in_view(at + (0, 0, 0.1) + side * left) for side in (-1, 0, 1))

    def _ball_is_up(self) -> bool:
        """As far as has been seen: until it shows elsewhere, or no longer where it lay."""
        if "ball" not in self.last_seen:
            return True  # as on every seed
        return "ball" in self.seen and bool(self.last_seen["ball"][2] > PLINTH_HEIGHT)

    # --- the stick ------------------------------------------------------------------------------

    def _knock_down(self) -> Plan:
        if self.world.held is not self.stick:
            yield from self.search(lambda: "stick" in self.seen, pitch=-0.25)
            yield from self.walk_round(lambda: self.last_seen["stick"], stop=1.6)
            self._side = self._nearer_side()
            yield from self.grasp(self.stick, stand_off=0.9, at=lambda: self._end(self._side))
        yield from self._keeping(self.stick, self._run_up())
        with suppress(Stuck):  # the stick may slip out of the hand, and the ball fall all the same
            yield from self._keeping(self.stick, self._poke())
        yield from self._see_it_gone()
        self.seen.discard("ball")  # wherever it rolls, it must be found again

    def _run_up(self) -> Plan:
        yield from self._hold(*CARRY)
        yield from self._make_room(TURNING_STICK)
        yield from self.find(self.plinth)
        spot = self._run_up_spot()
        yield from self.walk_round(lambda: spot, stop=0.25)
        yield from self.face(lambda: self.plinth.position)
        yield from self._hold(*POKE)
        yield from self.find(self.ball)

    def _end(self, side: float) -> Point:
        """Where to hold the stick at one of its two ends."""
        return self.stick.position + side * GRIP_FROM_MIDDLE * self.stick.rotation[:, 0]

    def _nearer_side(self) -> float:
        return min((1.0, -1.0), key=lambda side: self.distance(self._end(side)))

    def _direction(self) -> np.ndarray:
        """The way the free end points, in the avatar's frame: forward, left, up."""
        x, y, z = -self._side * self.stick.rotation[:, 0]
        sine, cosine = np.sin(self.world.yaw), np.cos(self.world.yaw)
        return np.array([cosine * x + sine * y, cosine * y - sine * x, z])

    def _hold(self, pitch: float, reach: float, slope: float) -> Plan:
        """Bring the hand to a pitch and a reach, and point the free end forward and up."""
        wanted = np.array([np.cos(slope), 0.0, np.sin(slope)])
        for _ in range(80):
            step = (
                self._reach_step(reach) or self.tilt_step(pitch, 0.1) or self._rotate_step(wanted)
            )
            if step is None:
                return
            yield step
        raise Stuck("the stick would not turn")

    def _rotate_step(self, wanted: np.ndarray) -> str | None:
        """The rotation that brings the free end nearest to the wanted direction, if any does."""
        now = self._direction()
        gains = {
            name: (now + ROTATION_STEP * np.cross(axis, now)) @ wanted - now @ wanted
            for name, axis in ROTATIONS.items()
        }
        best = max(gains, key=lambda name: gains[name])
        return best if gains[best] > 0.5 * ROTATION_STEP**2 else None

    def _reach_step(self, reach: float) -> str | None:
        error = reach - self.world.reach
        if abs(error) <= 0.7 * HAND:
            return None
        return "hand_farther" if error > 0 else "hand_nearer"

    def _run_up_spot(self) -> Point:
        """The nearest spot at the right distance from the plinth with room to stand."""
        angles = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
        ring = self.plinth.position[:2] + RUN_UP * np.stack([np.cos(angles), np.sin(angles)], 1)
        spots = [spot for spot in ring if np.abs(spot).max() < ROOM_TO_STAND]
        return min(spots, key=self.distance)

    def _poke(self) -> Plan:
        """Walk the raised stick into the ball."""
        for _ in range(40):
            if not self._ball_is_up():
                return
            if self.distance(self.plinth.position) < 0.8:
                return
            yield self.turn_step(self.bearing(self.plinth.position), 0.05) or "forward"

    def _see_it_gone(self) -> Plan:
        """Look up from further off: from below, the plinth hides whether it still lies there."""
        for _ in range(15):
            if not self._ball_is_up():
                return
            turn = self.turn_step(self.bearing(self.plinth.position), 0.3)
            yield turn or self.tilt_step(POKE[0], 0.2) or "back"
        raise Stuck("missed the ball")

    def _look_for_fallen_ball(self) -> Plan:
        """It lies beyond the plinth, which may hide it: look past the plinth's side."""
        yield from self.tilt(-0.25, tolerance=0.06)
        for _ in range(5):
            if "ball" not in self.seen:
                yield f"strafe_{self.search_side}"
        yield from self.search(lambda: "ball" in self.seen, pitch=-0.25)

    def _make_room(self, radius: float) -> Plan:
        """Step away from walls and plinth until one can turn with what one holds."""
        for _ in range(15):
            here = self.world.position[:2]
            forward = STRIDE * np.array([np.cos(self.world.yaw), np.sin(self.world.yaw)])
            left = np.array([-forward[1], forward[0]])
            steps = {"back": -forward, "strafe_left": left, "strafe_right": -left}
            best = max(steps, key=lambda name: self._room_about(here + steps[name]))
            room = self._room_about(here)
            if room > radius or self._room_about(here + steps[best]) < room:
                return
            yield best

    def _room_about(self, spot: np.ndarray) -> float:
        """How far walls and plinth are, m."""
        to_walls = ROOM_HALF - float(np.abs(spot).max())
        if "plinth" not in self.seen:
            return to_walls
        to_plinth = float(np.hypot(*(spot - self.plinth.position[:2]))) - self.plinth.half[0]
        return min(to_plinth, to_walls)
