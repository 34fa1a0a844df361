"""`r2d3 demos check`: every episode played again and compared bit by bit."""

import argparse

from r2d3.errors import UserError

HELP = """\
Play every episode again from its seed and actions, and compare rewards, ends, every picture and all
proprioception with what was recorded, bit by bit. Says which episode and step differ and how; the
exit status is then 1.
"""
EPILOG = """\
examples:
  r2d3 demos check                                      all datasets there are
  r2d3 demos check hardeight/wall-sensor/scripted-v0    this one
  r2d3 demos check ./demos                              those in a folder
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "datasets", nargs="*", metavar="DATASET", help="a name, or a folder (default: all)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")


def run(args: argparse.Namespace) -> int:
    from studio import datasets
    from studio.checking import check_dataset, other_versions, resimulable
    from studio.workers import usable_cores

    folders = datasets.find(args.datasets)
    if not folders:
        raise UserError(f"no datasets in {datasets.root()}; 'r2d3 demos make TASK' makes one")
    workers = usable_cores() if args.workers is None else args.workers
    if workers < 1:
        raise UserError(f"--workers is {workers}; it must be at least 1")
    all_the_same = True
    for folder in folders:
        dataset = resimulable(folder)
        findings = check_dataset(folder, workers)
        for finding in findings:
            print(f"{dataset.name}, episode {finding.episode}: {finding.what}")
        wrong = len({finding.episode for finding in findings})
        if not wrong:
            print(f"{dataset.name}: {len(dataset)} episodes, every bit as recorded", flush=True)
            continue
        all_the_same = False
        versions = other_versions(dataset)
        note = f" ({versions})" if versions else ""
        print(f"{dataset.name}: {wrong} of {len(dataset)} episodes differ{note}", flush=True)
    return 0 if all_the_same else 1
