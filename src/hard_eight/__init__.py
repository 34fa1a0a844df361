"""Hard-Eight: eight first-person 3D physics tasks with sparse rewards and a partial view.

`import hard_eight` registers the Gymnasium ids (`HardEight/WallSensor-v0`, ...).
"""

from .errors import HardEightError
from .registration import register_builtin

register_builtin()

__all__ = ["HardEightError"]
