"""Refusals of commands: each says what is wrong, its code, and what to do next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, ProgrammingError

from projects.errors.base import ControllerActionError

EXIT_REFUSED: Final = 4
"""The exit code of a command that did nothing. A command that follows a run never ends with it."""


def refused(text: str) -> CommandError:
    """An error that ends the command with EXIT_REFUSED."""
    return CommandError(text, returncode=EXIT_REFUSED)


def invalid(problem: str, remedy: str = "Correct it, and run the command again") -> CommandError:
    """The refusal of something that was given to the command."""
    return refused(f"{problem.rstrip('.')} (INVALID_ARGUMENT). {remedy}")


@contextmanager
def refusals() -> Iterator[None]:
    """End the command with one line, not a traceback, if something inside is refused.

    That includes a database that is not there yet, because no server has been set up.
    """
    try:
        yield
    except ControllerActionError as error:
        raise refused(error.line()) from None
    except ValidationError as error:
        raise invalid("; ".join(_problems(error))) from None
    except (OperationalError, ProgrammingError) as error:
        raise refused(
            f"the database cannot be used: {error} (STORAGE_UNAVAILABLE). {_remedy(error)}"
        ) from None


class RefusingCommand(BaseCommand):
    """A command that reports whatever is refused as ``refusals`` does."""

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        """Check and run the command."""
        for name, value in options.items():
            _require_text(name, value)
        with refusals():
            return super().execute(*arguments, **options)


def _require_text(name: str, value: Any) -> None:
    """Raises CommandError for an argument that is no text: no database looks for one.

    Python lets bytes of a command line that are no UTF-8 through as halves of surrogate pairs.
    """
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str):
            # The name of a file is one of its system's, whatever its bytes are.
            continue
        try:
            each.encode()
        except UnicodeEncodeError:
            raise refused(
                f"{name.replace('_', ' ')}: {each!a} is not UTF-8 text (INVALID_ARGUMENT). "
                "Write it as UTF-8"
            ) from None


def _problems(error: ValidationError) -> Iterator[str]:
    """The messages of a refused row, each after the name of the field that it is about."""
    if not hasattr(error, "error_dict"):
        yield from error.messages
        return
    for field, messages in error.message_dict.items():
        about = "" if field == NON_FIELD_ERRORS else f"{field.replace('_', ' ')}: "
        yield from (f"{about}{message}" for message in messages)


def _remedy(error: DatabaseError) -> str:
    if isinstance(error, ProgrammingError) or str(error).startswith(("no such ", "there is no ")):
        return "Start a server first: bin/quickstart, or manage.py migrate"
    return "Check DATABASE_URL and HOLDLINE_DATA_DIR, and that the database runs and can be written"
