"""Refusals that are about runs. Branches of the tree in ``projects.errors``."""

from projects.errors import Conflict, NotFound


class RunNotFound(NotFound):
    """No such run in the projects of whoever asks."""

    code = "RUN_NOT_FOUND"
    hint = "manage.py agent_runs lists runs with their ids."

    def __init__(self, run: object) -> None:
        super().__init__(f"there is no run {str(run)[:64]!r}")


class ApprovalNotFound(NotFound):
    """No run asked this."""

    code = "APPROVAL_NOT_FOUND"
    hint = "manage.py answer_approval lists what runs ask."

    def __init__(self, approval_id: int) -> None:
        super().__init__(f"there is no request for approval #{approval_id}")


class RunActive(Conflict):
    """It has not ended, so there is nothing to resume."""

    code = "RUN_ACTIVE"
    hint = "Follow it with manage.py run_agent --follow RUN, or stop it first with --stop RUN."

    def __init__(self, run: object) -> None:
        super().__init__(f"run {run} is not over")
