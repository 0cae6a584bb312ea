"""The environment of a program holds what it needs and nothing of ours."""

import os
import pwd

import pytest

from controller_client.program.child_environment import build_environment, default_cwd
from controller_client.system.process_tree import SESSION_COOKIE
from controller_client.system.start_failure import StartFailed


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
