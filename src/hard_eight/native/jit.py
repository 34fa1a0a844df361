"""How this package compiles its hot loops.

Inner functions are compiled as part of the entry point that calls them; only entry points are
cached on disk. Numba's cache does not notice an edited callee, so each entry point closes over
a `fingerprint` of the source that goes into it: numba makes closure values part of its cache key.
"""

import hashlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numba import njit
from numba.extending import register_jitable

# The same arithmetic, hence the same pixels, on every processor: no 'contract' (some have no FMA),
# no 'reassoc', and no 'arcp', under which LLVM makes vectors of float32 divisions into rcpps, an
# estimate whose bits differ between makers.
_OPTIONS = {
    "fastmath": {"nnan", "ninf", "nsz"},
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
}


def fingerprint(*names: str) -> int:
    """A hash of these native source files and of this one; of all of them if none is named."""
    folder = Path(__file__).parent
    paths = [folder / f"{name}.py" for name in (*names, "jit")] if names else folder.glob("*.py")
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


inner = njit(**_OPTIONS)
entry = njit(cache=True, **_OPTIONS)

# For pixels: functions that only borrow arrays, and allocate nothing, need not count references;
# two locked instructions for every array touched took a third of the rasteriser's time.
lean = njit(_nrt=False, **_OPTIONS)
inlined = njit(_nrt=False, forceinline=True, **_OPTIONS)  # helpers with many arguments

# Plain Python when Python calls it, compiled when compiled code does: for the little maths that
# building a world needs too.
shared = register_jitable(fastmath=_OPTIONS["fastmath"], error_model="numpy")


@contextmanager
def compilation_announced() -> Iterator[None]:
    """Tell a waiting user why the very first picture takes long; say nothing from a warm cache."""
    notice = threading.Timer(
        1.5,
        lambda: print(
            "hard_eight: compiling for this processor, once (about 20 s)", file=sys.stderr
        ),
    )
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
