"""Errors of the server itself: its process is being stopped, or its database is not reachable."""

from projects.errors.base import Unavailable


class ServerStopping(Unavailable):
    """The server process is being stopped and takes no new calls."""

    code = "SERVER_STOPPING"
    hint = "Nothing was done. Send the call again."

    def __init__(self) -> None:
        super().__init__("the server is being stopped or replaced")


class StorageUnavailable(Unavailable):
    """The database refused a write, or did not answer while the call waited for its result."""

    code = "STORAGE_UNAVAILABLE"
    hint = (
        "Try again in a moment. If the call changes something, repeat it with the "
        "same request_id, or check first whether it was done."
    )

    def __init__(self) -> None:
        super().__init__("the server's storage is unavailable")
