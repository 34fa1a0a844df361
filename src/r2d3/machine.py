"""Settings of the machine that make the same code faster."""

from __future__ import annotations

import ctypes
import sys

import torch

# mallopt's names, from glibc's malloc.h
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_GIB = 1 << 30


def keep_freed_memory() -> bool:
    """Tells glibc not to give freed memory back to the kernel; True if it listened.

    Each learner step frees and asks again for hundreds of megabytes; every page given back costs a
    fault and a clearing when it is touched again. That is half of a learner step from pixels.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has no mallopt
        return False
    settings = [(_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2 * _GIB - 1), (_M_TOP_PAD, 64 << 20)]
    return all(mallopt(name, value) for name, value in settings)


def prepare(torch_threads: int) -> None:
    keep_freed_memory()
    torch.set_num_threads(torch_threads)
    # Numbers below 1e-38 cost a hundred times more and mean nothing here.
    torch.set_flush_denormal(True)


def choose_device(wanted: str) -> str:
    from r2d3.errors import UserError

    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise UserError("--device cuda: no CUDA device here")
    return "cuda" if there and wanted != "cpu" else "cpu"
