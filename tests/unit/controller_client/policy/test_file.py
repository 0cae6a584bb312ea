"""Policy files: what they may say, and whose they may be."""

import os
import pwd
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.policy import file as policy_file
from controller_client.policy.file import (
    PolicyFile,
    policy_paths,
    read_policy_file,
    user_of_programs,
)
from controller_client.protocol.messages import ResourceLimits
from tests.support.accounts import requires_root

FULL = """
[commands]
allowed = ["echo", "python3:shell"]
denied = ["reboot"]
search_path = ["/usr/bin", "/bin"]
[directories]
allowed = ["/srv/work"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(FULL)
    path.chmod(0o644)
    return path


def test_a_file_says_what_is_allowed(file: Path) -> None:
    policy = read_policy_file(file)
    assert policy.allowlist.programs == {"echo": False, "python3": True}
    assert policy == PolicyFile(
        policy.allowlist, frozenset({"reboot"}), "/usr/bin:/bin", ("/srv/work",)
    )


def test_a_file_names_users_and_limits(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    monkeypatch.setattr(os, "geteuid", lambda: nobody)
    file.write_text(
        "[users]\nallowed = ['nobody', 'root']\n[limits]\nprocesses = 64\nopen_files = 256\n"
    )
    policy = read_policy_file(file)
    assert (policy.users, policy.keeps_user) == (frozenset({"nobody", "root"}), True)
    assert policy.limits == ResourceLimits(processes=64, open_files=256)
    file.write_text("[users]\nmay_change = true\n")
    assert not read_policy_file(file).keeps_user
    # A policy that this daemon cannot enforce is refused.
    file.write_text("[users]\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ConfigurationError, match="can become any user"):
        read_policy_file(file)
    monkeypatch.setattr(os, "geteuid", lambda: nobody)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ConfigurationError, match="only Linux"):
        read_policy_file(file)


def test_programs_run_as_one_other_user_if_the_daemon_may_become_that_user(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[users]\nrun_as = 'nobody'\n")
    monkeypatch.setattr(policy_file, "why_impossible", lambda: None)
    policy = read_policy_file(file)
    assert (policy.run_as, policy.keeps_user) == ("nobody", True)
    assert user_of_programs([PolicyFile(), policy, policy]) == "nobody"
    assert user_of_programs([PolicyFile()]) is None
    with pytest.raises(ConfigurationError, match="daemon and nobody"):
        user_of_programs([policy, PolicyFile(run_as="daemon")])
    monkeypatch.setattr(os, "geteuid", lambda: pwd.getpwnam("nobody").pw_uid)
    with pytest.raises(ConfigurationError, match="the daemon's own"):
        read_policy_file(file)
    monkeypatch.undo()
    monkeypatch.setattr(policy_file, "why_impossible", lambda: "it needs CAP_SETUID")
    with pytest.raises(ConfigurationError, match="needs CAP_SETUID"):
        read_policy_file(file)


def test_an_empty_file_allows_everything(file: Path) -> None:
    file.write_text("")
    policy = read_policy_file(file)
    assert policy == PolicyFile()
    assert policy.digest == sha256(b"").hexdigest()[:12]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[commands]\nallow = ['echo']", "nothing else"),
        ("[programs]\nallowed = ['echo']", "nothing else"),
        ("commands = 1", "nothing else"),
        ("[commands]\nallowed = 'echo'", "list of texts"),
        ("[commands]\nallowed = [1]", "list of texts"),
        ("[commands]\nallowed = ['./echo']", "absolute"),
        ("[commands]\nallowed = ['echo', '*']", "stands alone"),
        ("[commands]\ndenied = ['reboot']", "denied without allowed"),
        ("[commands]\nallowed = ['*']\ndenied = ['reboot']", "denied without allowed"),
        ("[commands]\nallowed = ['echo']\nsearch_path = ['bin']", "absolute paths"),
        ("[commands]\nallowed = ['echo']\nsearch_path = []", "has to name a directory"),
        ("[commands]\nallowed = ['echo']\nsearch_path = '/usr/bin'", "list of texts"),
        ("[commands]\nallowed = ['echo']\nsearch_path = ['/usr/bin:.']", "absolute paths"),
        ("[commands]\nallowed = ['echo']\nallowed = ['id']", "cannot be used"),
        ("[commands]\nallowed = ['echo']\ndenied = ['a b']", "no program"),
        ("[commands]\nallowed = ['echo', 'echo:shell:shell']", "no program"),
        ("[directories]\nallowed = ['work']", "absolute paths"),
        ("[users]\nallowed = []", "not in allowed"),
        ("[commands]\nallowed = ['echo']\nsearch_path = [\"/a\\u0000b\"]", "absolute paths"),
        ('[directories]\nallowed = ["/a\\u0000b"]', "absolute paths"),
        ("[users]\nallowed = ['no such user here']", "no user 'no such user here'"),
        ("[users]\nallowed = ['nobody']\nmay_change = true", "not in allowed"),
        ("[users]\nmay_change = 1", "true or false"),
        ("[users]\nmay_change = 'no'", "true or false"),
        ("[users]\nrun_as = ['nobody']", "run_as has to be a text"),
        ("[users]\nrun_as = ''", "run_as has to be a text"),
        ("[users]\nrun_as = 'no such user here'", "no user 'no such user here'"),
        ("[users]\nrun_as = 'root'", "another user than root"),
        ("[limits]\nprocesses = 0", "from 1 on"),
        ("[limits]\nprocesses = true", "from 1 on"),
        ("[limits]\nmemory_bytes = '1G'", "from 1 on"),
        ("[limits]\ncore = 1", "nothing else"),
        ("[limits]\nprocesses = 1.5", "from 1 on"),
        ("[limits]\nprocesses = -1", "from 1 on"),
        (f"[limits]\nmemory_bytes = {1 << 62}", "from 1 on"),
        ("[commands]\nallowed = ['echo']\nsearch_path = ['/bin:/tmp']", "absolute paths"),
        ("[directories]\nallowed = ['/srv', '']", "absolute paths"),
        ("[commands]\nallowed = ['echo']\ndenied = ['./reboot']", "absolute"),
        ("[commands", "cannot be used"),
        ("limits = " + "[" * 20_000, "cannot be used"),
        ("\xff", "cannot be used"),
    ],
)
def test_a_file_with_a_mistake_stops_the_daemon(file: Path, text: str, said: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=said):
        read_policy_file(file)


def test_an_empty_list_allows_nothing_and_not_everything(file: Path) -> None:
    file.write_text("[commands]\nallowed = []\n[directories]\nallowed = []\n")
    policy = read_policy_file(file)
    assert (policy.allowlist.programs, policy.directories) == ({}, ())


def test_a_pipe_in_the_place_of_a_policy_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.toml", 0o644)
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_policy_file(tmp_path / "policy.toml")


def test_a_policy_that_is_too_long_to_be_read_whole_is_refused(file: Path) -> None:
    file.write_text(FULL + "#" * (1 << 20))
    with pytest.raises(ConfigurationError, match="larger than"):
        read_policy_file(file)


def test_a_usual_policy_that_cannot_be_looked_for_is_not_taken_for_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setattr(policy_file, "SYSTEM_FILE", tmp_path / "loop/policy.toml")
    with pytest.raises(ConfigurationError, match="cannot tell whether there is a policy file"):
        policy_paths(None, tmp_path)


def test_a_usual_policy_that_leads_nowhere_stops_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_file, "SYSTEM_FILE", tmp_path / "none.toml")
    (tmp_path / "policy.toml").symlink_to("nowhere")
    (path,) = policy_paths(None, tmp_path)
    with pytest.raises(ConfigurationError, match="cannot open"):
        read_policy_file(path)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod go-w"):
        read_policy_file(file)


def test_a_link_a_directory_and_a_missing_file_are_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    for path in (tmp_path / "link", tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigurationError):
            read_policy_file(path)


def test_a_file_in_a_directory_that_anybody_can_write_is_refused(
    file: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match="replace it"):
        read_policy_file(file)
    tmp_path.chmod(0o1777)
    assert read_policy_file(file).directories


def test_a_file_of_another_user_is_refused(file: Path) -> None:
    requires_root()
    os.chown(file, 12345, 12345)
    with pytest.raises(ConfigurationError, match="another user"):
        read_policy_file(file)


def test_a_named_file_stands_alone_and_otherwise_every_usual_one_counts(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setattr(policy_file, "SYSTEM_FILE", tmp_path / "none.toml")
    assert policy_paths(None, state) == []
    (state / "policy.toml").touch()
    monkeypatch.setattr(policy_file, "SYSTEM_FILE", file)
    assert policy_paths(None, state) == [file, state / "policy.toml"]
    assert policy_paths(file, state) == [file]
    missing = tmp_path / "missing"
    assert policy_paths(missing, state) == [missing]
    with pytest.raises(ConfigurationError):
        read_policy_file(missing)
