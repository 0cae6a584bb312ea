"""Secrets in a real holder: typed only while the terminal hides them, masked in all it shows from
then on.
"""

import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from controller_client.protocol.messages import InputAck
from tests.support.hosts.holders import Conversation, HolderHost, holder_host

SECRET = b"correct-horse-battery"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as started:
        yield started


async def _at_hidden_prompt(host: HolderHost, after: str, **more: Any) -> Conversation:
    talk = await host.run(f"""bash -c 'read -r -s -p "Password: " s; echo; {after}'""", **more)
    assert (await talk.prompt()).kind == "secret"
    return talk


def _code(ack: InputAck) -> str | None:
    return ack.failure and ack.failure.code


async def test_what_a_program_shows_of_its_secret_is_masked_in_every_form(host: HolderHost) -> None:
    shows = (
        'echo "it is <$s>"; printf %s "$s" | base64; printf %q\\\\n "$s"; python3 -c "import '
        'sys, json; print(json.dumps(sys.argv))" "$s"'
    )
    talk = await _at_hidden_prompt(host, shows)
    assert (await talk.type(secret=SECRET + b"\n")).failure is None
    done = await talk.done()
    await talk.until(lambda: talk.offset == done.streams[0].next_offset, "all output")
    assert b"it is <******>" in talk.output
    assert b"correct" not in talk.output
    assert b"Y29ycmVjdC1ob3JzZ" not in talk.output
    # The stream is the masked one: its offsets and its digest are of what is shown.
    assert done.streams[0].sha256 == sha256(talk.output).hexdigest()


async def test_a_secret_in_pieces_is_masked_and_a_prompt_is_not_held_back(host: HolderHost) -> None:
    talk = await _at_hidden_prompt(
        host,
        'printf correct-; printf horse-; printf "battery\\n"; read -p "Is it correct" x; echo "$x"',
    )
    await talk.type(secret=SECRET + b"\n")
    # The question ends as the secret begins, and the program waits: nothing of the question may be
    # missing.
    asked = await talk.prompt()
    assert (asked.prompt, asked.offset) == ("Is it correct", talk.offset)
    assert b"******\r\nIs it correct" in talk.output
    # Even when it is typed where it is shown.
    await talk.type(SECRET + b"\n")
    await talk.done()
    assert SECRET not in talk.output
    assert talk.output.endswith(b"Is it correct******\r\n******\r\n")


async def test_a_beginning_that_never_goes_on_leaves_after_a_moment(host: HolderHost) -> None:
    talk = await _at_hidden_prompt(host, "printf correct-h; sleep 60")
    await talk.type(secret=SECRET + b"\n")
    await talk.shows(b"correct-h")


async def test_a_secret_that_may_echo_is_typed_anywhere_and_its_echo_is_masked(
    host: HolderHost,
) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    refused = await talk.type(secret=SECRET + b"\n")
    assert refused.failure is not None
    assert refused.failure.code == "NOT_ASKING_FOR_SECRET"
    assert (await talk.type(secret=SECRET + b"\n", may_echo=True)).failure is None
    await talk.until(
        lambda: talk.output.count(b"******") == 2, "the masked echo and the masked copy"
    )
    assert SECRET not in talk.output


async def test_both_streams_of_pipes_are_masked(host: HolderHost) -> None:
    talk = await host.run('bash -c \'read s; echo "out $s"; echo "err $s" >&2\'', io_mode="pipe")
    await talk.type(secret=SECRET + b"\n", may_echo=True)
    await talk.done()
    await talk.until(
        lambda: b"\n" in talk.outputs["stdout"] and b"\n" in talk.outputs["stderr"], "both lines"
    )
    assert (talk.outputs["stdout"], talk.outputs["stderr"]) == (b"out ******\n", b"err ******\n")


async def test_a_secret_is_not_typed_once_its_question_is_over(host: HolderHost) -> None:
    # The terminal is full of unread input, so the secret waits; meanwhile the program gives up
    # hiding.
    script = 'stty -echo; printf "Password: "; read -r go < "$0"; stty echo; printf "open now"; cat'
    fifo = host.state_dir / "go"
    os.mkfifo(fifo)
    talk = await host.run(argv=["bash", "-c", script, str(fifo)])
    await talk.shows(b"Password: ")
    talk.type_later(b"line\n" * 4000)
    number = talk.type_later(secret=SECRET + b"\n")
    with fifo.open("w") as gate:
        gate.write("\n")
    ack = await talk.get(InputAck, lambda ack: ack.input_seq == number)
    assert ack.failure is not None
    assert ack.failure.code == "NOT_ASKING_FOR_SECRET"
    assert SECRET not in talk.output


@pytest.mark.parametrize("keys", [[], ["ctrl-d"]])
async def test_a_secret_is_not_joined_to_a_line_that_was_begun(
    host: HolderHost, keys: list[str]
) -> None:
    talk = await host.run(
        """bash -c 'for n in 1 2; do read -r -s -p "Password: " s; echo ${#s}; done'"""
    )
    await talk.prompt()
    await talk.type(b"half", keys=keys)
    assert _code(await talk.type(secret=SECRET + b"\n")) == "NOT_ASKING_FOR_SECRET"
    assert _code(await talk.type(b"\n")) is None
    await talk.shows(b"4\r\nPassword: ")
    await talk.prompt()
    assert _code(await talk.type(secret=SECRET + b"\n")) is None
    await talk.done()
    assert talk.output.endswith(f"Password: {len(SECRET)}\r\n".encode())


async def test_a_secret_is_typed_once_the_line_before_it_is_cleared(host: HolderHost) -> None:
    talk = await _at_hidden_prompt(host, "echo ${#s}")
    await talk.type(b"half")
    assert _code(await talk.type(secret=SECRET + b"\n")) == "NOT_ASKING_FOR_SECRET"
    await talk.type(keys=["ctrl-u"])
    assert _code(await talk.type(secret=SECRET + b"\n")) is None
    await talk.done()
    assert talk.output.endswith(f"\n{len(SECRET)}\r\n".encode())


async def test_a_secret_is_not_joined_to_a_line_in_a_pipe(host: HolderHost) -> None:
    talk = await host.run("bash -c 'while read -r s; do echo ${#s}; done'", io_mode="pipe")
    await talk.type(b"half")
    refused = await talk.type(secret=SECRET + b"\n", may_echo=True)
    assert _code(refused) == "NOT_ASKING_FOR_SECRET"
    await talk.type(b"\n")
    assert _code(await talk.type(secret=SECRET + b"\n", may_echo=True)) is None
    await talk.type(keys=["ctrl-d"])
    await talk.done()
    assert talk.outputs["stdout"] == f"4\n{len(SECRET)}\n".encode()
