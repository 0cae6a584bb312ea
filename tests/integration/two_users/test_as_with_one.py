"""Tests of programs under one user, run again where programs are of another user than the daemon.

The chosen ones always run. ``--long`` runs every one that needs nothing but a stack.
"""

import inspect
from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest

from tests.programs import (
    test_full_screen,
    test_job_control,
    test_privilege,
    test_repl,
    test_shell_read,
    test_termination,
)
from tests.support.accounts import Account
from tests.support.stack import Stack

Case = Callable[[Stack], Awaitable[None]]
CaseOfUser = Callable[[Stack, Account], Awaitable[None]]
CHOSEN: list[Case] = [
    test_termination.test_a_program_that_ignores_sigterm_is_killed_after_its_grace,
    test_termination.test_children_that_ran_away_and_stopped_ones_are_found_and_ended,
    test_termination.test_a_child_that_keeps_the_terminal_does_not_delay_the_end,
]
OF_USER: list[CaseOfUser] = [
    test_privilege.test_sudo_under_a_daemon_without_privileges,
    test_privilege.test_an_unprivileged_daemon_knows_by_the_kernel_when_a_program_waits,
    test_privilege.test_a_process_of_root_that_outlives_the_end_is_named_in_the_result,
    test_privilege.test_programs_can_be_traced_by_their_user_and_holders_cannot,
]
MODULES = (test_full_screen, test_job_control, test_repl, test_shell_read, test_termination)


def _needs_a_stack_only(test: object) -> bool:
    return inspect.iscoroutinefunction(test) and list(inspect.signature(test).parameters) == [
        "stack"
    ]


def _cases(module: ModuleType) -> list[Case]:
    named = (getattr(module, name) for name in dir(module) if name.startswith("test_"))
    return [test for test in named if _needs_a_stack_only(test)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the cases: few, or all with ``--long``."""
    if "case" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--long")
        cases = [case for module in MODULES for case in _cases(module)] if is_long else CHOSEN
        metafunc.parametrize("case", cases, ids=_name)


def _name(test: object) -> str:
    return str(getattr(test, "__name__", test)).removeprefix("test_")


async def test_a_program_is_known_and_ended_as_with_one(two_user_stack: Stack, case: Case) -> None:
    await case(two_user_stack)


@pytest.mark.parametrize("of_user", OF_USER, ids=_name)
async def test_root_behind_sudo_is_known_and_ended_as_with_one(
    two_user_stack: Stack, sudoer: Account, of_user: CaseOfUser
) -> None:
    await of_user(two_user_stack, sudoer)
