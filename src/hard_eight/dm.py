"""The tasks through dm_env, called as the original release `dm_hard_eight` was.

    from hard_eight import dm as dm_hard_eight

    settings = dm_hard_eight.EnvironmentSettings(seed=1, level_name="reach_wall")
    with dm_hard_eight.load(settings) as env:
        env.step({"MOVE_BACK_FORWARD": 1.0})

Only the load function differs from the original's: there is no container and no binary to name.
Needs the extra `dm`: pip install 'r2d3[dm]'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .actions import CONTROL_INDEX, CONTROLS, Control
from .batch import MOST_REPEATS, whole_number
from .env import HardEightEnv, Info, Observation, check_seed
from .errors import HardEightError, unknown
from .task import Task, all_tasks
from .world import World

try:
    import dm_env
    from dm_env import specs
except ImportError:
    raise ImportError("hard_eight.dm needs dm_env: pip install 'r2d3[dm]'") from None


class EnvironmentSettings(NamedTuple):
    """What the original's settings hold, with its defaults.

    An action is held for `num_action_repeats` frames of 1/30 s. The original and so this default
    to 1; the paper, and the Gymnasium environments, play with 2.
    """

    seed: int
    level_name: str
    width: int = 96
    height: int = 72
    num_action_repeats: int = 1


def load(settings: EnvironmentSettings, *, time_limit: float = 120.0) -> HardEightDmEnv:
    """The environment of a level; an episode is cut off after `time_limit` seconds of its time."""
    return HardEightDmEnv(settings, time_limit)


def load_from_docker(settings: EnvironmentSettings, name: str | None = None) -> NoReturn:
    """The original's way in; refused, because the worlds here are not the container's."""
    raise HardEightError("there is no container to load: call load(settings) instead")


def load_from_disk(path: str, settings: EnvironmentSettings) -> NoReturn:
    """The original's way in; refused, because the worlds here are not the binary's."""
    raise HardEightError(f"there is no binary to load from {path!r}: call load(settings) instead")


class HardEightDmEnv(dm_env.Environment):
    """A task with the original's nine sticky controls and its upper-case observations.

    An action names the controls to change; the others stay as they are until the episode ends.
    The seed of the settings plays that episode first, and further ones that follow from it.
    """

    def __init__(self, settings: EnvironmentSettings, time_limit: float = 120.0) -> None:
        if not isinstance(settings, EnvironmentSettings):
            raise HardEightError(f"settings is {settings!r}; it must be an EnvironmentSettings")
        self._seed: int | None = check_seed(settings.seed)
        self._env = HardEightEnv(
            find_level(settings.level_name).name,
            height=settings.height,
            width=settings.width,
            action_repeat=whole_number(
                "num_action_repeats", settings.num_action_repeats, 1, MOST_REPEATS
            ),
            time_limit=time_limit,
        )
        self._controls = np.zeros(len(CONTROLS))
        self._score = 0.0
        self._over = True
        self.info: Info = {}  # what Gymnasium tells beside the observation: seed, milestones

    @property
    def world(self) -> World:
        """The running episode's world, to read; only actions change it."""
        return self._env.world

    def reset(self) -> dm_env.TimeStep:
        observation, self.info = self._env.reset(seed=self._seed)
        self._seed = None  # from now on the environment draws the seeds, and they follow from this
        self._controls[:] = 0.0
        self._score = 0.0
        self._over = False
        return dm_env.restart(self._observation(observation))

    def step(self, action: Mapping[str, float]) -> dm_env.TimeStep:
        """One decision. After the end of an episode: the next one begins, the action is ignored."""
        if self._over:
            return self.reset()
        # All of an action is checked before any of it sticks.
        for index, value in check_controls(action).items():
            self._controls[index] = value
        step = self._env.step_controls(self._controls)
        observation, reward, terminated, truncated, self.info = step
        self._over = terminated or truncated
        self._score += reward
        seen = self._observation(observation)
        if terminated:
            return dm_env.termination(reward, seen)
        if truncated:
            return dm_env.truncation(reward, seen)
        return dm_env.transition(reward, seen)

    def _observation(self, observation: Observation) -> dict[str, Any]:
        return {
            "RGB_INTERLEAVED": observation["rgb"],
            "ACCELERATION": observation["acceleration"],
            "HAND_FORCE": observation["hand_force"][0],
            "HAND_IS_HOLDING": observation["hand_is_holding"][0],
            "HAND_DISTANCE": observation["hand_distance"][0],
            "Score": np.float64(self._score),
        }

    def observation_spec(self) -> dict[str, specs.Array]:
        options = self._env.options
        picture = (options.height, options.width, 3)

        def share(name: str) -> specs.BoundedArray:
            return specs.BoundedArray((), np.float32, 0.0, 1.0, name)

        return {
            "RGB_INTERLEAVED": specs.BoundedArray(picture, np.uint8, 0, 255, "RGB_INTERLEAVED"),
            "ACCELERATION": specs.Array((3,), np.float32, "ACCELERATION"),
            "HAND_FORCE": share("HAND_FORCE"),
            "HAND_IS_HOLDING": share("HAND_IS_HOLDING"),
            "HAND_DISTANCE": share("HAND_DISTANCE"),
            "Score": specs.Array((), np.float64, "Score"),
        }

    def action_spec(self) -> dict[str, specs.BoundedArray]:
        return {
            control.name: specs.BoundedArray(
                (), np.float64, control.minimum, control.maximum, control.name
            )
            for control in CONTROLS
        }

    def close(self) -> None:
        self._env.close()


def find_level(level: Any) -> Task:
    """The task behind an original level name; a near miss is guessed, the task's own name too."""
    levels = {task.level: task for task in all_tasks()}
    if isinstance(level, str) and level in levels:
        return levels[level]
    names = {task.name: task.level for task in levels.values()}
    raise unknown("level", level, {**{known: known for known in levels}, **names})


def check_controls(action: Any) -> dict[int, float]:
    """The settings that an action makes, by the controls' indices."""
    if not isinstance(action, Mapping):
        raise HardEightError(
            f"action is {action!r} of type {type(action).__name__}; it must be a dict of control "
            "names and values, such as {'MOVE_BACK_FORWARD': 1.0}"
        )
    settings = {}
    for name, value in action.items():
        index = CONTROL_INDEX.get(name)
        if index is None:
            raise unknown("control", name, {known: known for known in CONTROL_INDEX})
        settings[index] = _check_value(CONTROLS[index], value)
    return settings


def _check_value(control: Control, value: Any) -> float:
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value.item()
    allowed = f"a number from {control.minimum:g} to {control.maximum:g}"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise HardEightError(
            f"{control.name} is {value!r} of type {type(value).__name__}; it must be {allowed}"
        )
    if not control.minimum <= value <= control.maximum:  # NaN is refused here too
        raise HardEightError(f"{control.name} is {value}; it must be {allowed}")
    return float(value)


def __getattr__(name: str) -> Any:
    # The original's constant; looked up anew, because tasks can be added at run time.
    if name == "LEVEL_NAMES":
        return frozenset(task.level for task in all_tasks())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
