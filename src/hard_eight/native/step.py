"""One decision for a batch of environments, physics, rules and picture, in one compiled call."""

import numpy as np
from numba import carray

from . import constants as c
from .calls import at_address, mj_kinematics, mj_step
from .hand import drop_slipped, let_go, pull, rotate_held, take_hold
from .jit import entry, fingerprint, inner
from .maths import sine_cosine
from .milestones import update_milestones
from .raster import draw, make_scratch
from .rules import apply_rules


@inner
def floats_at(row, column, shape):
    return carray(at_address(row[column]), shape, np.float64)


@inner
def look(state, qpos, eye, gaze, camera):
    """The eye's place, the gaze's direction, and the camera's axes (right, up, back in columns)."""
    sy, cy = sine_cosine(state[c.S_YAW])
    sp, cp = sine_cosine(state[c.S_PITCH])
    eye[0], eye[1], eye[2] = qpos[0], qpos[1], qpos[2] + c.EYE_ABOVE_CENTRE
    gaze[0], gaze[1], gaze[2] = cp * cy, cp * sy, sp
    camera[0], camera[3], camera[6] = sy, -cy, 0.0
    camera[1], camera[4], camera[7] = -sp * cy, -sp * sy, cp
    camera[2], camera[5], camera[8] = -gaze[0], -gaze[1], -gaze[2]


