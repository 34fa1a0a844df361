"""`r2d3 tasks`: what there is to play, and with which actions."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from r2d3.cli.table import print_table

if TYPE_CHECKING:
    from hard_eight.task import Task

HELP = "List the eight tasks, describe one of them, or list the actions they are played with."
EPILOG = """\
examples:
  r2d3 tasks                list the tasks
  r2d3 tasks wall_sensor    describe one
  r2d3 tasks --actions      list the 46 actions and their keys
  r2d3 tasks --json         the same for a program: works with each of the above
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "task",
        nargs="?",
        metavar="TASK",
        help="describe this task (its name, Gymnasium id or level)",
    )
    what.add_argument("--actions", action="store_true", help="list the actions instead")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    # Imported late: `r2d3 tasks --help` should not wait for the physics to load.
    import hard_eight.tasks  # noqa: F401  fills the registry
    from hard_eight.task import all_tasks, find_task

    if args.actions:
        _print_actions(args.json)
    elif args.task is not None:
        _print_task(find_task(args.task), args.json)
    else:
        _print_tasks(all_tasks(), args.json)
    return 0


def _print_tasks(tasks: "list[Task]", as_json: bool) -> None:
    if as_json:
        _print_json([_facts(task) for task in tasks])
        return
    # Three columns fit a terminal of 80; the rest of what is known is one `r2d3 tasks TASK` away.
    print_table(
        ["task", "Gymnasium id", "what it asks"],
        [[task.name, task.gym_id, task.summary] for task in tasks],
    )


def _print_task(task: "Task", as_json: bool) -> None:
    if as_json:
        _print_json(_facts(task))
        return
    print(f"{task.name}: {task.summary}")
    print()
    print(f"Gymnasium id    {task.gym_id}")
    print(f"original level  {task.level}")
    if task.human_return:
        print(f"human return    {task.human_return}")
    if task.human_length:
        print(f"human length    {task.human_length} frames, 30 a second")
    print()
    print("what varies")
    for what in task.varies:
        print(f"  - {what}")
    print()
    print("milestones, in order")
    for number, milestone in enumerate(task.milestones, start=1):
        print(f"  {number}. {milestone}")


def _facts(task: "Task") -> dict[str, Any]:
    return {
        "name": task.name,
        "gym_id": task.gym_id,
        "level": task.level,
        "summary": task.summary,
        "varies": list(task.varies),
        "milestones": list(task.milestones),
        "human_return": task.human_return,
        "human_length": task.human_length,
    }


def _print_actions(as_json: bool) -> None:
    from hard_eight.actions import ACTIONS

    if as_json:
        _print_json(
            [{"index": a.number, "name": a.name, "key": a.key} for a in ACTIONS],
        )
        return
    print_table(["index", "action", "keys"], [[str(a.number), a.name, a.key] for a in ACTIONS])


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
