"""Refusals that are about runs. Branches of the tree in ``projects.errors.base``."""

from projects.errors.base import Conflict, NotFound


class RunNotFound(NotFound):
    """There is no such run in the caller's projects."""

    code = "RUN_NOT_FOUND"
    hint = "manage.py agent_runs lists runs with their ids."

    def __init__(self, run: object) -> None:
        super().__init__(f"there is no run {str(run)[:64]!r}")


class RunActive(Conflict):
    """The run has not ended, so there is nothing to resume."""

    code = "RUN_ACTIVE"
    hint = "Follow it with manage.py run_agent --follow RUN, or stop it first with --stop RUN."

    def __init__(self, run: object) -> None:
        super().__init__(f"run {run} is not over")
