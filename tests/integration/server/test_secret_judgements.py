"""Two decisions about one table of programs.

The first decides whether an input counts as hidden and is not recorded; words of the question can
make it say yes. The second decides whether a stored secret may be typed; words never decide it.
"""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller_client.protocol.messages import IoMode
from tests.support.accounts import requires
from tests.support.descriptors import without_descriptors
from tests.support.hosts.holders import HolderHost, holder_host

BASH, CAT = (os.path.realpath(f"/bin/{name}") for name in ("bash", "cat"))
SECRET = b"correct-horse-battery\n"


class Case(NamedTuple):
    """A program and the decisions about it; ``steps`` are typed first, each at a prompt."""

    command: str
    kind: str
    is_typed: bool
    steps: tuple[bytes, ...] = ()


def _python(script: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(script)}"


def _raw(question: str, mask: str = "") -> str:
    """A program that reads keys in raw mode and shows ``mask`` for each key."""
    return _python(
        "import sys, tty, os\n"
        "tty.setraw(0)\n"
        f"os.write(1, {question!r}.encode())\n"
        "while (key := os.read(0, 1)) not in b'\\r\\n': os.write(1, "
        + ("key" if mask == "echo" else repr(mask.encode()))
        + ")\n"
        "os.write(1, b'\\r\\ndone\\r\\n'); os.read(0, 1)"
    )


