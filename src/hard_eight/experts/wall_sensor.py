"""Wall Sensor: key to the sensor, then through the door to the apple."""

from .player import Plan, Player


class Expert(Player):
    def play(self) -> Plan:
        key, sensor = self.world["key"], self.world["sensor"]
        door, apple = self.world["door"], self.world["apple"]
        if not sensor.is_on:
            yield from self.grasp(key)
            yield from self.tilt(0.0)
            yield from self.find(sensor)
            yield from self.touch(lambda: sensor.position, lambda: sensor.is_on)
            yield from self.let_go()
        yield from self.walk_through(door)
        yield from self.collect(apple)
