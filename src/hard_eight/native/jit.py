"""How this package compiles its hot loops.

Inner functions are compiled as part of the entry point that calls them; only entry points are
cached on disk. Numba's cache does not notice an edited callee, so each entry point closes over
`FINGERPRINT`, a hash of all native source: numba makes closure values part of its cache key.
"""

import hashlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numba import njit
from numba.extending import register_jitable

# No 'contract' and no 'reassoc': the same arithmetic, hence the same pixels, with and without FMA.
_OPTIONS = {
    "fastmath": {"nnan", "ninf", "nsz", "arcp"},
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
}


def _fingerprint() -> int:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


FINGERPRINT = _fingerprint()

inner = njit(**_OPTIONS)
entry = njit(cache=True, **_OPTIONS)

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
