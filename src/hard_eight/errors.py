"""Mistakes of a caller: each message names what was given and what is allowed."""

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any


class HardEightError(ValueError):
    """Bad input to the world. The command line prints it as one line and exits with status 2."""


def unknown(kind: str, given: Any, known: Mapping[str, str]) -> HardEightError:
    """The error about a word that names nothing: what it may have meant, and all that there is.

    `known`: the words that a near miss may have meant, and the name that each stands for.
    """
    names = {word.lower(): name for word, name in known.items()}
    near = difflib.get_close_matches(str(given).lower(), names, n=1)
    guess = f"did you mean {names[near[0]]!r}? There are" if near else "there are"
    return HardEightError(f"no {kind} {given!r}; {guess}: {', '.join(sorted({*known.values()}))}")


def refuse_unknown(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse what is given under a name that there is not."""
    names = {name: name for name in known}
    for name in given:
        if not names:
            raise HardEightError(f"no {kind} {name!r}; there is none at all")
        if name not in names:
            raise unknown(kind, name, names)


def options_of(form: type) -> list[str]:
    """The names of an environment's options: what its constructor takes by keyword alone."""
    parameters = inspect.signature(form).parameters.values()
    return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
