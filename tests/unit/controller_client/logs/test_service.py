"""Questions about files: answered, waited for, dropped with their connection."""

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from controller_client.logs import log_file
from controller_client.logs import service as file_service
from controller_client.logs.paths import LogPaths
from controller_client.logs.service import FileService
from controller_client.protocol.messages import (
    DeleteFile,
    FileChunk,
    FileDeleted,
    Message,
    ReadFile,
)
from tests.support.waiting import await_until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    managed = tmp_path / "sessions"
    managed.mkdir(mode=0o700)
    (managed / "a.log").write_text("first\n")
    return managed / "a.log"


@pytest.fixture
def service(log: Path) -> FileService:
    return FileService(LogPaths([], str(log.parent)))


async def test_a_file_is_read_and_deleted(log: Path, service: FileService) -> None:
    answers: list[Message] = []
    read = ReadFile(path=str(log))
    service.ask(read, answers.append)
    await await_until(lambda: answers, 30, "the content")
    assert isinstance(answers[0], FileChunk)
    assert (answers[0].reply_to, answers[0].data) == (read.id, b"first\n")
    service.ask(DeleteFile(path=str(log), identity=answers[0].identity), answers.append)
    await await_until(lambda: len(answers) == 2, 30, "the deletion")
    assert isinstance(answers[1], FileDeleted)
    assert answers[1].failure is None
    service.disconnect()


async def test_a_wait_ends_when_the_log_grows_or_the_time_is_over(
    log: Path, service: FileService
) -> None:
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=20.0), answers.append)
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=0.05), answers.append)
    await await_until(lambda: answers, 30, "the end of the short wait")
    with log.open("a") as file:
        file.write("second\n")
    await await_until(lambda: len(answers) == 2, 30, "the end of the long wait")
    assert [answer.data for answer in answers if isinstance(answer, FileChunk)] == [
        b"",
        b"second\n",
    ]
    service.disconnect()


async def answered_by(service: FileService, log: Path, change: Callable[[], object]) -> FileChunk:
    """The answer to a wait that ``change`` ends."""
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=25.0), answers.append)
    await await_until(lambda: service._watch.is_armed(str(log.parent)), 20, "the watch")
    change()
    await await_until(lambda: answers, 20, "the end of the wait")
    assert isinstance(answers[0], FileChunk)
    return answers[0]


@pytest.fixture
def no_looks_but_when_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_QUIET_SECONDS"):
        monkeypatch.setattr(file_service, name, 3600.0)


@pytest.mark.usefixtures("no_looks_but_when_rung")
async def test_the_kernel_tells_when_to_look(log: Path, service: FileService) -> None:
    def append() -> None:
        with log.open("a") as file:
            file.write("second\n")

    assert (await answered_by(service, log, append)).data == b"second\n"
    thread = service._watch._thread
    assert thread is not None
    service.disconnect()
    await await_until(lambda: not thread.is_alive(), 20, "the thread to end")


@pytest.mark.usefixtures("no_looks_but_when_rung")
async def test_the_kernel_tells_of_a_rotation_whatever_the_new_file_is_made_of(
    log: Path, service: FileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 0.0)

    def rotate() -> None:
        (log.parent / "new").write_text("new\n")
        log.rename(log.with_name("a.log.1"))
        (log.parent / "new").rename(log)

    answer = await answered_by(service, log, rotate)
    assert (answer.data, answer.reset) == (b"new\n", "rotated")
    service.disconnect()


async def test_without_a_watch_the_log_is_looked_at_all_the_same(
    log: Path, service: FileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", refuse)
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=25.0), answers.append)
    await await_until(lambda: service._watch._bells, 20, "the wait")
    with log.open("a") as file:
        file.write("second\n")
    await await_until(lambda: answers, 20, "the end of the wait")
    assert not service._watch.is_armed(str(log.parent))
    service.disconnect()


@pytest.mark.usefixtures("no_looks_but_when_rung")
async def test_five_hundred_waits_in_many_directories_share_one_watch(
    log: Path, service: FileService
) -> None:
    logs = [log.parent / f"{number % 25}" / f"{number}.log" for number in range(500)]
    for path in logs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n")
    answers: list[Message] = []
    threads, instances = threading.active_count(), _inotify_instances()
    for path in logs:
        service.ask(ReadFile(path=str(path), position=None, wait_seconds=30.0), answers.append)
    await await_until(
        lambda: sum(map(len, service._watch._bells.values())) == 500, 20, "all to wait"
    )
    await await_until(
        lambda: all(service._watch.is_armed(str(path.parent)) for path in logs), 20, "the watch"
    )
    # The watcher's own thread is the kernel's library's, and not counted here.
    assert threading.active_count() <= threads + file_service.THREADS + 1
    assert _inotify_instances() <= instances + 2
    for path in logs:
        with path.open("a") as file:
            file.write("second\n")
    await await_until(lambda: len(answers) == 500, 25, "all answers")
    assert {answer.data for answer in answers if isinstance(answer, FileChunk)} == {b"second\n"}
    service.disconnect()


def _inotify_instances() -> int:
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(str(entry.readlink()))
    return names.count("anon_inode:inotify")


async def test_what_nobody_hears_any_more_is_not_answered(log: Path, service: FileService) -> None:
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log), position=None, wait_seconds=20.0), answers.append)
    await asyncio.sleep(0)
    service.disconnect()
    await await_until(lambda: not service._tasks, 30, "the task to end")
    assert answers == []
    service.ask(ReadFile(path=str(log)), answers.append)
    await await_until(lambda: answers, 30, "an answer on the next connection")
    service.disconnect()


async def test_a_failure_of_ours_is_an_answer(
    log: Path, service: FileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> FileChunk:
        raise RuntimeError("bug")

    monkeypatch.setattr(file_service, "look", fail)
    answers: list[Message] = []
    service.ask(ReadFile(path=str(log)), answers.append)
    await await_until(lambda: answers, 30, "the answer")
    assert isinstance(answers[0], FileChunk)
    assert answers[0].failure is not None
    service.disconnect()
