"""Whose code a process runs besides its own file. Real processes and real libraries."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller_client.system.files.loaded_code import has_code_of_others, place_others_can_change

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the kernel tells of it on Linux only"
)

_ANONYMOUS = "import mmap; kept = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"


@contextmanager
def _python(statement: str) -> Iterator[int]:
    """A Python that has executed the statement and goes on."""
    command = [
        sys.executable,
        "-c",
        f"{statement}; import sys; print(flush=True); sys.stdin.read()",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.fixture
def own_library(tmp_path: Path) -> Path:
    """A library that an ordinary user could change."""
    found = next(
        path.split()[-1]
        for path in Path("/proc/self/maps").read_text().splitlines()
        if "/libc.so" in path
    )
    copy = tmp_path / "own library.so"
    shutil.copy(found, copy)
    copy.chmod(0o666)
    return copy


def test_a_program_with_libraries_of_root_has_no_code_of_others() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x\n")
        process.stdin.flush()
        process.stdout.readline()
        assert has_code_of_others(process.pid) is False
        process.kill()


def test_a_library_that_others_can_change_is_code_of_others(own_library: Path) -> None:
    with _python(f"import ctypes; kept = ctypes.CDLL({str(own_library)!r})") as pid:
        assert has_code_of_others(pid) is True


def test_a_library_that_was_removed_is_code_of_others(own_library: Path) -> None:
    own_library.chmod(0o644)
    with _python(
        f"import ctypes, os; kept = ctypes.CDLL({str(own_library)!r}); "
        f"os.unlink({str(own_library)!r})"
    ) as pid:
        assert has_code_of_others(pid) is True


def test_code_in_no_file_is_code_of_others() -> None:
    with _python(_ANONYMOUS) as pid:
        assert has_code_of_others(pid) is True


def test_nothing_is_known_of_a_process_that_is_no_more() -> None:
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    assert has_code_of_others(gone.pid) is None


def test_a_place_is_roots_with_all_directories_above_it(tmp_path: Path) -> None:
    assert place_others_can_change("/bin/sh") is None
    open_directory = tmp_path / "open"
    open_directory.mkdir()
    open_directory.chmod(0o777)
    file = open_directory / "file"
    file.touch(0o644)
    if os.geteuid() == 0:
        assert place_others_can_change(str(file)) == str(open_directory)
    else:
        assert place_others_can_change(str(file)) == str(file)
