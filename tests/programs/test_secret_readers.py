"""A stored secret for a program is typed to that program only, by an ordinary user's daemon.

Each attempt to get the secret to another program has a control: in the same way, the right program
gets it.
"""

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.programs.conftest import FarHost
from tests.support.accounts import Account, ordinary_user, requires
from tests.support.management import manage_well
from tests.support.mcp.client import Caller, Terminal
from tests.support.processes import open_descriptors
from tests.support.stack import Stack
from tests.support.waiting import await_until

# Asks as sudo does, and shows its input in a form that no mask knows.
_ASK = """#!/usr/bin/python3
import getpass
with open("/dev/tty", "w") as terminal:
    print("own program", file=terminal, flush=True)
    print(getpass.getpass("[sudo] password for ada: ")[::-1], file=terminal, flush=True)
"""


# Reads, on every terminal of its user that it can open by name, before the program there does. The
# kernel shows its open files to root alone.
_THIEF = r"""#!/usr/bin/python3
import ctypes, os, pathlib, sys, threading
ctypes.CDLL(None).prctl(4, 0)
names = {f"/dev/pts/{number}" for number in range(512)} - {os.ttyname(0)}
def read(terminal):
    while typed := os.read(terminal, 500):
        with open(sys.argv[1], "ab") as kept:
            kept.write(typed)
print("it looks", flush=True)
while names:
    for name in sorted(names):
        try:
            if os.stat(name).st_uid == os.getuid() and sys.argv[2:]:
                os.chmod(name, 0o600)
            terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            continue
        names.remove(name)
        for _ in range(6):
            threading.Thread(target=read, args=(terminal,), daemon=True).start()
"""


@pytest.fixture(scope="module")
def own_program(sudoer: Account) -> str:
    """Return a program that belongs to the ordinary user."""
    program = sudoer.home / "ask"
    program.write_text(_ASK)
    program.chmod(0o755)
    return str(program)


def _openssl_modules() -> Path:
    told = subprocess.run(
        ["openssl", "version", "-m"], capture_output=True, text=True, check=True
    ).stdout
    return Path(told.split('"')[1])


@contextmanager
def _sudoers(account: Account, defaults: str) -> Iterator[None]:
    """Set more defaults of sudo for one account, for a while."""
    rules = Path("/etc/sudoers.d") / f"{account.name}-more"
    draft = rules.with_name(f"{rules.name}~")
    draft.write_text(f"Defaults:{account.name} {defaults}\n")
    draft.chmod(0o440)
    draft.rename(rules)
    try:
        yield
    finally:
        rules.unlink()


@asynccontextmanager
async def _secret(stack: Stack, value: str, *commands: str) -> AsyncIterator[None]:
    """Store the secret ``it`` for these commands, for a while."""
    options = [option for command in commands for option in ("--command", command)]
    manage_well(
        stack, "set_secret", "first", "it", "--any-controller", *options, stdin=f"{value}\n"
    )
    try:
        yield
    finally:
        manage_well(stack, "set_secret", "first", "it", "--delete")


def _terminals_of(stack: Stack, session: Terminal) -> set[str]:
    """The terminals that the programs of a session have open."""
    pids = stack.program_pids(session.session_id)
    opened = {name for pid in pids for name in open_descriptors(pid).values()}
    return {name for name in opened if name.startswith("/dev/pts/")}


async def _refused(caller: Caller, session: Terminal) -> str:
    refusal = await caller.refusal("send_command_input", session_id=session.session_id, secret="it")
    return str(refusal["code"])


async def test_sudo_is_given_its_password(unprivileged_stack: Stack, sudoer: Account) -> None:
    requires("sudo")
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, sudoer.password, "sudo"),
    ):
        session = await caller.start("sudo -k id")
        assert session.kind == "secret"
        await session.send(secret="it")
        await session.until("exited")
        assert "uid=0(root)" in session.seen


