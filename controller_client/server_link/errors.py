"""The errors between the daemon, its server and its holders, as a tree::

    EnrolmentFailed         the server gave no credential; exit code 1
    └── AnswerLost          it was asked, and may have made one
    ServerUnreachable       no connection to the server; try again soon
    └── ServerRefused       HTTP status or close code that refuses; try again much later
    HolderUnreachable       the holder of a session does not answer
    ForkServerLost          the one process that can start programs has ended; exit code 75

Texts never contain credentials, input or output.
"""

from typing import Final


class EnrolmentFailed(Exception):
    """The server could not be asked for a credential, or refused; the text says which.

    The text never holds a code or a credential.
    """


class AnswerLost(EnrolmentFailed):
    """The server was asked, and it is not known what it did."""


class ServerUnreachable(Exception):
    """The connection could not be made, or was lost."""


class SentAway(ServerUnreachable):
    """The server is being stopped, and said so in place of WELCOME."""


_NEW_CREDENTIAL: Final = (
    "The credential is wrong, expired or revoked. Ask the server's operator for a new code and run "
    "holdline-controller enroll --replace; the daemon uses the new credential at once"
)
_REMEDIES: Final = {
    401: _NEW_CREDENTIAL,
    403: _NEW_CREDENTIAL,
    4401: _NEW_CREDENTIAL,
    4403: _NEW_CREDENTIAL,
    4010: (
        "ALARM: another daemon showed this credential first, or is connected with it. If this "
        "host's state directory was moved or --state-dir changed, start the daemon on the earlier "
        "directory. Otherwise revoke the credential, unless the other daemon is yours, and enrol "
        "this host with a code of its own"
    ),
    4426: "The versions of daemon and server do not match: upgrade the older one",
}


class ServerRefused(ServerUnreachable):
    """The server does not want this daemon; ``status`` is an HTTP status or a WebSocket close code.

    ``remedy`` says what to do, if that is known.
    """

    def __init__(self, status: int, reason: str = "") -> None:
        self.status = status
        self.remedy = _REMEDIES.get(status, "")
        super().__init__(
            f"the server refused the connection ({status}{': ' if reason else ''}{reason})"
        )


class HolderUnreachable(Exception):
    """No holder answers in a session's directory."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"the holder of session {session_id} cannot be reached: {reason}")


class ForkServerLost(Exception):
    """The fork server has ended, and this daemon gave up the right to start another."""

    def __init__(self) -> None:
        super().__init__(
            "the fork server has ended, and only a new daemon may start another, because programs "
            "run as another user; programs go on"
        )