@inner
def advance_frame(row, controls, eye, gaze, camera, gaze_rate):
    """One frame, 1/30 s: the controls move body, gaze and hand; physics runs; rules apply."""
    model, data = row[c.P_MODEL], row[c.P_DATA]
    bodies, geoms = row[c.N_BODIES], row[c.N_GEOMS]
    n_movables = row[c.N_MOVABLES]
    qpos = floats_at(row, c.P_QPOS, (row[c.N_QPOS],))
    qvel = floats_at(row, c.P_QVEL, (row[c.N_QVEL],))
    ctrl = floats_at(row, c.P_CTRL, (2,))
    xpos = floats_at(row, c.P_XPOS, (bodies, 3))
    xquat = floats_at(row, c.P_XQUAT, (bodies, 4))
    ximat = floats_at(row, c.P_XIMAT, (bodies, 9))
    force = floats_at(row, c.P_XFRC, (bodies, 6))
    geom_pos = floats_at(row, c.P_GEOM_XPOS, (geoms, 3))
    geom_mat = floats_at(row, c.P_GEOM_XMAT, (geoms, 9))
    mocap_pos = floats_at(row, c.P_MOCAP_POS, (row[c.N_MOCAPS], 3))
    mocap_quat = floats_at(row, c.P_MOCAP_QUAT, (row[c.N_MOCAPS], 4))
    state = floats_at(row, c.P_STATE, (c.STATE_COLUMNS,))
    signals = floats_at(row, c.P_SIGNALS, (row[c.N_SIGNALS],))
    rule_ints = carray(at_address(row[c.P_RULE_INTS]), (row[c.N_RULES], c.RULE_INTS), np.int64)
    rule_floats = floats_at(row, c.P_RULE_FLOATS, (row[c.N_RULES], c.RULE_FLOATS))
    rule_state = floats_at(row, c.P_RULE_STATE, (row[c.N_RULES], c.RULE_STATE))
    movables = carray(at_address(row[c.P_MOVABLE_INTS]), (n_movables, c.MOVABLE_INTS), np.int64)
    masses = floats_at(row, c.P_MOVABLE_FLOATS, (n_movables, c.MOVABLE_FLOATS))
    n_milestones = row[c.N_MILESTONES]
    reached = carray(at_address(row[c.P_MILESTONES]), (n_milestones,), np.uint8)
    milestone_ints = carray(
        at_address(row[c.P_MILESTONE_INTS]), (n_milestones, c.MILESTONE_INTS), np.int64
    )
    milestone_floats = floats_at(row, c.P_MILESTONE_FLOATS, (n_milestones, c.MILESTONE_FLOATS))
    kind = carray(at_address(row[c.P_KIND]), (geoms,), np.int32)
    size = carray(at_address(row[c.P_SIZE]), (geoms, 3), np.float32)
    rgb = carray(at_address(row[c.P_RGB]), (geoms, 3), np.float32)
    flags = carray(at_address(row[c.P_FLAGS]), (geoms,), np.uint8)
    radius = carray(at_address(row[c.P_RADIUS]), (geoms,), np.float32)

    frame = 1.0 / c.FRAMES_PER_SECOND
    turn_rate = -controls[3] * c.TURN_SPEED  # LOOK_LEFT_RIGHT is positive to the right
    wanted = state[c.S_PITCH] + controls[2] * c.TILT_SPEED * frame
    pitch = max(-c.PITCH_LIMIT, min(c.PITCH_LIMIT, wanted))
    tilt_rate = (pitch - state[c.S_PITCH]) * c.FRAMES_PER_SECOND
    # A diagonal, which only the continuous controls can ask for, is no faster than straight ahead.
    square = controls[0] * controls[0] + controls[1] * controls[1]
    speed = c.WALK_SPEED if square <= 1.0 else c.WALK_SPEED / np.sqrt(square)
    forward, right = speed * controls[0], speed * controls[1]
    wanted = state[c.S_REACH] - controls[7] * c.PUSH_PULL_SCALE * frame  # + pulls nearer
    reach = max(c.REACH_NEAR, min(c.REACH_FAR, wanted))
    reach_rate = (reach - state[c.S_REACH]) * c.FRAMES_PER_SECOND
    limit = c.GRIP_FORCE * controls[8]

    if controls[8] <= 0.0:
        if state[c.S_HELD] >= 0.0:
            let_go(state, movables, force)
        state[c.S_OPEN_HAND] = 0.0
    elif state[c.S_HELD] < 0.0 and state[c.S_OPEN_HAND] == 0.0:
        look(state, qpos, eye, gaze, camera)
        take_hold(
            model, data, state, eye, gaze, xquat, kind, size, geom_pos, geom_mat, movables,
            masses, row[c.AVATAR_BODY],
        )  # fmt: skip
        reach, reach_rate = state[c.S_REACH], 0.0
    held = state[c.S_HELD] >= 0.0
    if held:
        step = c.ROTATE_SPEED * frame
        rotate_held(state, step * controls[4], step * controls[5], step * controls[6])

    for _ in range(c.SUBSTEPS):
        state[c.S_YAW] += turn_rate * c.TIMESTEP
        state[c.S_PITCH] += tilt_rate * c.TIMESTEP
        state[c.S_REACH] += reach_rate * c.TIMESTEP
        sy, cy = sine_cosine(state[c.S_YAW])
        ctrl[0] = forward * cy + right * sy
        ctrl[1] = forward * sy - right * cy
        if held:
            look(state, qpos, eye, gaze, camera)
            r = state[c.S_REACH]
            for k in range(3):  # the hand moves along the gaze, and with its tilt
                gaze_rate[k] = reach_rate * gaze[k] + r * tilt_rate * camera[3 * k + 1]
            held = pull(
                state, eye, gaze, gaze_rate, qvel, turn_rate, qvel, xpos, xquat, ximat, movables,
                masses, force, limit,
            )  # fmt: skip
            if not held:
                drop_slipped(state, movables, force)
        mj_step(model, data)
    state[c.S_PITCH] = pitch
    state[c.S_REACH] = reach
    if state[c.S_YAW] > np.pi:
        state[c.S_YAW] -= 2.0 * np.pi
    elif state[c.S_YAW] < -np.pi:
        state[c.S_YAW] += 2.0 * np.pi
    mj_kinematics(model, data)  # mj_step leaves positions of before its last step
    apply_rules(
        model, data, state, signals, rule_ints, rule_floats, rule_state, movables, masses, qpos,
        qvel, force, mocap_pos, mocap_quat, geom_pos, radius, flags, rgb, row[c.AVATAR_GEOM],
    )  # fmt: skip
    update_milestones(
        reached, milestone_ints, milestone_floats, state, signals, rule_state, movables, qpos, xpos
    )
    state[c.S_FRAMES] += 1.0


