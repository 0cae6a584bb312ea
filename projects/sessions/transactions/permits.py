"""Hold an approved call to what the person saw, inside the transaction of the call."""

from typing import Final
from uuid import UUID

from django.db import IntegrityError

from controller_client.protocol.messages import NamedFile
from projects.accounts.authentication import Caller
from projects.accounts.permits import Permit
from projects.errors.access import ChangedSinceApproval
from projects.models import ActionRequest, Approval, CommandSession
from projects.secrets.masks import mask_of
from projects.storage import clock

USED: Final = "it was carried out, and what came of it is not kept any more"


def use(caller: Caller | None) -> None:
    """Note that the approved call is carried out now, in the transaction of the call.

    Raises ChangedSinceApproval if it was carried out before, and IntegrityError if a repeat of it
    was a moment earlier: the next attempt finds what that did.
    """
    permit = _permit_of(caller)
    if permit is None:
        return
    mine = Approval.objects.filter(id=permit.approval_id)
    if mine.filter(used_at__isnull=True).update(used_at=clock.now()):
        return
    for project_id, request_id in mine.values_list("project_id", "request_id"):
        if ActionRequest.objects.filter(project_id=project_id, request_id=request_id).exists():
            raise IntegrityError(USED)
    raise ChangedSinceApproval(USED)


def check_host(caller: Caller | None, controller_id: UUID) -> None:
    """Raises ChangedSinceApproval for another host than the one that was shown for the start."""
    permit = _permit_of(caller)
    if permit is not None and permit.controller_id != controller_id:
        raise ChangedSinceApproval("its host became another one")


def check_log(caller: Caller | None, controller_id: UUID, log_file: str) -> None:
    """Raises ChangedSinceApproval for a monitor of another log than the one that was shown."""
    permit = _permit_of(caller)
    seen = None if permit is None else (permit.controller_id, permit.log_file)
    if seen not in {None, (controller_id, log_file)}:
        raise ChangedSinceApproval("this id became that of a monitor of another log")


def approved_files(caller: Caller | None) -> list[NamedFile] | None:
    """The files that the host has to find unchanged; None if nobody saw any."""
    permit = _permit_of(caller)
    if permit is None or permit.files is None:
        return None
    return [NamedFile(path=path, sha256=sha256) for path, sha256 in permit.files]


def check_prompt(caller: Caller | None, session_id: UUID, input_seq: int) -> None:
    """Raises ChangedSinceApproval if the session is not where it was when the person was asked.

    ``input_seq`` is the number that the input has been given.
    """
    permit = _permit_of(caller)
    if permit is None or permit.input_seq is None:
        return
    if input_seq != permit.input_seq + 1:
        raise ChangedSinceApproval("somebody has typed into the session")
    if prompt_shown(CommandSession.objects.get(id=session_id)) == permit.prompt:
        return
    if permit.prompt:
        raise ChangedSinceApproval("the session left the prompt that it waited at")
    raise ChangedSinceApproval("the session, which waited for nothing, came to a prompt")


def prompt_shown(session: CommandSession) -> str:
    """The prompt that the session waits at, with masked secrets; empty if it waits for nothing."""
    if session.terminal_state != "awaiting_input":
        return ""
    asked = mask_of(session.id, session.sealed_secrets).masked(session.terminal_prompt)
    return f"{session.terminal_kind}: {asked}"


def of_caller(caller: Caller | None) -> dict[str, object]:
    """The part of an audit row that names the approval of the call; empty without one."""
    permit = _permit_of(caller)
    return {} if permit is None else {"approval": permit.approval_id}


def _permit_of(caller: Caller | None) -> Permit | None:
    return None if caller is None else caller.permit