@pytest.mark.parametrize(
    "defaults", ["use_pty", "!use_pty", "!use_pty, !pam_session, !pam_setcred"]
)
async def test_programs_that_sudo_runs_are_given_nothing(
    unprivileged_stack: Stack, sudoer: Account, own_program: str, defaults: str
) -> None:
    # With the last default sudo runs the program in its own process, under the same process id.
    requires("sudo")
    with _sudoers(sudoer, f"{defaults}, timestamp_type=global"):
        async with (
            unprivileged_stack.caller() as caller,
            _secret(unprivileged_stack, sudoer.password, "sudo"),
        ):
            asks = await caller.start(f"sudo -k {own_program}")
            await asks.send(secret="it")
            await asks.until_output("own program")
            await asks.until("awaiting_input")
            assert await _refused(caller, asks) in {
                "READER_NOT_PROVEN",
                "SECRET_NOT_FOR_READER",
                "NOT_ASKING_FOR_SECRET",
            }
            await asks.terminate()
            # Again, now that sudo remembers the credentials.
            remembers = await caller.start("sudo id")
            await remembers.send(secret="it")
            await remembers.until("exited")
            async with caller.terminal(f"sudo {own_program}") as session:
                await session.until_output("own program")
                await session.until("awaiting_input")
                assert await _refused(caller, session) in {
                    "READER_NOT_PROVEN",
                    "SECRET_NOT_FOR_READER",
                    "NOT_ASKING_FOR_SECRET",
                }
                await session.keys("ctrl-c")
            assert sudoer.password[::-1] not in asks.seen + session.seen
            await (await caller.start("sudo -K")).until("exited")


@pytest.mark.parametrize("opens_up", [False, True])
async def test_a_program_that_hides_reads_nothing_of_what_sudo_is_given(
    unprivileged_stack: Stack, sudoer: Account, opens_up: bool
) -> None:
    requires("sudo")
    thief, kept = sudoer.home / "thief", sudoer.home / f"kept-{opens_up}"
    thief.write_text(_THIEF)
    thief.chmod(0o755)
    line = f"/usr/bin/python3 {thief} {kept}" + " opens-up" * opens_up
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, sudoer.password, "sudo"),
        caller.terminal(line) as hidden,
    ):
        await hidden.until_output("it looks")
        session = await caller.start("sudo -k id")
        assert session.kind == "secret" or opens_up
        if opens_up:
            stack = unprivileged_stack
            await await_until(
                lambda: _terminals_of(stack, hidden) & _terminals_of(stack, session),
                60,
                "the thief to have opened the terminal",
            )
            assert await _refused(caller, session) == "READER_NOT_PROVEN"
            await session.terminate()
        else:
            await session.send(secret="it")
            await session.until("exited")
            assert "uid=0(root)" in session.seen
        assert not kept.exists() or sudoer.password not in kept.read_text()


async def test_sudo_is_proven_though_another_sudo_ended_meanwhile(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    requires("sudo")
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, sudoer.password, "sudo"),
    ):
        waiting = await caller.start("sudo -k id")
        assert waiting.kind == "secret"
        other = await caller.start("sudo -k id")
        await other.send(secret="it")
        await other.until("exited")
        await waiting.send(secret="it")
        await waiting.until("exited")
        assert "uid=0(root)" in waiting.seen


async def test_su_is_given_its_password_and_its_shell_nothing(unprivileged_stack: Stack) -> None:
    requires("su")
    with ordinary_user("q") as other:
        async with (
            unprivileged_stack.caller() as caller,
            _secret(unprivileged_stack, other.password, "su"),
        ):
            async with caller.terminal(
                f"su - {other.name} -c 'read -s -p Password: x; echo $x | rev'"
            ) as session:
                assert session.kind == "secret"
                await session.send(secret="it")
                await session.until("awaiting_input")
                assert await _refused(caller, session) != ""
                await session.keys("ctrl-c")
            assert other.password[::-1] not in session.seen


async def test_passwd_is_given_the_password_it_asks_for(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    requires("passwd")
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, sudoer.password, "passwd"),
    ):
        async with caller.terminal("passwd") as session:
            assert session.kind == "secret"
            await session.send(secret="it")
            # passwd asks for a new password only after the right old one.
            await session.until_output("New password")
            await session.keys("ctrl-c")
        async with caller.terminal("bash -c passwd") as other:
            assert await _refused(caller, other) == "SECRET_NOT_FOUND"


