"""Attempts to get past a list of allowed commands."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

_FILE = Path(__file__).resolve().parents[2] / "data" / "policy_bypass.toml"


def attempts(kind: Literal["lines", "typed"]) -> list[Any]:
    """Parameters (allowed, attempt, part that is named) of every attempt."""
    return list(_attempts(kind))


def _attempts(kind: str) -> Iterator[Any]:
    for group in tomllib.loads(_FILE.read_text())[kind]:
        for attempt, part in group["attempts"]:
            yield pytest.param(group["allowed"], attempt, part, id=ascii(attempt)[1:-1][:60])
