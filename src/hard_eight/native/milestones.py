"""What has been achieved so far, for people to read; the agent never sees it."""

from .constants import (
    M_BODY,
    MILESTONE_AVATAR_IN,
    MILESTONE_COLLECTED,
    MILESTONE_HELD,
    MILESTONE_SIGNAL,
    MILESTONE_THING_IN,
    MILESTONE_THING_OUT,
    S_HELD,
)
from .jit import inner


@inner
def inside(position, box):
    for k in range(3):
        if position[k] < box[2 * k] or position[k] > box[2 * k + 1]:
            return False
    return True


# Milestone row. ints: kind, then bits of movables, or a signal, or a rule. floats: a box.
@inner
def update_milestones(reached, ints, floats, state, signals, rule_state, movables, qpos, xpos):
    for i in range(reached.shape[0]):
        if reached[i] != 0:
            continue
        kind = ints[i, 0]
        which = ints[i, 1]
        now = False
        if kind == MILESTONE_HELD:
            held = int(state[S_HELD])
            now = held >= 0 and ((which >> held) & 1) == 1
        elif kind == MILESTONE_SIGNAL:
            now = signals[which] > 0.0
        elif kind == MILESTONE_AVATAR_IN:
            now = inside(qpos, floats[i])
        elif kind == MILESTONE_THING_IN:
            for m in range(movables.shape[0]):
                if (which >> m) & 1 == 1 and inside(xpos[movables[m, M_BODY]], floats[i]):
                    now = True
        elif kind == MILESTONE_THING_OUT:
            for m in range(movables.shape[0]):
                if (which >> m) & 1 == 1 and not inside(xpos[movables[m, M_BODY]], floats[i]):
                    now = True
        elif kind == MILESTONE_COLLECTED:
            now = rule_state[which, 0] > 0.0
        if now:
            reached[i] = 1
