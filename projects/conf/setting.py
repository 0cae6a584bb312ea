"""Settings, each declared once: variable, type, default, lowest value, and what it is for.

``config.settings.base`` reads the declarations from the environment when a process starts, and
stores each value as the Django setting of the same name. ``projects.conf.server`` and
``agent.conf`` declare their settings as attributes of a class, which give the rest of the code the
typed value. A test compares every declaration with its row in ``docs/reference/settings.md``.

Sizes are bytes, times are seconds.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from controller_client.command_policy.allowlist import Allowlist

T = TypeVar("T")

TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One variable of the environment; as an attribute of an object, the value in force.

    The value is looked up in Django's settings at each use, so that tests can override it.
    """

    variable: str
    default: T
    doc: str
    """The purpose and the unit, as the reference page words them."""
    _: KW_ONLY
    shown: str = ""
    """The default as the reference page shows it, where the value itself would not say enough."""

    @cached_property
    def name(self) -> str:
        """The Django setting that holds the value: the variable without ``HOLDLINE_``."""
        return self.variable.removeprefix("HOLDLINE_")

    def __get__(self, instance: object, owner: type[object]) -> T:
        value: T = getattr(settings, self.name)
        return value

    def parse(self, text: str) -> T:
        """The value that ``text`` stands for, in the type of the setting.

        Raises ValueError with the end of a sentence that begins "VARIABLE must be". It never quotes
        the text, which may be a secret.
        """
        raise NotImplementedError


class Text(Setting[str]):
    """A text, taken as it is."""

    def parse(self, text: str) -> str:
        """The text itself, since any text will do."""
        return text


class Origin(Setting[str]):
    """Scheme, host and port of a server, stored without a slash at the end."""

    def parse(self, text: str) -> str:
        """The origin; anything behind the port is refused."""
        if not re.fullmatch(r"https?://[\w.:\[\]-]+/*", text):
            raise ValueError("an origin such as https://holdline.example.com")
        return text.rstrip("/")


@dataclass(frozen=True)
class Choice(Setting[str]):
    """One word out of a few ``choices``."""

    _: KW_ONLY
    choices: tuple[str, ...]

    def parse(self, text: str) -> str:
        """The word, if it is one of the choices."""
        if text not in self.choices:
            *others, last = self.choices
            raise ValueError(f"{', '.join(others)} or {last}")
        return text


class Level(Setting[str]):
    """The name of a level of the log, in letters of either case."""

    def parse(self, text: str) -> str:
        """The level's name in capitals."""
        if (name := text.upper()) not in logging.getLevelNamesMapping():
            raise ValueError("DEBUG, INFO, WARNING, ERROR or CRITICAL")
        return name


