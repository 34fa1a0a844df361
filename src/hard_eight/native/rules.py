"""The rules of the parts, one function a kind; each works on its row of the rule tables.

A part in `parts.py` owns its geometry and writes its row; the rule that the row feeds stands here
because it runs every frame. Touching is measured as a distance: contacts flicker, and vanish when
things sleep.
"""

import math

import numpy as np

from .calls import mj_geom_distance
from .constants import (
    BODY_BOTTOM,
    BODY_HALF,
    BODY_RADIUS,
    FRAMES_PER_SECOND,
    M_BODY,
    M_DESTROYED,
    M_DOF,
    M_GEOM,
    M_QPOS,
    MF_GRAVE,
    RULE_APPLE,
    RULE_BRIDGE,
    RULE_DOOR,
    RULE_PENALTY,
    RULE_SENSOR,
    RULE_UNDERTOW,
    S_HELD,
    S_REWARD,
    S_SUCCESS,
    S_TERMINATED,
    SENSOR_CONSUMES,
    SENSOR_NEEDS_CONTACT,
    TOUCH_DISTANCE,
)
from .hand import let_go
from .jit import inner, shared
from .maths import sine_cosine

VISIBLE = 1
LEAST_BELOW = 0.1  # slope of the way from a slab to a thing that is below it, not beside it


@inner
def touching(model, data, first, second, geom_pos, radius, within):
    """Whether two geoms are closer than `within` (m)."""
    dx = geom_pos[first, 0] - geom_pos[second, 0]
    dy = geom_pos[first, 1] - geom_pos[second, 1]
    dz = geom_pos[first, 2] - geom_pos[second, 2]
    far = radius[first] + radius[second] + within
    if dx * dx + dy * dy + dz * dz > far * far:
        return False
    return mj_geom_distance(model, data, first, second, 2.0 * within, 0) < within


@inner
def destroy(movable, state, movables, masses, qpos, qvel, applied_force, flags):
    """Take a thing out of the world: unseen, at rest in its grave under the abyss floor's edge."""
    if int(state[S_HELD]) == movable:
        let_go(state, movables, applied_force)
    movables[movable, M_DESTROYED] = 1
    flags[movables[movable, M_GEOM]] &= ~VISIBLE
    at = movables[movable, M_QPOS]
    for k in range(3):
        qpos[at + k] = masses[movable, MF_GRAVE + k]
        qpos[at + 4 + k] = 0.0
    qpos[at + 3] = 1.0
    for k in range(6):
        qvel[movables[movable, M_DOF] + k] = 0.0


# Sensor row. ints: kind, geom, signal, mode, accepted movables (bits). floats: on rgb, off rgb.
@inner
def sensor(
    ints, floats, model, data, state, signals, movables, masses, qpos, qvel, applied_force,
    geom_pos, radius, flags, rgb,
):  # fmt: skip
    geom = ints[1]
    signal = ints[2]
    mode = ints[3]
    if mode != SENSOR_NEEDS_CONTACT and signals[signal] > 0.0:
        return
    touched = -1
    for i in range(movables.shape[0]):
        accepted = (ints[4] >> i) & 1
        if accepted == 0 or movables[i, M_DESTROYED] != 0:
            continue
        if touching(model, data, movables[i, M_GEOM], geom, geom_pos, radius, TOUCH_DISTANCE):
            touched = i
            break
    # The state follows present touch alone; only a latching sensor remembers.
    active = 1.0 if touched >= 0 else 0.0
    if active != signals[signal]:
        signals[signal] = active
        base = 0 if active > 0.0 else 3
        for k in range(3):
            rgb[geom, k] = floats[base + k]
    if touched >= 0 and mode == SENSOR_CONSUMES:
        destroy(touched, state, movables, masses, qpos, qvel, applied_force, flags)


@inner
def all_on(mask, signals):
    for i in range(signals.shape[0]):
        if (mask >> i) & 1 and signals[i] <= 0.0:
            return False
    return True


@inner
def room_to_come_down(model, data, slab, thing, geom_pos, radius, within):
    """How far a slab may come down, up to `within`, before it would touch a thing (m).

    What stands beside the slab is not in its way: leaning on a door does not hold it up.
    """
    if not touching(model, data, slab, thing, geom_pos, radius, within + TOUCH_DISTANCE):
        return within
    nearest = np.empty(6)  # the points of slab and thing that are nearest to each other
    distance = mj_geom_distance(
        model, data, slab, thing, 2.0 * (within + TOUCH_DISTANCE), nearest.ctypes.data
    )
    below = nearest[2] - nearest[5]
    if distance < 0.0:  # one inside the other: the points have changed sides
        below = -below
    if below < LEAST_BELOW * abs(distance):
        return within
    return min(within, max(0.0, distance - TOUCH_DISTANCE))


# Door row. ints: kind, geom, mocap body, needed signals (bits). floats: shut z, open z, speed up,
# speed down (m/s).
@inner
def door(ints, floats, model, data, signals, movables, mocap_pos, geom_pos, radius, avatar_geom):
    mocap = ints[2]
    z = mocap_pos[mocap, 2]
    if all_on(ints[3], signals):
        mocap_pos[mocap, 2] = min(floats[1], z + floats[2] / FRAMES_PER_SECOND)
        return
    if z <= floats[0]:
        return
    # It comes down on nothing: like a lift's door it waits for whatever stands in the way.
    down = floats[3] / FRAMES_PER_SECOND
    down = room_to_come_down(model, data, ints[1], avatar_geom, geom_pos, radius, down)
    for i in range(movables.shape[0]):
        down = room_to_come_down(model, data, ints[1], movables[i, M_GEOM], geom_pos, radius, down)
    mocap_pos[mocap, 2] = max(floats[0], z - down)


