"""controller.toml gives what the command line leaves open, and says what is wrong with it."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from controller_client.cli import main
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import (
    KEYS,
    LIMITS,
    MOST,
    OFF,
    find_file,
    read_file,
    user_file,
)
from controller_client.protocol.messages import ResourceLimits

CREDENTIAL = "ctl_abc123_" + "s" * 43
EVERYTHING = """
server = "https://holdline.example"
labels = ["gpu", "rack:7"]
state_dir = "/var/lib/elsewhere"
policy = "/etc/holdline/other.toml"
session_logs = "/srv/sessions"
log_roots = ["/var/log", "/srv/log"]
control_group = "off"
ca_file = "/etc/ssl/own.pem"
proxy = "http://proxy:3128"
allow_root = true
log_level = "debug"
[limits]
processes = 3
memory_mib = 64
file_size_mib = 1
open_files = 20
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def test_each_key_is_an_option_of_the_command_line(tmp_path: Path) -> None:
    assert read_file(_file(tmp_path, EVERYTHING)) == {
        "server": "https://holdline.example",
        "label": ["gpu", "rack:7"],
        "state_dir": Path("/var/lib/elsewhere"),
        "policy": Path("/etc/holdline/other.toml"),
        "session_logs": "/srv/sessions",
        "log_root": ["/var/log", "/srv/log"],
        "control_group": "off",
        "ca_file": Path("/etc/ssl/own.pem"),
        "proxy": "http://proxy:3128",
        "allow_root": True,
        "log_level": "debug",
        "max_processes": 3,
        "max_memory": 64 * 1024 * 1024,
        "max_file_size": 1024 * 1024,
        "max_open_files": 20,
    }


