"""Terms of secrets: the command lines that they allow, and changes that allow more."""

from uuid import uuid4

import pytest

from projects.secrets.terms import Terms, UnusableTerms

HERE, THERE = uuid4(), uuid4()
BOUND = Terms(controllers={HERE}, commands=("sudo",))


@pytest.mark.parametrize(
    ("commands", "line", "programs"),
    [
        ((), "anything | at all", []),
        (("sudo",), "sudo -k id", ["sudo"]),
        (("sudo",), "sudo a && sudo b", ["sudo"]),
        (("sudo", "su"), "sudo a; su b", ["su", "sudo"]),
        (("sudo",), "sudo a; su b", None),
        (("sudo",), "/tmp/sudo id", None),
        (("sudo",), "LANG=C sudo id", None),
        (("sudo",), "sudo id $(cat x)", None),
        (("vim",), "vim notes", None),
        (("ssh -F none web1",), "ssh -F none web1", ["ssh"]),
        (("ssh -F none web1",), "ssh  -F 'none' web1", ["ssh"]),
        (("ssh -F none web1",), "ssh -F none web2", None),
        (("ssh -F none web1",), "ssh -F none web1 -v", None),
    ],
)
def test_a_secret_is_for_the_commands_that_are_named(
    commands: tuple[str, ...], line: str, programs: list[str] | None
) -> None:
    assert Terms(commands=commands).programs_of(line) == programs


@pytest.mark.parametrize(
    ("terms", "is_wider"),
    [
        (BOUND, False),
        (Terms(commands=("sudo",)), False),
        (Terms(controllers={HERE}, commands=("sudo id",)), False),
        (Terms(controllers={HERE, THERE}, commands=("sudo",)), True),
        (Terms(controllers={THERE}, commands=("sudo",)), True),
        (Terms(any_controller=True, commands=("sudo",)), True),
        (Terms(controllers={HERE}), True),
        (Terms(controllers={HERE}, commands=("sudo", "su")), True),
        (Terms(controllers={HERE}, commands=("su",)), True),
        (Terms(controllers={HERE}, commands=("sudo",), may_echo=True), True),
    ],
)
def test_more_hosts_other_commands_and_echo_are_wider(terms: Terms, is_wider: bool) -> None:
    assert terms.widen(BOUND) is is_wider


def test_from_everything_nothing_is_wider_but_echo() -> None:
    every = Terms(any_controller=True)
    assert not BOUND.widen(every)
    assert not every.widen(every)
    assert Terms(any_controller=True, commands=("sudo",), may_echo=True).widen(every)


@pytest.mark.parametrize(
    ("earlier", "terms", "is_wider"),
    [
        # Each way to narrow, alone and back again.
        (BOUND, Terms(commands=("sudo",)), False),
        (Terms(commands=("sudo",)), BOUND, True),
        (Terms(any_controller=True), Terms(controllers={HERE}), False),
        (Terms(controllers={HERE}), Terms(any_controller=True), True),
        (Terms(controllers={HERE, THERE}), Terms(controllers={THERE}), False),
        (Terms(commands=("sudo", "su")), Terms(commands=("su",)), False),
        (Terms(commands=("su",)), Terms(commands=("su", "su -")), False),
        (Terms(commands=("su -",)), Terms(commands=("su",)), True),
        (Terms(commands=("su -",)), Terms(commands=("su - ada",)), True),
        (Terms(commands=("/bin/su",)), Terms(commands=("su",)), True),
        (Terms(commands=("su",)), Terms(commands=("/bin/su",)), True),
        (Terms(commands=("su",), may_echo=True), Terms(commands=("su",)), False),
        (Terms(commands=("su",), may_echo=True), Terms(commands=("su -",), may_echo=True), False),
        # May be typed nowhere where it is shown, whatever its row of an earlier version says.
        (Terms(may_echo=True), Terms(commands=("cat",), may_echo=True), True),
        (Terms(may_echo=True), Terms(commands=("cat",)), False),
        # Narrower in one thing makes up for nothing that is wider in another.
        (Terms(any_controller=True, commands=("su",)), Terms(controllers={HERE}), True),
        (Terms(controllers={HERE}), Terms(controllers={THERE}, commands=("su",)), True),
    ],
)
def test_who_does_not_know_a_value_can_only_narrow(
    earlier: Terms, terms: Terms, is_wider: bool
) -> None:
    assert terms.widen(earlier) is is_wider


def test_one_line_of_a_program_is_not_another() -> None:
    assert Terms(commands=("ssh web2",)).widen(Terms(commands=("ssh web1",)))
    assert Terms(commands=("ssh",)).widen(Terms(commands=("ssh web1",)))


@pytest.mark.parametrize(
    "terms",
    [
        Terms(may_echo=True),
        Terms(commands=("python3",)),
        Terms(commands=("/usr/bin/bash",)),
        Terms(commands=("vim",)),
        Terms(commands=("/lib64/ld-linux-x86-64.so.2",)),
        Terms(commands=("bash -c 'sudo id'",)),
        Terms(commands=("./own",)),
        Terms(commands=("sudo a && sudo b",)),
        Terms(commands=("A=b sudo",)),
        Terms(commands=("",)),
        Terms(commands=("sudo",) * 33),
    ],
)
def test_terms_that_bind_a_secret_to_nothing_are_refused(terms: Terms) -> None:
    with pytest.raises(UnusableTerms):
        terms.check()
