"""A program of the catalogue: how it is started, and its steps with the truth about each.

The truth is from the program's documentation, or from playing it by hand, never from the watcher.
"""

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.hosts.truth import Ends, Scenario, Waits, Works

ANY = "kernel|kernel+quiet|heuristic"
"""The catalogue asks for the truth. The evidence of what is wrong is counted."""
_SERVER = {"postgres": {"PGHOST": "127.0.0.1", "PGPORT": "{postgres_port}", "PGUSER": "postgres"}}
_INVISIBLE = (
    r"(?:\s|\x0f|\x08|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))*"
)


Step = Waits | Works | Ends


@dataclass(frozen=True)
class Program(Scenario):
    """A scenario with the files and the server that it needs.

    ``files`` are written into the home directory. An ``everyday`` program needs nothing but what
    ``.ci/run`` installs, and runs in each run of the tests. ``whom`` are the accounts it makes
    sense for.
    """

    files: dict[str, str] = field(default_factory=dict)
    server: str = ""
    everyday: bool = False
    whom: str = "root|user"

    def placed(self, places: dict[str, str]) -> "Program":
        """Return the program with every ``{place}`` replaced by the text that stands for it."""

        def fill(text: str) -> str:
            for place, value in places.items():
                text = text.replace(f"{{{place}}}", value)
            return text

        return replace(
            self,
            argv=tuple(map(fill, self.argv)),
            env={name: fill(value) for name, value in self.env.items()},
            files={name: fill(text) for name, text in self.files.items()},
            steps=tuple(
                replace(step, send=fill(step.send.decode()).encode())
                if isinstance(step, Waits) and step.send
                else step
                for step in self.steps
            ),
        )

    def write_files(self, home: Path) -> None:
        """Write the files of the program into its home directory."""
        for name, text in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)


def runs(
    name: str,
    line: str,
    *steps: Step,
    first: str = "",
    needs: str | None = None,
    env: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    server: str = "",
    everyday: bool = False,
    whom: str = "root|user",
) -> Program:
    """Return a program that is started by a line of bash, after the lines of ``first``.

    ``needs`` are the programs that have to be installed: the first word of the line by default.
    """
    wanted = needs.split() if needs is not None else [shlex.split(line)[0]]
    # A shell without a terminal drops PS1 from its environment.
    prompt = f"export PS1={shlex.quote(env['PS1'])}\n" if env and "PS1" in env else ""
    script = f"{first + ' || exit 99' if first else ''}\n{prompt}exec {line}"
    return Program(
        name,
        ("bash", "-c", script),
        steps,
        needs=tuple(program for program in wanted if "{" not in program),
        env={**_SERVER.get(server, {}), **(env or {})},
        files=files or {},
        server=server,
        everyday=everyday,
        whom=whom,
    )


def scripted(name: str, line: str, *steps: Step, everyday: bool = False, **options: str) -> Program:
    """Return a program whose line is a whole script of bash, which is not replaced by a program."""
    options = {"needs": "bash", **options}
    return runs(name, f"bash -c {shlex.quote(line)}", *steps, everyday=everyday, **options)


def asks(prompt: str, types: str | None = None, kind: str = "line") -> Waits:
    """Return a step at a prompt, which is the text left of the cursor; ``types`` answers it."""
    ending = "".join(re.escape(each) + _INVISIBLE for each in prompt if each != " ") + "$"
    return Waits(ending, kind, _bytes(types), ANY, prompt)


def shows(pattern: str, types: str | None = None, kind: str = "screen") -> Waits:
    """Return a step in which the program waits once ``pattern`` is on the screen."""
    return Waits(pattern, kind, _bytes(types), ANY)


def works(after: str = "", seconds: float = 0.0) -> Works:
    """Return a step of work, which lasts until ``after`` is printed and ``seconds`` longer."""
    return Works(seconds, after)


def ends(status: int | None = 0) -> Ends:
    """Return the step in which the program ends."""
    return Ends(status)


def _bytes(types: str | None) -> bytes | None:
    return None if types is None else types.encode()
