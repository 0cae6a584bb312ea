"""Control groups: our own, its limits, and what is left to the limits of processes."""

from pathlib import Path

import pytest

from controller_client.protocol.messages import ResourceLimits
from controller_client.system.control_group import (
    SessionGroup,
    delegated_root,
    enable_limits,
    is_usable,
)
from tests.support.descriptors import spare_descriptors

LIMITS = ResourceLimits(processes=5, memory_bytes=1000, open_files=9)


def _proc(tmp_path: Path, own: str, mount: Path | None) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(f"9:name=systemd:/x\n0::{own}\n")
    line = f"30 24 0:26 / {mount} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n" if mount else ""
    (proc / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/root rw\n" + line)
    return proc


def _group(path: Path, *files: str) -> Path:
    path.mkdir(parents=True)
    for name in ("cgroup.procs", "cgroup.subtree_control", *files):
        (path / name).write_text("")
    return path


def test_a_group_nobody_marked_as_delegated_is_left_alone(tmp_path: Path) -> None:
    mount = _group(tmp_path / "cgroup")
    service = _group(mount / "holdline.service")
    assert is_usable(service)
    assert delegated_root(_proc(tmp_path, "/holdline.service/daemon", mount)) is None


@pytest.mark.parametrize("own", ["/", "/user.slice/session-1.scope", "/holdline.service"])
def test_a_daemon_outside_the_leaf_for_it_has_no_group(tmp_path: Path, own: str) -> None:
    assert delegated_root(_proc(tmp_path, own, _group(tmp_path / "cgroup"))) is None


def test_a_host_without_control_groups_has_none(tmp_path: Path) -> None:
    assert delegated_root(_proc(tmp_path, "/a/daemon", None)) is None
    assert delegated_root(tmp_path / "nothing") is None
    assert not is_usable(tmp_path / "nothing")


def test_the_group_above_the_daemons_leaf_is_ours_if_it_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _group(tmp_path / "cgroup" / "holdline.service")
    marks = {(str(service), "user.delegate"): b"1"}

    def getxattr(path: Path, name: str) -> bytes:
        try:
            return marks[str(path), name]
        except KeyError:
            raise OSError(61, "no such attribute") from None

    monkeypatch.setattr("os.getxattr", getxattr)
    assert (
        delegated_root(_proc(tmp_path, "/holdline.service/daemon", tmp_path / "cgroup")) == service
    )


def test_limits_are_enabled_as_far_as_they_can_be(tmp_path: Path) -> None:
    root = _group(tmp_path / "root")
    enable_limits(root)
    assert (root / "cgroup.subtree_control").read_text() == "+memory"
    enable_limits(tmp_path / "nothing")


def test_a_group_holds_what_it_can_and_leaves_the_rest_to_processes(tmp_path: Path) -> None:
    group = SessionGroup(
        _group(tmp_path / "session-1", "pids.max", "memory.max", "memory.swap.max")
    )
    group.create(LIMITS)
    written = {
        name: (group.path / name).read_text()
        for name in ("pids.max", "memory.max", "memory.swap.max")
    }
    assert written == {"pids.max": "5", "memory.max": "1000", "memory.swap.max": "0"}
    assert group.left_over(LIMITS) == ResourceLimits(open_files=9)


def test_a_group_without_controllers_leaves_all_limits_to_processes(tmp_path: Path) -> None:
    group = SessionGroup.of(tmp_path, "id-1")
    group.create(LIMITS)
    assert group.path == tmp_path / "session-id-1"
    assert group.left_over(LIMITS) == LIMITS
    assert (group.pids(), group.open_members()) == ([], None)
    group.remove()
    group.remove()
    assert not group.path.exists()


def test_a_session_without_a_limit_of_memory_may_swap(tmp_path: Path) -> None:
    group = SessionGroup(_group(tmp_path / "session-1", "pids.max", "memory.swap.max"))
    group.create(ResourceLimits(processes=5))
    assert (group.path / "pids.max").read_text() == "5"
    assert (group.path / "memory.swap.max").read_text() == ""
    assert group.left_over(LIMITS) == ResourceLimits(memory_bytes=1000, open_files=9)


def test_a_group_tells_its_processes_and_asks_the_kernel_to_kill_them(tmp_path: Path) -> None:
    group = SessionGroup(_group(tmp_path / "session-1", "cgroup.kill"))
    (group.path / "cgroup.procs").write_text("12\n4711\n")
    assert group.pids() == [12, 4711]
    group.kill()
    assert (group.path / "cgroup.kill").read_text() == "1"
    group.remove()
    assert group.exists(), "a group with a process in it stays"


def test_a_group_that_is_gone_has_no_process(tmp_path: Path) -> None:
    group = SessionGroup(tmp_path / "gone")
    group.kill()
    group.remove()
    assert (group.exists(), group.pids(), group.open_members()) == (False, [], None)


def test_a_group_that_cannot_be_looked_at_now_is_not_called_empty(tmp_path: Path) -> None:
    group = SessionGroup(_group(tmp_path / "session-1"))
    with spare_descriptors(0):
        with pytest.raises(OSError, match="Too many open files"):
            group.pids()
        with pytest.raises(OSError, match="Too many open files"):
            group.open_members()


def test_a_group_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        SessionGroup(tmp_path / "file" / "session-1").create(LIMITS)


def test_a_daemon_that_cannot_look_for_its_group_does_not_go_on_without(tmp_path: Path) -> None:
    proc = _proc(tmp_path, "/a/daemon", None)
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        delegated_root(proc)
    (proc / "cgroup").write_text("9:name=systemd:/a/daemon\n")
    assert delegated_root(proc) is None


@pytest.mark.parametrize(
    ("mark", "value", "is_ours"),
    [
        ("user.delegate", b"1", True),
        ("trusted.delegate", b"1", True),
        ("user.delegate", b"0", False),
        ("user.other", b"1", False),
    ],
)
def test_only_the_marks_of_a_delegation_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, value: bytes, *, is_ours: bool
) -> None:
    service = _group(tmp_path / "cgroup" / "holdline.service")

    def getxattr(_: Path, name: str) -> bytes:
        if name == mark:
            return value
        raise OSError(61, "no such attribute")

    monkeypatch.setattr("os.getxattr", getxattr)
    proc = _proc(tmp_path, "/holdline.service/daemon", tmp_path / "cgroup")
    assert delegated_root(proc) == (service if is_ours else None)
    (service / "cgroup.procs").unlink()
    assert delegated_root(proc) is None
