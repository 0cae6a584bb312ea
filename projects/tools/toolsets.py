"""Named sets of tools.

A model that is shown few tools picks fewer wrong ones; a set narrows what is listed and what can be
called.

A caller's tools are those of the sets its request names, within the sets of its token, and of these
the ones its scopes may use.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from projects.accounts.authentication import Caller
from projects.errors.calls import UnknownTool, UnknownToolset
from projects.tools.base import Tool
from projects.tools.registry import ALL_TOOLS, tool_named

_DRIVING: Final = (
    "start_interactive_command",
    "send_command_input",
    "read_session_output",
    "list_sessions",
)

TOOLSETS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        # Made for models: one call for what asks nothing, one to start what may ask, one to answer
        # (and to terminate), one to read, and two to find hosts and sessions.
        "agent": frozenset({"execute_command", *_DRIVING, "list_controllers"}),
        "interactive": frozenset({*_DRIVING, "get_session", "resize_session", "list_controllers"}),
        "oneshot": frozenset({"execute_command"}),
        "background": frozenset({"start_command", "read_output", "write_input", "stop_command"}),
        "jobs": frozenset({"run_command", "query_command_status"}),
        "monitors": frozenset(
            {
                "start_session_monitor",
                "get_session_updates",
                "stop_session_monitor",
                "list_session_monitors",
                "search_session_output",
                "list_controllers",
            }
        ),
        "sessions": frozenset(
            {
                "list_controllers",
                "list_sessions",
                "get_session",
                "read_session_output",
                "search_session_output",
            }
        ),
        "all": frozenset(tool.name for tool in ALL_TOOLS),
    }
)
"""Names of the tools of each set."""


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
    return _members(requested) & _members(granted)


def _names_for(caller: Caller, requested: Collection[str]) -> frozenset[str]:
    return _names_for_sets(frozenset(requested), frozenset(caller.toolsets))


def _members(toolsets: Collection[str]) -> frozenset[str]:
    # A set that a token names and that is gone allows nothing.
    return (
        frozenset().union(*(TOOLSETS.get(name, frozenset()) for name in toolsets))
        if toolsets
        else TOOLSETS["all"]
    )
