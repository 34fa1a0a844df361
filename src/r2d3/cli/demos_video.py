"""`r2d3 demos video`: one episode as a film."""

import argparse
from pathlib import Path

from r2d3.errors import UserError

HELP = """\
Film one recorded episode: it is played again from its seed and actions, and shown in real time as
the avatar saw it, larger, with the map beside it.
"""
EPILOG = """\
examples:
  r2d3 demos video hardeight/wall-sensor/scripted-v0 --out wall.mp4
  r2d3 demos video hardeight/wall-sensor/scripted-v0 --episode 7 --height 240 --out wall.gif
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a name, or a folder")
    parser.add_argument("--episode", type=int, default=0, metavar="K", help="(default: 0)")
    parser.add_argument("--out", required=True, metavar="FILE", help="ends in .mp4 or .gif")
    parser.add_argument(
        "--height", type=int, default=480, metavar="PIXELS", help="of the view (default: 480)"
    )


def run(args: argparse.Namespace) -> int:
    from studio import datasets
    from studio.video import write_video

    folders = datasets.find([args.dataset])
    if len(folders) != 1:
        raise UserError(f"'{args.dataset}' holds {len(folders)} datasets; name one")
    out = Path(args.out).expanduser()
    seconds = write_video(folders[0], args.episode, out, args.height)
    print(f"{out}: {seconds:.1f} s, {out.stat().st_size / 1e6:.1f} MB")
    return 0
