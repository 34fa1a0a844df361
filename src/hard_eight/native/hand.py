"""The invisible hand: taking hold of what is under the gaze, and the spring that holds it."""

import math

import numpy as np

from .calls import mj_ray
from .constants import (
    GRASP_MARGIN,
    GRAVITY,
    GRIP_FORCE,
    GRIP_STIFFNESS,
    GRIP_TORQUE,
    GRIP_TURNING,
    GRIP_TURNING_DAMPING,
    HIDDEN,
    M_BODY,
    M_DESTROYED,
    M_DOF,
    M_GEOM,
    MF_INERTIA,
    MF_MASS,
    REACH_FAR,
    REACH_NEAR,
    S_FORCE,
    S_HELD,
    S_OFFSET_X,
    S_OFFSET_Y,
    S_OFFSET_Z,
    S_OPEN_HAND,
    S_REACH,
    S_TURN_W,
    S_TURN_X,
    S_TURN_Y,
    S_TURN_Z,
    S_YAW,
)
from .jit import inner
from .maths import multiply, rotate, sine_cosine

SPHERE, CAPSULE, CYLINDER, BOX = 2, 3, 5, 6
MISS = -1.0


@inner
def ray_to_slabs(origin, direction, half):
    """Distance along a ray to an axis-aligned box round the origin, or MISS."""
    nearest = -1e30
    farthest = 1e30
    for k in range(3):
        if abs(direction[k]) < 1e-12:
            if abs(origin[k]) > half[k]:
                return MISS
        else:
            a = (-half[k] - origin[k]) / direction[k]
            b = (half[k] - origin[k]) / direction[k]
            nearest = max(nearest, min(a, b))
            farthest = min(farthest, max(a, b))
    if nearest > farthest or farthest < 0.0:
        return MISS
    return max(nearest, 0.0)


@inner
def ray_to_thing(eye, gaze, kind, size, position, rotation, margin):
    """Distance from the eye along the gaze to a thing grown by a margin, or MISS."""
    if kind == SPHERE:
        along = 0.0
        square = 0.0
        for k in range(3):
            d = position[k] - eye[k]
            along += d * gaze[k]
            square += d * d
        gap = (size[0] + margin) ** 2 - (square - along * along)
        if gap < 0.0 or along < 0.0:
            return MISS
        return max(along - math.sqrt(gap), 0.0)
    origin = np.empty(3)
    direction = np.empty(3)
    half = np.empty(3)
    for k in range(3):
        origin[k] = 0.0
        direction[k] = 0.0
        for j in range(3):
            origin[k] += (eye[j] - position[j]) * rotation[3 * j + k]
            direction[k] += gaze[j] * rotation[3 * j + k]
        half[k] = size[k] + margin
    if kind == CYLINDER or kind == CAPSULE:  # the box round it is close enough for a hand
        half[0] = size[0] + margin
        half[1] = size[0] + margin
        half[2] = size[1] + margin + (size[0] if kind == CAPSULE else 0.0)
    return ray_to_slabs(origin, direction, half)


@inner
def take_hold(
    model, data, state, eye, gaze, qpos_quat, kinds, sizes, geom_pos, geom_mat,
    movables, masses, avatar_body,
):  # fmt: skip
    """Take hold of the nearest movable thing under the gaze, if it is in reach and not too heavy.

    What the gaze meets exactly wins over what it misses by GRASP_MARGIN; nothing is taken through
    a wall.
    """
    best = -1
    nearest = REACH_FAR
    for margin in (0.0, GRASP_MARGIN):
        for i in range(movables.shape[0]):
            if movables[i, M_DESTROYED] != 0:
                continue
            geom = movables[i, M_GEOM]
            distance = ray_to_thing(
                eye, gaze, kinds[geom], sizes[geom], geom_pos[geom], geom_mat[geom], margin
            )
            if distance >= 0.0 and distance < nearest:
                nearest = distance
                best = i
        if best >= 0:
            break
    if best < 0 or masses[best, MF_MASS] * GRAVITY >= GRIP_FORCE:
        return
    met = np.empty(1, np.int32)
    obstacle = mj_ray(
        model, data, eye.ctypes.data, gaze.ctypes.data, 0, np.uint8(1), np.int32(avatar_body),
        met.ctypes.data, 0,
    )  # fmt: skip
    geom = movables[best, M_GEOM]
    if obstacle >= 0.0 and met[0] != geom and obstacle < nearest - GRASP_MARGIN:
        return
    body = movables[best, M_BODY]
    reach = min(max(nearest, REACH_NEAR), REACH_FAR)
    # The thing keeps its pose relative to the avatar's facing; remember it in that frame.
    sine, cosine = sine_cosine(state[S_YAW])
    dx = geom_pos[geom, 0] - (eye[0] + nearest * gaze[0])
    dy = geom_pos[geom, 1] - (eye[1] + nearest * gaze[1])
    state[S_OFFSET_X] = cosine * dx + sine * dy
    state[S_OFFSET_Y] = -sine * dx + cosine * dy
    state[S_OFFSET_Z] = geom_pos[geom, 2] - (eye[2] + nearest * gaze[2])
    half_sine, half_cosine = sine_cosine(-0.5 * state[S_YAW])
    q = qpos_quat[body]
    w, x, y, z = multiply(half_cosine, 0.0, 0.0, half_sine, q[0], q[1], q[2], q[3])
    state[S_TURN_W] = w
    state[S_TURN_X] = x
    state[S_TURN_Y] = y
    state[S_TURN_Z] = z
    state[S_HELD] = best
    state[S_REACH] = reach


