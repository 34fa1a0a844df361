"""The command `r2d3`: finds the verb, imports that verb alone, runs it, and tells of errors.

A verb is a module with `HELP` (what it does), `EPILOG` (examples), `add_arguments(parser)` and
`run(args) -> int`, which returns the exit status. Adding one is a line in `VERBS`.
"""

import os
import select
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

from r2d3.cli.guess import unknown
from r2d3.cli.parser import Parser
from r2d3.errors import UserError


class Verb(NamedTuple):
    """Its module stays unimported until the verb is asked for: `r2d3 tasks` needs no torch."""

    module: str
    summary: str


class Group(NamedTuple):
    """Verbs that share a first word."""

    verbs: "dict[str, Verb | Group]"
    summary: str


VERBS: dict[str, Verb | Group] = {
    "tasks": Verb("r2d3.cli.tasks", "the eight tasks, and the actions they are played with"),
    "demos": Group(
        {
            "make": Verb("r2d3.cli.demos_make", "let the scripted demonstrators play"),
            "list": Verb("r2d3.cli.demos_list", "the datasets there are"),
            "stats": Verb("r2d3.cli.demos_stats", "returns, lengths, successes, beside people's"),
            "check": Verb("r2d3.cli.demos_check", "play every episode again and compare each bit"),
            "video": Verb("r2d3.cli.demos_video", "one episode as MP4 or GIF, with the map"),
        },
        "make, inspect and check demonstrations",
    ),
    "train": Verb("r2d3.cli.train", "train R2D3, R2D2, DQfD or BC in a Gymnasium environment"),
    "evaluate": Verb("r2d3.cli.evaluate", "play a run's newest weights and print the means"),
    "watch": Verb("r2d3.cli.watch", "a video of a run's newest weights at play"),
    "report": Verb("r2d3.cli.report", "a run's page: curves, videos, maps, settings"),
    "bench": Group(
        {
            "env": Verb("r2d3.cli.bench_env", "how fast the environments step on this machine"),
            "learner": Verb("r2d3.cli.bench_learner", "how fast the learner is on this machine"),
            "replay": Verb("r2d3.cli.bench_replay", "how fast and how small the replay is"),
            "scale": Verb("r2d3.cli.bench_scale", "each stage alone, the whole under Ray"),
        },
        "measure the speed of a part",
    ),
}
TOP = Group(
    VERBS, "Hard-Eight, eight first-person tasks with sparse rewards, and R2D3, which learns them."
)

USERS_MISTAKE, UNEXPECTED, INTERRUPTED, READER_GONE = 2, 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run `r2d3` with these arguments; return its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        status = _dispatch(TOP, "r2d3", list(argv))
        sys.stdout.flush()  # a reader that has gone away shows here, not while Python shuts down
        return status
    except KeyboardInterrupt:
        print("r2d3: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_has_gone():
            return READER_GONE
        return _tell(error, debug="--debug" in argv)


def _dispatch(entry: Verb | Group, path: str, argv: list[str]) -> int:
    if isinstance(entry, Verb):
        module = import_module(entry.module)
        parser = Parser(prog=path, description=module.HELP, epilog=module.EPILOG)
        module.add_arguments(parser)
        if {"-h", "--help"} & set(argv):  # not left to argparse, which hides a broken pipe
            print(parser.format_help(), end="")
            return 0
        status: int = module.run(parser.parse(argv))
        return status

    words = [word for word in argv if word != "--debug"]
    if not words and entry is not TOP:
        raise UserError(f"'{path}' needs one of: {', '.join(entry.verbs)}")
    if not words or words[0] in ("-h", "--help"):
        print(_help(entry, path))
        return 0
    if words[0] == "--version" and entry is TOP:
        print(f"r2d3 {version('r2d3')}")
        return 0
    word = words[0]
    if word in entry.verbs:
        argv.remove(word)
        return _dispatch(entry.verbs[word], f"{path} {word}", argv)
    if word.startswith("-"):
        raise UserError(unknown("option", word, _options(entry)))
    kind = "verb" if entry is TOP else f"'{path}' verb"
    raise UserError(unknown(kind, word, entry.verbs))


def _options(group: Group) -> list[str]:
    return ["--help", "--debug", *(["--version"] if group is TOP else [])]


def _help(group: Group, path: str) -> str:
    width = max(map(len, group.verbs))
    verbs = [f"  {name:<{width}}  {entry.summary}" for name, entry in group.verbs.items()]
    examples = [f"  {path} {name} --help" for name in group.verbs]
    return "\n".join(
        [
            f"usage: {path} VERB ... [{'] ['.join(_options(group))}]",
            "",
            group.summary,
            "",
            "verbs:",
            *verbs,
            "",
            "examples:",
            *examples,
        ]
    )


def _tell(error: Exception, debug: bool) -> int:
    """Say in one line what went wrong; with --debug, where."""
    mistake = _is_users_mistake(error)
    if debug:
        traceback.print_exception(error)
    elif mistake:
        print(f"r2d3: {' '.join(str(error).split())}", file=sys.stderr)
    else:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"r2d3: unexpected {what} ({_keep_traceback(error)})", file=sys.stderr)
    return USERS_MISTAKE if mistake else UNEXPECTED


def _keep_traceback(error: Exception) -> str:
    """Keep the traceback in a file: what broke a run of ten hours must not be lost."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="r2d3-error-", suffix=".txt")
        with open(descriptor, "w") as file:
            traceback.print_exception(error, file=file)
    except OSError:  # the disk is full, perhaps, and that was the error
        return "--debug shows where"
    return f"traceback in {path}"


def _is_users_mistake(error: Exception) -> bool:
    # The world's own error class is looked up only where the world was imported: an error of
    # that class cannot come from anywhere else, and importing it here would slow every command.
    world = sys.modules.get("hard_eight.errors")
    return isinstance(error, UserError) or (
        world is not None and isinstance(error, world.HardEightError)
    )


def _reader_has_gone() -> bool:
    """Whether the broken pipe is our own output (`r2d3 tasks | head -1`), and not a worker's."""
    stdout = sys.stdout.fileno()
    poll = select.poll()
    poll.register(stdout, 0)
    if not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        return False
    # What is still in the buffer goes nowhere, or Python complains of it while shutting down.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout)
    return True


if __name__ == "__main__":
    sys.exit(main())
