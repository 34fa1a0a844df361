"""Parsing the arguments of one verb, with mistakes told in one line."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from r2d3.cli.guess import unknown


class Parser(argparse.ArgumentParser):
    """`argparse` whose every error is one line: where, what, and where to read on."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # An abbreviation that works today would change its meaning with the next new option.
            allow_abbrev=False,
        )
        self.add_argument(
            "--debug",
            action="store_true",
            help="where there would be one line of error, a traceback",
        )

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments, or one line and exit status 2."""
        args, strangers = self.parse_known_args(argv)
        if strangers:
            options = [stranger for stranger in strangers if stranger.startswith("-")]
            if options:
                self.error(unknown("option", options[0].split("=")[0], self._option_string_actions))
            self.error(f"unexpected argument '{strangers[0]}'")
        return args

    def error(self, message: str) -> NoReturn:
        line = " ".join(message.split()).removeprefix("argument ")
        print(f"{self.prog}: {line} (see '{self.prog} --help')", file=sys.stderr)
        raise SystemExit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse's own message lists the choices but does not guess.
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, unknown("choice", str(value), choices))
