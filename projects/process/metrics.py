"""The counters and gauges of the server, in the words of Prometheus.

Each process counts for itself. To increment one costs about a microsecond; a turn does it a handful
of times. No label has values that callers choose.
"""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

TURN_BUCKETS: Final = (0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

CONNECTED: Final = Gauge(
    "holdline_controllers_connected", "Controllers whose connection this process holds"
)
HELLOS: Final = Counter("holdline_hellos_total", "Connections of controllers that were accepted")
RECONNECTS: Final = Counter(
    "holdline_reconnects_total",
    "Accepted connections of controllers that had been connected before",
)
VIOLATIONS: Final = Counter(
    "holdline_protocol_violations_total", "Connections closed because the host broke the protocol"
)

SECOND_INSTANCES: Final = Counter(
    "holdline_second_instances_total",
    "Times a second daemon showed the identity or credential of a host",
)

TURNS: Final = Counter(
    "holdline_turns_total",
    "Waits of interactive turns that returned, by the state they returned",
    ("state",),
)
TURN_SECONDS: Final = Histogram(
    "holdline_turn_seconds",
    "From typing an input to the program waiting again or having ended",
    buckets=TURN_BUCKETS,
)
TOOL_CALLS: Final = Counter(
    "holdline_tool_calls_total",
    "Tool calls by tool and outcome: ok, or the error's code",
    ("tool", "outcome"),
)

OUTPUT_BYTES: Final = Counter("holdline_output_bytes_total", "Output received from hosts")
OUTPUT_UNACKED: Final = Gauge(
    "holdline_output_unacked_bytes",
    "Output received and not yet committed: acknowledgements outstanding",
)
GAPS: Final = Counter("holdline_gaps_total", "Gaps in output that hosts reported", ("reason",))
GAP_BYTES: Final = Counter("holdline_gap_bytes_total", "Bytes in those gaps")

DOORBELLS_FAILED: Final = Counter(
    "holdline_doorbells_failed_total", "Doorbells the channel layer did not take"
)
DOORBELLS_LOST: Final = Counter(
    "holdline_doorbells_lost_total",
    "Work that no doorbell had announced: commands that the reconciler found, and news of sessions "
    "that a waiting call found when it looked by itself",
    ("kind",),
)
EXPIRED_ROWS: Final = Counter(
    "holdline_expired_rows_total", "Rows removed because their time was over", ("kind",)
)

ATTENTION_SENDS: Final = Counter(
    "holdline_attention_sends_total",
    "Attempts to tell people of events: received, or failed",
    ("outcome",),
)

TASKS: Final = Gauge(
    "holdline_tasks",
    "Tasks of the event loop: long-running ones, and a few per connection and waiting call",
)

# Children of the labels that every turn uses: looking one up costs more than counting.
LOST_SESSION: Final = DOORBELLS_LOST.labels("session")
LOST_COMMAND: Final = DOORBELLS_LOST.labels("command")

# Gauges of the whole installation. ``projects.upkeep.gauges`` sets them when somebody asks.
SESSIONS: Final = Gauge(
    "holdline_sessions", "Active sessions of the whole installation, by state", ("state",)
)
OUTBOX_COMMANDS: Final = Gauge("holdline_outbox_commands", "Commands no host has acknowledged yet")
OUTBOX_AGE: Final = Gauge("holdline_outbox_oldest_seconds", "Age of the oldest of them")
DISK_FREE: Final = Gauge(
    "holdline_database_disk_free_bytes", "Free bytes on the disk of SQLite's file"
)
CONTROLLERS_ONLINE: Final = Gauge(
    "holdline_controllers_online", "Controllers whose lease runs, in the whole installation"
)
ATTENTION_OPEN: Final = Gauge("holdline_attention_open", "Events that want a person now")
ATTENTION_WAITING: Final = Gauge(
    "holdline_attention_messages_waiting", "Messages to people that are still to be sent"
)
ATTENTION_DEAD: Final = Gauge(
    "holdline_attention_dead_letters", "Messages to people that no target has received"
)
