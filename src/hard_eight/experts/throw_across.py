"""Throw Across: throw one key, carry the other round, spend both on the doors, take the apple."""

from collections.abc import Callable

import numpy as np

from hard_eight.native import constants as c
from hard_eight.parts import Thing

from .player import Plan, Player, Stuck

ROUND_THE_BOTTOM = ((-2.0, 1.2), (1.8, 0.85))
FAR_LEG = (2.6, 2.8)
THROW_FROM_X, LET_GO_X = -2.8, -2.0
THROW_FROM_Y = (3.2, 4.7)  # straight across from the middle of the far leg
THROW_PITCH, THROW_REACH, THROW_SPEED = 0.5, 1.4, 3.0  # rad, m, m/s
OVERHEAD_PITCH = 1.0
CARRY_PITCH, CARRY_REACH = -0.4, 0.9


class Expert(Player):
    def play(self) -> Plan:
        if not self.is_across():
            if not any(self.lies_across(key) for key in self.keys()):
                yield from self.look_for_keys(2)  # the run-up must not trip over the other
                yield from self.throw(self.nearest(self.near_keys()))
            yield from self.look_for_keys(1)
            yield from self.carry_round(self.nearest(self.near_keys()))
        yield from self.use_keys()
        door, apple = self.world["second_door"], self.world["apple"]
        yield from self.tilt(0.0)
        yield from self.find(door)
        x, y, _ = door.position
        yield from self.walk_to(lambda: (x, y - 0.9), stop=0.25)
        yield from self.walk_to(lambda: (x, y + 0.5), stop=0.3)
        yield from self.collect(apple)

    # --- what is where --------------------------------------------------------------------------

    def is_across(self) -> bool:
        return bool(self.world.position[2] < c.BODY_BOTTOM - 0.3)

    def keys(self) -> list[Thing]:
        """The keys that have been seen and are not spent; without both there is no winning."""
        keys = [self.world["first_key"], self.world["second_key"]]
        known = [key for key in keys if key.name in self.last_seen and not key.is_destroyed]
        if any(self.last_seen[key.name][2] < -1.0 for key in known):
            raise Stuck("a key is lost in the void")
        return known

    def near_keys(self) -> list[Thing]:
        return [key for key in self.keys() if not self.lies_across(key)]

    def lies_across(self, key: Thing) -> bool:
        return bool(self.last_seen[key.name][0] > 1.2)

    def nearest(self, keys: list[Thing]) -> Thing:
        if not keys:
            raise Stuck("there is no key")
        return min(keys, key=lambda key: self.distance(self.last_seen[key.name]))

    # --- the steps ------------------------------------------------------------------------------

    def throw(self, key: Thing) -> Plan:
        """Run up to the railing with the key held high and let go on the run."""
        yield from self.take(key)
        yield from self.tilt(THROW_PITCH)
        x, y, _ = self.world.position
        turning = abs(self.world.yaw) > 0.6
        if turning and (x < -2.9 or y > 4.0):  # too near a wall to turn at arm's length
            yield from self.tilt(OVERHEAD_PITCH)
            yield from self.reach_to(CARRY_REACH)
        yield from self.face(lambda: (9.0, self.world.position[1]), tolerance=0.04)
        yield from self.tilt(THROW_PITCH)
        if not key.is_held:
            raise Stuck("it slipped out")
        lane = self.free_lane(key)
        for _ in range(30):
            if abs(aside := float(lane - self.world.position[1])) < 0.12:
                break
            yield ("strafe_left" if aside > 0 else "strafe_right") + "_fine" * bool(
                abs(aside) < 0.2
            )
        for _ in range(15):
            if self.world.position[0] > THROW_FROM_X:
                yield "back"
        if self.world.reach < THROW_REACH:
            yield from self.reach_to(c.REACH_FAR)
        yield from self.face(lambda: (9.0, self.world.position[1]), tolerance=0.06)
        while self.world.position[0] < LET_GO_X:
            if not key.is_held:
                raise Stuck("it slipped out")
            yield "forward"
        if key.velocity[0] < THROW_SPEED:
            raise Stuck("not fast enough to throw")
        self._letting_go = True
        yield "forward"
        self._letting_go = False
        for _ in range(4):  # watch it fly
            yield self.tilt_step(-0.4, 0.1) or "noop"

    def free_lane(self, thrown: Thing) -> float:
        """Where to run up: the nearest line over the leg that no other key lies on."""
        lanes = np.arange(THROW_FROM_Y[0], THROW_FROM_Y[1] + 0.01, 0.1)
        others = [self.last_seen[key.name][1] for key in self.near_keys() if key is not thrown]
        free = [lane for lane in lanes if all(abs(lane - y) > 0.7 for y in others)]
        return float(min(free or lanes, key=lambda lane: abs(lane - self.world.position[1])))

    def take(self, key: Thing) -> Plan:
        if not key.is_held:
            yield from self.look_down_until(lambda: key.name in self.seen)
            yield from self.grasp(key, stand_off=1.3)

    def look_for_keys(self, number: int) -> Plan:
        yield from self.look_down_until(lambda: len(self.near_keys()) >= number)

    def look_down_until(self, seen: Callable[[], bool]) -> Plan:
        """Keys lie on the floor, so they are looked for with lowered eyes."""
        for pitch in (-0.5, -0.95):
            yield from self.turn_until(seen, pitch)

    def carry_round(self, key: Thing) -> Plan:
        yield from self.take(key)
        yield from self.tilt(CARRY_PITCH)
        if self.world.reach > 1.2:
            yield from self.reach_to(CARRY_REACH)
        if not key.is_held:
            raise Stuck("it slipped out")
        for place in ROUND_THE_BOTTOM:
            yield from self.walk_to(lambda: place, stop=0.3, tolerance=0.15)  # noqa: B023

    def use_keys(self) -> Plan:
        for number in ("first", "second"):
            if not self.world[f"{number}_sensor"].is_on:
                yield from self.spend_key(number)

    def spend_key(self, number: str) -> Plan:
        sensor = self.world[f"{number}_sensor"]
        if self.world.held is None:
            yield from self.take(self.nearest(self.keys()))
            yield from self.tilt(CARRY_PITCH)
            yield from self.reach_to(CARRY_REACH)
        if number == "second":
            yield from self.pass_first_door()
        elif sensor.name not in self.seen:
            yield from self.walk_to(lambda: FAR_LEG, stop=0.3)
        yield from self.find(sensor)
        yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)

    def pass_first_door(self) -> Plan:
        x, y, _ = self.world["first_door"].position
        yield from self.walk_to(lambda: (x, y - 1.0), stop=0.25)
        yield from self.walk_to(lambda: (x, y + 0.4), stop=0.3)
