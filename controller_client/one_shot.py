"""RUN_COMMAND in terms of a session: a start on pipes whose input is closed, and an end that says how long it took.

On its host a one-shot is the session every other program is: the same directory, holder, ring and termination.
"""

import msgspec

from controller_client.protocol.messages import CommandResult, InteractiveCmdDone, RunCommand, StartInteractiveCmd

StartCommand = StartInteractiveCmd | RunCommand
"""What begins a session."""


def as_start(command: StartCommand) -> StartInteractiveCmd:
    """The start that ``command`` means."""
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


def as_end(command: StartCommand | None, done: InteractiveCmdDone) -> InteractiveCmdDone:
    """The message that ends what ``command`` began; ``done`` itself, unless it was a one-shot."""
    if not isinstance(command, RunCommand):
        return done
    return CommandResult(
        **msgspec.structs.asdict(done),
        timed_out=done.end_reason == "timed_out",
        duration_ms=round(done.duration_seconds * 1000),
    )
