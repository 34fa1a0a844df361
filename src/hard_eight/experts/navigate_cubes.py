"""Navigate Cubes: pull some cubes out of the wall, shoulder through the rest, find the ramp."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hard_eight.parts import Ramp, Thing
from hard_eight.tasks.navigate_cubes import (
    COLUMNS,
    PITCH,
    PLATFORM_TOP,
    PLATFORM_X,
    RAMP_RUN,
    RAMP_WIDTH,
    ROWS,
    WALL_X,
)

from .player import Plan, Player, Stuck

BEFORE, BEHIND = WALL_X - 1.2, WALL_X + 1.3  # m, either side of the wall


class Expert(Player):
    def reset(self, env: Any) -> None:
        self.column: int | None = None
        self.pulls = 0
        super().reset(env)

    def play(self) -> Plan:
        ramp, apple = self.world["ramp"], self.world["apple"]
        yield from self.tilt(0.0)
        if self.world.position[0] < BEHIND - 0.4:
            yield from self.dig_through()
        if self.world.position[2] < PLATFORM_TOP + 0.6:
            yield from self.find_ramp(ramp)
            x, y, _ = ramp.foot
            # Straight at it, but for who stands beside it.
            if abs(self.world.position[1] - y) > 0.4 * abs(x - self.world.position[0]):
                yield from self.walk_to(lambda: (x - 0.7, y), stop=0.25)
            yield from self.walk_to(lambda: (x + 0.5, y), stop=0.25)
            yield from self.walk_to(lambda: (x + RAMP_RUN + 0.7, y), stop=0.3)
        yield from self.collect(apple)

    def find_ramp(self, ramp: Ramp) -> Plan:
        """Turn until some of the ramp is in view: cubes may lie on the middle of it."""
        x, y, _ = ramp.foot
        spots = [
            (x + share * RAMP_RUN, y + side * RAMP_WIDTH, share * PLATFORM_TOP)
            for share in (0.1, 0.5, 0.9)
            for side in (-0.4, 0.0, 0.4)
        ]

        def shows() -> bool:
            return any(self.point_in_view(spot, ramp.geom.id) for spot in spots)

        for _ in range(2):
            yield from self.turn_until(shows, pitch=-0.15)
            if shows():
                self.seen.add(ramp.name)
                return
        raise Stuck("never saw the ramp")

    def dig_through(self) -> Plan:
        """Take cubes out of one column of the wall, then walk through where it was."""
        if self.column is None:
            self.column = self.nearest_column()
            self.pulls = int(self.random.integers(3, ROWS + 1))
            yield from self.find(self.world[f"cube_{self.column}_1"])
        y = (self.column - (COLUMNS - 1) / 2) * PITCH
        if abs(self.world.position[1] - y) > 0.3:
            yield from self.walk_to(lambda: (BEFORE - 0.6, y), stop=0.3)
        while self.pulls > 0:
            yield from self.face(partial(np.array, (PLATFORM_X, y, 0.0)), 0.2)
            if (cube := self.cube_to_pull()) is None:
                break
            self.pulls -= 1
            yield from self.pull_out(cube)
        yield from self.tilt(0.0)
        if self.world.position[0] < BEFORE - 0.5:
            yield from self.walk_to(lambda: (BEFORE - 0.4, y), stop=0.3)
        yield from self.walk_to(lambda: (BEHIND + 0.3, y), stop=0.3)

    def nearest_column(self) -> int:
        column = round(self.world.position[1] / PITCH + (COLUMNS - 1) / 2)
        return int(np.clip(column, 1, COLUMNS - 2))

    def cube_to_pull(self) -> Thing | None:
        """The cube in view that is still in the column, and nearest the height of the eye."""
        column = [self.world[f"cube_{self.column}_{row}"] for row in range(ROWS)]
        in_view = [cube for cube in column if self.shows(cube)]
        standing = [cube for cube in in_view if abs(cube.position[0] - WALL_X) < 0.3]
        return min(standing, key=lambda cube: abs(cube.position[2] - 1.2), default=None)

    def pull_out(self, cube: Thing) -> Plan:
        """Draw a cube out of the wall and lay it aside."""
        yield from self.grasp(cube, stand_off=1.15)
        for _ in range(12):
            if self.world.held is None or cube.position[0] < BEFORE - 0.4:
                break
            yield "back_fine"
        side = "left" if self.world.position[1] > 0 else "right"
        for _ in range(9):
            yield f"look_{side}"
        yield from self.let_go()
