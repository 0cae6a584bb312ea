"""Errors of choosing a host (a controller) and of reaching it."""

from collections.abc import Sequence
from uuid import UUID

from projects.errors.base import Conflict, NotFound, Unavailable, listed


class ControllerNotFound(NotFound):
    """The caller's project has no controller of this name or id."""

    code = "CONTROLLER_NOT_FOUND"

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        self.hint = (
            f"Hosts: {listed(known)}"
            if known
            else "No host is enrolled in this project; ask its operator."
        )
        super().__init__(f"there is no host {name[:64]!r} in this project")


class NoControllerEnrolled(NotFound):
    """No host is enrolled in the project yet."""

    code = "NO_CONTROLLER"
    status = 409
    hint = (
        "Enrol a host first: manage.py create_enrolment_code, then run holdline-controller on it."
    )

    def __init__(self) -> None:
        super().__init__("no host is enrolled in this project")


class ControllerAmbiguous(Conflict):
    """The project has several controllers, and the call names none."""

    code = "CONTROLLER_AMBIGUOUS"

    def __init__(self, names: Sequence[str]) -> None:
        self.hint = f"Name one with controller=: {listed(names)}"
        super().__init__("this project has several hosts")


class ControllerRevoked(Conflict):
    """An operator has revoked the host, so it will not connect again."""

    code = "CONTROLLER_REVOKED"

    def __init__(self, name: str) -> None:
        self.hint = (
            "It does not come back. stop_session_monitor(save_log=true) ends a monitor there."
            " list_controllers shows the hosts that are enrolled."
        )
        super().__init__(f"the host {name} was revoked")


class ControllerOffline(Unavailable):
    """The host is enrolled but not connected at present.

    ``host_id`` names it where a call may wait for its return.
    """

    code = "CONTROLLER_OFFLINE"

    def __init__(self, *names: str, host_id: UUID | None = None) -> None:
        self.host_id = host_id
        self.hint = (
            f"Wait for the daemon on {' or '.join(names)} to reconnect, or have the operator "
            "start it (holdline-controller run)."
            " list_controllers shows which hosts are online."
        )
        super().__init__(
            f"the host {names[0]} is offline"
            if len(names) == 1
            else f"the hosts {' and '.join(names)} are offline"
        )
