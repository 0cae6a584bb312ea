"""Files are looked for where the host would start them: as its policy and its user of programs say.

What the daemon itself may not look at is named all the same, without a digest.
"""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import controller_client.policy.host_policy as host_policy_module
import controller_client.policy.named_files as named_files_module
from controller_client.logs.paths import LogPaths
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.named_files import Surroundings
from controller_client.program.child_environment import Account
from controller_client.protocol.messages import FilesNamed, NameFiles, StartInteractiveCmd
from controller_client.server_link.router import SessionRouter

_USER = "runner"
Look = Callable[..., Any]


def _executable(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def _paths(policy: HostPolicy, line: str, cwd: str | None = None) -> list[str]:
    return [file.path for file in policy.named_files(line, cwd)]


def _except(closed: str, may_use: Look) -> Look:
    def answer(path: Any, *args: Any, **kwargs: Any) -> bool:
        return not str(path).startswith(closed) and bool(may_use(path, *args, **kwargs))

    return answer


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return _executable(tmp_path / "deploy.sh", "echo harmless\n")


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostPolicy:
    """The policy of a host with two users; the home of programs is the test's directory."""
    users = {_USER: SimpleNamespace(uid=4711)}
    homes = {4711: Account(_USER, str(tmp_path), "/bin/sh")}
    monkeypatch.setattr(host_policy_module, "ProgramUser", SimpleNamespace(named=users.__getitem__))
    monkeypatch.setattr(host_policy_module, "account_of", homes.__getitem__)
    return HostPolicy([PolicyFile(run_as=_USER)])


@pytest.fixture
def closed(script: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Close the directory of the script to the daemon."""
    real_stat, real_open = os.stat, named_files_module.open_plain
    within = f"{script.parent}/"

    def guarded(look: Look) -> Look:
        def looked(path: Any, *args: Any, **kwargs: Any) -> Any:
            if str(path).startswith(within):
                raise PermissionError(13, "Permission denied")
            return look(path, *args, **kwargs)

        return looked

    monkeypatch.setattr(os, "stat", guarded(real_stat))
    monkeypatch.setattr(named_files_module, "open_plain", guarded(real_open))
    monkeypatch.setattr(os, "access", _except(within, os.access))
    return script


@pytest.mark.parametrize("line", ["sh deploy.sh", "./deploy.sh", "sh ~/deploy.sh", ". $HOME/*.sh"])
def test_files_are_looked_for_in_the_home_of_the_user_of_programs(
    policy: HostPolicy, script: Path, line: str
) -> None:
    approved = policy.named_files(line, None)
    assert str(script) in [file.path for file in approved]
    assert policy.why_changed(line, (None, {}), approved) is None
    script.write_text("rm -rf /srv\n")
    refused = policy.why_changed(line, (None, {}), approved)
    assert refused is not None
    assert refused.code == "CHANGED_SINCE_APPROVAL"


def test_a_user_of_programs_who_is_gone_is_no_empty_answer(policy: HostPolicy) -> None:
    policy.run_as = "nobody-any-more"
    with pytest.raises(OSError, match="nobody-any-more"):
        policy.named_files("sh deploy.sh", None)


async def test_the_daemon_answers_by_its_policy(
    policy: HostPolicy, script: Path, tmp_path: Path
) -> None:
    config = SimpleNamespace(state_dir=tmp_path, control_group=None, log_paths=LogPaths([]))
    router = SessionRouter(config, SimpleNamespace(run_as=_USER), policy)
    sent: list[FilesNamed] = []
    router._connection = SimpleNamespace(send=sent.append)
    router.on_message(NameFiles(id="q", command="sh deploy.sh"))
    await asyncio.gather(*router._namings)
    (answer,) = sent
    assert answer.files[-1].path == str(script)
    later = time.monotonic() + 60
    refusals = []
    for approved in (answer.files, answer.files[:-1]):
        start = StartInteractiveCmd(
            seq=1, session_id="s", command="sh deploy.sh", approved_files=approved
        )
        refusals.append(await router._changed_since_approval(start, later))
    assert refusals[0] is None
    assert refusals[1].code == "CHANGED_SINCE_APPROVAL"


@pytest.mark.parametrize(
    "line", ["sh deploy.sh", "./deploy.sh now", "sudo ./deploy.sh", "sh < deploy.sh"]
)
def test_a_file_that_is_closed_to_the_daemon_is_named_without_a_digest(
    policy: HostPolicy, closed: Path, line: str
) -> None:
    assert (str(closed), "") in [
        (file.path, file.sha256) for file in policy.named_files(line, None)
    ]


def test_a_pattern_in_a_directory_that_cannot_be_listed_is_named(
    policy: HostPolicy, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    monkeypatch.setattr(os, "access", lambda _path, mode, **_: mode != os.R_OK)
    assert str(script.parent / "*.sh") in _paths(policy, "sh *.sh")


def test_a_program_that_only_others_may_run_is_named(
    policy: HostPolicy, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", _except(str(script), os.access))
    assert str(script) in _paths(policy, "./deploy.sh")
    script.chmod(0o644)
    assert _paths(policy, "./deploy.sh") == []


def test_programs_are_looked_for_on_the_path_of_the_policy(tmp_path: Path) -> None:
    program = _executable(tmp_path / "tools" / "tail", "#!/bin/sh\n")
    policy = HostPolicy([PolicyFile(search_path=str(program.parent))])
    approved = policy.named_files("tail log", "/")
    own, shell, listed = (file.path for file in approved)
    assert (own, shell) == (str(program), str(Path("/bin/sh").resolve()))
    # What a listed program starts is looked up on the fixed path.
    assert Path(listed).name == "tail"
    assert policy.why_changed("tail log", ("/", {}), approved) is None
    program.write_text("#!/bin/sh\nrm -rf /srv\n")
    assert policy.why_changed("tail log", ("/", {}), approved) is not None


def test_a_line_without_a_directory_starts_where_the_policy_lets_it(
    policy: HostPolicy, tmp_path: Path
) -> None:
    script = _executable(tmp_path / "root" / "deploy.sh", "echo harmless\n")
    bounded = HostPolicy([PolicyFile(run_as=_USER, directories=(str(script.parent),))])
    assert str(script) in _paths(bounded, "sh deploy.sh")
    assert str(script) not in _paths(policy, "sh deploy.sh")


def test_without_a_home_a_line_starts_in_the_root_directory(tmp_path: Path) -> None:
    around = Surroundings(str(tmp_path / "missing"), ())
    assert (around.start(None), around.start("a")) == ("/", str(tmp_path / "missing" / "a"))
    assert Surroundings(str(tmp_path), ()).start(None) == str(tmp_path)
