"""The tools that one caller is shown.

A caller's tools are those of the sets its request names, within the sets of its token, and of these
the ones its scopes may use.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from projects.accounts.authentication import Caller
from projects.accounts.toolsets import TOOLSETS, members
from projects.errors.calls import UnknownTool, UnknownToolset
from projects.tools.base import Tool
from projects.tools.registry import ALL_TOOLS, tool_named


def tools_for(caller: Caller, requested: Collection[str] = ()) -> tuple[Tool[Any], ...]:
    """The tools this caller is shown, in the registry's order.

    If nothing is requested, they are all tools that the caller's token allows.
    """
    names = _names_for(caller, requested)
    return tuple(tool for tool in ALL_TOOLS if tool.name in names and tool.is_open_to(caller))


def names_for(caller: Caller, requested: Collection[str] = ()) -> frozenset[str]:
    """The names of the tools that this caller is shown."""
    return frozenset(tool.name for tool in tools_for(caller, requested))


def tool_for(name: str, caller: Caller, requested: Collection[str] = ()) -> Tool[Any]:
    """The tool ``name``, if these sets have it. Raises UnknownTool.

    The call itself refuses what the caller's scopes do not allow.
    """
    if name not in _names_for(caller, requested):
        raise UnknownTool(name[:64], tuple(tool.name for tool in tools_for(caller, requested)))
    return tool_named(name)


def check_toolsets(requested: Collection[str]) -> None:
    """Raises UnknownToolset, which names those that exist."""
    for name in requested:
        if name not in TOOLSETS:
            raise UnknownToolset(name[:64], tuple(TOOLSETS))


@lru_cache(maxsize=256)
def _names_for_sets(requested: frozenset[str], granted: frozenset[str]) -> frozenset[str]:
    return members(requested) & members(granted)


def _names_for(caller: Caller, requested: Collection[str]) -> frozenset[str]:
    return _names_for_sets(frozenset(requested), frozenset(caller.toolsets))
