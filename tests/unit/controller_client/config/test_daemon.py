"""The daemon checks its options and files before anything starts."""

import os
from pathlib import Path

import pytest
from websockets.proxy import parse_proxy

from controller_client.config import places
from controller_client.config.daemon import check_user, load_config
from controller_client.config.errors import ConfigurationError
from controller_client.config.places import (
    default_state_dir,
    prepare_state_dir,
    read_credential,
)
from controller_client.config.server_address import DIRECT, check_server_url, check_way
from controller_client.protocol.messages import ResourceLimits

CREDENTIAL = "ctl_abc123_" + "s" * 43


@pytest.fixture
def credential_file(tmp_path: Path) -> Path:
    path = tmp_path / "credential"
    path.write_text(CREDENTIAL + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "url",
    [
        "wss://holdline.example/ws/controller/",
        "ws://127.0.0.1:8000/ws/controller/",
        "ws://127.9.9.9/",
        "ws://[::1]:8000/ws/controller/",
        "ws://localhost/ws/controller/",
    ],
)
def test_a_server_reached_over_tls_or_loopback_is_accepted(url: str) -> None:
    assert check_server_url(url) == url


@pytest.mark.parametrize(
    ("written", "socket"),
    [
        ("https://holdline.example", "wss://holdline.example/ws/controller/"),
        ("https://holdline.example:8443/", "wss://holdline.example:8443/ws/controller/"),
        ("https://holdline.example/there/ws/", "wss://holdline.example/there/ws/"),
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws/controller/"),
    ],
)
def test_a_web_address_stands_for_the_address_of_its_socket(written: str, socket: str) -> None:
    assert check_server_url(written) == socket


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy:3128",
        "https://p:1",
        "socks5://p:1",
        "http://p",
        "http://:1",
        "http://p..q:1",
        "http://ada:word@p:1/path",
        "http://ada:word@p:1?query",
        "http://ada:1#word@p:1",
        "http://ada@p:1",
        "http://ada:%ff@p:1",
        "http://p q:1",
        "http://p\0:1",
        "http://p:65536",
    ],
)
def test_a_proxy_that_is_not_understood_is_refused_unrepeated(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="--proxy must look like") as refused:
        check_way(None, proxy)
    assert proxy not in str(refused.value)


@pytest.mark.parametrize("proxy", ["http://p:1", "http://p:1/", "http://ada:w%23rd@[::1]:1"])
def test_a_proxy_that_is_understood_is_one_that_the_connection_can_use(proxy: str) -> None:
    assert check_way(None, proxy).proxy == proxy
    assert parse_proxy(proxy).host in {"p", "::1"}


def test_a_proxy_without_a_text_is_none_and_no_proxy_is_shown() -> None:
    assert check_way(None, "") == check_way(None, None) == DIRECT
    assert "w%23rd" not in repr(check_way(None, "http://ada:w%23rd@p:1"))


def test_a_file_of_authorities_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--ca-file"):
        check_way(tmp_path / "none", None)


@pytest.mark.parametrize(
    "url",
    [
        "ws://holdline.example/ws/controller/",
        "ws://10.0.0.1/",
        "ws://0.0.0.0/",
        "ws://127.0.0.1.evil.example/",
        "ws://localhost.evil.example/",
        "http://192.0.2.1/",
        "http://127.0.0.1.evil.example/",
        "127.0.0.1:8000",
        "ftp://holdline.example/ws/controller/",
        "file:///etc/passwd",
        "WS://holdline.example/",
        "wss://",
        "wss://host:port/",
        "wss://[::1/",
        "wss://secret..example/",
        f"wss://{'secret' * 11}.example/",
        "wss://user:secret@host/",
        "wss://host/?token=secret",
        "wss://host/#x",
        "wss://@host/",
        "wss://a secret/",
        "wss://secret\0/",
        "wss://secret\x7f/",
        "wss://secret\u00a0/",
        "wss://host/\u00e9secret/",
        "wss://host/a secret/",
        "https://host/secret\x1b/",
        "wss://host:0x50/",
        "wss://host:65536/",
        "file:///secret",
        "",
    ],
)
def test_a_server_url_that_exposes_the_credential_is_refused_unrepeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_server_url(url)
    assert "secret" not in str(refused.value)


def test_a_credential_is_read_without_its_newline(credential_file: Path) -> None:
    assert read_credential(credential_file) == CREDENTIAL


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o666, 0o601])
def test_a_credential_file_open_to_others_is_refused(credential_file: Path, mode: int) -> None:
    credential_file.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_credential(credential_file)


