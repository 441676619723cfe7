"""What is wrong outside of the user's program."""

from __future__ import annotations


class SetupError(Exception):
    """The request cannot be served: a file, a tool or a target is not there.

    Distinct from a `Diagnostic`, which is about a program and has a place in it. Ends as exit
    status 2.
    """

    def __init__(self, message: str, help: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.code = code
