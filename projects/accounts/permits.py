"""The permit that an approved call is carried out with."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Permit:
    """The facts that a person saw when they approved a call. They have to be the same at the call.

    ``controller_id``: the host; None for calls that start nothing and name no session.
    ``input_seq`` and ``prompt``: the newest input of the session, None for calls that name none,
    and the prompt that it waited at, empty if it waited at none. ``files``: path and SHA-256 of the
    files that a start runs, as its host named them; None if it could not. ``log_file``: of a call
    about a monitor; empty if there was no such monitor.
    """

    approval_id: int
    controller_id: UUID | None = None
    input_seq: int | None = None
    files: tuple[tuple[str, str], ...] | None = None
    prompt: str = ""
    log_file: str = ""
