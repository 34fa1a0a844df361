"""What a near miss was meant to be."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` most likely stands for: 'WallSensor' for 'wall_sensor', say."""
    by_letters = {_letters(candidate): candidate for candidate in candidates}
    matches = get_close_matches(_letters(word), by_letters, n=1)
    return by_letters[matches[0]] if matches else None


def unknown(kind: str, word: str, candidates: Iterable[str]) -> str:
    """One line about a word that names nothing: the nearest guess, or else all that do."""
    candidates = list(candidates)
    guess = nearest(word, candidates)
    rest = f"did you mean '{guess}'?" if guess else f"known: {', '.join(candidates)}"
    return f"no {kind} '{word}'; {rest}"


def _letters(word: str) -> str:
    return re.sub(r"[-_ /]", "", word).lower()
