"""Numbers of the controller protocol, in bytes and seconds.

Both ends import them, or the server sends them in WELCOME.
"""

from typing import Final

PROTOCOL_VERSION: Final = 1
SUPPORTED_VERSIONS: Final = (1,)
# The oldest release of the daemon that this server is tested with. Older ones are still let in.
MIN_CLIENT_VERSION: Final = "0.1.0"

# Frames. A chunk of raw bytes grows by a third as base64, so it fits its frame with room for the
# envelope.
MAX_FRAME_BYTES: Final = 256 * 1024
MAX_CHUNK_BYTES: Final = 64 * 1024
MAX_INPUT_BYTES: Final = 64 * 1024
# The first input of a program. It travels in one frame with the command and the environment.
MAX_STDIN_BYTES: Final = 96 * 1024
MAX_COMMAND_BYTES: Final = 64 * 1024
MAX_PROMPT_CHARS: Final = 512
# Shorter secrets are typed but not masked: a mask would hide too much other text.
MIN_MASKED_BYTES: Final = 6
MAX_DETAIL_CHARS: Final = 256
MAX_KEYS: Final = 64
# Bytes of a file in one FILE_CHUNK, and the longest wait of a READ_FILE.
MAX_FILE_CHUNK_BYTES: Final = 64 * 1024
MAX_FILE_WAIT_SECONDS: Final = 30.0
MAX_NAMED_FILES: Final = 32
# Log directories that HELLO may name.
MAX_LOG_ROOTS: Final = 16
MAX_LOG_ROOT_CHARS: Final = 256

# Un-acknowledged output that a sender may have in flight.
SESSION_WINDOW_BYTES: Final = 256 * 1024
CONNECTION_WINDOW_BYTES: Final = 512 * 1024
# The limit of frames in flight: a server whose database is slow keeps every frame in memory,
# however short it is.
MAX_OUTPUT_FRAMES_IN_FLIGHT: Final = 1024
# Output a session keeps on the host until the server has committed it.
RING_BYTES: Final = 10 * 1024 * 1024
MAX_RING_BYTES: Final = 100 * 1024 * 1024
MAX_TERMINAL_SIZE: Final = 65535
# The longest time that output waits in the holder, to travel in one frame with later output.
COALESCE_SECONDS: Final = 0.020

# Canonical mode: the kernel cuts a longer line, and reports no error.
CANONICAL_LINE_BYTES_LINUX: Final = 4095
CANONICAL_LINE_BYTES_MACOS: Final = 1023

HELLO_DEADLINE_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 10.0
DEAD_AFTER_SECONDS: Final = 25.0
LEASE_SECONDS: Final = 30.0
START_TTL_SECONDS: Final = 30.0
INPUT_BLOCKED_SECONDS: Final = 10.0
TERMINATE_GRACE_SECONDS: Final = 5.0
# A background child may keep the terminal open after the program ended. DONE waits for such a child
# no longer than this.
DONE_DRAIN_SECONDS: Final = 2.0

RECONNECT_MIN_SECONDS: Final = 0.5
RECONNECT_MAX_SECONDS: Final = 30.0
RECONNECT_SOON_SECONDS: Final = 3.0
RECONNECT_GROWTH: Final = 1.02
RECONNECT_RESET_AFTER_SECONDS: Final = 60.0
RECONNECT_DOUBTED_SECONDS: Final = 10.0
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
