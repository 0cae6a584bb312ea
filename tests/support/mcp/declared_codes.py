"""Checks that a tool answers only with the error codes that it declares.

Callers of a stack check each refusal they get. Tests that call a tool in their own process use the
fixture ``declared_codes_only`` of ``tests.support.running.fixtures``.
"""

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path

from projects.errors.base import COMMON_CODES

_PUBLISHED = Path(__file__).resolve().parents[2] / "contract" / "tools"


@cache
def declared_codes(tool: str) -> frozenset[str]:
    """The codes of a tool as they are published, beside those of every tool."""
    return frozenset(json.loads((_PUBLISHED / f"{tool}.json").read_text())["codes"])


def check_code(tool: str, code: str, declared: Collection[str]) -> None:
    """Raises AssertionError if the tool declares no such code."""
    assert code in declared or code in COMMON_CODES, f"{tool} declares no error code {code}"
