"""Remember Sensor: look at the sensor, fetch the block of its colour, then through the door."""

from collections.abc import Sequence

from hard_eight.parts import Thing
from hard_eight.placing import Spot
from hard_eight.tasks.remember_sensor import BLOCKS_Y, HALL_Y, MIDDLE_X, START_X

from .player import Plan, Player, Stuck

# The way from the start room to the block room; one walks it back as well.
MOUTH, BEND, BLOCK_ROOM = (START_X[1] - 0.8, 0.0), (MIDDLE_X, 0.0), (MIDDLE_X, BLOCKS_Y[0] + 0.8)


class Expert(Player):
    def play(self) -> Plan:
        sensor, door, apple = self.world["sensor"], self.world["door"], self.world["apple"]
        yield from self.find(sensor)
        colour = sensor.look.rgb  # what has been seen stays in mind
        if not sensor.is_on:
            if self.world.held is None or self.world.held.look.rgb != colour:
                yield from self._fetch(colour)
            yield from self.reach_to(0.9)
            yield from self._walk_round(self._corners_left(to_blocks=False))
            yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)
            yield from self.let_go()
        yield from self.tilt(0.0)
        x, y, _ = door.position
        yield from self.walk_to(lambda: (x + 1.2, y), stop=0.3)
        yield from self.walk_to(lambda: (x - 0.6, y), stop=0.3)
        yield from self.collect(apple)

    def _fetch(self, colour: tuple[float, float, float]) -> Plan:
        """Take hold of the block of that colour, wherever it was last seen."""
        if not self._seen_blocks(colour):
            yield from self.tilt(0.0)
            yield from self._walk_round(self._corners_left(to_blocks=True))
            yield from self.tilt(-0.2)
            yield from self._look_for_block(colour)
        (block,) = self._seen_blocks(colour)
        yield from self.grasp(block)
        yield from self.tilt(-0.1)

    def _seen_blocks(self, colour: tuple[float, float, float]) -> list[Thing]:
        return [t for t in self.world.things if t.name in self.seen and t.look.rgb == colour]

    def _look_for_block(self, colour: tuple[float, float, float]) -> Plan:
        """Turn round once at the entrance, then further in, where other blocks hide nothing."""
        for further in (0.0, 2.5):
            yield from self._walk_near((MIDDLE_X, BLOCK_ROOM[1] + further))
            yield from self.turn_until(lambda: bool(self._seen_blocks(colour)), pitch=-0.2)
            if self._seen_blocks(colour):
                return
        raise Stuck("never saw a block of the sensor's colour")

    def _corners_left(self, to_blocks: bool) -> list[Spot]:
        """The corners still to be walked round, from wherever one stands."""
        x, y, _ = self.world.position
        round_the_bend = x > START_X[1] and y > HALL_Y[1]
        if to_blocks:
            return [MOUTH, BEND, BLOCK_ROOM][2 if round_the_bend else 1 if x > START_X[1] else 0 :]
        passed = 0 if y > BLOCKS_Y[0] else 1 if round_the_bend else 2 if x > START_X[1] else 3
        return [BLOCK_ROOM, BEND, MOUTH][passed:]

    def _walk_round(self, corners: Sequence[Spot]) -> Plan:
        carried = self.world.held
        for corner in corners:
            for step in self._walk_near(corner):
                if self.world.held is not carried:
                    raise Stuck("dropped it on the way")
                yield step

    def _walk_near(self, spot: Spot) -> Plan:
        yield from self.walk_to(lambda: spot, stop=0.4)
