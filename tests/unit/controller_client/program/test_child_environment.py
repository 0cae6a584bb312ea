"""The environment of a program holds what it needs and nothing of ours."""

import os
import pwd
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from controller_client.program.child_environment import (
    Account,
    account_of,
    build_environment,
    default_cwd,
)
from controller_client.system.process_tree import SESSION_COOKIE
from controller_client.system.start_failure import StartFailed
from tests.support.descriptors import spare_descriptors

# No host has so many users.
NO_USER = 4_000_000_000


@pytest.fixture(autouse=True)
def _no_known_accounts() -> Iterator[None]:
    """Each test looks accounts up itself, and leaves none to the next."""
    account_of.cache_clear()
    yield
    account_of.cache_clear()


def test_it_is_built_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "x")
    monkeypatch.setenv("HOME", "/somewhere/else")
    environment = build_environment("id-1", {})
    assert set(environment) == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TERM",
        SESSION_COOKIE,
    }
    assert (environment["TERM"], environment["LANG"], environment[SESSION_COOKIE]) == (
        "xterm-256color",
        "C.UTF-8",
        "id-1",
    )
    assert environment["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir


def test_additions_may_replace_harmless_defaults() -> None:
    environment = build_environment(
        "id-1", {"TERM": "dumb", "NAME": "value = with ; anything", "PYTHONUNBUFFERED": "1"}
    )
    assert (environment["TERM"], environment["NAME"], environment["PYTHONUNBUFFERED"]) == (
        "dumb",
        "value = with ; anything",
        "1",
    )


REFUSED = (
    "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV ENV IFS PATH PYTHONPATH "
    "PYTHONSTARTUP GIT_SSH_COMMAND PERL5OPT RUBYOPT"
    " NODE_OPTIONS PROMPT_COMMAND BASH_FUNC_ls%% SHELLOPTS HOLDLINE_SESSION 1X A=B A\0B"
    " GCONV_PATH GLIBC_TUNABLES MALLOC_CHECK_ LOCPATH NLSPATH RESOLV_HOST_CONF HOSTALIASES BASHOPTS"
    " CDPATH PS4 ZDOTDIR PERL5LIB RUBYLIB NODE_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS GIT_DIR"
)


@pytest.mark.parametrize("name", [*REFUSED.split(), "", "A B"])
def test_a_variable_that_chooses_code_or_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(StartFailed) as refused:
        build_environment("id-1", {name: "do-not-quote-me"})
    assert refused.value.failure.code == "ENV_NOT_ALLOWED"
    assert "do-not-quote-me" not in refused.value.failure.message


def test_a_value_with_a_nul_is_refused() -> None:
    with pytest.raises(StartFailed):
        build_environment("id-1", {"NAME": "a\0b"})


def test_without_a_home_programs_start_at_the_root() -> None:
    assert default_cwd({"HOME": "/no/such/home"}) == "/"
    assert default_cwd({"HOME": "/tmp"}) == "/tmp"


def test_on_pipes_nobody_is_shown_colours_or_pages() -> None:
    environment = build_environment("id-1", {}, "pipe")
    assert (environment["TERM"], environment["NO_COLOR"], environment["PAGER"]) == (
        "dumb",
        "1",
        "cat",
    )


def test_the_cookie_of_a_session_is_the_hosts_alone() -> None:
    with pytest.raises(StartFailed):
        build_environment("id-1", {SESSION_COOKIE: "id-2"})


def test_a_user_that_the_host_does_not_know_has_a_number_and_a_shell() -> None:
    assert account_of(NO_USER) == Account(str(NO_USER), "/", "/bin/sh")


def test_an_account_without_home_and_shell_gets_the_usual_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = SimpleNamespace(pw_name="ada", pw_dir="", pw_shell="")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    assert account_of(1) == Account("ada", "/", "/bin/sh")
    entry.pw_dir, entry.pw_shell = "/home/ada", "/bin/zsh"
    assert account_of(2) == Account("ada", "/home/ada", "/bin/zsh")


def test_a_user_that_nobody_can_look_up_is_not_called_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NO_USER)
    with spare_descriptors(0), pytest.raises(StartFailed) as refused:
        build_environment("id-1", {})
    assert refused.value.failure.code == "RESOURCE_EXHAUSTED"
    assert build_environment("id-1", {})["USER"] == str(NO_USER)
