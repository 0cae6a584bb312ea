"""The use cases: every service that a tool, a page or a command may call, and what reads return.

A service acts for a caller or for the server itself, and finds nothing outside the project that it
is given. The tool has checked the caller's scopes before. A service works in short transactions,
may wait for a host between them, and returns a frozen value. Its definition says what it takes and
raises. There is no logic in this file.
"""

from projects.monitors.read import monitor_read
from projects.monitors.start import monitor_start
from projects.monitors.stop import monitor_stop
from projects.reads.digests import session_digest
from projects.reads.lists import controller_list, monitor_list, session_list
from projects.reads.recordings import (
    EXPORT_FORMATS,
    ExportFormat,
    recording_attachment,
    recording_export,
    session_chunks,
    session_events,
    session_newest_text,
)
from projects.reads.results import ControllerList, MonitorPage, SessionDetails, SessionPage
from projects.reads.search import SearchResult, output_search
from projects.reads.status import session_get, session_read_output
from projects.reads.streamed import streamed
from projects.sessions.background import (
    background_read,
    background_start,
    background_stop,
    background_write,
)
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
    controller_terminate_interactive_command,
    session_hand_back,
    session_keyboard_ask,
    session_keyboard_keep,
    session_keyboard_release,
    session_keyboard_take,
    session_keyboard_type,
    session_resize,
    session_take_over,
    sessions_terminate,
)
from projects.sessions.jobs import job_clear, job_status, job_submit
from projects.sessions.one_shot import command_execute
from projects.sessions.people.secret import session_ask_person, session_person_type
from projects.sessions.transactions.erasure import output_black_out, output_clear

__all__ = [
    "EXPORT_FORMATS",
    "ControllerList",
    "ExportFormat",
    "MonitorPage",
    "SearchResult",
    "SessionDetails",
    "SessionPage",
    "background_read",
    "background_start",
    "background_stop",
    "background_write",
    "command_execute",
    "controller_list",
    "controller_send_input",
    "controller_start_interactive_command",
    "controller_terminate_interactive_command",
    "job_clear",
    "job_status",
    "job_submit",
    "monitor_list",
    "monitor_read",
    "monitor_start",
    "monitor_stop",
    "output_black_out",
    "output_clear",
    "output_search",
    "recording_attachment",
    "recording_export",
    "session_ask_person",
    "session_chunks",
    "session_digest",
    "session_events",
    "session_get",
    "session_hand_back",
    "session_keyboard_ask",
    "session_keyboard_keep",
    "session_keyboard_release",
    "session_keyboard_take",
    "session_keyboard_type",
    "session_list",
    "session_newest_text",
    "session_person_type",
    "session_read_output",
    "session_resize",
    "session_take_over",
    "sessions_terminate",
    "streamed",
]
