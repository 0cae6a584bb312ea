"""Files of /proc are kept open, up to a limit, and read anew each time."""

import os
from pathlib import Path

import pytest

from controller_client.terminal_state.kernel import proc_file
from controller_client.terminal_state.kernel.proc_file import (
    ProcFile,
    link_of,
    numbers_in,
    read_once,
)


def test_a_file_that_is_kept_open_reads_its_content_of_now() -> None:
    file = ProcFile(f"/proc/{os.getpid()}/oom_score_adj")
    before = ProcFile.open_files
    assert file.read() == file.read() == read_once("/proc/self/oom_score_adj")
    assert ProcFile.open_files == before + 1
    file.close()
    assert ProcFile.open_files == before


def test_beyond_the_limit_files_are_read_without_being_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proc_file, "MAX_KEPT_OPEN", ProcFile.open_files)
    before = ProcFile.open_files
    file = ProcFile("/proc/self/stat")
    assert file.read()
    assert file.status().st_size == 0
    assert ProcFile.open_files == before


@pytest.mark.parametrize("kept", [0, 128])
def test_a_list_longer_than_a_page_is_read_to_its_end(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc_file, "MAX_KEPT_OPEN", ProcFile.open_files + kept)
    file = ProcFile("/proc/self/maps")
    content = file.read_list()
    assert len(content) > 4096
    assert content.splitlines()[-1] == Path("/proc/self/maps").read_bytes().splitlines()[-1]
    file.close()


def test_a_file_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        ProcFile("/proc/self/nothing").read()


def test_a_link_that_is_not_there_leads_nowhere() -> None:
    assert link_of("/proc/self/fd/100000") == ""


def test_numbers_of_a_directory_are_its_numeric_entries() -> None:
    assert os.getpid() in numbers_in("/proc")