async def test_a_shell_a_chain_and_a_script_around_sudo_prove_nothing(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    requires("sudo")
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, sudoer.password, "sudo"),
    ):
        async with caller.terminal("sudo -k id && sudo -k id") as session:
            assert session.kind == "secret"
            assert await _refused(caller, session) in {"READER_NOT_PROVEN", "SECRET_NOT_FOR_READER"}
        async with caller.terminal("sudo -k id", env={"SUDO_ASKPASS": "/bin/true"}) as session:
            assert await _refused(caller, session) == "ENV_NOT_ALLOWED"
        for command in ("bash -c 'sudo -k id'", "LANG=C sudo -k id", "/usr/bin/env sudo -k id"):
            async with caller.terminal(command) as session:
                assert await _refused(caller, session) == "SECRET_NOT_FOUND"


async def test_ssh_is_given_its_password_and_its_children_nothing(
    unprivileged_stack: Stack,
    far_host: FarHost,
    own_program: str,
) -> None:
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, far_host.account.password, "ssh"),
    ):
        async with caller.terminal(f"{far_host.command} id") as session:
            await session.send("yes\n")
            assert session.kind == "secret"
            await session.send(secret="it")
            await session.until("exited")
            assert far_host.account.name in session.seen
        async with caller.terminal(f"ssh -o ProxyCommand={own_program} ada@nowhere") as thief:
            await thief.until_output("own program")
            await thief.until("awaiting_input")
            assert await _refused(caller, thief) in {"READER_NOT_PROVEN", "SECRET_NOT_FOR_READER"}
            await thief.keys("ctrl-c")
        assert far_host.account.password[::-1] not in thief.seen


async def test_a_whole_command_line_binds_its_arguments_too(
    unprivileged_stack: Stack, far_host: FarHost
) -> None:
    line = f"{far_host.command} id"
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, far_host.account.password, line),
    ):
        async with caller.terminal(f"{far_host.command} whoami") as other:
            await other.send("yes\n")
            assert await _refused(caller, other) == "SECRET_NOT_FOUND"
        async with caller.terminal(line) as session:
            await session.send("yes\n")
            await session.send(secret="it")
            await session.until("exited")
            assert "uid=" in session.seen


async def test_a_program_that_loaded_code_of_its_users_is_given_nothing(
    unprivileged_stack: Stack, sudoer: Account
) -> None:
    # A library of OpenSSL's own, but in a directory where the user could put any other.
    requires("openssl")
    shutil.copy(_openssl_modules() / "legacy.so", sudoer.home / "own.so")
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, "hidden-word-17", "openssl"),
    ):
        async with caller.terminal(
            f"openssl passwd -1 -provider-path {sudoer.home} -provider own -provider default"
        ) as session:
            assert session.kind == "secret"
            assert await _refused(caller, session) == "SECRET_NOT_FOR_READER"
            await session.keys("ctrl-c")
        async with caller.terminal("openssl passwd -1") as session:
            await session.send(secret="it")
            await session.until("awaiting_input")
            assert "Verifying" in session.seen


async def test_git_and_its_helpers_give_nothing_to_others(
    unprivileged_stack: Stack, own_program: str
) -> None:
    requires("git")
    commands = (
        f"git -c protocol.ext.allow=always ls-remote 'ext::{own_program}'",
        f"git -c alias.x='!{own_program}' x",
    )
    async with (
        unprivileged_stack.caller() as caller,
        _secret(unprivileged_stack, "hidden-word-17", "git"),
    ):
        for command in commands:
            async with caller.terminal(command) as session:
                await session.until("awaiting_input")
                assert await _refused(caller, session) in {
                    "READER_NOT_PROVEN",
                    "SECRET_NOT_FOR_READER",
                }
                await session.keys("ctrl-c")
            assert "71-drow-neddih" not in session.seen


async def test_a_file_that_others_can_change_is_no_program(
    unprivileged_stack: Stack, own_program: str
) -> None:
    secret = _secret(unprivileged_stack, "hidden-word-17", own_program)
    async with (
        unprivileged_stack.caller() as caller,
        secret,
        caller.terminal(own_program) as session,
    ):
        assert await _refused(caller, session) == "SECRET_NOT_FOR_READER"
