"""Push Blocks: two straight pushes bring the matching block into the recess; then the apple."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hard_eight.parts import Part, Thing
from hard_eight.tasks.push_blocks import (
    BLOCK_HALF,
    PLATE,
    RECESS_DEPTH,
    RECESS_HALF,
    ROOM_X,
    ROOM_Y,
    free_order,
)

from .player import FINE_STRIDE, Plan, Player, Point, Stuck, wrap

BEHIND = 0.85  # m from the block's middle, where a push begins
ALIGNED = 0.05  # m
AT_REST = PLATE + BLOCK_HALF - RECESS_DEPTH + 0.01  # height of a block's middle, on the sensor, m


class Expert(Player):
    floor = (ROOM_X[0] + 0.4, 9.0), (ROOM_Y[0] + 0.4, ROOM_Y[1] - 0.4)
    clearances = 0.76, 0.6

    def play(self) -> Plan:
        world = self.world
        block, frame = world["matching_block"], world["frame"]
        if not self.is_home(block):
            x, y = frame.at
            side = RECESS_HALF + 0.1
            corners = [(x + i * side, y + j * side, 0.0) for i in (-1, 1) for j in (-1, 1)]
            yield from self.search(lambda: self.sees(frame, corners), pitch=-0.2)
            yield from self.search(lambda: self.sees(block, [_top(block)]), pitch=-0.2)
            yield from self.tilt(-0.4)
            yield from self.bring_home(block, np.array(frame.at))
        yield from self.tilt(0.0)
        x, y, _ = world["door"].position
        for point, stop in (((x - 1.0, y), 0.3), ((x + 0.7, y), 0.3)):
            yield from self.find(world["door"])
            yield from self.walk_round(partial(np.array, point), stop)
        yield from self.collect(world["apple"])

    def sees(self, part: Part, points: Sequence[Point]) -> bool:
        """Whether a part has been in view, or one of these points of it is."""
        if part.name not in self.seen and any(self.point_in_view(point) for point in points):
            self.seen.add(part.name)
            self._look_around()  # so that it knows where
        return part.name in self.seen

    def standing(self) -> list[Thing]:
        """The blocks seen so far that stand in the room."""
        known = [thing for thing in self.world.things if thing.name in self.seen]
        return [thing for thing in known if self.last_seen[thing.name][2] > 0.1]

    def obstacles(self) -> list[np.ndarray]:
        return [self.last_seen[block.name] for block in self.standing()]

    def is_home(self, block: Thing) -> bool:
        """Whether it has been seen to lie on the sensor, which it hides, or the door shows open."""
        door = self.world["door"]
        if self.in_view(door) and door.openness > 0.1:
            return True
        return block.name in self.seen and self.last_seen[block.name][2] < AT_REST

    def bring_home(self, block: Thing, recess: np.ndarray) -> Plan:
        """Push it along one axis until it is level with the recess, then along the other."""
        for _ in range(12):
            if block.position[2] < 0.1:
                for _ in range(15):  # it drops the rest of the way when it is let be
                    if self.is_home(block):
                        return
                    yield "back"
                yield from self.turn_until(lambda: self.is_home(block), pitch=-0.1)
                if self.is_home(block):  # askew
                    return
                raise Stuck("it does not go down")
            here = block.position[:2]
            off = recess - here
            others = [self.last_seen[t.name] for t in self.standing() if t is not block]
            if min(abs(off)) <= ALIGNED:
                axis = int(np.argmax(abs(off)))
            else:
                order = free_order(tuple(here), tuple(recess), [(p[0], p[1]) for p in others])
                axis = int(np.argmin(abs(off))) if order is None else order
            yield from self.push(block, axis, recess)

    def push(self, block: Thing, axis: int, recess: np.ndarray) -> Plan:
        """Push a block along an axis until it is level with the recess, or drops into it."""
        ahead = np.zeros(2)
        ahead[axis] = np.sign(recess[axis] - block.position[axis])
        left = np.array([-ahead[1], ahead[0]])
        home = abs(recess - block.position[:2])[1 - axis] <= ALIGNED
        line = recess @ left if home else block.position[:2] @ left
        behind = block.position[:2] - BEHIND * ahead
        yield from self.walk_round(lambda: behind, stop=0.12)
        straight = float(np.arctan2(ahead[1], ahead[0]))
        yield from self.face(lambda: self.world.position[:2] + ahead, 0.04)
        for _ in range(4):  # square behind its middle, or it turns
            off_middle = (block.position[:2] - self.world.position[:2]) @ left
            if abs(off_middle) <= 0.5 * FINE_STRIDE:
                break
            yield f"strafe_{'left' if off_middle > 0 else 'right'}_fine"
        most_turned = 0.35 + abs(self.turn_from(straight, block))
        for _ in range(150):
            here, at = block.position[:2], self.world.position[:2]
            to_go = (recess - here) @ ahead
            if (to_go < 0.02 and not home) or to_go < -0.1 or block.position[2] < 0.24:
                break
            aside = here @ left - line
            turned = self.turn_from(straight, block)
            if abs(aside) > 0.25 or abs(turned) > most_turned or abs((here - at) @ left) > 0.35:
                raise Stuck("it slid off the line")
            heading = straight - np.clip(2.0 * aside, -0.35, 0.35) + 0.5 * turned
            fine = to_go < (0.8 if home else 0.25)
            step = self.turn_step(wrap(heading - self.world.yaw), 0.03)
            yield step or ("forward_fine" if fine else "forward")

    def turn_from(self, yaw: float, block: Thing) -> float:
        """How far the nearest of a block's four like faces is turned from facing along a yaw."""
        face = block.rotation[:2, 0]
        return wrap(4 * (float(np.arctan2(face[1], face[0])) - yaw)) / 4


def _top(block: Thing) -> np.ndarray:
    return np.add(block.position, (0.0, 0.0, 0.25))
