"""The floating point environment that C starts with, for as long as the world computes.

Libraries change it for their own speed, thread by thread: `torch.set_flush_denormal`, or code that
was built with -ffast-math. Physics under another rounding or without the smallest numbers ends
elsewhere, and an episode would no longer follow from its seed and actions alone.
"""

from __future__ import annotations

import ctypes
import sys
from types import TracebackType

_LIBRARY = ctypes.CDLL(None)
_SIZE = 64  # bytes, of a fenv_t at most
_Buffer = ctypes.c_char * _SIZE


def _default_environment() -> ctypes.c_void_p:
    """FE_DFL_ENV as <fenv.h> defines it."""
    if sys.platform == "darwin":
        variable = _Buffer.in_dll(_LIBRARY, "_FE_DFL_ENV")
        return ctypes.c_void_p(ctypes.addressof(variable))
    return ctypes.c_void_p(-1)


_DEFAULT = _default_environment()


class StandardFloats:
    """`with StandardFloats():` sets this thread's environment, and puts back what was there."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _Buffer()
        _LIBRARY.fegetenv(self._before)
        _LIBRARY.fesetenv(_DEFAULT)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _LIBRARY.fesetenv(self._before)