# Bridge row. ints: kind, mocap body, needed signals (bits). floats: hinge x, y, z, heading (rad),
# half length, half thickness, seconds to come down. state: angle above level (rad).
@inner
def bridge(ints, floats, rule_state, signals, mocap_pos, mocap_quat):
    if rule_state[0] <= 0.0 or not all_on(ints[2], signals):
        return
    rule_state[0] = max(0.0, rule_state[0] - 1.5707963267948966 / (floats[6] * FRAMES_PER_SECOND))
    place_bridge(ints, floats, rule_state, mocap_pos, mocap_quat)


@shared
def place_bridge(ints, floats, rule_state, mocap_pos, mocap_quat):
    """Put the deck at its angle: its top edge at the hinge, its far end raised."""
    mocap = ints[1]
    sine, cosine = sine_cosine(rule_state[0])
    head_sine, head_cosine = sine_cosine(floats[3])
    along = cosine * floats[4] + sine * floats[5]
    mocap_pos[mocap, 0] = floats[0] + head_cosine * along
    mocap_pos[mocap, 1] = floats[1] + head_sine * along
    mocap_pos[mocap, 2] = floats[2] + sine * floats[4] - cosine * floats[5]
    half_sine, half_cosine = sine_cosine(-0.5 * rule_state[0])
    turn_sine, turn_cosine = sine_cosine(0.5 * floats[3])
    mocap_quat[mocap, 0] = turn_cosine * half_cosine
    mocap_quat[mocap, 1] = -turn_sine * half_sine
    mocap_quat[mocap, 2] = turn_cosine * half_sine
    mocap_quat[mocap, 3] = turn_sine * half_cosine


# Apple row. ints: kind, apple geom, stem geom, ends the episode. floats: reward, radius, x, y, z.
# state: collected.
@inner
def apple(ints, floats, rule_state, state, qpos, flags):
    if rule_state[0] > 0.0:
        return
    dx = qpos[0] - floats[2]
    dy = qpos[1] - floats[3]
    above = floats[4] - (qpos[2] + BODY_HALF)
    below = (qpos[2] - BODY_HALF) - floats[4]
    dz = max(0.0, max(above, below))
    reach = BODY_RADIUS + floats[1]
    if dx * dx + dy * dy + dz * dz > reach * reach:
        return
    rule_state[0] = 1.0
    state[S_REWARD] += floats[0]
    flags[ints[1]] &= ~VISIBLE
    flags[ints[2]] &= ~VISIBLE
    if ints[3] != 0:
        state[S_TERMINATED] = 1.0
        state[S_SUCCESS] = 1.0


# Penalty row. ints: kind. floats: reward, x0, x1, y0, y1, floor z. state: standing on it.
@inner
def penalty(floats, rule_state, state, qpos):
    dx = max(0.0, max(floats[1] - qpos[0], qpos[0] - floats[2]))
    dy = max(0.0, max(floats[3] - qpos[1], qpos[1] - floats[4]))
    gap = math.sqrt(dx * dx + dy * dy)
    if rule_state[0] > 0.0:
        # Only a body wholly clear of the strip can cross it again.
        if gap > BODY_RADIUS:
            rule_state[0] = 0.0
    elif gap <= 0.0 and abs(qpos[2] - BODY_BOTTOM - floats[5]) < 0.5:
        rule_state[0] = 1.0
        state[S_REWARD] += floats[0]


# Undertow row. ints: kind. floats: box x0, x1, y0, y1, z0, z1, newtons. state: pulled movables
# (bits).
@inner
def undertow(floats, rule_state, state, movables, applied_force, geom_pos):
    """Pull down what is in the box and not in the hand, so that nothing rides on what is held."""
    held = int(state[S_HELD])
    pulled = int(rule_state[0])
    now = 0
    for i in range(movables.shape[0]):
        if i == held:
            continue  # the hold's spring has taken over the applied force
        at = geom_pos[movables[i, M_GEOM]]
        inside = movables[i, M_DESTROYED] == 0
        for k in range(3):
            inside = inside and floats[2 * k] <= at[k] <= floats[2 * k + 1]
        if inside:
            applied_force[movables[i, M_BODY], 2] = -floats[6]
            now |= 1 << i
        elif (pulled >> i) & 1:
            applied_force[movables[i, M_BODY], 2] = 0.0
    rule_state[0] = now


@inner
def apply_rules(
    model, data, state, signals, rule_ints, rule_floats, rule_state, movables, masses, qpos, qvel,
    applied_force, mocap_pos, mocap_quat, geom_pos, radius, flags, rgb, avatar_geom,
):  # fmt: skip
    for i in range(rule_ints.shape[0]):
        ints = rule_ints[i]
        floats = rule_floats[i]
        kind = ints[0]
        if kind == RULE_SENSOR:
            sensor(
                ints, floats, model, data, state, signals, movables, masses, qpos, qvel,
                applied_force, geom_pos, radius, flags, rgb,
            )  # fmt: skip
        elif kind == RULE_DOOR:
            door(
                ints, floats, model, data, signals, movables, mocap_pos, geom_pos, radius,
                avatar_geom,
            )  # fmt: skip
        elif kind == RULE_BRIDGE:
            bridge(ints, floats, rule_state[i], signals, mocap_pos, mocap_quat)
        elif kind == RULE_APPLE:
            apple(ints, floats, rule_state[i], state, qpos, flags)
        elif kind == RULE_PENALTY:
            penalty(floats, rule_state[i], state, qpos)
        elif kind == RULE_UNDERTOW:
            undertow(floats, rule_state[i], state, movables, applied_force, geom_pos)
