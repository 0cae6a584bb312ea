"""Refusals that are about runs. Branches of the tree in ``projects.errors.base``."""

from collections.abc import Sequence

from projects.errors.base import Conflict, Forbidden, InvalidInput, NotFound, listed


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


class MalformedArguments(InvalidInput):
    """The model of a run gave a call arguments that no tool can be handed."""

    code = "MALFORMED_ARGUMENTS"

    def __init__(self, problem: str, hint: str) -> None:
        self.hint = hint
        super().__init__(problem)


class ControllerNotOfRun(Forbidden):
    """The run is bound to controllers, and this is none of them."""

    code = "CONTROLLER_NOT_OF_RUN"

    def __init__(self, controllers: Sequence[str]) -> None:
        self.hint = f"Use one of these: {listed(controllers)}"
        super().__init__("this run may not use that controller")


class SessionNotOfRun(Forbidden):
    """The run is bound to controllers, and did not start this session itself."""

    code = "SESSION_NOT_OF_RUN"
    hint = "Use a session this run has started."

    def __init__(self) -> None:
        super().__init__("this run did not start that session")
