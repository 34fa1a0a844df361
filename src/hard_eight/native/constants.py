"""Numbers and table layouts that compiled code and the Python that fills its tables share."""

FRAMES_PER_SECOND = 30
SUBSTEPS = 2  # physics steps a frame
TIMESTEP = 1.0 / (FRAMES_PER_SECOND * SUBSTEPS)  # s
GRAVITY = 9.81  # m/s^2

# --- the avatar's body (m, kg) and speeds -------------------------------------------------------
BODY_RADIUS = 0.3
BODY_HALF = 0.4  # half length of the capsule's axis
BODY_BOTTOM = BODY_RADIUS + BODY_HALF  # from the body's centre down to the soles
EYE_ABOVE_CENTRE = 0.55
BODY_MASS = 30.0
WALK_SPEED = 3.2  # m/s
TURN_SPEED = 2.1  # rad/s
TILT_SPEED = 1.6  # rad/s
PITCH_LIMIT = 1.2  # rad, up and down

# --- the hand -----------------------------------------------------------------------------------
REACH_NEAR, REACH_FAR = 0.6, 1.6  # m from the eye along the gaze
PUSH_PULL_SCALE = 0.15  # m/s for one unit of HAND_PUSH_PULL, which goes to 10
ROTATE_SPEED = 1.5  # rad/s
GRIP_FORCE = 60.0  # N, the strongest hold
GRIP_TORQUE = 8.0  # N m
GRIP_STIFFNESS = 120.0  # N/m: 1 kg slips out when pulled 0.42 m from the hand
GRIP_TURNING = 300.0  # 1/s^2, and its damping, 1/s
GRIP_TURNING_DAMPING = 32.0
GRASP_MARGIN = 0.04  # m by which the gaze may miss a thing that it takes hold of

TOUCH_DISTANCE = 0.01  # m, what counts as touching

# --- pointer table: one int64 row an environment --------------------------------------------------
(
    P_MODEL, P_DATA, P_QPOS, P_QVEL, P_CTRL, P_XPOS, P_XQUAT, P_XIMAT, P_XFRC, P_GEOM_XPOS,
    P_GEOM_XMAT, P_MOCAP_POS, P_MOCAP_QUAT, P_STATE, P_SIGNALS, P_RULE_INTS, P_RULE_FLOATS,
    P_RULE_STATE, P_MOVABLE_INTS, P_MOVABLE_FLOATS, P_MILESTONE_INTS, P_MILESTONE_FLOATS,
    P_MILESTONES, P_KIND, P_SIZE, P_RGB, P_TEXTURE, P_FLAGS, P_RADIUS,
    N_QPOS, N_QVEL, N_BODIES, N_GEOMS, N_MOCAPS, N_SIGNALS, N_RULES, N_MOVABLES, N_MILESTONES,
    AVATAR_GEOM, AVATAR_BODY,
) = range(40)  # fmt: skip
POINTER_COLUMNS = 40

# The avatar's three slide joints are the model's first joints.
AVATAR_X, AVATAR_Y, AVATAR_Z = 0, 1, 2

# --- state vector -------------------------------------------------------------------------------
(
    S_YAW, S_PITCH, S_REACH, S_HELD, S_OPEN_HAND, S_FORCE, S_FRAMES, S_REWARD, S_TERMINATED,
    S_SUCCESS, S_ACCEL_RIGHT, S_ACCEL_UP, S_ACCEL_FORWARD, S_OFFSET_X, S_OFFSET_Y, S_OFFSET_Z,
    S_TURN_W, S_TURN_X, S_TURN_Y, S_TURN_Z, S_SINE, S_COSINE, S_STEADY_MILESTONES,
) = range(23)  # fmt: skip
STATE_COLUMNS = 24

# --- proprioception row -------------------------------------------------------------------------
PROPRIOCEPTION = ("acceleration", "hand_force", "hand_is_holding", "hand_distance")
PROPRIOCEPTION_COLUMNS = 6

# --- movable things -----------------------------------------------------------------------------
M_BODY, M_GEOM, M_QPOS, M_DOF, M_DESTROYED = range(5)
MOVABLE_INTS = 6
# Mass, the three principal moments of inertia, and where the thing is put when destroyed.
MF_MASS, MF_INERTIA, MF_GRAVE = 0, 1, 4
MOVABLE_FLOATS = 8
HIDDEN = -1

# --- rules: kind and parameters -----------------------------------------------------------------
RULE_SENSOR, RULE_DOOR, RULE_BRIDGE, RULE_APPLE, RULE_PENALTY, RULE_UNDERTOW = range(6)
RULE_INTS, RULE_FLOATS, RULE_STATE = 8, 12, 4
SENSOR_LATCHES, SENSOR_NEEDS_CONTACT, SENSOR_CONSUMES = range(3)

# --- milestones ---------------------------------------------------------------------------------
(
    MILESTONE_HELD, MILESTONE_SIGNAL, MILESTONE_AVATAR_IN, MILESTONE_THING_IN, MILESTONE_COLLECTED,
    MILESTONE_THING_OUT,
) = range(6)  # fmt: skip
MILESTONE_INTS, MILESTONE_FLOATS = 4, 6
