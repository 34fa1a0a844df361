"""Drawbridge: look for apples, take the way that pays best, key by key, bridge by bridge."""

import numpy as np

from hard_eight.parts import Apple, Thing
from hard_eight.placing import Spot
from hard_eight.platforms import Way
from hard_eight.tasks.drawbridge import FEWEST_ON_BEST, MOST_ON_ONE, NETWORK, PLATFORMS

from .player import Plan, Player, Point, Stuck, wrap

LOWERED = -0.4  # pitch of the gaze that sees what lies on the floor a step ahead, rad


class Expert(Player):
    def play(self) -> Plan:
        while (here := self._platform()) != "end":
            if here == "start" and self._lowered(here) is None:
                yield from self._look_out()
            yield from self._collect(here)
            if self._lowered(here) is None:
                yield from self._fetch(self.world[f"key_{here}"], PLATFORMS[here].x[1])
                yield from self._lower(self._best_way(here))
            if way := self._lowered(here):
                yield from self._cross(way)
        apple = self.world["apple"]
        yield from self.collect(apple)

    def _platform(self) -> str:
        """Where one stands; on a bridge, the platform it leads to."""
        x, y, _ = self.world.position
        for name, platform in reversed(PLATFORMS.items()):
            if x >= platform.x[0] and platform.y[0] <= y <= platform.y[1]:
                return name
        return "start"

    def _lowered(self, here: str) -> Way | None:
        return next((w for w in NETWORK.onward(here) if self.world[f"post_{w.name}"].is_on), None)

    def _look_out(self) -> Plan:
        """See where the apples are, from up to three spots, for raised bridges hide what is behind:
        until a route is known that is likely (and then sure) to be the best."""
        spots: list[Spot] = [(0.7, 0.0), (1.1, 2.0), (1.1, -2.0)]
        for looks, spot in enumerate(sorted(spots, key=self.distance), start=1):
            yield from self._walk_over(spot, stop=0.35)
            yield from self._sweep()
            known = self._worth(self._best_route("start"))
            if known == 2 * MOST_ON_ONE or (looks == 2 and known >= FEWEST_ON_BEST):
                return

    def _sweep(self) -> Plan:
        """Let the gaze pass over all that lies ahead."""
        yield from self.tilt(-0.1, 0.08)
        first = 0.5 if self.world.yaw > 0 else -0.5
        for yaw in (first, -first):
            while step := self.turn_step(wrap(yaw - self.world.yaw), 0.12):
                yield step

    def _apples(self, platform: str) -> list[Apple]:
        """The small apples of a platform that have been seen and are still there."""
        parts = self.world.parts.values()
        return [
            part
            for part in parts
            if part.name.startswith(f"apple_{platform}_")
            and part.name in self.seen
            and isinstance(part, Apple)
            and not part.is_collected
        ]

    def _worth(self, route: tuple[str, ...]) -> int:
        return sum(len(self._apples(platform)) for platform in route)

    def _best_route(self, here: str) -> tuple[str, ...]:
        """The route along which most apples have been seen."""
        return max(NETWORK.routes(here), key=self._worth)

    def _best_way(self, here: str) -> Way:
        best = self._best_route(here)
        return next(way for way in NETWORK.onward(here) if way.end == best[1])

    def _collect(self, here: str) -> Plan:
        for apple in sorted(self._apples(here), key=lambda apple: self.distance(apple.position)):
            yield from self._walk_over(apple.position)

    def _walk_over(self, spot: Point, stop: float = 0.3) -> Plan:
        """Walk to a spot, past the key that lies on the platform: pushed, it might meet a post."""
        key = self.world[f"key_{self._platform()}"]
        if self.world.held is None and key.name not in self.last_seen:
            yield from self.face(lambda: spot, tolerance=0.3)
            yield from self.tilt(LOWERED, 0.15)  # does it lie in the way?
        if self.world.held is None and key.name in self.seen and not key.is_destroyed:
            here, way = self.world.position[:2], np.array(spot[:2]) - self.world.position[:2]
            length = float(np.hypot(*way)) + 1e-6
            ahead, left = way / length, np.array((-way[1], way[0])) / length
            gap = self.last_seen[key.name][:2] - here
            if abs(left @ gap) < 0.6 and 0.4 < ahead @ gap < length:
                past = here + gap - np.copysign(0.85, left @ gap) * left
                yield from self.walk_to(lambda: past, stop=0.3)
        yield from self.walk_to(lambda: spot, stop=stop)

    def _fetch(self, key: Thing, edge: float) -> Plan:
        """Take the key, hold it close, and go where it meets nothing when one turns."""
        x, y, _ = self.last_seen.get(key.name, np.zeros(3))
        if key.name in self.seen and x > edge - 0.8:  # from behind it, not a post
            yield from self._walk_over((x - 1.1, y))
        yield from self.grasp(key)
        yield from self.tilt(-0.55, 0.1)
        yield from self.reach_to(0.75, 0.1)
        for _ in range(12):
            x = self.world.position[0]
            if edge - 1.95 <= x <= edge - 1.65:
                return
            yield self._step_along(0.0 if x < edge - 1.95 else np.pi)

    def _step_along(self, heading: float) -> str:
        """The one of four steps that leads most nearly that way."""
        sides = {
            "forward": 0.0,
            "strafe_left": 0.5 * np.pi,
            "back": np.pi,
            "strafe_right": -0.5 * np.pi,
        }
        return min(sides, key=lambda side: abs(wrap(self.world.yaw + sides[side] - heading)))

    def _lower(self, way: Way) -> Plan:
        """Touch the key to the post, and stand before the bridge while it comes down."""
        post, bridge = self.world[f"post_{way.name}"], self.world[f"bridge_{way.name}"]
        yield from self.find(post)
        x, y, _ = post.position
        ahead, aside = x - self.world.position[0], abs(y - self.world.position[1])
        if aside > 0.5 * ahead:  # not along the edge, where the key would meet other posts
            if ahead < 1.0 < aside:
                yield from self._walk_over((x - 1.6, self.world.position[1]), stop=0.4)
            yield from self._walk_over((x - 1.4, y), stop=0.4)
        for _ in range(60):  # at full speed: the key is gone as soon as it touches
            if post.is_on or self.world.held is None:
                break
            yield self.turn_step(self.bearing(post.position), 0.1) or "forward"
        if not post.is_on:
            raise Stuck("could not touch the post")
        while step := self.turn_step(wrap(-self.world.yaw), 0.15):
            yield step
        yield from self._sidestep(way.y)
        while bridge.openness < 1:
            yield "forward" if self.world.position[0] < x - 0.5 else "noop"

    def _sidestep(self, y: float) -> Plan:
        """Facing ahead, strafe until in line with a bridge."""
        while abs(aside := y - self.world.position[1]) > 0.1:
            yield f"strafe_{'left' if aside > 0 else 'right'}" + (
                "_fine" if abs(aside) < 0.2 else ""
            )

    def _cross(self, way: Way) -> Plan:
        near, far = PLATFORMS[way.start].x[1], PLATFORMS[way.end].x[0]
        if abs(way.y - self.world.position[1]) > 0.2:
            yield from self._walk_over((near - 0.6, way.y), stop=0.2)
        yield from self._walk_over((far + 0.6, way.y))
