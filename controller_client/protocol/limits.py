"""Numbers of the controller protocol. Bytes and seconds; both ends import these or are told in WELCOME."""

from typing import Final

PROTOCOL_VERSION: Final = 1
SUPPORTED_VERSIONS: Final = (1,)

# Frames. A chunk of raw bytes grows by a third as base64, so it fits its frame with room for the envelope.
MAX_FRAME_BYTES: Final = 256 * 1024
MAX_CHUNK_BYTES: Final = 64 * 1024
MAX_INPUT_BYTES: Final = 64 * 1024
# What a program is given to read at its start, in one frame with its command and environment.
MAX_STDIN_BYTES: Final = 96 * 1024
MAX_COMMAND_BYTES: Final = 64 * 1024
MAX_PROMPT_CHARS: Final = 512
MAX_DETAIL_CHARS: Final = 256
MAX_KEYS: Final = 64
# Bytes of a file in one FILE_CHUNK, and how long a READ_FILE may wait.
MAX_FILE_CHUNK_BYTES: Final = 64 * 1024
MAX_FILE_WAIT_SECONDS: Final = 30.0

# Un-acknowledged output a sender may have in flight.
SESSION_WINDOW_BYTES: Final = 256 * 1024
CONNECTION_WINDOW_BYTES: Final = 512 * 1024
# Output a session keeps on the host until the server has committed it.
RING_BYTES: Final = 10 * 1024 * 1024
MAX_RING_BYTES: Final = 100 * 1024 * 1024
MAX_TERMINAL_SIZE: Final = 65535
# How long output may wait in the holder to travel with its neighbours.
COALESCE_SECONDS: Final = 0.020

# Canonical mode: the kernel cuts a longer line without telling anybody.
CANONICAL_LINE_BYTES_LINUX: Final = 4095
CANONICAL_LINE_BYTES_MACOS: Final = 1023

HELLO_DEADLINE_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 10.0
DEAD_AFTER_SECONDS: Final = 25.0
LEASE_SECONDS: Final = 30.0
START_TTL_SECONDS: Final = 30.0
INPUT_BLOCKED_SECONDS: Final = 10.0
TERMINATE_GRACE_SECONDS: Final = 5.0
# A background child may keep the terminal open after the program ended; DONE waits for it no longer than this.
DONE_DRAIN_SECONDS: Final = 2.0

RECONNECT_MIN_SECONDS: Final = 0.5
RECONNECT_MAX_SECONDS: Final = 30.0
RECONNECT_SERVED_SECONDS: Final = 4.0
RECONNECT_RESET_AFTER_SECONDS: Final = 60.0
RECONNECT_REFUSED_SECONDS: Final = 300.0


class CloseCode:
    """WebSocket close codes of the protocol."""

    BAD_FRAME: Final = 4400
    UNAUTHENTICATED: Final = 4401
    FORBIDDEN: Final = 4403
    WINDOW_VIOLATED: Final = 4008
    FENCED: Final = 4009
    SECOND_INSTANCE: Final = 4010
    AWAITS_APPROVAL: Final = 4011
    VERSION: Final = 4426
    INTERNAL_ERROR: Final = 4500
    GOING_AWAY: Final = 4503
