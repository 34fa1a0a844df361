"""The avatar's body: an upright capsule on three slides, moved by velocity servos.

Gaze and hand are compiled code (`native/step.py`, `native/hand.py`). The body has no turning joint:
a capsule looks the same from all sides, so its yaw is just a number that the gaze owns.
"""

from typing import Any

import mujoco

from .native import constants as c

# Strong enough to stand still on a ramp (creep < 4 cm/s) and to push a 25 kg block.
SERVO_GAIN = 1500.0  # N s/m
SERVO_FORCE = 900.0  # N


def add_to(spec: mujoco.MjSpec, collide: tuple[int, int]) -> tuple[Any, Any]:
    """Add the body; it must come first, so that its joints are the model's first."""
    body = spec.worldbody.add_body(name="avatar", pos=[0, 0, 0])
    for name, axis in (("x", [1, 0, 0]), ("y", [0, 1, 0]), ("z", [0, 0, 1])):
        body.add_joint(name=f"avatar_{name}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
    geom = body.add_geom(
        name="avatar",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        size=[c.BODY_RADIUS, c.BODY_HALF, 0],
        mass=c.BODY_MASS,
        contype=collide[0],
        conaffinity=collide[1],
        # Frictionless on floors and walls: the servos are the legs, and condim 3 without friction
        # explodes. Things bring their own friction, as hands and knees would.
        condim=1,
        priority=1,
        rgba=[1, 1, 1, 0],
    )
    for name in ("x", "y"):
        servo = spec.add_actuator(
            name=f"avatar_{name}",
            target=f"avatar_{name}",
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
        )
        servo.set_to_velocity(kv=SERVO_GAIN)
        servo.forcelimited = True
        servo.forcerange = [-SERVO_FORCE, SERVO_FORCE]
    return body, geom
