"""RUN_COMMAND in terms of a session: a start on pipes with closed input, and an end with its time.

On its host a one-shot command is a session like that of every other program: it has the same
directory, holder, ring and termination.
"""

from typing import Final

import msgspec

from controller_client.protocol.messages import (
    CommandResult,
    InteractiveCmdDone,
    IoMode,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
)

# The keys that end the input of a terminal, by whether the cursor is at the start of a line.
_TYPED_END: Final = {True: b"\x04", False: b"\x04\x04"}
StartCommand = StartInteractiveCmd | RunCommand
"""The command that begins a session."""


def as_start(command: StartCommand) -> StartInteractiveCmd:
    """Return the START that ``command`` means: itself, or that of the one-shot."""
    if isinstance(command, StartInteractiveCmd):
        return command
    return StartInteractiveCmd(
        id=command.id,
        seq=command.seq,
        session_id=command.session_id,
        command=command.command,
        argv=command.argv,
        cwd=command.cwd,
        env=command.env,
        io_mode="pipe",
        lifetime_seconds=command.timeout_seconds,
        ring_bytes=command.ring_bytes,
        overflow=command.overflow,
        ttl_seconds=command.ttl_seconds,
        stdin="closed",
        stdin_data=command.input,
        limits=command.limits,
        rules=command.rules,
        admission=command.admission,
    )


def first_input(start: StartInteractiveCmd, io_mode: IoMode) -> tuple[SendInput | None, bytes]:
    """Return the input that comes before all others, and the bytes to type or write for it.

    None if the START has no such input.
    """
    if not start.stdin_data and start.stdin != "closed":
        return None, b""
    first = SendInput(
        seq=0,
        session_id=start.session_id,
        input_seq=0,
        data=start.stdin_data,
        eof=start.stdin == "closed",
    )
    end = _TYPED_END[first.data[-1:] in {b"", b"\n"}] if first.eof and io_mode == "pty" else b""
    return first, first.data + end


def as_end(command: StartCommand | None, done: InteractiveCmdDone) -> InteractiveCmdDone:
    """Return the message that ends a session: a COMMAND_RESULT if RUN_COMMAND began it."""
    return as_result(done) if isinstance(command, RunCommand) else done


def as_result(done: InteractiveCmdDone) -> CommandResult:
    """Return the end of a one-shot's session as the COMMAND_RESULT."""
    return CommandResult(
        **msgspec.structs.asdict(done),
        timed_out=done.end_reason == "timed_out",
        duration_ms=round(done.duration_seconds * 1000),
    )
