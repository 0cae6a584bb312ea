"""The daemon's own answers to commands that cannot be passed on to a holder."""

from typing import Final

from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    InputAck,
    PauseLifetime,
    Resize,
    SendInput,
    TerminateCmd,
)

# A message of the server for one session's holder.
Command = SendInput | TerminateCmd | Resize | PauseLifetime

ENDED: Final = Failure(code="SESSION_ENDED", message="the program has ended")
TOO_OLD: Final = Failure(
    code="HOLDER_TOO_OLD",
    message="the session was started by a daemon from before its clock could be stopped",
)
EXPIRED: Final = Failure(code="EXPIRED", message="the host took the command too late to start it")
UNKNOWN_SESSION: Final = Failure(
    code="SESSION_NOT_FOUND",
    message="this host has no such session",
)


def refusal(command: Command, failure: Failure) -> InputAck | CommandAck:
    """The acknowledgement that refuses ``command`` with ``failure``.

    TERMINATE_CMD succeeds if the session has ended: there is nothing left to terminate.
    """
    if isinstance(command, SendInput):
        return InputAck(
            session_id=command.session_id,
            command_seq=command.seq,
            input_seq=command.input_seq,
            failure=failure,
        )
    is_done = isinstance(command, TerminateCmd) and failure is ENDED
    return CommandAck(
        session_id=command.session_id,
        command_seq=command.seq,
        failure=None if is_done else failure,
    )
