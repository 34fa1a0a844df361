"""MuJoCo's C functions, callable from compiled code without the interpreter."""

import ctypes
from pathlib import Path

import llvmlite.binding
import mujoco
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _library() -> ctypes.CDLL:
    folder = Path(mujoco.__file__).parent
    found = sorted(folder.glob("libmujoco*.so*")) + sorted(folder.glob("libmujoco*.dylib"))
    if not found:
        raise ImportError(f"no MuJoCo library in {folder}; reinstall mujoco-core")
    return ctypes.CDLL(str(found[0]))


_LIBRARY = _library()


def _external(name: str, signature) -> types.ExternalFunction:
    address = ctypes.cast(getattr(_LIBRARY, name), ctypes.c_void_p).value
    llvmlite.binding.add_symbol(name, address)
    return types.ExternalFunction(name, signature)


_pointer = types.intp
mj_step = _external("mj_step", types.void(_pointer, _pointer))
mj_kinematics = _external("mj_kinematics", types.void(_pointer, _pointer))
# (model, data, geom, geom, largest distance of interest, no segment wanted = 0)
mj_geom_distance = _external(
    "mj_geomDistance",
    types.float64(_pointer, _pointer, types.int32, types.int32, types.float64, _pointer),
)
# (model, data, from, direction, geom groups or 0, statics too, body left out, geom id or 0,
#  normal or 0)
mj_ray = _external(
    "mj_ray",
    types.float64(
        _pointer, _pointer, _pointer, _pointer, _pointer, types.uint8, types.int32, _pointer,
        _pointer,
    ),
)  # fmt: skip


@intrinsic
def at_address(typing_context, address):
    """An address held in an integer, as the void pointer that numba.carray takes."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate
