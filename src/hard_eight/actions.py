"""The 46 actions: one table that the environment, recorder, key help and docs all read.

Every action is a setting of the original release's nine continuous controls. `dm.py` exposes those
controls directly; the Gymnasium environments expose the index into `ACTIONS`.
"""

from typing import NamedTuple

import numpy as np


class Control(NamedTuple):
    """One of the original's nine continuous controls and its range."""

    name: str
    minimum: float
    maximum: float


CONTROLS = (
    Control("MOVE_BACK_FORWARD", -1.0, 1.0),
    Control("STRAFE_LEFT_RIGHT", -1.0, 1.0),
    Control("LOOK_DOWN_UP", -1.0, 1.0),
    Control("LOOK_LEFT_RIGHT", -1.0, 1.0),
    Control("HAND_ROTATE_AROUND_FORWARD", -1.0, 1.0),
    Control("HAND_ROTATE_AROUND_RIGHT", -1.0, 1.0),
    Control("HAND_ROTATE_AROUND_UP", -1.0, 1.0),
    Control("HAND_PUSH_PULL", -10.0, 10.0),
    Control("HAND_GRIP", 0.0, 1.0),
)
CONTROL_INDEX = {control.name: i for i, control in enumerate(CONTROLS)}

# A fine action is a smaller value of the same control: (coarse, fine).
MOVE_SPEEDS = (1.0, 0.375)
LOOK_SPEEDS = (1.0, 0.25)
HAND_SPEEDS = (10.0, 3.0)


class Action(NamedTuple):
    """One discrete action: its name, the keys that make it, and its setting of the controls."""

    number: int
    name: str
    key: str
    controls: tuple[float, ...]

    @property
    def grasps(self) -> bool:
        return self.controls[CONTROL_INDEX["HAND_GRIP"]] > 0


# direction -> (control, sign, (coarse, fine), key)
_DIRECTIONS = {
    "forward": ("MOVE_BACK_FORWARD", 1, MOVE_SPEEDS, "W"),
    "back": ("MOVE_BACK_FORWARD", -1, MOVE_SPEEDS, "S"),
    "strafe_left": ("STRAFE_LEFT_RIGHT", -1, MOVE_SPEEDS, "A"),
    "strafe_right": ("STRAFE_LEFT_RIGHT", 1, MOVE_SPEEDS, "D"),
    "look_left": ("LOOK_LEFT_RIGHT", -1, LOOK_SPEEDS, "Left"),
    "look_right": ("LOOK_LEFT_RIGHT", 1, LOOK_SPEEDS, "Right"),
    "look_up": ("LOOK_DOWN_UP", 1, LOOK_SPEEDS, "Up"),
    "look_down": ("LOOK_DOWN_UP", -1, LOOK_SPEEDS, "Down"),
}
# The first word of a control's name is its negative side: pushing moves the hand away.
_HAND = {"hand_nearer": (1, "Q"), "hand_farther": (-1, "E")}
_ROTATIONS = {
    "rotate_forward": ("HAND_ROTATE_AROUND_FORWARD", "U", "O"),
    "rotate_right": ("HAND_ROTATE_AROUND_RIGHT", "I", "K"),
    "rotate_up": ("HAND_ROTATE_AROUND_UP", "J", "L"),
}
FINE_KEY, GRASP_KEY = "Shift", "Space"


def _build() -> tuple[Action, ...]:
    actions: list[Action] = []

    def add(name: str, key: str, **controls: float) -> None:
        row = [0.0] * len(CONTROLS)
        for control, value in controls.items():
            row[CONTROL_INDEX[control]] = value
        actions.append(Action(len(actions), name, key, tuple(row)))

    for grasp in (False, True):
        grip = {"HAND_GRIP": 1.0} if grasp else {}
        for direction, (control, sign, speeds, key) in _DIRECTIONS.items():
            for fine in (False, True):
                add(
                    direction + "_fine" * fine + "_grasp" * grasp,
                    f"{GRASP_KEY}+" * grasp + f"{FINE_KEY}+" * fine + key,
                    **{control: sign * speeds[fine]},
                    **grip,
                )
    for name, (sign, key) in _HAND.items():
        add(name, key, HAND_PUSH_PULL=sign * HAND_SPEEDS[0])
    for name, (control, positive, negative) in _ROTATIONS.items():
        for suffix, value, key in (("_positive", 1.0, positive), ("_negative", -1.0, negative)):
            add(name + suffix + "_grasp", f"{GRASP_KEY}+{key}", **{control: value}, HAND_GRIP=1.0)
    for name, (sign, key) in _HAND.items():
        for fine in (False, True):
            add(
                name + "_fine" * fine + "_grasp",
                f"{GRASP_KEY}+" + f"{FINE_KEY}+" * fine + key,
                HAND_PUSH_PULL=sign * HAND_SPEEDS[fine],
                HAND_GRIP=1.0,
            )
    add("grasp", GRASP_KEY, HAND_GRIP=1.0)
    add("noop", "")
    return tuple(actions)


ACTIONS = _build()
ACTION_INDEX = {action.name: action.number for action in ACTIONS}
NOOP = ACTION_INDEX["noop"]

# float64[46, 9]: row i is the setting of the nine controls that action i makes.
CONTROL_TABLE = np.array([action.controls for action in ACTIONS])
CONTROL_TABLE.setflags(write=False)
