"""Named sets of tools. A model that is shown few tools picks fewer wrong ones; a set narrows what is listed and what can be called.

A caller's tools are those of the sets its request names, within the sets of its token, and of these the ones its scopes may use.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from projects.authentication import Caller
from projects.errors import UnknownTool, UnknownToolset
from projects.tools.base import Tool
from projects.tools.registry import ALL_TOOLS, tool_named

_DRIVING: Final = ("start_interactive_command", "send_command_input", "read_session_output", "list_sessions")

TOOLSETS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        # Made for models: one way to start, one to go on (and to terminate), one to read, one to find again.
        "agent": frozenset(_DRIVING),
        "interactive": frozenset({*_DRIVING, "get_session", "resize_session", "list_controllers"}),
        "oneshot": frozenset({"execute_command"}),
        "background": frozenset({"start_command", "read_output", "write_input", "stop_command"}),
        "jobs": frozenset({"run_command", "query_command_status"}),
        "monitors": frozenset({"start_session_monitor", "get_session_updates", "stop_session_monitor", "search_session_output"}),
        "sessions": frozenset({"list_controllers", "list_sessions", "get_session", "read_session_output", "search_session_output"}),
        "all": frozenset(tool.name for tool in ALL_TOOLS),
    }
)
"""Names of the tools of each set."""


def tools_for(caller: Caller, requested: Collection[str] = ()) -> tuple[Tool[Any], ...]:
    """The tools this caller is shown, in the registry's order; nothing requested: all that its token allows."""
    names = _names_for(caller, requested)
    return tuple(tool for tool in ALL_TOOLS if tool.name in names and tool.is_open_to(caller))


def tool_for(name: str, caller: Caller, requested: Collection[str] = ()) -> Tool[Any]:
    """The tool ``name``, if these sets have it; what its scopes lack, the call itself says. Raises UnknownTool."""
    names = _names_for(caller, requested)
    if name not in names:
        raise UnknownTool(name[:64], tuple(tool.name for tool in ALL_TOOLS if tool.name in names))
    return tool_named(name)


def check_toolsets(requested: Collection[str]) -> None:
    """Raises UnknownToolset, which names those that exist."""
    for name in requested:
        if name not in TOOLSETS:
            raise UnknownToolset(name[:64], tuple(TOOLSETS))


@lru_cache(maxsize=256)
def _names_for_sets(requested: frozenset[str], granted: frozenset[str]) -> frozenset[str]:
    return _members(requested) & _members(granted)


def _names_for(caller: Caller, requested: Collection[str]) -> frozenset[str]:
    return _names_for_sets(frozenset(requested), frozenset(caller.toolsets))


def _members(toolsets: Collection[str]) -> frozenset[str]:
    # A set that a token names and that is gone allows nothing.
    return frozenset().union(*(TOOLSETS.get(name, frozenset()) for name in toolsets)) if toolsets else TOOLSETS["all"]
