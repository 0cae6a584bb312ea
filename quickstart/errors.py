"""Why the quickstart cannot go on, in words for the person at the terminal.

::

QuickstartError
├── UnusablePort
├── UnusableDirectory
├── VenvModuleMissing
├── StepFailed          a program it ran ended with an error; carries the end of its log
└── DemonstrationFailed
"""

from pathlib import Path


class QuickstartError(Exception):
    """Root. The text says what is wrong; ``hint`` says what to do."""

    hint: str = ""


class UnusablePort(QuickstartError):
    """PORT is not a port, or somebody listens there already."""

    def __init__(self, port: object, reason: str, hint: str) -> None:
        self.hint = hint
        super().__init__(f"port {port} {reason}")


class UnusableDirectory(QuickstartError):
    """A directory the quickstart must write to, and cannot."""

    def __init__(self, path: Path, reason: str, hint: str) -> None:
        self.path, self.hint = path, hint
        super().__init__(f"cannot write to {path}: {reason}")


class VenvModuleMissing(QuickstartError):
    """The Python found cannot make a virtual environment."""

    def __init__(self, module: str, version: str) -> None:
        self.hint = f"On Debian and Ubuntu: sudo apt-get install python{version}-venv (or python3-venv). Then run this again."
        super().__init__(f"this Python {version} has no {module} module, so it cannot make .venv")


class StepFailed(QuickstartError):
    """A step ended with an error."""

    def __init__(self, step: str, log: Path | None, tail: str, hint: str = "") -> None:
        self.hint = hint or (f"The whole log is in {log}." if log else "")
        super().__init__(f"{step} failed" + (":\n" + tail if tail else ""))


class DemonstrationFailed(QuickstartError):
    """The demonstration session did not go as it must; ``problems`` say where."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the demonstration did not go as expected: " + "; ".join(problems))
