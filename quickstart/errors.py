"""Errors that end the quickstart, in words for the person at the terminal.

::

QuickstartError
├── UnusablePort
├── UnusableDirectory
├── UnusableLock        the file system gives no lock on a file
├── UnknownHome         a path begins with ~ and a name that is no user's
├── SystemRefused       the system did not let it use a file, a socket or a program
├── OtherDatabase       DATABASE_URL is set
├── AlreadyRunning      another quickstart has the data directory
├── VenvModuleMissing
├── StepFailed          a program it ran ended with an error; carries the end of its log
└── ToolRefused         a tool answered with an error; carries its code
"""

from pathlib import Path


class QuickstartError(Exception):
    """Any error of the quickstart; ``hint`` says what to do about it."""

    hint: str = ""


class UnusablePort(QuickstartError):
    """PORT is not a port, or somebody listens there already."""

    def __init__(self, port: object, reason: str, hint: str) -> None:
        self.hint = hint
        super().__init__(f"port {port} {reason}")


class UnusableDirectory(QuickstartError):
    """The quickstart cannot write to a directory that it needs."""

    def __init__(self, path: Path, reason: str, hint: str) -> None:
        self.hint = hint
        super().__init__(f"cannot write to {path}: {reason}")


class UnusableLock(QuickstartError):
    """A file cannot be locked, though nobody else has locked it."""

    hint = (
        "Some network file systems have no locks. Use a directory of a local disk, for the "
        "checkout and with --data-dir DIR."
    )

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"cannot lock {path}: {error.strerror}")


class UnknownHome(QuickstartError):
    """The home directory in a path is nobody's."""

    hint = "Write the whole path of the directory."

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} names the home of a user that is not there")


class SystemRefused(QuickstartError):
    """The system did not let the quickstart use something that it needs."""

    hint = "See who owns it, and whether the disk has room. Then run this again."

    def __init__(self, error: OSError) -> None:
        where = f"{error.filename}: " if error.filename else ""
        super().__init__(f"{where}{error.strerror or error}")


class OtherDatabase(QuickstartError):
    """The environment names a database, which may be that of something else."""

    hint = (
        "Run it without: env -u DATABASE_URL bin/quickstart. A server on a database of your own: "
        "docs/howto/start-a-server.md"
    )

    def __init__(self) -> None:
        super().__init__(
            "DATABASE_URL is set, and the quickstart would make its tables and an administrator "
            "there; it keeps everything in its data directory"
        )


class OtherServer(QuickstartError):
    """The environment names the data directory of a server that no quickstart has made."""

    hint = (
        "Choose another place with --data-dir DIR, or run it without: env -u HOLDLINE_DATA_DIR "
        "bin/quickstart."
    )

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            f"HOLDLINE_DATA_DIR names {data_dir}, which has the database of another server, and "
            "the quickstart would make an administrator there"
        )


class AlreadyRunning(QuickstartError):
    """Another quickstart runs on the same data directory."""

    hint = "Use that one, stop it with Ctrl-C, or choose another place with --data-dir DIR."

    def __init__(self, data_dir: Path) -> None:
        super().__init__(f"another quickstart is running on {data_dir}")


class VenvModuleMissing(QuickstartError):
    """The interpreter cannot make a virtual environment."""

    def __init__(self, module: str, version: str) -> None:
        self.hint = (
            f"On Debian and Ubuntu: sudo apt-get install python{version}-venv (or "
            "python3-venv). Then run this again."
        )
        super().__init__(f"this Python {version} has no {module} module, so it cannot make .venv")


class StepFailed(QuickstartError):
    """A program that the quickstart ran ended with an error."""

    def __init__(self, step: str, log: Path | None, tail: str, hint: str = "") -> None:
        self.hint = hint or (f"The whole log is in {log}." if log else "")
        super().__init__(f"{step} failed" + (":\n" + tail if tail else ""))


class ToolRefused(QuickstartError):
    """A tool of the server answered with an error.

    ``code`` is one of ``docs/reference/errors.md``, or empty.
    """

    def __init__(self, tool: str, text: str, code: str) -> None:
        self.code = code
        super().__init__(f"{tool}: {text}" + (f" ({code})" if code else ""))
