"""The environment, read once and typed. Everything that is wrong with it is reported in one error.

Sizes are bytes, times are seconds. An unset variable means its default; an empty one counts as unset.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")


class Environment:
    """Reads variables and remembers what was wrong; ``finish`` raises one ImproperlyConfigured naming all of it.

    Texts name the variable and the rule, never the value: it may be a secret.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables
        self._problems: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        """The variable as it is."""
        return self._variables.get(name, "").strip() or default

    def items(self, name: str, default: str = "") -> list[str]:
        """A comma-separated list without empty items."""
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def number(self, name: str, default: int, *, at_least: int = 0) -> int:
        """A whole number."""
        return self._parsed(name, default, int, "a whole number", at_least)

    def seconds(self, name: str, default: float, *, at_least: float = 0.0) -> float:
        """A time in seconds."""
        return self._parsed(name, default, float, "a number of seconds", at_least)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """1, true, yes or on; 0, false, no or off."""
        value = self.text(name).lower()
        if value in {"1", "true", "yes", "on"}:
            return True
        if value and value not in {"0", "false", "no", "off"}:
            self._problems.append(f"{name} must be true or false")
        return default if not value else False

    def path(self, name: str, default: Path) -> Path:
        """An absolute path; ``~`` is expanded."""
        value = self.text(name)
        return Path(value).expanduser().absolute() if value else default

    def problem(self, text: str) -> None:
        """Reports something only the reader of the value can judge."""
        self._problems.append(text)

    def finish(self) -> None:
        """Raises ImproperlyConfigured if anything was wrong."""
        if self._problems:
            raise ImproperlyConfigured("the environment is not usable: " + "; ".join(self._problems))

    def _parsed(self, name: str, default: T, parse: Callable[[str], T], expected: str, at_least: float) -> T:
        value = self.text(name)
        if not value:
            return default
        try:
            number = parse(value)
        except ValueError:
            self._problems.append(f"{name} must be {expected}")
            return default
        # Written so that NaN fails too.
        if not float(str(number)) >= at_least:
            self._problems.append(f"{name} must be at least {at_least:g}")
            return default
        return number
