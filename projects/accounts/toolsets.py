"""Named sets of tools. A token is limited to some of them, and a request may name fewer.

A model that is shown few tools picks fewer wrong ones; a set narrows what is listed and what can be
called.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from projects.errors.shown_tools import TOOL_NAMES

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
        "all": TOOL_NAMES,
    }
)
"""Names of the tools of each set."""


def members(toolsets: Collection[str]) -> frozenset[str]:
    """The names of the tools of these sets; of all tools, if no set is named."""
    # A set that a token names and that is gone allows nothing.
    return (
        frozenset().union(*(TOOLSETS.get(name, frozenset()) for name in toolsets))
        if toolsets
        else TOOLSETS["all"]
    )
