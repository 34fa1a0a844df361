"""The tasks as Gymnasium environments."""

from __future__ import annotations

from typing import Any, Never

import gymnasium
import numpy as np
from gymnasium import spaces

from .actions import ACTIONS, CONTROL_TABLE
from .batch import (
    ADVANCE,
    DRAW_ONLY,
    LARGEST_SIDE,
    SMALLEST_SIDE,
    Batch,
    Options,
    whole_number,
)
from .errors import HardEightError, options_of, refuse_unknown
from .native import constants as c
from .task import find_task
from .world import World

Observation = dict[str, np.ndarray]
Info = dict[str, Any]

# m/s². A space should be finite. The fall into the abyss reaches 15 m/s; stopped within one frame
# that makes 460, and nothing else here changes the avatar's speed so much.
MOST_ACCELERATION = 1000.0
LARGEST_SEED = 2**62  # and a batch of environments, which counts on from it, stays within int64


def observation_space(height: int, width: int) -> spaces.Dict:
    """Picture and proprioception; the same for all tasks."""
    return spaces.Dict(
        {
            "rgb": spaces.Box(0, 255, (height, width, 3), np.uint8),
            "acceleration": spaces.Box(-MOST_ACCELERATION, MOST_ACCELERATION, (3,), np.float32),
            "hand_force": spaces.Box(0.0, 1.0, (1,), np.float32),
            "hand_is_holding": spaces.Box(0.0, 1.0, (1,), np.float32),
            "hand_distance": spaces.Box(0.0, 1.0, (1,), np.float32),
        }
    )


def check_action(action: Any) -> int:
    """The action as an int; anything else than a whole number from 0 to 45 is refused."""
    if isinstance(action, np.ndarray) and action.shape == ():
        action = action.item()
    if isinstance(action, bool) or not isinstance(action, int | np.integer):
        raise HardEightError(
            f"action is {action!r} of type {type(action).__name__}; "
            f"it must be an int from 0 to {len(ACTIONS) - 1}"
        )
    if not 0 <= action < len(ACTIONS):
        raise HardEightError(f"action is {action}; it must be from 0 to {len(ACTIONS) - 1}")
    return int(action)


def check_seed(seed: Any) -> int:
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= LARGEST_SEED:
        raise HardEightError(f"seed is {seed!r}; it must be a whole number from 0 to 2**62")
    return int(seed)


def check_render_size(size: Any) -> tuple[int, int]:
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise HardEightError(f"render_size is {size!r}; it must be (width, height)")
    width, height = (whole_number("render_size", n, SMALLEST_SIDE, LARGEST_SIDE) for n in size)
    return width, height


def check_reset_options(options: Any, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """The options of a reset; unknown ones are refused, or a slip would go unseen."""
    if options is not None and not isinstance(options, dict):
        raise HardEightError(f"options is {options!r}; it must be a dict or None")
    refuse_unknown("option of reset", options or (), known)
    return options or {}


def progress(world: World) -> Info:
    """What `info` tells at every step: success, and the milestones reached so far, in order."""
    reached = world.reached.tolist()
    return {
        "success": bool(world.state[c.S_SUCCESS]),
        "milestones": {
            name: bool(done) for name, done in zip(world.milestones, reached, strict=True)
        },
    }


class HardEightEnv(gymnasium.Env):
    """One Hard-Eight task.

    Everything about an episode follows from its seed: `reset(seed=s)` plays episode s; without a
    seed the next one is drawn, and `info["seed"]` names it.
    """

    metadata = {"render_modes": ["rgb_array", "top_down"], "render_fps": 15}

    def __init__(
        self,
        task: str,
        *,
        height: int = 72,
        width: int = 96,
        action_repeat: int = 2,
        time_limit: float = 120.0,
        render_mode: str | None = None,
        render_size: tuple[int, int] = (480, 360),
        **unknown: Never,
    ) -> None:
        refuse_unknown("option", unknown, options_of(HardEightEnv))
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise HardEightError(
                f"render_mode is {render_mode!r}; it must be None, 'rgb_array' or 'top_down'"
            )
        self.task = find_task(task)
        self.options = Options(height, width, action_repeat, time_limit)
        self.render_mode, self.render_size = render_mode, check_render_size(render_size)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = observation_space(self.options.height, self.options.width)
        self._batch = Batch(self.task, 1, self.options)
        self._over = True

    @property
    def world(self) -> World:
        """The running episode's world, to read; only actions change it."""
        world = self._batch.worlds[0]
        if world is None:
            raise HardEightError("there is no episode yet; call reset() first")
        return world

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        check_reset_options(options)
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        world = self._batch.load(0, seed)
        self._batch.moving[0] = DRAW_ONLY
        self._over = False
        return self._observation(), {"seed": seed, **progress(world)}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        return self.step_controls(CONTROL_TABLE[check_action(action)])

    def step_controls(self, controls: np.ndarray) -> tuple[Observation, float, bool, bool, Info]:
        """One decision with the nine continuous controls as given (dm.py's way in)."""
        if self._over:
            raise HardEightError("the episode has ended, or none has begun; call reset() first")
        batch = self._batch
        batch.controls[0] = controls
        batch.moving[0] = ADVANCE
        observation = self._observation()
        terminated, truncated = bool(batch.terminated[0]), batch.truncated(0)
        self._over = terminated or truncated
        info = progress(self.world)
        return observation, float(batch.rewards[0]), terminated, truncated, info

    def _observation(self) -> Observation:
        pictures, proprioception = self._batch.run()
        row = proprioception[0]
        return {
            "rgb": pictures[0],
            "acceleration": row[0:3],
            "hand_force": row[3:4],
            "hand_is_holding": row[4:5],
            "hand_distance": row[5:6],
        }

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            return None
        from .pictures import first_person, top_down

        width, height = self.render_size
        if self.render_mode == "top_down":
            return top_down(self.world, height=max(height, width), width=max(height, width))
        return first_person(self.world, height=height, width=width)

    def close(self) -> None:
        self._batch.close()
