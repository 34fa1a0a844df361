"""Wall Sensor Stack: one key before the wall, the other on top against the sensor, then through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hard_eight.parts import KEY_HALF, Door, Thing
from hard_eight.tasks.wall_sensor_stack import ROOM_X, ROOM_Y

from .player import STRIDE, TILT, Plan, Player, Stuck

LAID = KEY_HALF + 0.02  # height of a held key's middle that is as good as on the floor
STACKED = 3 * KEY_HALF + 0.02  # the same on top of the other key
PASSABLE = 0.7  # openness of the door that lets the avatar through
OPENING = 15  # decisions by which it would have opened


class Expert(Player):
    def play(self) -> Plan:
        sensor, door, apple = self.world["sensor"], self.world["door"], self.world["apple"]
        if not sensor.is_on or self.world.held is not None:
            yield from self._see_a_key()
            first, second = self._in_order()
            yield from self.find(sensor)
            if not self._is_laid(first):
                yield from self._bring(first, LAID)
            yield from self._bring(second, STACKED)
            if not sensor.is_on:
                raise Stuck("the stack does not reach the sensor")
        try:
            yield from self._pass(door)
        except Stuck:  # the stack may have fallen behind one's back: look
            self.seen -= {"sensor", "first_key", "second_key"}
            yield from self.find(sensor)
            raise
        yield from self.collect(apple)

    def _pass(self, door: Door) -> Plan:
        yield from self.tilt(0.0)
        yield from self.find(door)
        x, y, _ = door.position
        if self.world.position[0] < x - 0.5:
            yield from self.walk_to(lambda: (x - 1.0, y), stop=0.3)
        for _ in range(OPENING):
            if door.openness >= PASSABLE:
                break
            yield "noop"
        else:
            raise Stuck("the door is shut")
        yield from self.walk_to(lambda: (x + 0.6, y), stop=0.3)

    # --- what stands where ------------------------------------------------------------------------

    def _see_a_key(self) -> Plan:
        """Look round until either key has been in view."""
        for step in self.find(self.world["first_key"]):
            if "second_key" in self.seen:
                return
            yield step

    def _in_order(self) -> tuple[Thing, Thing]:
        """The key to lay first, and the one to stack: what stands well stays, else the nearer."""
        keys = [self.world["first_key"], self.world["second_key"]]
        seen = [key for key in keys if key.name in self.seen]
        well = [key for key in seen if self._is_laid(key)]
        first = min(well or seen, key=lambda key: self.distance(key.position))
        return first, keys[1 - keys.index(first)]

    def _into_room(self) -> np.ndarray:
        """The direction that the sensor faces."""
        sensor = self.world["sensor"]
        axis = int(np.argmin(sensor.half))
        facing = np.zeros(3)
        facing[axis] = -np.sign(sensor.position[axis])
        return facing

    def _off_plate(self, point: np.ndarray) -> tuple[float, float]:
        """How far a point is from the plate's face, and how far to its left as one faces it."""
        sensor, facing = self.world["sensor"], self._into_room()
        offset = point - sensor.position
        return float(offset @ facing - sensor.half.min()), float(offset @ _left(facing))

    def _is_laid(self, key: Thing) -> bool:
        if "sensor" not in self.seen or key.is_held:
            return False
        away, aside = self._off_plate(key.position)
        return away < 0.36 and abs(aside) < 0.16 and abs(key.position[2] - KEY_HALF) < 0.03

    # --- carrying ---------------------------------------------------------------------------------

    def _bring(self, key: Thing, height: float) -> Plan:
        """Carry a key to the wall, set it down at a height before the sensor, and let go."""
        yield from self._fetch(key)
        facing = self._into_room()
        plate = self.world["sensor"].position
        yield from self._lift(key, height + 0.1)
        arm = self.distance(key.position)
        before = plate + facing * (arm + 0.55)
        # Away from the corners, where turning would swing the key into the other wall.
        free = np.array([ROOM_X[1], ROOM_Y[1]]) - arm - 0.3
        before[:2] = np.where(facing[:2] == 0, np.clip(before[:2], -free, free), before[:2])
        for step in self.walk_to(lambda: before, stop=0.15):
            self._check_hold(key)
            yield step
        yield from self.face(lambda: self.world.position - facing, tolerance=0.02)
        yield from self._square(key, facing)
        yield from self._slide(key, lambda: self._off_plate(key.position)[0] < KEY_HALF + 0.15)
        yield from self._lift(key, height + 0.02)
        yield from self._slide(key, lambda: self._off_plate(key.position)[0] < KEY_HALF + 0.02)
        yield from self._lift(key, height)
        if height == STACKED:  # lowering it has drawn it back a little
            yield from self._slide(key, lambda: self.world["sensor"].is_on)
            for _ in range(2):
                yield "forward_fine"
        yield from self.let_go()
        for _ in range(2):
            yield "back"

    def _fetch(self, key: Thing) -> Plan:
        """Take a key, and step back with it so that turning does not swing it into a wall."""
        if self.world.held is key:
            return
        if self.world.held is not None:
            yield from self.let_go()
        yield from self.tilt(-0.2, tolerance=0.2)
        yield from self.grasp(key)
        yield from self._lift(key, LAID + 0.1)
        for _ in range(3):
            yield "back"

    def _lift(self, key: Thing, height: float) -> Plan:
        """Tilt the gaze until the held key's middle is at a height."""
        for _ in range(60):
            self._check_hold(key)
            error = height - key.position[2]
            if abs(error) < 0.03:
                return
            coarse = abs(error) > 0.8 * TILT * self.world.reach
            yield ("look_up" if error > 0 else "look_down") + "_fine" * (not coarse)

    def _square(self, key: Thing, facing: np.ndarray) -> Plan:
        """Turn the held key until one of its sides is level with the wall."""
        for _ in range(12):
            self._check_hold(key)
            side = key.rotation[:, 0]
            angle = np.arctan2(side @ _left(facing), side @ facing)
            off = (angle + np.pi / 4) % (np.pi / 2) - np.pi / 4
            if abs(off) < 0.06:
                return
            yield "rotate_up_positive" if off > 0 else "rotate_up_negative"

    def _slide(self, key: Thing, done: Callable[[], bool]) -> Plan:
        """Bring the held key straight to the wall, keeping it before the sensor's middle."""
        # While walking the key lags behind the hand: steer by where it hangs when all is still.
        yield "grasp"
        yield "grasp"
        hangs = self._off_plate(key.position)[1] - self._off_plate(self.world.position)[1]
        for _ in range(80):
            self._check_hold(key)
            if done():
                return
            aside = self._off_plate(self.world.position)[1] + hangs
            bearing = self.bearing(self.world.position - self._into_room())
            if abs(aside) > 0.05:
                side = "left" if aside < 0 else "right"
                yield f"strafe_{side}" + "_fine" * (abs(aside) < 0.7 * STRIDE)
            elif step := self.turn_step(bearing, 0.03):
                yield step
            else:
                far = self._off_plate(key.position)[0] > KEY_HALF + 0.4
                yield "forward" if far else "forward_fine"
        raise Stuck("cannot bring it to the wall")

    def _check_hold(self, key: Thing) -> None:
        if self.world.held is not key:
            raise Stuck("dropped it on the way")


def _left(facing: np.ndarray) -> np.ndarray:
    """To the left of somebody who faces the plate, whose own face looks along `facing`."""
    return np.array([facing[1], -facing[0], 0.0])