def test_the_example_of_the_documentation_has_every_key(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/howto/run-a-controller.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    options = {option for option, _ in (*KEYS.values(), *LIMITS.values())}
    assert read_file(_file(tmp_path, example)).keys() == options


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sever = "x"', "no key sever. Did you mean server?"),
        ("[limits]\nmemory = 3", "no key limits.memory. Did you mean limits.memory_mib?"),
        ("zzz = 1", "It may have server, labels, state_dir"),
        ("server = 3", "server has to be a text"),
        ('policy = "here.toml"', "policy has to be an absolute path"),
        ('log_roots = "/var/log"', "log_roots has to be a list"),
        ("allow_root = 1", "allow_root has to be true or false"),
        ('log_level = "loud"', "log_level has to be one of debug"),
        ('labels = "gpu"', "labels has to be a list of texts"),
        ('labels = ["gpu", ""]', "labels has to be a text"),
        ('log_roots = ["/var/log", "log"]', "log_roots has to be an absolute path"),
        ("[limits]\nprocesses = true", "limits.processes has to be a whole number"),
        ("[limits]\nprocesses = 0", "limits.processes has to be a whole number from 1"),
        ("[limits]\nprocesses = -1", "limits.processes has to be a whole number"),
        ("[limits]\nprocesses = 1.5", "limits.processes has to be a whole number"),
        ('[limits]\nprocesses = "many"', "limits.processes has to be a whole number"),
        (f"[limits]\nmemory_mib = {1 << 40}", "limits.memory_mib has to be a whole number"),
        ("limits = 3", "limits has to be a table"),
        ("[[limits]]\nprocesses = 3", "limits has to be a table"),
        ("[limits.processes]\nmost = 3", "limits.processes has to be a whole number"),
        ("server.name = 'x'", "server has to be a text"),
        ("Server = 'x'", "no key Server. Did you mean server?"),
        ("server = ''", "server has to be a text"),
        ("labels = ['gpu', 7]", "labels has to be a text"),
        ("state_dir = '~/state'", "state_dir has to be an absolute path"),
        ("log_roots = ['/var/log', 'log']", "log_roots has to be an absolute path"),
        ("log_level = []", "log_level has to be one of debug"),
        ("server = 'a'\nserver = 'b'", "cannot be used"),
        ("server = ", "cannot be used"),
        ("server = " + "[" * 20_000, "cannot be used"),
        ("\udcff", "cannot be used"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(tmp_path: Path, text: str, said: str) -> None:
    path = _file(tmp_path, "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError) as refused:
        read_file(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("key", sorted(set(KEYS) - {"allow_root", "log_level"}))
def test_no_name_has_a_nul(tmp_path: Path, key: str) -> None:
    name = "['/a\\u0000b']" if key in {"labels", "log_roots"} else "'/a\\u0000b'"
    text = f"{key} = {name}".replace("'", '"')
    with pytest.raises(ConfigurationError, match=f"{key} has to be a text, without a NUL"):
        read_file(_file(tmp_path, text))


@pytest.mark.parametrize("key", LIMITS)
@pytest.mark.parametrize(("number", "is_right"), [(0, False), (1, True), (MOST, True)])
def test_a_limit_has_its_bounds_in_the_file(
    tmp_path: Path, key: str, number: int, is_right: bool
) -> None:
    path = _file(tmp_path, f"[limits]\n{key} = {number}")
    if is_right:
        (found,) = read_file(path).values()
        # What is in the file goes to the host's processes in a message.
        limits = ResourceLimits(memory_bytes=cast("int", found))
        assert msgspec.json.decode(msgspec.json.encode(limits), type=ResourceLimits) == limits
        path = _file(tmp_path, f"[limits]\n{key} = {MOST + 1}")
    with pytest.raises(ConfigurationError, match=f"limits.{key} has to be a whole number from 1"):
        read_file(path)


def test_a_file_larger_than_any_configuration_is_refused(tmp_path: Path) -> None:
    largest = _file(tmp_path, "#" * (1 << 20))
    assert read_file(largest) == {}
    with largest.open("a") as file:
        file.write("#")
    with pytest.raises(ConfigurationError, match="larger than"):
        read_file(largest)


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "controller.toml")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_file(tmp_path / "controller.toml")


def test_a_link_to_a_file_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(_file(tmp_path, ""))
    for name in ("link", "missing"):
        with pytest.raises(ConfigurationError, match="cannot open the configuration file"):
            read_file(tmp_path / name)


def test_the_users_own_file_is_below_home_if_no_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert user_file() == tmp_path / ".config/holdline/controller.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    assert user_file() == tmp_path / ".config/holdline/controller.toml"


def test_the_hosts_file_comes_before_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "holdline").mkdir()
    own = _file(tmp_path / "holdline", "")
    system = _file(tmp_path, "")
    monkeypatch.setattr("controller_client.config.file.SYSTEM_FILE", system)
    assert find_file(None) == system
    system.unlink()
    assert find_file(None) == own


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, "")
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match="chmod go-w"):
        read_file(path)


@pytest.mark.parametrize("option", ["processes", "memory", "file-size", "open-files"])
@pytest.mark.parametrize("number", ["0", "-1", "1.5", "", "all", str(MOST + 1), "9" * 5000])
def test_a_limit_has_the_same_bounds_on_the_command_line(
    option: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["run", f"--max-{option}={number}"])
    told = capsys.readouterr().err
    assert (exited.value.code, "is not a whole number from 1 to" in told) == (64, True)
    assert len(told) < 2000


def test_a_users_own_file_is_found_and_off_stands_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("controller_client.config.file.SYSTEM_FILE", tmp_path / "none")
    assert find_file(None) is None
    (tmp_path / "holdline").mkdir()
    own = _file(tmp_path / "holdline", "")
    assert find_file(None) == own
    assert find_file(tmp_path / "named") == tmp_path / "named"
    assert find_file(OFF) is None


def test_an_option_comes_before_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    text = f'server = "ws://10.0.0.1/"\nstate_dir = "{state}"\nallow_root = true'
    run = ["run", "--config", str(_file(tmp_path, text))]
    assert main(run) == 78
    assert "ws:// is unencrypted" in capsys.readouterr().err
    assert main([*run, "--server", "ws://127.0.0.1:9/"]) == 78
    assert f"no credential file {state}/credential" in capsys.readouterr().err
