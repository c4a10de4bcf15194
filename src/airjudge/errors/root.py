"""What all errors of ours have."""

from typing import ClassVar


class AirjudgeError(Exception):
    """An error that a user can act on.

    The fields are kept in `args`, so that every error survives pickling.
    """

    kind: ClassVar[str] = "error"
    hint: str = ""


class Told(AirjudgeError):
    """An error whose message and next step are written where it is raised."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message and the next step."""
        super().__init__(message, hint)
        self.hint = hint or type(self).hint

    def __str__(self) -> str:
        """Give the message alone; `hint` holds the next step."""
        return str(self.args[0])
