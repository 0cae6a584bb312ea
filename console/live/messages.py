"""The messages of the socket for people, and their codec.

Output of a terminal is a binary frame. Any other frame is JSON text: an object whose ``type`` names
the message. Unknown fields are ignored, so that a page that was loaded before an upgrade goes on.
docs/reference/console-socket.md lists all messages.
"""

from typing import Annotated, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from controller_client.protocol.messages import Stream
from projects.output.view import STDOUT

MAX_FRAME_BYTES: Final = 128 * 1024
"""The largest frame that a browser may send: an input whose every character JSON writes longer."""
MAX_INPUT_CHARS: Final = 16 * 1024

Offset: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
Filter: TypeAlias = Annotated[str, Meta(max_length=1000)]
Seq: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]


class BadMessage(Exception):
    """A frame is no message of this socket. The text holds no value of the frame."""


# ---- from the browser ----------------------------------------------------------------------------


class WatchBoard(msgspec.Struct, tag="watch_board", tag_field="type"):
    """Send the board from now on. ``counts_only``: the counts, without the rows.

    The rest are filters. ``since`` is for how long a session has printed nothing, such as ``5m``;
    ``q`` is words that are in the name of the host, the prompt or the command.
    """

    counts_only: bool = False
    waits: Filter = ""
    host: Filter = ""
    since: Filter = ""
    q: Filter = ""


class BoardSeen(msgspec.Struct, tag="board_seen", tag_field="type"):
    """The board of this version is on the page, so the next one may come."""

    version: Offset


class WatchSession(msgspec.Struct, tag="watch_session", tag_field="type"):
    """Show a session from these offsets on; without an offset, from where its screen begins.

    ``offset`` is that of the terminal, or of standard output, and ``stderr`` of standard error.
    """

    session_id: UUID
    offset: Offset | None = None
    stderr: Offset | None = None


class Seen(msgspec.Struct, tag="seen", tag_field="type"):
    """The output up to ``offset`` is on the screen, so more of it may come."""

    offset: Offset
    stream: Stream = STDOUT


class Take(msgspec.Struct, tag="take", tag_field="type"):
    """Give me the keyboard of the open session.

    ``insists``: also from another operator. ``has``: I had it before my connection broke, so do not
    take it again if it went back meanwhile.
    """

    insists: bool = False
    has: bool = False


class Ask(msgspec.Struct, tag="ask", tag_field="type"):
    """Tell the operator who has the keyboard that I want it."""


class Input(msgspec.Struct, tag="input", tag_field="type"):
    """Type ``text``. It is typed once for each ``keyboard`` and ``seq``, however often it comes."""

    keyboard: UUID
    seq: Seq
    text: Annotated[str, Meta(min_length=1, max_length=MAX_INPUT_CHARS)]


class Release(msgspec.Struct, tag="release", tag_field="type"):
    """Hand the keyboard back, with a note for the caller."""

    note: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*$")] = ""


class Resize(msgspec.Struct, tag="resize", tag_field="type"):
    """Give the terminal of the open session, whose keyboard I have, the size of my window."""

    rows: Seq
    cols: Seq


FromBrowser: TypeAlias = (
    WatchBoard | BoardSeen | WatchSession | Seen | Take | Ask | Input | Release | Resize
)


# ---- to the browser ------------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True):
    """One active session on the board.

    ``group`` is person, agent, works or away. ``waits`` is secret, approval, taken, the kind of any
    other prompt, or empty, and ``doing`` the same in words. Times are ISO. The prompt and the last
    line of the screen are empty for a person who may not see screens.
    """

    id: str
    group: str
    waits: str
    doing: str
    host: str
    project: str
    kind: str
    command: str
    prompt: str
    last_line: str
    since: str
    started_by: str
    ends_at: str
    is_paused: bool


class Counts(msgspec.Struct, frozen=True):
    """The number of sessions in each group of the board.

    ``elsewhere`` is the number of events that want a person and are of no active session.
    """

    person: int = 0
    agent: int = 0
    works: int = 0
    away: int = 0
    elsewhere: int = 0


class Board(msgspec.Struct, tag="board", tag_field="type"):
    """The changes of the board: new or changed ``rows``, and the ids that are ``gone``.

    ``hidden`` is how many sessions the filters leave out. ``is_whole``: forget all earlier rows.
    """

    version: int
    counts: Counts
    hidden: int = 0
    rows: list[Row] = []
    gone: list[str] = []
    is_whole: bool = False


class Session(msgspec.Struct, frozen=True, tag="session", tag_field="type"):
    """The open session as it is now. ``prompt`` and its kind are empty while the program works.

    ``doing``, ``known_by``, ``who`` and ``asks`` are words for the person: what the session does or
    how it ended, how its prompt was recognised, who has the keyboard or what they said when they
    handed it back, and who else wants it. ``since`` is when the prompt came. ``input_error`` is the
    host's word on the last input.
    """

    doing: str
    known_by: str
    who: str
    is_active: bool
    may_type: bool
    rows: int
    cols: int
    kind: str
    prompt: str
    since: str
    operator: str
    asks: str
    ends_at: str
    is_paused: bool
    input_error: str


class Begin(msgspec.Struct, tag="begin", tag_field="type"):
    """Clear the screen: the output goes on at ``offset``. ``skipped`` bytes before are not shown.

    ``is_alternate``: the program draws on the alternate screen.
    """

    offset: int
    skipped: int
    is_alternate: bool = False
    stream: Stream = STDOUT


class Output(msgspec.Struct):
    """The bytes of a stream from ``offset`` on.

    The frame begins with a byte, which is 1 for standard error, and the offset in 8 bytes.
    """

    offset: int
    data: bytes
    stream: Stream


class Gap(msgspec.Struct, tag="gap", tag_field="type"):
    """Bytes that are gone for everybody, and why. The output goes on at ``to_offset``."""

    offset: int
    to_offset: int
    reason: str
    stream: Stream = STDOUT


class Taken(msgspec.Struct, tag="taken", tag_field="type"):
    """You have the keyboard from now on."""


class Typed(msgspec.Struct, tag="typed", tag_field="type"):
    """The input ``seq`` is committed: it reaches the program once."""

    seq: int


class Refused(msgspec.Struct, tag="refused", tag_field="type"):
    """A message was refused; ``about`` is its type. The connection goes on."""

    about: str
    code: str
    message: str
    hint: str = ""


class Closed(msgspec.Struct, tag="closed", tag_field="type"):
    """The connection ends now. ``is_final``: it is of no use to connect again."""

    code: str
    message: str
    is_final: bool


ToBrowser: TypeAlias = Board | Session | Begin | Output | Gap | Taken | Typed | Refused | Closed

_decoder: msgspec.json.Decoder[FromBrowser] = msgspec.json.Decoder(FromBrowser)
_encoder = msgspec.json.Encoder()


def encode(message: ToBrowser) -> str | bytes:
    """One frame: bytes for output, and text for all else.

    Text would have to be base64, which the browser would make several copies of.
    """
    if isinstance(message, Output):
        return bytes([message.stream != STDOUT]) + message.offset.to_bytes(8) + message.data
    return _encoder.encode(message).decode()


def decode(frame: str | bytes) -> FromBrowser:
    """The message in a frame. Raises BadMessage."""
    if len(frame) > MAX_FRAME_BYTES:
        raise BadMessage("the frame is too large")
    try:
        return _decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # The text of the error may quote what was typed.
        raise BadMessage("the frame is no message of this socket") from None