@pytest.mark.parametrize(
    "content",
    ["", "hl_abc_def", "ctl_abc", "ctl_a_b\nctl_c_d\n", "ctl_a_b c", "ctl_é_b", "\xff\xfe"],
)
def test_a_malformed_credential_file_is_refused_with_the_expected_format(
    credential_file: Path, content: str
) -> None:
    credential_file.write_text(content, "utf-8")
    with pytest.raises(ConfigurationError, match="ctl_<keyid>_<secret>"):
        read_credential(credential_file)


def test_a_credential_path_that_is_not_a_regular_file_is_refused(
    tmp_path: Path, credential_file: Path
) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(credential_file)
    os.mkfifo(pipe, 0o600)
    for path in (tmp_path / "missing", link, pipe, tmp_path):
        with pytest.raises(ConfigurationError):
            read_credential(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_another_user_are_refused(tmp_path: Path, credential_file: Path) -> None:
    os.chown(credential_file, 12345, 12345)
    with pytest.raises(ConfigurationError, match="another user"):
        read_credential(credential_file)
    state_dir = tmp_path / "state"
    state_dir.mkdir(0o700)
    os.chown(state_dir, 12345, 12345)
    with pytest.raises(ConfigurationError, match="another user"):
        prepare_state_dir(state_dir)


def test_the_state_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    state_dir = prepare_state_dir(tmp_path / "a" / "state")
    assert state_dir.stat().st_mode & 0o777 == 0o700
    assert prepare_state_dir(state_dir) == state_dir


def test_a_state_directory_that_others_can_reach_or_redirect_is_refused(tmp_path: Path) -> None:
    shared, link, file = tmp_path / "shared", tmp_path / "link", tmp_path / "file"
    shared.mkdir()
    shared.chmod(0o755)
    link.symlink_to(prepare_state_dir(tmp_path / "own"))
    file.touch()
    with pytest.raises(ConfigurationError, match="chmod 700"):
        prepare_state_dir(shared)
    with pytest.raises(ConfigurationError, match="is a link or a file"):
        prepare_state_dir(link)
    for path in (file, file / "below"):
        with pytest.raises(ConfigurationError, match="cannot use the state directory"):
            prepare_state_dir(path)


def test_the_state_directory_is_the_services_own_or_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = tmp_path / "service"
    monkeypatch.setattr(places, "SERVICE_STATE_DIR", service)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_state_dir() == tmp_path / ".local/state/holdline-controller"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    assert default_state_dir() == tmp_path / "states/holdline-controller"
    service.mkdir(mode=0o700)
    assert default_state_dir() == prepare_state_dir(None) == service
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    assert default_state_dir() == tmp_path / "states/holdline-controller"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_refused_root_is_told_that_a_policy_may_name_another_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ConfigurationError, match="unless the policy names another user"):
        check_user(allow_root=False)


def test_root_needs_to_be_allowed() -> None:
    with pytest.raises(ConfigurationError, match="--allow-root"):
        check_user(allow_root=False)
    check_user(allow_root=True)


def test_a_configuration_shows_everything_but_its_credential(
    tmp_path: Path, credential_file: Path
) -> None:
    config = load_config(
        server="ws://127.0.0.1/",
        credential_file=credential_file,
        state_dir=tmp_path / "state",
    )
    assert "127.0.0.1" in repr(config)
    assert "s" * 43 not in repr(config)


def test_a_directory_that_can_have_no_logs_is_refused(
    tmp_path: Path, credential_file: Path
) -> None:
    with pytest.raises(ConfigurationError, match="log directory"):
        load_config(
            server="ws://127.0.0.1/",
            credential_file=credential_file,
            state_dir=tmp_path / "state",
            log_roots=["/proc"],
        )


def test_each_limit_of_the_host_has_its_option(tmp_path: Path, credential_file: Path) -> None:
    config = load_config(
        server="ws://127.0.0.1/",
        credential_file=credential_file,
        state_dir=tmp_path / "state",
        max_processes=1,
        max_memory_bytes=2,
        max_file_size_bytes=3,
        max_open_files=4,
    )
    assert config.limits == ResourceLimits(
        processes=1, memory_bytes=2, file_size_bytes=3, open_files=4
    )


def test_authorities_in_another_form_than_pem_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"\x30\x82\x05\x10\xff"):
        (tmp_path / "ca.cer").write_bytes(content)
        with pytest.raises(ConfigurationError, match="PEM"):
            check_way(tmp_path / "ca.cer", None)
