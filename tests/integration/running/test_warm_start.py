"""A process that starts warm is the one that its command would have started."""

import gc
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.processes import command_line
from tests.support.running.warm_start import own_processes, start

_SAYS = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ.get("SAID"), __name__, sys.stdin.read(), flush=True)
print(sorted(name.split(".")[0] for name in sys.modules if name.startswith("projects")))
print(sorted(os.listdir("/proc/self/fd"))[:3], file=sys.stderr)
sys.exit(7)
"""


def _played(
    folder: Path, program: str, *arguments: str, is_warm: bool, said: str | None = "this"
) -> tuple[int, str, str]:
    """Exit code, output and errors of a program that reads a line."""
    (folder / "program.py").write_text(program)
    (folder / "given").write_text("typed")
    environment = {**os.environ, **({} if said is None else {"SAID": said})}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    process = _started(folder, arguments, environment, is_warm=is_warm)
    return (
        process.wait(90),
        (folder / "out").read_text(),
        (folder / "errors").read_text(),
    )


def _started(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], *, is_warm: bool
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "program.py", *arguments]
    with (
        (folder / "given").open("rb") as given,
        (folder / "out").open("wb") as out,
        (folder / "errors").open("wb") as errors,
    ):
        streams = (given, out, errors)
        return start(command, folder, environment, streams=streams, is_warm=is_warm)


def test_it_has_the_arguments_streams_and_variables_of_its_command(tmp_path: Path) -> None:
    warm = _played(tmp_path, _SAYS, "one", "two words", is_warm=True)
    assert warm == _played(tmp_path, _SAYS, "one", "two words", is_warm=False)
    assert warm[0] == 7
    assert warm[1].startswith(f"['one', 'two words'] {tmp_path} this __main__ typed\n[]\n")


def test_a_variable_of_one_process_is_not_that_of_the_next(tmp_path: Path) -> None:
    asks = "import os; print(os.environ.get('SAID'))"
    assert _played(tmp_path, asks, is_warm=True, said="mine")[1] == "mine\n"
    assert _played(tmp_path, asks, is_warm=True, said=None)[1] == "None\n"


def test_a_failure_has_its_exit_code_and_its_traceback(tmp_path: Path) -> None:
    code, _, errors = _played(tmp_path, "raise ValueError('no')", is_warm=True)
    assert (code, errors.splitlines()[-1]) == (1, "ValueError: no")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_is_ended_by_a_signal_and_known_as_ours_until_then(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "program.py").write_text("import signal; signal.pause()")
    (tmp_path / "given").touch()
    before = own_processes()
    environment = {name: value for name, value in os.environ.items() if name[:6] != "DJANGO"}
    process = _started(tmp_path, (), environment, is_warm=True)
    assert own_processes() - before == {process.pid}
    assert "warm_start" in command_line(process.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    process.send_signal(number)
    assert process.wait(90) == process.poll() == -number
    assert process.pid not in own_processes()


def test_what_an_interpreter_reads_when_it_starts_is_kept(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(sys.flags.dev_mode)")
    (tmp_path / "given").touch()
    environment = {**os.environ, "PYTHONDEVMODE": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    assert _started(tmp_path, (), environment, is_warm=True).wait(90) == 0
    assert (tmp_path / "out").read_text() == "True\n"


def test_what_it_holds_is_closed_when_it_is_garbage_of_a_cycle(tmp_path: Path) -> None:
    (tmp_path / "program.py").touch()
    (tmp_path / "given").touch()
    environment = {name: value for name, value in os.environ.items() if name[:6] != "DJANGO"}
    gc.collect()
    of_process = Path("/proc/self/fd")
    before = set(of_process.iterdir())
    kept: list[object] = [_started(tmp_path, (), environment, is_warm=True)]
    kept.append(kept)
    del kept
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(warning.message) for warning in told] == []
    assert len(set(of_process.iterdir()) - before) <= 1, "only the socket of the starter"
