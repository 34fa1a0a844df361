"""Mistakes of a caller: each message names what was given and what is allowed."""


class HardEightError(ValueError):
    """Bad input to the world. The command line prints it as one line and exits with status 2."""
