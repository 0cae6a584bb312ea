"""All tools, in the order in which they are shown.

MCP, the agent loop and the reference documentation read this tuple.
"""

from typing import Any, Final

from projects.errors.calls import UnknownTool
from projects.tools.base import Tool
from projects.tools.execute_command import EXECUTE_COMMAND
from projects.tools.get_session import GET_SESSION
from projects.tools.get_session_updates import GET_SESSION_UPDATES
from projects.tools.list_controllers import LIST_CONTROLLERS
from projects.tools.list_session_monitors import LIST_SESSION_MONITORS
from projects.tools.list_sessions import LIST_SESSIONS
from projects.tools.query_command_status import QUERY_COMMAND_STATUS
from projects.tools.read_output import READ_OUTPUT
from projects.tools.read_session_output import READ_SESSION_OUTPUT
from projects.tools.resize_session import RESIZE_SESSION
from projects.tools.run_command import RUN_COMMAND
from projects.tools.search_session_output import SEARCH_SESSION_OUTPUT
from projects.tools.send_command_input import SEND_COMMAND_INPUT
from projects.tools.start_command import START_COMMAND
from projects.tools.start_interactive_command import START_INTERACTIVE_COMMAND
from projects.tools.start_session_monitor import START_SESSION_MONITOR
from projects.tools.stop_command import STOP_COMMAND
from projects.tools.stop_session_monitor import STOP_SESSION_MONITOR
from projects.tools.write_input import WRITE_INPUT

ALL_TOOLS: Final[tuple[Tool[Any], ...]] = (
    EXECUTE_COMMAND,
    START_INTERACTIVE_COMMAND,
    SEND_COMMAND_INPUT,
    START_COMMAND,
    READ_OUTPUT,
    WRITE_INPUT,
    STOP_COMMAND,
    RUN_COMMAND,
    QUERY_COMMAND_STATUS,
    START_SESSION_MONITOR,
    GET_SESSION_UPDATES,
    STOP_SESSION_MONITOR,
    LIST_SESSION_MONITORS,
    READ_SESSION_OUTPUT,
    SEARCH_SESSION_OUTPUT,
    GET_SESSION,
    LIST_SESSIONS,
    LIST_CONTROLLERS,
    RESIZE_SESSION,
)
_BY_NAME: Final = {tool.name: tool for tool in ALL_TOOLS}


def tool_named(name: str) -> Tool[Any]:
    """The tool called ``name``. Raises UnknownTool."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UnknownTool(name[:64], tuple(_BY_NAME)) from None
