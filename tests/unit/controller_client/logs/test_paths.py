"""Which files may be monitored, and that nobody learns of others."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from controller_client.logs import paths as log_paths
from controller_client.logs.paths import MAX_PATH_BYTES, FileRefused, LogPaths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "logs"
    (top / "sub").mkdir(parents=True)
    (top / "a.log").write_text("a")
    (top / "sub" / "b.log").write_text("b")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return top


def content(paths: LogPaths, path: Path | str) -> str:
    """Of the file, or the code of the refusal."""
    try:
        with paths.place(str(path)) as place:
            descriptor = place.open(place.name)
    except FileRefused as refused:
        return refused.failure.code
    with os.fdopen(descriptor) as file:
        return file.read()


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/dev/fd").iterdir()}


@pytest.fixture
def paths(root: Path) -> LogPaths:
    return LogPaths([str(root)], str(root.parent / "managed"))


def test_files_in_and_below_a_directory_can_be_read(paths: LogPaths, root: Path) -> None:
    before = open_descriptors()
    assert content(paths, root / "a.log") == "a"
    assert content(paths, root / "sub" / "b.log") == "b"
    assert content(paths, f"{root}//./sub/b.log") == "b"
    assert open_descriptors() == before


def _link(target: str) -> Callable[[Path], str]:
    def make(root: Path) -> str:
        (root / "x").symlink_to(target)
        return f"{root}/x"

    return make


def _hardlink(root: Path) -> str:
    os.link(root.parent / "outside" / "secret", root / "x")
    return f"{root}/x"


def _fifo(root: Path) -> str:
    os.mkfifo(root / "x")
    return f"{root}/x"


def _through_link(root: Path) -> str:
    (root / "x").symlink_to("../outside")
    return f"{root}/x/secret"


def _loop(root: Path) -> str:
    (root / "x").symlink_to("y")
    (root / "y").symlink_to("x")
    return f"{root}/x"


REFUSED: dict[str, Callable[[Path], str]] = {
    "a file of elsewhere": lambda _: "/etc/shadow",
    "no file of elsewhere": lambda _: "/etc/there-is-no-such-file",
    "no directory of elsewhere": lambda _: "/there/is/no/such/directory",
    "an environment": lambda _: "/proc/self/environ",
    "up and out": lambda root: f"{root}/../outside/secret",
    "up and in again": lambda root: f"{root}/sub/../a.log",
    "a name that only begins like it": lambda root: f"{root}-not/a.log",
    "a link out": _link("../outside/secret"),
    "a link out by its whole path": _link("/etc/shadow"),
    "a link to nothing outside": _link("/etc/there-is-no-such-file"),
    "a link to a process": _link("/proc/self/environ"),
    "a link to the directories above": _link("../../../../../../../../etc/shadow"),
    "a directory that is a link out": _through_link,
    "a loop of links": _loop,
    "another name of a file": _hardlink,
    "a fifo": _fifo,
    "a device": lambda _: "/dev/zero",
    "a directory": lambda root: f"{root}/sub",
    "the directory itself": str,
    "a directory, said to be one": lambda root: f"{root}/sub/",
    "a relative path": lambda _: "a.log",
    "nothing": lambda _: "",
    "a NUL": lambda root: f"{root}/a.log\0",
    "no text": lambda root: f"{root}/\ud800",
    "a path too long": lambda root: f"{root}/{'x/' * 3000}a",
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_everything_else_has_the_one_refusal(
    paths: LogPaths, root: Path, make: Callable[[Path], str]
) -> None:
    path, before = make(root), open_descriptors()
    with pytest.raises(FileRefused) as refused, paths.place(path) as place:
        os.close(place.open(place.name))
    assert refused.value.failure == log_paths.FileRefused("PATH_NOT_ALLOWED").failure
    assert open_descriptors() == before


def test_outside_nothing_is_looked_at(paths: LogPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object, **__: object) -> None:
        raise AssertionError("looked")

    for name in ("open", "stat", "lstat", "readlink", "scandir", "access"):
        monkeypatch.setattr(os, name, looked)
    codes = [
        content(paths, path) for path in ("/etc/shadow", "/etc/nothing", "/nonexistent/path.log")
    ]
    monkeypatch.undo()
    assert codes == ["PATH_NOT_ALLOWED", "PATH_NOT_ALLOWED", "FILE_NOT_FOUND"]


def test_links_that_stay_inside_are_followed(paths: LogPaths, root: Path) -> None:
    (root / "current").symlink_to("sub")
    (root / "sub" / "c.log").symlink_to("../a.log")
    (root / "whole").symlink_to(root / "current" / "b.log")
    assert content(paths, root / "current" / "c.log") == "a"
    assert content(paths, root / "whole") == "b"


def test_a_directory_whose_place_a_link_took_has_nothing(paths: LogPaths, root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to("outside")
    assert content(paths, root / "secret") == "PATH_NOT_ALLOWED"


def test_inside_what_is_missing_may_be_told(paths: LogPaths, root: Path) -> None:
    assert content(paths, root / "no.log") == "FILE_NOT_FOUND"
    assert content(paths, root / "no" / "no.log") == "FILE_NOT_FOUND"


def test_a_log_root_that_is_no_directory_is_told(root: Path, tmp_path: Path) -> None:
    gone, file, link = (str(tmp_path / name) for name in ("gone", "file", "link"))
    Path(file).touch()
    Path(link).symlink_to(root)
    paths = LogPaths([gone, file, link, str(root)], str(tmp_path / "managed"))
    long = f"{tmp_path}/{'x' * 256}"
    assert paths.problem_of(long) == paths.problem_of(gone)
    assert paths.problems() == [
        (gone, "it does not exist"),
        (file, "it is a file or a link, not a directory"),
        (link, "it is a file or a link, not a directory"),
    ]
    # No file is missing that a program could write: the directory is.
    assert content(paths, Path(gone, "a.log")) == "LOG_DIRECTORY_UNUSABLE"
    assert content(paths, Path(file, "a.log")) == "PATH_NOT_ALLOWED"
    Path(gone).mkdir()
    assert content(paths, Path(gone, "a.log")) == "FILE_NOT_FOUND"


@pytest.mark.parametrize(
    "root", ["/", "//", "relative", "/proc", "/dev/shm", "/sys/../proc/self", "", "/var/\0log"]
)
def test_some_directories_can_never_be_for_logs(root: str) -> None:
    with pytest.raises(ValueError, match="log directory"):
        LogPaths([root])


def test_a_foreign_directory_is_said_to_be_of_none_of_three_users() -> None:
    told = FileRefused("LOG_DIRECTORY_FOREIGN").failure.message
    assert all(whose in told for whose in ("the daemon's user", "that of programs", "root"))


OTHER_USER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")


@as_root
@pytest.mark.parametrize("given", ["logs", "logs/sub"])
def test_what_another_user_made_among_session_logs_is_not_read(root: Path, given: str) -> None:
    paths = LogPaths(managed=str(root))
    before = open_descriptors()
    os.chown(root.parent / given, OTHER_USER, OTHER_USER)
    assert content(paths, root / "sub" / "b.log") == "LOG_DIRECTORY_FOREIGN"
    (root / "link").symlink_to(root / "sub")
    assert content(paths, root / "link" / "b.log") == "LOG_DIRECTORY_FOREIGN"
    assert open_descriptors() == before
    if given == "logs":
        assert content(paths, root / "no.log") == "LOG_DIRECTORY_FOREIGN"
        assert [directory for directory, _ in paths.problems()] == [str(root)]


@as_root
def test_session_logs_of_root_are_read_by_another_daemon_user(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OTHER_USER)
    assert content(LogPaths(managed=str(root)), root / "a.log") == "a"


@as_root
def test_a_log_root_may_be_of_any_user_for_the_operator_named_it(root: Path) -> None:
    os.chown(root, OTHER_USER, OTHER_USER)
    assert content(LogPaths([str(root)], str(root.parent / "managed")), root / "a.log") == "a"
    assert content(LogPaths([str(root)], str(root)), root / "a.log") == "a"
    assert (
        content(LogPaths([str(root.parent)], str(root)), root / "a.log") == "LOG_DIRECTORY_FOREIGN"
    )


def test_a_directory_of_session_logs_that_went_is_made_again(tmp_path: Path) -> None:
    managed = tmp_path / "managed"
    paths = LogPaths(managed=str(managed))
    assert content(paths, managed / "a.log") == "FILE_NOT_FOUND"
    assert managed.stat().st_mode & 0o777 == 0o700
    assert paths.problems() == []


@as_root
def test_the_programs_user_writes_session_logs_in_a_directory_of_both(tmp_path: Path) -> None:
    managed = tmp_path / "managed"
    paths = LogPaths(managed=str(managed))
    # An earlier daemon made the directory for one user.
    assert paths.make_managed()
    paths.share_with(OTHER_USER, OTHER_USER)
    assert paths.make_managed()
    status = managed.stat()
    assert (status.st_uid, status.st_gid) == (0, OTHER_USER)
    assert status.st_mode & 0o7777 == 0o2770
    (managed / "sub").mkdir()
    (managed / "sub" / "a.log").write_text("a")
    os.chown(managed / "sub", OTHER_USER, OTHER_USER)
    assert content(paths, managed / "sub" / "a.log") == "a"


@as_root
def test_a_directory_of_session_logs_that_was_changed_stays_as_it_is(tmp_path: Path) -> None:
    (managed := tmp_path / "managed").mkdir()
    managed.chmod(0o750)
    paths = LogPaths(managed=str(managed))
    paths.share_with(OTHER_USER, OTHER_USER)
    assert paths.make_managed()
    assert (managed.stat().st_gid, managed.stat().st_mode & 0o7777) == (0, 0o750)


@as_root
def test_a_link_in_its_place_opens_no_other_directory_to_the_programs(tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "managed").symlink_to(elsewhere)
    paths = LogPaths(managed=str(tmp_path / "managed"))
    paths.share_with(OTHER_USER, OTHER_USER)
    paths.make_managed()
    assert (elsewhere.stat().st_gid, elsewhere.stat().st_mode & 0o7777) == (0, 0o700)


def test_a_path_that_is_not_absolute_or_ends_with_a_slash_is_refused(
    paths: LogPaths, root: Path
) -> None:
    for path in (str(root / "a.log")[1:], f"{root}/a.log/", f"{root}/sub/../a.log", ""):
        assert content(paths, path) == "PATH_NOT_ALLOWED"


def test_a_path_of_the_largest_length_is_looked_at_and_a_longer_one_is_not(
    paths: LogPaths, root: Path
) -> None:
    longest = f"{root}/" + "é/" * MAX_PATH_BYTES
    longest = longest.encode()[:MAX_PATH_BYTES].decode(errors="ignore").rstrip("/")
    longest += "x" * (MAX_PATH_BYTES - len(longest.encode()))
    assert content(paths, longest) == "FILE_NOT_FOUND"
    assert content(paths, f"{longest}x") == "PATH_NOT_ALLOWED"
    assert content(paths, f"{root}/\udcff") == "PATH_NOT_ALLOWED"


def test_a_directory_that_cannot_be_made_is_called_unusable(tmp_path: Path) -> None:
    managed = tmp_path / "no" / "managed"
    paths = LogPaths([str(tmp_path / "gone")], str(managed))
    assert content(paths, managed / "a.log") == "LOG_DIRECTORY_UNUSABLE"
    assert paths.problems() == [
        (str(managed), "the daemon's user cannot use this log directory"),
        (str(tmp_path / "gone"), "it does not exist"),
    ]


@as_root
@pytest.mark.parametrize("is_managed", [True, False])
def test_a_directory_that_is_closed_to_us_is_called_unusable(is_managed: bool) -> None:
    with TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        closed = Path(top, "closed")
        closed.mkdir(mode=0o700)
        (closed / "a.log").write_text("a")
        paths = (
            LogPaths(managed=str(closed))
            if is_managed
            else LogPaths([str(closed)], f"{top}/managed")
        )
        # Root may enter everywhere.
        os.seteuid(OTHER_USER)
        try:
            codes = [content(paths, closed / name) for name in ("a.log", "no.log")]
            problems = dict(paths.problems())
        finally:
            os.seteuid(0)
    assert codes == ["LOG_DIRECTORY_UNUSABLE", "LOG_DIRECTORY_UNUSABLE"]
    assert str(closed) in problems


def test_callers_are_told_of_directories_that_are_short_and_printable(tmp_path: Path) -> None:
    long, odd = tmp_path / ("x" * 200) / ("y" * 60), tmp_path / "b\n"
    for directory in (long, odd, tmp_path / "managed", *(tmp_path / f"{n}" for n in range(99))):
        directory.mkdir(parents=True)
    managed = str(tmp_path / "managed")
    paths = LogPaths([str(tmp_path), str(odd), str(long), f"{tmp_path}/"], managed)
    assert paths.shown_roots() == [managed, str(tmp_path)]
    many = [str(tmp_path / f"{number}") for number in range(99)]
    assert len(LogPaths(many, managed).shown_roots()) == 16


def test_callers_are_not_told_of_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    managed, gone = tmp_path / "no" / "managed", tmp_path / "gone"
    assert LogPaths([str(tmp_path), str(gone)], str(managed)).shown_roots() == [str(tmp_path)]
