"""Where programs may be started, and what a swapped link gains: nothing."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from controller_client.program.directory_guard import (
    is_directory,
    open_directory,
    start_directory,
)
from controller_client.system.start_failure import StartFailed


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("work/deep", "work/closed", "worker", "outside/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work/file").touch()
    (tmp_path / "work/out").symlink_to(tmp_path / "outside")
    (tmp_path / "work/in").symlink_to(tmp_path / "work/deep")
    (tmp_path / "into").symlink_to(tmp_path / "work")
    return tmp_path


def _refusal(path: Path | str, *roots: list[str]) -> str:
    with pytest.raises(StartFailed) as refused:
        os.close(open_directory(str(path), roots))
    return refused.value.failure.code


def _where(path: Path, *roots: list[str]) -> str:
    descriptor = open_directory(str(path), roots)
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("work", "work"),
        ("work/deep", "work/deep"),
        ("work/in", "work/deep"),
        ("into/deep/..", "work"),
    ],
)
def test_a_directory_inside_is_opened_as_what_it_really_is(
    tree: Path, path: str, real: str
) -> None:
    assert _where(tree / path, [str(tree / "work")]) == str(tree / real)


@pytest.mark.parametrize(
    "path",
    [
        "outside",
        "worker",
        "work/..",
        "work/../outside",
        "work/out",
        "work/out/deep",
        "work/deep/../../outside",
        "",
        "nowhere",
        "../x",
    ],
)
def test_a_directory_outside_is_refused_whether_it_is_there_or_not(tree: Path, path: str) -> None:
    assert _refusal(tree / path, [str(tree / "work")]) == "CWD_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["/", "/etc", "/proc/self/cwd", "/proc/self/root", "/dev/fd"])
def test_paths_of_the_system_lead_outside(tree: Path, path: str) -> None:
    assert _refusal(path, [str(tree / "work")]) == "CWD_NOT_ALLOWED"


def test_every_list_of_roots_has_to_agree(tree: Path) -> None:
    work, deep, other = [str(tree / "work")], [str(tree / "work/deep")], [str(tree / "outside")]
    assert _where(tree / "work/deep", work, deep, [*other, *work])
    assert _refusal(tree / "work", work, deep) == "CWD_NOT_ALLOWED"
    assert _refusal(tree / "work/deep", work, other) == "CWD_NOT_ALLOWED"
    assert _refusal(tree / "work/deep", work, []) == "CWD_NOT_ALLOWED"


def test_a_linked_root_means_its_target_and_a_missing_root_allows_nothing(tree: Path) -> None:
    assert _where(tree / "work/deep", [str(tree / "into")]) == str(tree / "work/deep")
    assert _refusal(tree / "gone/x", [str(tree / "gone")]) == "CWD_NOT_ALLOWED"


def test_what_is_inside_and_no_directory_is_not_found(tree: Path) -> None:
    assert _refusal(tree / "work/file", [str(tree / "work")]) == "CWD_NOT_FOUND"
    assert _refusal(tree / "work/nowhere", [str(tree / "work")]) == "CWD_NOT_FOUND"


def test_a_path_with_a_nul_is_no_directory_and_allows_nothing(tree: Path) -> None:
    work = str(tree / "work")
    assert _refusal(f"{work}/a\0b", [work]) == "CWD_NOT_ALLOWED"
    assert _refusal(work, [f"{work}\0"]) == "CWD_NOT_ALLOWED"
    assert _where(tree / "work", [f"{work}\0", work]) == work
    assert start_directory(None, f"{work}\0", [[work]]) == work


def test_the_default_directory_is_home_or_else_the_first_allowed_one(tree: Path) -> None:
    work = str(tree / "work")
    assert start_directory("x", "/home", [[work]]) == "x"
    assert start_directory(None, str(tree / "work/deep"), [[work]]) == str(tree / "work/deep")
    assert start_directory(None, str(tree / "outside"), [[str(tree / "gone"), work]]) == work
    assert start_directory(None, str(tree / "outside"), []) == str(tree / "outside")


def test_what_cannot_be_looked_at_is_no_directory(tree: Path) -> None:
    loop = tree / "loop"
    loop.symlink_to(loop)
    assert is_directory(str(tree / "work"))
    for other in (tree / "work/file", tree / "gone", loop, tree / ("x" * 300), f"{tree}\0"):
        assert not is_directory(str(other))


@contextmanager
def _swapping(link: Path, targets: tuple[Path, Path]) -> Iterator[None]:
    """``link`` leads now to one and now to the other, without ever being absent."""
    stop = threading.Event()

    def swap() -> None:
        turn = 0
        while not stop.is_set():
            fresh = link.with_name("fresh")
            fresh.symlink_to(targets[turn % 2])
            fresh.rename(link)
            turn += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_link_that_is_swapped_during_the_start_never_leads_outside(tree: Path) -> None:
    link = tree / "work/swapped"
    link.symlink_to(tree / "work/deep")
    entered = 0
    with _swapping(link, (tree / "work", tree / "outside")):
        for _ in range(2000):
            with suppress(StartFailed):
                assert _where(link / "deep", [str(tree / "work")]) == str(tree / "work/deep")
                entered += 1
    assert entered


def test_a_directory_that_is_replaced_by_a_link_never_leads_outside(tree: Path) -> None:
    """Between the check and the opening the directory itself turns into a link."""
    victim, real, away = tree / "work/victim", tree / "work/victim-real", tree / "work/victim-link"
    (real / "deep").mkdir(parents=True)
    away.symlink_to(tree / "outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for present in (real, away):
                with suppress(OSError):
                    present.rename(victim)
                with suppress(OSError):
                    victim.rename(present)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(2000):
            with suppress(StartFailed):
                assert _where(victim / "deep", [str(tree / "work")]).startswith(str(tree / "work"))
    finally:
        stop.set()
        thread.join()
