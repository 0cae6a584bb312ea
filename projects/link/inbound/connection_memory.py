"""Remember what one connection took from the database and stored in it.

If the database knows less than that, it was restored while the connection was open.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

import msgspec

from controller_client.protocol.errors import OffsetAhead, RemoteProtocolError
from controller_client.protocol.messages import (
    FromServer,
    Gap,
    Hello,
    Message,
    SendInput,
    SessionFound,
    Stream,
    StreamFinal,
    StreamOffset,
    Welcome,
)
from projects.link.inbound.batch import SessionMessage
from projects.link.inbound.commands import COMMANDS_PER_TAKE, last_number, take_commands
from projects.link.inbound.refusals import DatabaseRestored, SessionNotNamed
from projects.link.inbound.restored import released_of
from projects.sessions.outbox import OutboxMessage


class Taken(NamedTuple):
    """The answer of the outbox to a connection: see ``commands.take_commands``.

    ``up_to`` is the number up to which it has nothing more for this connection; with ``is_all``
    that is the last number.
    """

    messages: list[FromServer]
    settled: list[str]
    up_to: int
    is_all: bool


class ConnectionMemory:
    """The memory of one connection.

    ``awaited`` are the sessions whose holders were silent at HELLO, ``found`` those whose holders
    were heard of since. ``unnamed`` are the sessions that ran before and that HELLO did not name:
    a daemon on a copy of the identity has none of them, so its word about them counts for nothing.
    """

    def __init__(self) -> None:
        self.awaited: set[UUID] = set()
        self.found: set[UUID] = set()
        self.unnamed: frozenset[UUID] = frozenset()
        self._unnamed_ids: frozenset[str] = frozenset()
        self._released: Mapping[tuple[str, Stream], int] = {}
        self._stored: dict[tuple[str, Stream], int] = {}

    def greeted(
        self, message: Hello, welcome: Welcome, unnamed: Collection[UUID] = frozenset()
    ) -> None:
        """Remember which output living holders no longer have, and which sessions wait."""
        self.unnamed = frozenset(unnamed)
        self._unnamed_ids = frozenset(map(str, unnamed))
        self._released = released_of(message, welcome)
        self.awaited = {
            UUID(directive.session_id) for directive in welcome.sessions if directive.is_awaited
        }

    def check(self, frames: Iterable[Message]) -> None:
        """Raises SessionNotNamed if a frame is about a session that HELLO had to name."""
        if self._unnamed_ids and any(
            getattr(frame, "session_id", None) in self._unnamed_ids for frame in frames
        ):
            raise SessionNotNamed

    def is_expected(self, frame: Message) -> bool:
        """False for a SESSION_FOUND of a session that is not awaited."""
        return not isinstance(frame, SessionFound) or frame.session_id in map(str, self.awaited)

    def committed(self, frames: Iterable[Message]) -> None:
        """Note the sessions that were found: their inputs have the right numbers now."""
        heard = {UUID(frame.session_id) for frame in frames if isinstance(frame, SessionFound)}
        # Another thread may be reading these sets, so they are replaced and not changed.
        self.found, self.awaited = self.found | heard, self.awaited - heard

    def is_held_back(self, command: OutboxMessage) -> bool:
        """True for a command that may have to wait in the outbox.

        It is of a session that HELLO did not name. Or it is an input of a session whose holder was
        silent: only the outbox knows the order of those.
        """
        if command.session_id in self._unnamed_ids:
            return True
        late = self.awaited | self.found if isinstance(command, SendInput) else frozenset()
        return bool(late) and UUID(command.session_id) in late

    def take_commands(self, controller_id: UUID, epoch: int, sent_up_to: int) -> Taken:
        """Take the commands that this connection has to send now: see ``commands``."""
        # Read first: a command that is committed after this is found by the next take.
        last = last_number(controller_id)
        messages, settled = take_commands(
            controller_id,
            epoch,
            sent_up_to=sent_up_to,
            missing_after=sent_up_to,
            awaited=self.awaited,
            found=self.found,
            unnamed=self.unnamed,
        )
        is_all = len(messages) + len(settled) < COMMANDS_PER_TAKE
        return Taken(messages, settled, last if is_all else 0, is_all)

    def stored(self, acks: Iterable[StreamOffset]) -> None:
        """Remember that everything before these offsets was stored."""
        self._stored |= {(ack.session_id, ack.stream): ack.offset for ack in acks}

    def ended(self, session_id: str, streams: Iterable[StreamFinal]) -> None:
        """Forget a session of which nothing more will come."""
        for final in streams:
            self._stored.pop((session_id, final.stream), None)

    def with_reason(self, frame: SessionMessage) -> SessionMessage:
        """The frame; a gap that the database and not the holder caused gets the reason "restored".

        A living holder reports as lost what it dropped after the server had stored it. Only the
        server can know which it is, whatever the host says.
        """
        if not isinstance(frame, Gap) or frame.reason not in {"lost", "restored"}:
            return frame
        is_restored = frame.to_offset <= self._released.get((frame.session_id, frame.stream), 0)
        return msgspec.structs.replace(frame, reason="restored" if is_restored else "lost")

    def raise_for(self, error: RemoteProtocolError | None, session_id: str) -> None:
        """Raise ``error``, if there is one.

        Raises DatabaseRestored instead if the missing output was stored on this very connection.
        """
        if isinstance(error, OffsetAhead):
            stream: Stream = "stderr" if error.stream == "stderr" else "stdout"
            if self._stored.get((session_id, stream), 0) > error.expected:
                raise DatabaseRestored
        if error is not None:
            raise error
