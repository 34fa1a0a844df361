"""The report of a run in its folder: python -m studio.report RUN [--running]."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from . import write_report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m studio.report", description=__doc__)
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--running", action="store_true", help="the page shall renew itself")
    args = parser.parse_args()
    if args.running:
        os.nice(15)  # the training goes first
    print(write_report(args.run, running=args.running))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
