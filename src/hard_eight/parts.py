"""The parts that tasks are made of. Each owns its geometry, and the row that feeds its rule.

The rules themselves run compiled, every frame, in `native/rules.py`. After `World.finish` a part
also tells its live state: where a thing is, whether a sensor is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from . import looks
from .looks import Look
from .milestones import bits
from .native import constants as c
from .native.maths import sine_cosine
from .native.raster import CASTS_SHADOW, OUTLINED, VISIBLE
from .native.rules import place_bridge
from .world import BOX, CYLINDER, GHOST, MOVABLE, SPHERE, STEPPED_OVER, Vector

if TYPE_CHECKING:
    from .world import World

Rule = tuple[Sequence[int], Sequence[float], Sequence[float]]
KEY_HALF = 0.2  # m
DOOR_WIDTH, DOOR_HEIGHT = 1.4, 2.2  # m


def turned(yaw: float) -> list[float]:
    """A turn about the vertical as a quaternion, in arithmetic that is the same everywhere."""
    sine, cosine = sine_cosine(yaw / 2)
    return [cosine, 0.0, 0.0, sine]


class Part:
    """Something in the world, known by its name."""

    world: World
    body: Any
    geom: Any
    joint: Any

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, world: World) -> None:
        raise NotImplementedError

    def rule(self) -> Rule:
        raise NotImplementedError

    @property
    def position(self) -> np.ndarray:
        """The middle of its geom, now."""
        return self.world.data.geom_xpos[self.geom.id].copy()

    @property
    def rotation(self) -> np.ndarray:
        """Its axes, now, as columns."""
        return self.world.data.geom_xmat[self.geom.id].reshape(3, 3).copy()

    @property
    def half(self) -> np.ndarray:
        """Its half sizes as MuJoCo counts them."""
        return self.world.model.geom_size[self.geom.id].copy()


class Thing(Part):
    """A movable thing. The hand lifts what weighs less than the grip; the rest can be pushed."""

    # Against sliding over the floor (N s/m) and against turning about the vertical (N m s).
    drag: Vector = (0.0, 0.0)

    def __init__(
        self,
        name: str,
        at: Vector,
        look: Look,
        *,
        shape: Any = BOX,
        half: Vector = (KEY_HALF, KEY_HALF, KEY_HALF),
        mass: float = 1.0,
        yaw: float = 0.0,
        friction: Vector = (0.8, 0.01, 0.001),
        condim: int = 4,
        quat: Vector | None = None,
        collide: tuple[int, int] = MOVABLE,
        asleep: bool = False,
    ) -> None:
        """`asleep`: at rest from the start, at no cost, until something touches it."""
        super().__init__(name)
        self.at, self.look, self.shape, self.size, self.mass = at, look, shape, half, mass
        self.asleep = asleep
        self.collide = collide
        self.quat = turned(yaw) if quat is None else quat
        self.friction, self.condim = friction, condim

    def build(self, world: World) -> None:
        self.index = world.register_thing(self)
        self.body = world.spec.worldbody.add_body(name=self.name, pos=self.at, quat=self.quat)
        if self.asleep:
            self.body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_INIT
        self.joint = self.body.add_freejoint(name=self.name)
        self.geom = world.geom(
            self.shape,
            [0, 0, 0],
            self.size,
            self.look,
            body=self.body,
            collide=self.collide,
            flags=VISIBLE | OUTLINED | CASTS_SHADOW,
            mass=self.mass,
            friction=self.friction,
            condim=self.condim,
            priority=1,  # MuJoCo would take the larger friction of the two that touch
        )

    @property
    def velocity(self) -> np.ndarray:
        at = self.world.movables[self.index, c.M_DOF]
        return self.world.data.qvel[at : at + 3].copy()

    @property
    def is_held(self) -> bool:
        return self.world.held is self

    @property
    def is_destroyed(self) -> bool:
        return bool(self.world.movables[self.index, c.M_DESTROYED])


def key(name: str, at: Vector, look: Look, **options: Any) -> Thing:
    """A 40 cm cube of 1 kg that activates sensors."""
    return Thing(name, at, look, **options)


def ball(name: str, at: Vector, look: Look, radius: float = 0.15) -> Thing:
    """A ball that lies still on a plinth: its rolling friction stops it."""
    return Thing(
        name, at, look, shape=SPHERE, half=(radius,), mass=0.5, friction=(0.8, 0.02, 0.01), condim=6
    )


def stick(name: str, at: Vector, look: Look, yaw: float = 0.0) -> Thing:
    """A bat, 1.4 m long, lying along its own x axis.

    The avatar steps over it: if it bore the avatar, leaned on a wall it would make a ramp.
    """
    return Thing(name, at, look, half=(0.7, 0.05, 0.05), mass=0.6, yaw=yaw, collide=STEPPED_OVER)


def block(name: str, at: Vector, look: Look, half: float = 0.3, yaw: float = 0.0) -> Thing:
    """A block of 25 kg: it slides when pushed, and is too heavy for the hand.

    Its drag makes it go where it is pushed: it stops when the push does, turns slowly when pushed
    off its middle, and drops into a recess instead of shooting over it.
    """
    made = Thing(
        name, at, look, half=(half, half, half), mass=25.0, yaw=yaw, friction=(0.3, 0.01, 0.001)
    )
    made.drag = (600.0, 300.0)
    return made


class Sensor(Part):
    """A plate that one of its keys must touch; its signal opens doors and lowers bridges."""

    def __init__(
        self,
        name: str,
        at: Vector,
        half: Vector,
        look: Look,
        accepts: Sequence[Thing],
        mode: int = c.SENSOR_LATCHES,
    ) -> None:
        super().__init__(name)
        self.at, self.size, self.look, self.accepts, self.mode = at, half, look, accepts, mode

    def build(self, world: World) -> None:
        self.signal = world.new_signal()
        self.geom = world.geom(
            BOX, self.at, self.size, self.look, name=self.name, flags=VISIBLE | OUTLINED
        )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        ints = (c.RULE_SENSOR, self.geom.id, self.signal, self.mode, bits(self.accepts))
        return ints, (*looks.lit(self.look.rgb), *self.look.rgb), ()

    @property
    def is_on(self) -> bool:
        return bool(self.world.signals[self.signal] > 0)


class Door(Part):
    """A slab that rises while all its sensors are on, and comes down again when one is not."""

    def __init__(
        self,
        name: str,
        at: Vector,
        along: str,
        opened_by: Sequence[Sensor],
        *,
        width: float = DOOR_WIDTH,
        height: float = DOOR_HEIGHT,
        look: Look = looks.DOOR,
        seconds_up: float = 0.7,
        seconds_down: float = 0.5,
    ) -> None:
        """`at`: the middle of the sill. `along`: the axis, 'x' or 'y', of the wall it stands in."""
        super().__init__(name)
        self.at, self.along, self.opened_by, self.look = at, along, opened_by, look
        self.width, self.height = width, height
        self.seconds_up, self.seconds_down = seconds_up, seconds_down

    def build(self, world: World) -> None:
        x, y, floor = self.at
        self.body = world.mocap(self.name, [x, y, floor + self.height / 2])
        thin, wide, high = 0.06, self.width / 2, self.height / 2
        half = [wide, thin, high] if self.along == "x" else [thin, wide, high]
        self.geom = world.geom(
            BOX, [0, 0, 0], half, self.look, body=self.body, flags=VISIBLE | OUTLINED
        )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        shut = self.at[2] + self.height / 2
        needed = sum(1 << sensor.signal for sensor in self.opened_by)
        mocap = int(self.world.model.body_mocapid[self.body.id])
        ints = (c.RULE_DOOR, self.geom.id, mocap, needed)
        up, down = self.height / self.seconds_up, self.height / self.seconds_down
        return ints, (shut, shut + self.height, up, down), ()

    @property
    def position(self) -> np.ndarray:
        """The middle of the doorway, whether the slab is up or down."""
        x, y, floor = self.at
        return np.array([x, y, floor + self.height / 2])

    @property
    def openness(self) -> float:
        """0 when shut, 1 when wholly up."""
        mocap = self.world.model.body_mocapid[self.body.id]
        shut = self.at[2] + self.height / 2
        return float((self.world.data.mocap_pos[mocap, 2] - shut) / self.height)


class Drawbridge(Part):
    """A raised deck, hinged at its near edge, that comes down level when its sensor is on."""

    def __init__(
        self,
        name: str,
        hinge: Vector,
        heading: float,
        length: float,
        width: float,
        opened_by: Sequence[Sensor],
        look: Look,
        *,
        seconds: float = 1.0,
        thickness: float = 0.1,
    ) -> None:
        """`hinge`: middle of the near edge, level with both floors. `heading`: the way it leads."""
        super().__init__(name)
        self.hinge, self.heading, self.length, self.width = hinge, heading, length, width
        self.opened_by, self.look, self.seconds = opened_by, look, seconds
        self.thickness = thickness

    def build(self, world: World) -> None:
        self.body = world.mocap(self.name, list(self.hinge))
        half = [self.length / 2, self.width / 2, self.thickness / 2]
        self.geom = world.geom(
            BOX, [0, 0, 0], half, self.look, body=self.body, flags=VISIBLE | OUTLINED
        )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        needed = sum(1 << sensor.signal for sensor in self.opened_by)
        ints = (c.RULE_BRIDGE, int(self.world.model.body_mocapid[self.body.id]), needed)
        floats = (
            *self.hinge, self.heading, self.length / 2, self.thickness / 2, self.seconds
        )  # fmt: skip
        raised = (np.pi / 2,)
        data = self.world.data
        place_bridge(ints, floats, raised, data.mocap_pos, data.mocap_quat)
        return ints, floats, raised

    @property
    def openness(self) -> float:
        """0 when raised, 1 when level."""
        return 1.0 - float(self.world.rule_state[self.rule_index, 0]) / (np.pi / 2)


class Apple(Part):
    """A reward. The large apple ends the episode."""

    def __init__(self, name: str, at: Vector, large: bool) -> None:
        """`at`: the point of the floor under it."""
        super().__init__(name)
        self.large = large
        self.radius = 0.4 if large else 0.2
        self.reward = 10.0 if large else 1.0
        self.at = (at[0], at[1], at[2] + self.radius + 0.1)

    def build(self, world: World) -> None:
        x, y, z = self.at
        flags = VISIBLE | OUTLINED | CASTS_SHADOW
        self.geom = world.geom(
            SPHERE, self.at, [self.radius], Look(looks.APPLE_RGB), collide=GHOST, flags=flags
        )
        self.stem = world.geom(
            CYLINDER,
            [x, y, z + 1.1 * self.radius],
            [0.1 * self.radius, 0.25 * self.radius],
            Look(looks.STEM_RGB),
            collide=GHOST,
        )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        ints = (c.RULE_APPLE, self.geom.id, self.stem.id, int(self.large))
        return ints, (self.reward, self.radius, *self.at), (0.0,)

    @property
    def is_collected(self) -> bool:
        return bool(self.world.rule_state[self.rule_index, 0] > 0)


class PenaltyStrip(Part):
    """A strip of floor that costs 1 each time the avatar walks onto it."""

    def __init__(self, name: str, x: Vector, y: Vector, floor: float = 0.0) -> None:
        super().__init__(name)
        self.x, self.y, self.floor = x, y, floor

    def build(self, world: World) -> None:
        self.geom = world.solid(
            self.x,
            self.y,
            (self.floor - 0.05, self.floor + 0.01),
            Look((215, 30, 60), "stripes"),
            collide=GHOST,
        )
        self.rule_index = world.register_rule(self)

    def rule(self) -> Rule:
        return (c.RULE_PENALTY,), (-1.0, *self.x, *self.y, self.floor), (0.0,)


class Plinth(Part):
    """A pillar that stands still."""

    def __init__(self, name: str, at: Vector, radius: float, height: float, look: Look) -> None:
        super().__init__(name)
        self.at, self.radius, self.height, self.look = at, radius, height, look

    def build(self, world: World) -> None:
        x, y, floor = self.at
        self.geom = world.geom(
            CYLINDER,
            [x, y, floor + self.height / 2],
            [self.radius, self.height / 2],
            self.look,
            flags=VISIBLE | OUTLINED | CASTS_SHADOW,
        )


class Ramp(Part):
    """A slope that rises along `heading` from the floor to `height` over `run` metres."""

    def __init__(
        self,
        name: str,
        foot: Vector,
        heading: float,
        run: float,
        height: float,
        width: float,
        look: Look,
    ) -> None:
        """`foot`: the middle of the lower edge."""
        super().__init__(name)
        self.foot, self.heading, self.run, self.height = foot, heading, run, height
        self.width, self.look = width, look

    def build(self, world: World) -> None:
        length = float(np.sqrt(self.run**2 + self.height**2))
        thick = 0.1
        # Half the slope's angle, from plain arithmetic.
        cosine = float(np.sqrt((1 + self.run / length) / 2))
        sine = float(np.sqrt((1 - self.run / length) / 2))
        head_sine, head_cosine = sine_cosine(self.heading)
        turn_sine, turn_cosine = sine_cosine(self.heading / 2)
        # The top face passes through the foot; the middle lies half a thickness below it.
        along = self.run / 2 + thick / 2 * self.height / length
        x, y, z = self.foot
        self.geom = world.geom(
            BOX,
            [
                x + head_cosine * along,
                y + head_sine * along,
                z + self.height / 2 - thick / 2 * self.run / length,
            ],
            [length / 2, self.width / 2, thick / 2],
            self.look,
            quat=[turn_cosine * cosine, turn_sine * sine, -turn_cosine * sine, turn_sine * cosine],
            flags=VISIBLE | OUTLINED,
        )