def items_of(text: str) -> tuple[str, ...]:
    """The items of a list that is separated by commas, without spaces and empty items."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


class Items(Setting[tuple[str, ...]]):
    """A list whose items are separated by commas; empty items are dropped."""

    def __get__(self, instance: object, owner: type[object]) -> tuple[str, ...]:
        # Overrides in tests, and Django itself for ALLOWED_HOSTS, put a list in its place.
        return tuple(super().__get__(instance, owner))

    def parse(self, text: str) -> tuple[str, ...]:
        """The items, without the spaces around them.

        Nothing but commas is refused: a list without items often allows everything.
        """
        if not (items := items_of(text)):
            raise ValueError("at least one item, or unset")
        return items


class Networks(Items):
    """Networks of IP addresses, separated by commas."""

    def parse(self, text: str) -> tuple[str, ...]:
        """The networks, each of them without bits behind its prefix."""
        items = super().parse(text)
        try:
            return tuple(str(ip_network(item)) for item in items)
        except ValueError:
            raise ValueError("networks such as 10.0.0.0/8,fd00::/8") from None


class Programs(Items):
    """A list of allowed programs, as ``controller_client.command_policy.allowlist`` reads it."""

    def parse(self, text: str) -> tuple[str, ...]:
        """The entries; one that no host could understand would let every start fail."""
        items = super().parse(text)
        try:
            Allowlist.parse(items)
        except ValueError:
            raise ValueError("programs such as sleep,echo,python3:shell, or * alone") from None
        return items


class Directories(Items):
    """Directories of hosts, separated by commas."""

    def parse(self, text: str) -> tuple[str, ...]:
        """The directories, each of them absolute."""
        items = super().parse(text)
        if not all(item.startswith("/") for item in items):
            raise ValueError("absolute paths such as /srv/work")
        return items


class Flag(Setting[bool]):
    """1, true, yes or on; 0, false, no or off."""

    def parse(self, text: str) -> bool:
        """The truth value that the word stands for."""
        word = text.lower()
        if word not in TRUE | _FALSE:
            raise ValueError("true or false")
        return word in TRUE


class Directory(Setting[Path]):
    """A path, stored as an absolute one; ``~`` is expanded."""

    def parse(self, text: str) -> Path:
        """The absolute path; the directory need not exist."""
        try:
            return Path(text).expanduser().absolute()
        except RuntimeError:
            raise ValueError("a path; ~ stands for the home of a user that is there") from None


@dataclass(frozen=True)
class Number(Setting[int]):
    """A whole number, ``at_least`` or more."""

    _: KW_ONLY
    at_least: int = 0

    def parse(self, text: str) -> int:
        """The number, if it is not too small."""
        try:
            number = int(text)
        except ValueError:
            raise ValueError("a whole number") from None
        if number < self.at_least:
            raise ValueError(f"at least {self.at_least}")
        return number


MAX_SECONDS: Final = 1_000_000_000
"""Some thirty years. No date can be computed with much more, or with infinity."""


@dataclass(frozen=True)
class Seconds(Setting[float]):
    """A time in seconds, ``at_least`` or more."""

    _: KW_ONLY
    at_least: float = 0.0

    def parse(self, text: str) -> float:
        """The time, if it is not too short."""
        try:
            seconds = float(text)
        except ValueError:
            raise ValueError("a number of seconds") from None
        # NaN is not less than anything, and it must be refused too.
        if not seconds >= self.at_least:
            raise ValueError(f"at least {self.at_least:g}")
        if seconds > MAX_SECONDS:
            raise ValueError(f"at most {MAX_SECONDS}")
        return seconds


class Environment:
    """The variables of the process. All that is wrong with them is reported in one error."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self.declared: list[Setting[Any]] = []
        """Every setting that was read, in the order of reading."""
        self._variables = os.environ if variables is None else variables
        self._problems: list[str] = []

    def text(self, name: str) -> str:
        """The variable as it is; empty if it is not set."""
        return self._variables.get(name, "").strip()

    def read(self, setting: Setting[T]) -> T:
        """The value of the variable, or the default if it is unset, empty or wrong."""
        self.declared.append(setting)
        text = self.text(setting.variable)
        if not text:
            return setting.default
        try:
            return setting.parse(text)
        except ValueError as error:
            self.problem(f"{setting.variable} must be {error}")
            return setting.default

    def read_all(self, owner: type[object]) -> dict[str, Any]:
        """The values of all settings that a class declares, by the names of Django's settings."""
        declared = [value for value in vars(owner).values() if isinstance(value, Setting)]
        return {setting.name: self.read(setting) for setting in declared}

    def problem(self, text: str) -> None:
        """Add a problem. ``text`` names the variable and the rule, never the value.

        Django may read the settings once more after an error, so one problem is kept once.
        """
        if text not in self._problems:
            self._problems.append(text)

    def finish(self) -> None:
        """Raise ImproperlyConfigured with every problem, if there was any."""
        if self._problems:
            raise ImproperlyConfigured(
                "the environment is not usable: " + "; ".join(self._problems)
            )
