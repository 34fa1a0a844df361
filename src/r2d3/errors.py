"""Mistakes of a user, as opposed to mistakes of this program."""


class UserError(Exception):
    """The user asked for something that cannot be done: the message says what, and what can.

    The command line prints it as one line and exits with status 2.
    """