_EDITOR = "import sys, readline\nwhile True: input({prompt!r})"
CASES = {
    # The terminal hides input, whatever the question is: the secret is typed.
    "read -s": Case("bash -c 'read -r -s -p \"Say: \" x'", "secret", True),
    "getpass": Case(_python("import getpass; getpass.getpass('Word: ')"), "secret", True),
    "hidden without a question": Case("bash -c 'stty -echo; cat'", "secret", True),
    "behind a relay that hides too": Case(
        "script -qc 'bash -c \"read -r -s -p Word: x\"' /dev/null", "secret", True
    ),
    # The terminal shows input: nothing is typed, whatever the question is.
    "cat": Case("cat", "line", False),
    "shown though asked for": Case("bash -c 'read -p \"Password: \" x'", "secret", False),
    "a relay that shows": Case("unbuffer -p cat", "line", False),
    "raw, masked with stars": Case(_raw("? Password: ", "*"), "secret", False),
    "raw, masked with nothing": Case(_raw("PIN: "), "secret", False),
    "raw, masked, after a remark": Case(
        _raw("Enter passphrase (empty for none): "), "secret", False
    ),
    # Line editors whose prompt has a word such as *secret* without asking for one.
    "sqlite": Case("sqlite3", "line", False, (b".prompt 'tokens> '\n",)),
    "python": Case(
        f"{sys.executable} -q", "line", False, (b"import sys; sys.ps1 = 'secrets> '\n",)
    ),
    "path of a file": Case("bash -c 'read -e -p \"Path of the password file: \" x'", "line", False),
    "a database's name": Case(_python(_EDITOR.format(prompt="MariaDB [secrets]> ")), "line", False),
    "another database's name": Case(_python(_EDITOR.format(prompt="token=# ")), "line", False),
    "yes or no": Case(
        "bash -c 'read -p \"Store password unencrypted (yes/no)? \" x'", "line", False
    ),
    "yes or no, raw": Case(_raw("? Save password? (Y/n) ", "echo"), "line", False),
    "a name": Case("bash -c 'read -e -p \"Name of the token \" x'", "line|key", False),
    # An editor whose prompt is *password* counts as hidden until it has shown a typed line there.
    "an editor, at first": Case(_python(_EDITOR.format(prompt="password: ")), "secret", False),
    "an editor that showed a line": Case(
        _python(_EDITOR.format(prompt="password: ")), "line", False, (b"select 1;\n",)
    ),
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as started:
        yield started


@pytest.mark.parametrize("name", CASES)
async def test_each_program_is_judged_hidden_and_typable_as_the_table_says(
    host: HolderHost, name: str
) -> None:
    case = CASES[name]
    requires(shlex.split(case.command)[0])
    talk = await host.run(case.command)
    for step in case.steps:
        await talk.prompt()
        await talk.type(step)
    assert (await talk.prompt()).kind in case.kind.split("|")
    ack = await talk.type(secret=SECRET)
    if case.is_typed:
        assert ack.failure is None
    else:
        assert ack.failure is not None
        assert ack.failure.code == "NOT_ASKING_FOR_SECRET"


async def test_a_password_prompt_in_raw_mode_is_secret_every_time(host: HolderHost) -> None:
    script = (
        "import os, tty\ntty.setraw(0)\n"
        "while True:\n os.write(1, b'Password: ')\n while os.read(0, 1) not in b'\\r\\n': pass\n"
        " os.write(1, b'\\r\\n')"
    )
    talk = await host.run(_python(script))
    for _ in range(2):
        assert (await talk.prompt()).kind == "secret"
        await talk.type(b"hunter2\n")


async def test_a_secret_is_judged_when_it_is_typed_not_when_it_was_asked_for(
    host: HolderHost,
) -> None:
    fifo = host.state_dir / "go"
    os.mkfifo(fifo)
    talk = await host.run(
        argv=[
            "bash",
            "-c",
            "read -r -s -p 'Password: ' x; read -r go < \"$0\"; read -r y",
            str(fifo),
        ]
    )
    assert (await talk.prompt()).kind == "secret"
    # Both inputs are sent after the same question. The first one answers it, so the second must not
    # be typed: another read follows.
    talk.type_later(b"mine\n")
    ack = await talk.type(secret=SECRET)
    assert ack.failure is not None
    assert ack.failure.code == "NOT_ASKING_FOR_SECRET"
    fifo.write_text("go\n")


def _bound(script: str) -> tuple[str, dict[str, Any]]:
    """A bash that reads, and the terms of a secret for it as a daemon sends them."""
    return f"bash -c '{script}'", {
        "secret": SECRET,
        "secret_programs": ["bash"],
        "secret_files": [BASH],
    }


async def test_only_the_program_that_was_started_is_given_a_secret_for_it(host: HolderHost) -> None:
    command, terms = _bound("read -r -s -p Word: x; echo got it")
    talk = await host.run(command)
    await talk.prompt()
    other = {**terms, "secret_files": [CAT]}
    ack = await talk.type(**other)
    assert ack.failure is not None
    assert ack.failure.code == "SECRET_NOT_FOR_READER"
    assert (await talk.type(**terms)).failure is None
    await talk.shows(b"got it")


async def test_a_child_that_runs_the_same_file_gets_no_secret(host: HolderHost) -> None:
    command, terms = _bound('bash -c "read -r -s -p Word: x"; true')
    talk = await host.run(command)
    await talk.prompt()
    ack = await talk.type(**terms)
    assert ack.failure is not None
    assert ack.failure.code == "SECRET_NOT_FOR_READER"


async def test_a_program_replaced_by_exec_gets_no_secret(host: HolderHost) -> None:
    command, terms = _bound(f'exec {sys.executable} -c "import getpass; getpass.getpass()"')
    talk = await host.run(command)
    await talk.prompt()
    ack = await talk.type(**terms)
    assert ack.failure is not None
    assert ack.failure.code == "SECRET_NOT_FOR_READER"


async def test_no_secret_is_typed_while_another_process_has_the_terminal(host: HolderHost) -> None:
    command, terms = _bound("tty; read -r -s -p Word: x; echo got it")
    talk = await host.run(command)
    await talk.prompt()
    path = bytes(talk.output).split()[0].decode()
    thief = await asyncio.create_subprocess_exec(
        "sleep", "60", stdin=os.open(path, os.O_RDONLY | os.O_NOCTTY)
    )
    try:
        ack = await talk.type(**terms)
        assert ack.failure is not None
        assert ack.failure.code == "READER_NOT_PROVEN"
    finally:
        thief.kill()
        await thief.wait()


async def test_on_pipes_a_secret_goes_to_the_program_alone(host: HolderHost) -> None:
    command, terms = _bound("read -r x; echo got it")
    talk = await host.run(command, io_mode="pipe")
    assert (await talk.type(**terms)).failure is not None
    assert (await talk.type(**terms, may_echo=True)).failure is None
    await talk.shows(b"got it")
    shared = await host.run("bash -c 'cat <&0 & echo both; read -r x; wait'", io_mode="pipe")
    await shared.shows(b"both")
    ack = await shared.type(**terms, may_echo=True)
    assert ack.failure is not None
    assert ack.failure.code == "READER_NOT_PROVEN"


@pytest.mark.parametrize("io_mode", ["pty", "pipe"])
async def test_a_holder_without_a_free_descriptor_types_no_secret(
    host: HolderHost, io_mode: IoMode
) -> None:
    command, terms = _bound("read -r x; echo got it")
    terms["may_echo"] = True
    talk = await host.run(command, io_mode=io_mode, stdin="open")
    if io_mode == "pty":
        await talk.prompt()
    with without_descriptors(host.holder_pid(talk.session_id)):
        ack = await talk.type(**terms)
    assert ack.failure is not None
    assert ack.failure.code == "READER_NOT_PROVEN"
    assert (await talk.type(**terms)).failure is None
    await talk.shows(b"got it")