@inner
def let_go(state, movables, applied_force):
    """Open the hand. The thing keeps its velocity: that is how one throws."""
    held = int(state[S_HELD])
    if held >= 0:
        for k in range(6):
            applied_force[movables[held, M_BODY], k] = 0.0
    state[S_HELD] = HIDDEN
    state[S_FORCE] = 0.0


@inner
def rotate_held(state, roll, pitch, yaw):
    """Turn the held thing about the hand, by small angles round forward, right and up."""
    if roll == 0.0 and pitch == 0.0 and yaw == 0.0:
        return
    # The avatar's frame is x forward, y left, z up.
    x, y, z = 0.5 * roll, -0.5 * pitch, 0.5 * yaw
    length = math.sqrt(1.0 + x * x + y * y + z * z)
    w, x, y, z = 1.0 / length, x / length, y / length, z / length
    a, b, c, d = multiply(
        w, x, y, z, state[S_TURN_W], state[S_TURN_X], state[S_TURN_Y], state[S_TURN_Z]
    )
    length = math.sqrt(a * a + b * b + c * c + d * d)
    state[S_TURN_W], state[S_TURN_X] = a / length, b / length
    state[S_TURN_Y], state[S_TURN_Z] = c / length, d / length
    state[S_OFFSET_X], state[S_OFFSET_Y], state[S_OFFSET_Z] = rotate(
        w, x, y, z, state[S_OFFSET_X], state[S_OFFSET_Y], state[S_OFFSET_Z]
    )


@inner
def pull(
    state, eye, gaze, gaze_rate, walk, turn_rate, qvel, xpos, xquat, ximat, movables, masses,
    applied_force, limit,
):  # fmt: skip
    """Apply the hold's spring for one physics step; False when the thing has slipped out.

    The spring pulls the thing's centre to its place at the hand. Its force, weight included, as a
    share of the grip's limit is what `hand_force` reports; at 1 the thing slips.
    """
    held = int(state[S_HELD])
    body = movables[held, M_BODY]
    dof = movables[held, M_DOF]
    mass = masses[held, MF_MASS]
    sine, cosine = sine_cosine(state[S_YAW])
    reach = state[S_REACH]
    arm_x = reach * gaze[0] + cosine * state[S_OFFSET_X] - sine * state[S_OFFSET_Y]
    arm_y = reach * gaze[1] + sine * state[S_OFFSET_X] + cosine * state[S_OFFSET_Y]
    arm_z = reach * gaze[2] + state[S_OFFSET_Z]
    # The hand moves with the body, with the turn of the gaze, and with its own change of reach.
    hand_vx = walk[0] - turn_rate * arm_y + gaze_rate[0]
    hand_vy = walk[1] + turn_rate * arm_x + gaze_rate[1]
    hand_vz = walk[2] + gaze_rate[2]
    damping = 2.0 * math.sqrt(GRIP_STIFFNESS * mass)
    sx = GRIP_STIFFNESS * (eye[0] + arm_x - xpos[body, 0])
    sy = GRIP_STIFFNESS * (eye[1] + arm_y - xpos[body, 1])
    sz = GRIP_STIFFNESS * (eye[2] + arm_z - xpos[body, 2]) + mass * GRAVITY
    strain = math.sqrt(sx * sx + sy * sy + sz * sz) / limit
    if strain >= 1.0:
        return False
    state[S_FORCE] = strain
    fx = sx + damping * (hand_vx - qvel[dof])
    fy = sy + damping * (hand_vy - qvel[dof + 1])
    fz = sz + damping * (hand_vz - qvel[dof + 2])
    size = math.sqrt(fx * fx + fy * fy + fz * fz)
    scale = 1.0 if size <= limit else limit / size
    applied_force[body, 0] = fx * scale
    applied_force[body, 1] = fy * scale
    applied_force[body, 2] = fz * scale

    half_sine, half_cosine = sine_cosine(0.5 * state[S_YAW])
    w, x, y, z = multiply(
        half_cosine, 0.0, 0.0, half_sine,
        state[S_TURN_W], state[S_TURN_X], state[S_TURN_Y], state[S_TURN_Z],
    )  # fmt: skip
    q = xquat[body]
    ew, ex, ey, ez = multiply(w, x, y, z, q[0], -q[1], -q[2], -q[3])
    if ew < 0.0:
        ex, ey, ez = -ex, -ey, -ez
    spin = rotate(q[0], q[1], q[2], q[3], qvel[dof + 3], qvel[dof + 4], qvel[dof + 5])
    ax = GRIP_TURNING * 2.0 * ex - GRIP_TURNING_DAMPING * spin[0]
    ay = GRIP_TURNING * 2.0 * ey - GRIP_TURNING_DAMPING * spin[1]
    az = GRIP_TURNING * 2.0 * ez - GRIP_TURNING_DAMPING * (spin[2] - turn_rate)
    # The full inertia tensor: a scalar gain spins a long stick up until it is NaN.
    tx, ty, tz = 0.0, 0.0, 0.0
    for k in range(3):
        moment = masses[held, MF_INERTIA + k] * (
            ximat[body, k] * ax + ximat[body, 3 + k] * ay + ximat[body, 6 + k] * az
        )
        tx += ximat[body, k] * moment
        ty += ximat[body, 3 + k] * moment
        tz += ximat[body, 6 + k] * moment
    size = math.sqrt(tx * tx + ty * ty + tz * tz)
    scale = 1.0 if size <= GRIP_TORQUE else GRIP_TORQUE / size
    applied_force[body, 3] = tx * scale
    applied_force[body, 4] = ty * scale
    applied_force[body, 5] = tz * scale
    return True


@inner
def drop_slipped(state, movables, applied_force):
    """What slipped out is not taken again before the hand has been opened by an action."""
    let_go(state, movables, applied_force)
    state[S_OPEN_HAND] = 1.0
