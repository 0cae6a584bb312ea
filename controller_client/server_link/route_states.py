"""The states of a session's route, and the look that finds out the state of its holder.

A route is in one state of its holder and in one state of the server. The names in the last column
are functions of :class:`~controller_client.server_link.session_route.SessionRoute`.

===========  ==========================  ==========================  ===============================
``_holder``  Holds                       A command of the server     Leaves the state
===========  ==========================  ==========================  ===============================
Unreachable  nothing                     waits in ``_waiting``       begin, find, _search: Live, or
                                                                     DeadHolder (begin: Live only)
Live         the conversation            is sent to the holder       the holder's socket closes, or
                                                                     go_on: Unreachable; if the end
                                                                     is settled, forgotten
DeadHolder   the dead holder's lock      is refused: SESSION_ENDED   settle, _clean_up: forgotten
===========  ==========================  ==========================  ===============================

===========  ==========================  ==========================  ===============================
``_server``  Holds                       A message of the holder     Leaves the state
===========  ==========================  ==========================  ===============================
Detached     nothing                     is dropped: it comes again  begin, connect: Attached;
                                                                     forget: Unwanted
Attached     the server's connection     is forwarded                disconnect: Detached
Unwanted     nothing                     is acknowledged here        connect: Attached;
                                                                     disconnect: Detached
===========  ==========================  ==========================  ===============================

``disconnect`` makes any holder Unreachable and the server Detached. *Forgotten* is the end: the
directory is gone, and ``on_forgotten`` takes the route out of the daemon. The pairs mean:

===========  ==========================  ==========================  ===============================
Pair         Detached                    Attached                    Unwanted
===========  ==========================  ==========================  ===============================
Unreachable  START is under way, or no   ``_search`` runs            ``_search`` runs
             connection has asked yet
Live         waits for WELCOME           HOLDER_ATTACH was sent: the  the program is being ended;
                                         holder sends what is not    the route answers the holder
                                         committed, then goes on     in the server's place
DeadHolder   waits for WELCOME           ``_report_end`` runs        ``_clean_up`` runs
===========  ==========================  ==========================  ===============================
"""

from collections.abc import Callable
from dataclasses import dataclass

from controller_client.protocol.messages import FromHolder, SessionSummary
from controller_client.server_link.errors import HolderUnreachable
from controller_client.server_link.holders.client import HolderClient
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.known_holder import KnownHolder
from controller_client.server_link.network.connection import Connection
from controller_client.session_files.directory import SessionDirectory

# ---- what is known of the holder


@dataclass(frozen=True)
class Unreachable:
    """No holder has answered yet, or the last one has closed its socket.

    The holder may be starting, stopped or dying.
    """


@dataclass
class Live:
    """The conversation with the holder is open.

    ``knows_lifetime``: the holder understands PAUSE_LIFETIME. A holder keeps the version of the
    daemon that started it, and hangs up at a message that it does not know. ``is_settled``: the
    holder was told that the server has committed the end; it cleans up, then hangs up.
    """

    client: HolderClient
    knows_lifetime: bool
    is_settled: bool = False


# DeadHolder: the holder is proven to be dead, and this daemon has its lock.
HolderState = Unreachable | Live | DeadHolder


# ---- what the server wants


@dataclass(frozen=True)
class Detached:
    """No connection of the server has said what it wants."""


@dataclass
class Attached:
    """The server takes the session's messages from ``connection``.

    ``is_found_awaited``: the server waits for SESSION_FOUND before it sends inputs again.
    """

    connection: Connection
    window_bytes: int
    is_found_awaited: bool


@dataclass(frozen=True)
class Unwanted:
    """The server wants nothing of this session: the program is ended and the directory removed."""


ServerState = Detached | Attached | Unwanted


# ---- the look


async def look(
    directory: SessionDirectory,
    on_message: Callable[[FromHolder], None],
    on_closed: Callable[[], None],
    known: KnownHolder,
) -> tuple[Live | DeadHolder, SessionSummary]:
    """Find the holder, alive or dead, and summarise its session for HELLO.

    The other arguments are for the conversation, as in :meth:`HolderClient.open`.

    Raises:
        HolderUnreachable: The holder lives and does not answer.
        FileNotFoundError: The session's directory is gone, or of no use.
        OSError: The host cannot look now, for want of descriptors, say.

    """
    dead = known.claim()
    if dead is not None:
        return dead, dead.summary()
    client, summary = await HolderClient.open(
        directory, on_message, on_closed, holder_pid=known.pid
    )
    if not client.is_open:
        # The holder hung up in the turn of the event loop that read its hello. ``on_closed`` was
        # called before the caller had the conversation, and is not called again.
        raise HolderUnreachable(directory.session_id, "closed after its hello")
    return Live(client, knows_lifetime=summary.lifetime is not None), summary
