"""Secrets that a program draws are not shown by anything the server renders."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from cryptography.fernet import Fernet

from console.live import board_reads
from controller_client.protocol.terminal_text.unseen import visible
from projects.models import CommandSession, Controller
from projects.output import log as output_log
from projects.output.digest import Digester
from projects.output.log import NewChunk
from projects.output.stream_text import read_in_order, read_text
from projects.output.view import view_page, view_screen, view_turn
from projects.reads.recordings import session_newest_text
from projects.secrets.masks import MASK, secret_mask, secret_remember
from projects.secrets.store import UnreadableSecret, secrets_reseal
from projects.storage.sealing import open_sealed
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db

VALUE = b"correct-horse"


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    made = make_session(controller)
    secret_remember(made.id, VALUE)
    return made


DRAWN = {
    "plain": "say correct-horse.",
    "zero width": "say corr\u200bect-ho\ufeffrse.",
    "variation selectors": "say corr\ufe0fect-ho\u180brse.",
    "spelled out": visible("say cor\u00adr\u200bect-ho\ufeffr\U000e0041se."),
    "wrapped": "say correct-\nhorse.",
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_value_is_masked_in_text(session: CommandSession, name: str) -> None:
    masked = secret_mask(session.id).masked(DRAWN[name])
    assert MASK in masked
    assert masked.startswith("say ")
    assert masked.count("\n") == DRAWN[name].count("\n")
    assert "horse" not in masked


def test_what_was_typed_is_kept_sealed_in_its_own_row_and_once(
    session: CommandSession, controller: Controller
) -> None:
    secret_remember(session.id, VALUE)
    secret_remember(session.id, b"another-one")
    session.refresh_from_db()
    assert session.sealed_secrets is not None
    assert VALUE not in bytes(session.sealed_secrets)
    assert open_sealed(session.sealed_secrets)[:16] == session.id.bytes
    assert secret_mask(session.id).masked("another-one, correct-horse") == f"{MASK}, {MASK}"
    other = make_session(controller, sealed_secrets=session.sealed_secrets)
    assert secret_mask(other.id).masked("correct-horse") == "correct-horse"


def test_a_session_without_secrets_is_shown_as_it_is(controller: Controller) -> None:
    for session_id in (make_session(controller).id, uuid4()):
        assert secret_mask(session_id).masked("correct-horse") == "correct-horse"


def test_short_values_are_not_looked_for(controller: Controller) -> None:
    session = make_session(controller)
    secret_remember(session.id, b"short")
    assert secret_mask(session.id).masked("short") == "short"


def test_a_mask_of_nobody_is_of_nobody() -> None:
    assert secret_mask(UUID(int=0)).found is None


SHOWN = {
    "colours": b"say corr\x1b[31mect-ho\x1b[0mrse.\r\n",
    "backspaces": b"say corX\brecX\bt-horse.\r\n",
    "a redrawn line": b"say ect-horse.\rsay corX\rsay correct-horse.\r\n",
    "columns": b"\x1b[14Gorse.\x1b[5Gcorrect-h\x1b[1Gsay\r\n",
}


def test_a_value_whose_key_is_missing_is_kept_and_masked_again_with_it(
    session: CommandSession, settings: Any
) -> None:
    keys = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    for value in (b"another-one", b"the-third-one"):
        secret_remember(session.id, value)
    all_of_them = "another-one, the-third-one, correct-horse"
    assert secret_mask(session.id).masked(all_of_them) == f"{MASK}, {MASK}, correct-horse"
    settings.ENCRYPTION_KEYS = [*settings.ENCRYPTION_KEYS, *keys]
    assert secret_mask(session.id).masked(all_of_them) == f"{MASK}, {MASK}, {MASK}"
    secret_remember(session.id, b"the-fourth-one")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    assert secret_mask(session.id).masked(all_of_them) == f"{MASK}, {MASK}, {MASK}"


def test_a_value_within_another_is_resealed_too_or_nothing_is(
    session: CommandSession, settings: Any
) -> None:
    keys = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    secret_remember(session.id, b"another-one")
    with pytest.raises(UnreadableSecret):
        secrets_reseal()
    settings.ENCRYPTION_KEYS = [*settings.ENCRYPTION_KEYS, *keys]
    secrets_reseal()
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    masked = secret_mask(session.id).masked(f"{VALUE.decode()}, another-one")
    assert masked == f"{MASK}, {MASK}"


@pytest.mark.parametrize("name", SHOWN)
def test_no_view_shows_a_value_that_was_drawn(session: CommandSession, name: str) -> None:
    data = SHOWN[name]
    output_log.append([NewChunk(session.id, "stdout", 0, 0, data)])
    views = [
        view_turn(session.id, 0, len(data), 4096, is_final=True).text,
        view_page(session.id, 0, len(data), 4096, is_final=True, view="text").text,
        view_screen(session.id, len(data), 24, 80).text,
        read_text(session.id, "stdout", 0, len(data), is_final=True).text,
        read_in_order(session.id, {"stdout": len(data), "stderr": 0}, 4096)[0].text,
    ]
    digester = Digester(0, secret_mask(session.id))
    digester.feed(data)
    views += digester.digest().last_lines
    for view in views:
        assert MASK in view
        assert "horse" not in view


@pytest.mark.parametrize("cut", range(1, len(VALUE)))
def test_a_value_on_two_lines_is_masked_wherever_lines_are_shown(
    session: CommandSession, cut: int
) -> None:
    folded = b"say " + VALUE[:cut] + b"\n" + VALUE[cut:] + b"\nover\n"
    digester = Digester(0, secret_mask(session.id))
    digester.feed(b"a line\n" * 500 + folded[:-7])
    digester.feed(folded[-7:])
    assert digester.digest().last_lines[-2:] == (f"say {MASK}", "over")
    output_log.append([NewChunk(session.id, "stdout", 0, 0, folded[:-5])])
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=len(folded) - 5)
    assert board_reads.read_board({}, 1)[session.id].row.last_line == f"say {MASK}"


def test_a_value_that_two_pieces_share_is_masked_on_the_page(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_log, "PIECE_BYTES", 8)
    drawn = b"say cor\x1b[mrect\x1b[m-horse."
    output_log.append([NewChunk(session.id, "stdout", 0, 0, drawn)])
    session.stdout_next_offset = len(drawn)
    (part,) = session_newest_text(session, actor="ada").values()
    assert part.text == f"say {MASK}."
