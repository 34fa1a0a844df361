"""One episode's world: parts are added, MuJoCo compiles, native code steps and draws."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco
import numpy as np
from numpy.random import Generator

from . import avatar
from .errors import HardEightError
from .looks import PLAIN_SURROUNDINGS, Look, Surroundings
from .native import constants as c
from .native.raster import VISIBLE
from .textures import TEXTURE_NAMES

if TYPE_CHECKING:
    from .milestones import Milestone
    from .parts import Part, Thing

Vector = Sequence[float]

SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER
BOX = mujoco.mjtGeom.mjGEOM_BOX

# Who collides with whom: (contype, conaffinity). Two geoms meet when either's type is in the
# other's affinity.
SOLID = (1, 0b1110)
MOVABLE = (2, 0b1111)
AVATAR = (4, 0b1111)
AVATAR_ONLY = (0, 0b0100)  # bears the avatar; things fall through
STEPPED_OVER = (0, 0b1011)  # meets all but the avatar
GHOST = (0, 0)

ABYSS_TOP = -12.0  # where whatever falls into a void comes to rest, far below sight
VOID_RGB = (24, 26, 44)
# MuJoCo's working memory for one world; its own guess is several times what these worlds need.
WORLD_MEMORY = 2 << 20

_TEXTURE_INDEX = {name: i for i, name in enumerate(TEXTURE_NAMES)}


class Draw(NamedTuple):
    """Separate streams of randomness, so that a change of looks never moves a key."""

    layout: Generator
    looks: Generator
    dynamics: Generator

    @classmethod
    def from_seed(cls, seed: int) -> Draw:
        return cls(*(np.random.default_rng((seed, stream)) for stream in range(3)))


class World:
    """Built part by part by a task, then `finish`ed; afterwards live views tell what goes on."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = Draw.from_seed(seed)
        self.surroundings: Surroundings = PLAIN_SURROUNDINGS
        self.parts: dict[str, Part] = {}
        self.milestones: dict[str, Milestone] = {}
        self.spec = _new_spec()
        self.avatar_body, self.avatar_geom = avatar.add_to(self.spec, AVATAR)
        self._looks: list[tuple[Any, Look, int]] = [(self.avatar_geom, Look((0, 0, 0)), 0)]
        self._things: list[Thing] = []
        self._signals = 0
        self._ruled: list[Part] = []
        self._start: tuple[float, float, float, float] | None = None

    # --- building -------------------------------------------------------------------------------

    def add(self, part: Part) -> Any:
        """Add a part under its name and return it."""
        if part.name in self.parts:
            raise HardEightError(f"two parts are named {part.name!r}; give each its own name")
        self.parts[part.name] = part
        part.world = weakref.proxy(self)  # no ring: an ended episode's world goes at once
        part.build(self)
        return part

    def geom(
        self,
        shape: Any,
        at: Vector,
        size: Vector,
        look: Look | None,
        *,
        body: Any = None,
        quat: Vector | None = None,
        collide: tuple[int, int] = SOLID,
        flags: int = VISIBLE,
        **options: Any,
    ) -> Any:
        """Add a geom; sizes are half sizes in metres. No look: it is there but not seen."""
        contype, conaffinity = collide
        alpha = 0.0 if look is None else 1.0
        padded = [*size, 0.0, 0.0][:3]
        geom = (body or self.spec.worldbody).add_geom(
            type=shape,
            pos=at,
            size=padded,
            contype=contype,
            conaffinity=conaffinity,
            rgba=[1, 1, 1, alpha],
            **options,
        )
        if quat is not None:
            geom.quat = quat
        self._looks.append((geom, look or Look((0, 0, 0)), 0 if look is None else flags))
        return geom

    def solid(self, x: Vector, y: Vector, z: Vector, look: Look | None, **options: Any) -> Any:
        """An upright box that stands still, by its extents."""
        at = [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2]
        half = [(x[1] - x[0]) / 2, (y[1] - y[0]) / 2, (z[1] - z[0]) / 2]
        return self.geom(BOX, at, half, look, **options)

    def mocap(self, name: str, at: Vector) -> Any:
        """A body that rules move: a door, a bridge."""
        return self.spec.worldbody.add_body(name=name, mocap=True, pos=at)

    def register_thing(self, part: Thing) -> int:
        """Make a part one of the movable things; returns its index."""
        self._things.append(part)
        return len(self._things) - 1

    def new_signal(self) -> int:
        """A signal that a sensor sets and doors read; returns its index."""
        self._signals += 1
        return self._signals - 1

    def register_rule(self, part: Part) -> int:
        """Have the part's `rule()` row run every frame; returns the row's index."""
        self._ruled.append(part)
        return len(self._ruled) - 1

    def start_avatar(self, x: float, y: float, yaw: float, floor: float = 0.0) -> None:
        """Where the avatar starts, and which way it faces (rad, anticlockwise from +x)."""
        self._start = (x, y, floor, yaw)

    # --- compiling ------------------------------------------------------------------------------

    def finish(self) -> World:
        """Compile; afterwards the world can be stepped and looked at."""
        if self._start is None:
            raise HardEightError("the task placed no avatar; call world.start_avatar(x, y, yaw)")
        self.geom(BOX, [0, 0, ABYSS_TOP - 0.5], [60, 60, 0.5], None, friction=[1, 0.01, 0.001])
        self.model = model = self.spec.compile()
        self.data = data = mujoco.MjData(model)
        self._fill_state()
        self._fill_drawing_tables(model)
        self._fill_rule_tables()
        mujoco.mj_forward(model, data)
        self.row = self._pointer_row()
        return self

    def _fill_state(self) -> None:
        assert self._start is not None
        x, y, floor, yaw = self._start
        self.data.qpos[c.AVATAR_X : c.AVATAR_Z + 1] = x, y, floor + c.BODY_BOTTOM
        self.state = np.zeros(c.STATE_COLUMNS)
        self.state[c.S_YAW] = (yaw + np.pi) % (2 * np.pi) - np.pi
        self.state[c.S_REACH] = (c.REACH_NEAR + c.REACH_FAR) / 2
        self.state[c.S_HELD] = c.HIDDEN
        self.signals = np.zeros(max(self._signals, 1))

    def _fill_drawing_tables(self, model: mujoco.MjModel) -> None:
        n = model.ngeom
        self.rgb = np.zeros((n, 3), np.float32)
        self.texture = np.zeros(n, np.int32)
        self.flags = np.zeros(n, np.uint8)
        for geom, look, flags in self._looks:
            self.rgb[geom.id] = look.rgb
            self.texture[geom.id] = _TEXTURE_INDEX[look.texture]
            self.flags[geom.id] = flags
        self.kind = np.ascontiguousarray(model.geom_type, np.int32)
        self.size = model.geom_size.astype(np.float32)
        self.radius = model.geom_rbound.astype(np.float32)

    def _fill_rule_tables(self) -> None:
        things = self._things
        self.movables = np.zeros((len(things), c.MOVABLE_INTS), np.int64)
        self.masses = np.zeros((len(things), c.MOVABLE_FLOATS))
        for i, thing in enumerate(things):
            body, geom, joint = thing.body.id, thing.geom.id, thing.joint.id
            self.movables[i, : c.M_DOF + 1] = (
                body, geom, self.model.jnt_qposadr[joint], self.model.jnt_dofadr[joint]
            )  # fmt: skip
            slide, turn = thing.drag
            dof = self.model.jnt_dofadr[joint]
            self.model.dof_damping[dof : dof + 6] = slide, slide, 0.0, 0.0, 0.0, turn
            self.masses[i, c.MF_MASS] = self.model.body_mass[body]
            self.masses[i, c.MF_INERTIA : c.MF_INERTIA + 3] = self.model.body_inertia[body]
            self.masses[i, c.MF_GRAVE : c.MF_GRAVE + 3] = (2.0 * i, 0.0, ABYSS_TOP + 1.0)
        self.rule_ints = np.zeros((len(self._ruled), c.RULE_INTS), np.int64)
        self.rule_floats = np.zeros((len(self._ruled), c.RULE_FLOATS))
        self.rule_state = np.zeros((len(self._ruled), c.RULE_STATE))
        for i, part in enumerate(self._ruled):
            ints, floats, state = part.rule()
            self.rule_ints[i, : len(ints)] = ints
            self.rule_floats[i, : len(floats)] = floats
            self.rule_state[i, : len(state)] = state
        self.milestone_ints = np.zeros((len(self.milestones), c.MILESTONE_INTS), np.int64)
        self.milestone_floats = np.zeros((len(self.milestones), c.MILESTONE_FLOATS))
        self.reached = np.zeros(len(self.milestones), np.uint8)
        for i, milestone in enumerate(self.milestones.values()):
            ints, floats = milestone.row()
            self.milestone_ints[i, : len(ints)] = ints
            self.milestone_floats[i, : len(floats)] = floats

    def _pointer_row(self) -> np.ndarray:
        """The addresses that compiled code works on; the arrays live as long as this world."""
        m, d = self.model, self.data
        arrays = (
            d.qpos, d.qvel, d.ctrl, d.xpos, d.xquat, d.ximat, d.xfrc_applied, d.geom_xpos,
            d.geom_xmat, d.mocap_pos, d.mocap_quat, self.state, self.signals, self.rule_ints,
            self.rule_floats, self.rule_state, self.movables, self.masses, self.milestone_ints,
            self.milestone_floats, self.reached, self.kind, self.size, self.rgb, self.texture,
            self.flags, self.radius,
        )  # fmt: skip
        counts = (
            m.nq, m.nv, m.nbody, m.ngeom, m.nmocap, len(self.signals), len(self.rule_ints),
            len(self.movables), len(self.reached), self.avatar_geom.id, self.avatar_body.id,
        )  # fmt: skip
        addresses = [array.ctypes.data for array in arrays]
        row = np.array([m._address, d._address, *addresses, *counts], np.int64)
        assert len(row) == c.POINTER_COLUMNS
        return row

    # --- reading, for people, experts and tests ---------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """A part by its name."""
        if name not in self.parts:
            raise HardEightError(f"no part {name!r} here; there are {', '.join(self.parts)}")
        return self.parts[name]

    @property
    def position(self) -> np.ndarray:
        """The middle of the avatar's body."""
        return self.data.qpos[c.AVATAR_X : c.AVATAR_Z + 1].copy()

    @property
    def eye(self) -> np.ndarray:
        return np.add(self.position, (0.0, 0.0, c.EYE_ABOVE_CENTRE))

    @property
    def yaw(self) -> float:
        return float(self.state[c.S_YAW])

    @property
    def pitch(self) -> float:
        return float(self.state[c.S_PITCH])

    @property
    def reach(self) -> float:
        """Distance from the eye to the hand, m."""
        return float(self.state[c.S_REACH])

    @property
    def hand_force(self) -> float:
        return float(self.state[c.S_FORCE])

    @property
    def held(self) -> Any | None:
        """The thing in the hand, if any."""
        index = int(self.state[c.S_HELD])
        return self._things[index] if index >= 0 else None

    @property
    def things(self) -> list[Any]:
        """All movable things."""
        return list(self._things)

    @property
    def seconds(self) -> float:
        return float(self.state[c.S_FRAMES]) / c.FRAMES_PER_SECOND


def _new_spec() -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    option = spec.option
    option.timestep = c.TIMESTEP
    option.gravity = [0, 0, -c.GRAVITY]
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    # Sleep halves the cost of a quiet room; speculative contacts let nothing leak through walls.
    option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SPECULATIVE)
    spec.memory = WORLD_MEMORY
    return spec