@inner
def advance_decision(row, controls, repeats, eye, gaze, camera, gaze_rate):
    """Repeat the controls for some frames, ending early with the episode; measure acceleration."""
    state = floats_at(row, c.P_STATE, (c.STATE_COLUMNS,))
    qvel = floats_at(row, c.P_QVEL, (row[c.N_QVEL],))
    vx, vy, vz = qvel[0], qvel[1], qvel[2]
    state[c.S_REWARD] = 0.0
    frames = 0
    for _ in range(repeats):
        advance_frame(row, controls, eye, gaze, camera, gaze_rate)
        frames += 1
        if state[c.S_TERMINATED] > 0.0:
            break
    rate = c.FRAMES_PER_SECOND / frames
    ax, ay, az = (qvel[0] - vx) * rate, (qvel[1] - vy) * rate, (qvel[2] - vz) * rate
    sy, cy = sine_cosine(state[c.S_YAW])
    state[c.S_ACCEL_RIGHT] = ax * sy - ay * cy
    state[c.S_ACCEL_UP] = az
    state[c.S_ACCEL_FORWARD] = ax * cy + ay * sy


@inner
def observe(row, proprioception, fovy, scratch, textures, eye, gaze, camera, picture):
    """Fill one environment's row of proprioception and draw its picture."""
    geoms = row[c.N_GEOMS]
    state = floats_at(row, c.P_STATE, (c.STATE_COLUMNS,))
    qpos = floats_at(row, c.P_QPOS, (row[c.N_QPOS],))
    proprioception[0] = state[c.S_ACCEL_RIGHT]
    proprioception[1] = state[c.S_ACCEL_UP]
    proprioception[2] = state[c.S_ACCEL_FORWARD]
    proprioception[3] = state[c.S_FORCE]
    held = state[c.S_HELD] >= 0.0
    proprioception[4] = 1.0 if held else 0.0
    span = c.REACH_FAR - c.REACH_NEAR
    proprioception[5] = (state[c.S_REACH] - c.REACH_NEAR) / span if held else 0.0
    look(state, qpos, eye, gaze, camera)
    draw(
        carray(at_address(row[c.P_KIND]), (geoms,), np.int32),
        carray(at_address(row[c.P_SIZE]), (geoms, 3), np.float32),
        carray(at_address(row[c.P_RGB]), (geoms, 3), np.float32),
        carray(at_address(row[c.P_TEXTURE]), (geoms,), np.int32),
        carray(at_address(row[c.P_FLAGS]), (geoms,), np.uint8),
        carray(at_address(row[c.P_RADIUS]), (geoms,), np.float32),
        floats_at(row, c.P_GEOM_XPOS, (geoms, 3)),
        floats_at(row, c.P_GEOM_XMAT, (geoms, 9)),
        eye, camera, fovy, scratch, textures, picture,
    )  # fmt: skip


def _make_step_batch(fingerprint: int):
    @entry
    def step_batch(
        rows, first, last, moving, controls, repeats, fovy, textures, max_geoms, pictures,
        proprioception, rewards, terminated,
    ):  # fmt: skip
        """Advance and draw environments first..last-1 of the pointer table.

        `moving[i]` 1: advance by its controls, then draw; 0: only draw (after a reset); 2: leave
        alone. repeats[i] is the number of frames its action is held.
        """
        _ = fingerprint  # a closure value, hence part of the cache key
        scratch = make_scratch(max_geoms, pictures.shape[1], pictures.shape[2])
        eye, gaze, camera, gaze_rate = np.empty(3), np.empty(3), np.empty(9), np.empty(3)
        for i in range(first, last):
            if moving[i] == 2:
                continue
            row = rows[i]
            state = floats_at(row, c.P_STATE, (c.STATE_COLUMNS,))
            rewards[i] = 0.0
            if moving[i] == 1:
                advance_decision(row, controls[i], repeats[i], eye, gaze, camera, gaze_rate)
                rewards[i] = state[c.S_REWARD]
            terminated[i] = state[c.S_TERMINATED] > 0.0
            observe(row, proprioception[i], fovy, scratch, textures, eye, gaze, camera, pictures[i])

    return step_batch


step_batch = _make_step_batch(fingerprint())


def _make_draw_view(fingerprint: int):
    @entry
    def draw_view(row, fovy, textures, picture):
        """Draw one world as it stands, at the picture's size."""
        _ = fingerprint
        scratch = make_scratch(row[c.N_GEOMS], picture.shape[0], picture.shape[1])
        eye, gaze, camera = np.empty(3), np.empty(3), np.empty(9)
        unused = np.empty(c.PROPRIOCEPTION_COLUMNS, np.float32)
        observe(row, unused, fovy, scratch, textures, eye, gaze, camera, picture)

    return draw_view


draw_view = _make_draw_view(fingerprint())
