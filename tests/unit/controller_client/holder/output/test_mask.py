"""Secrets are found wherever the output is cut; nothing else is touched, and nothing is kept for
longer than it has to be.
"""

import base64
import html
import json
import shlex
import sys
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.holder.output.mask import (
    HOLD_SECONDS,
    MASK,
    OutputMask,
    SecretForms,
    SessionMasks,
)
from controller_client.holder.output.spellings import forms_of
from controller_client.protocol.limits import MIN_MASKED_BYTES
from tests.support.running.property_settings import STEADY

SECRETS = (b"hunter2", b"aabaab", b"aabaabaab", "it's a $mall pä$$wörd!".encode(), b"baabaa/aabaab")
FORMS = {
    secret: {form for form in forms_of(secret) if len(form) >= MIN_MASKED_BYTES}
    for secret in SECRETS
}


def _forms(*secrets: bytes) -> SecretForms:
    forms = SecretForms()
    for secret in secrets:
        forms.add(secret)
    return forms


def _reference(text: bytes, secrets: tuple[bytes, ...]) -> bytes:
    """Leftmost, then longest, over the whole stream at once."""
    wanted = sorted({form for secret in secrets for form in FORMS[secret]}, key=len, reverse=True)
    masked, place = [], 0
    while place < len(text):
        found = next((form for form in wanted if text.startswith(form, place)), None)
        masked.append(MASK if found else text[place : place + 1])
        place += len(found) if found else 1
    return b"".join(masked)


@st.composite
def _output(draw: st.DrawFn) -> tuple[tuple[bytes, ...], list[bytes]]:
    """Secrets, and output made of their forms, pieces of these and other text, cut anywhere."""
    secrets = tuple(draw(st.lists(st.sampled_from(SECRETS), min_size=1, max_size=3, unique=True)))
    forms = sorted({form for secret in secrets for form in FORMS[secret]})
    ends = st.integers(0, max(map(len, forms)))
    piece = st.tuples(st.sampled_from(forms), ends, ends).map(
        lambda it: it[0][min(it[1:]) : max(it[1:])]
    )
    part = st.one_of(
        st.sampled_from(forms), piece, st.binary(max_size=4), st.sampled_from([b"a", b"ab"])
    )
    text = b"".join(draw(st.lists(part, max_size=12)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return secrets, [
        text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]


@STEADY
@given(_output())
def test_masked_output_is_the_same_wherever_it_is_cut(
    case: tuple[tuple[bytes, ...], list[bytes]],
) -> None:
    secrets, chunks = case
    forms = _forms(*secrets)
    mask, masked = OutputMask(forms), b""
    # The end of the line decides about every form that is begun there.
    for chunk in [*chunks, b"\n"]:
        masked += mask.feed(chunk)
        assert mask.held_bytes < forms.longest
    assert masked == _reference(b"".join([*chunks, b"\n"]), secrets)
    assert mask.release() == b""


@STEADY
@given(_output())
def test_what_is_released_is_masked_from_half_of_a_form_on(
    case: tuple[tuple[bytes, ...], list[bytes]],
) -> None:
    secrets, chunks = case
    mask = OutputMask(_forms(*secrets))
    masked = b"".join(map(mask.feed, chunks))
    unmasked = _reference(b"".join(chunks), secrets)
    assert unmasked.startswith(masked)
    # A form that is begun at the end is masked if half of it is there, and shown if less is.
    released = mask.release()
    assert unmasked.removeprefix(masked).startswith(released.rstrip(b"*"))
    shown = released.rpartition(b"*")[2]
    forms = {form for secret in secrets for form in FORMS[secret]}
    assert not [
        form for form in forms if shown and form.startswith(shown) and 2 * len(shown) >= len(form)
    ]


@STEADY
@given(_output(), st.data())
def test_with_releases_anywhere_no_secret_passes_whole_and_nothing_grows(
    case: tuple[tuple[bytes, ...], list[bytes]], data: st.DataObject
) -> None:
    secrets, chunks = case
    mask, masked, fed = OutputMask(_forms(*secrets)), b"", 0
    for chunk in chunks:
        masked += mask.feed(chunk)
        fed += len(chunk)
        if data.draw(st.booleans()):
            masked += mask.release()
            assert mask.held_bytes == 0
        assert len(masked) <= fed
    masked += mask.release()
    for secret in secrets:
        assert secret not in masked


@STEADY
@given(st.lists(st.binary(max_size=50), max_size=20))
def test_output_without_a_secret_passes_as_it_is(chunks: list[bytes]) -> None:
    masks = SessionMasks(["stdout"])
    assert [masks.feed("stdout", chunk, 0.0) for chunk in chunks] == chunks
    assert (masks.held_bytes, masks.deadline, list(masks.release())) == (0, None, [])


def _as_basic_authentication(secret: str) -> str:
    return base64.b64encode(f"ada:{secret}".encode()).decode()


def _with_numbers(style: str, letters: str, text: str) -> str:
    return "".join(style % ord(letter) if letter in letters else letter for letter in text)


@pytest.mark.parametrize(
    "written",
    [
        lambda secret: secret,
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
        _as_basic_authentication,
        quote,
        lambda secret: quote(secret, safe=""),
        quote_plus,
        lambda secret: json.dumps({"password": secret}),
        lambda secret: json.dumps({"password": secret}, ensure_ascii=False),
        shlex.quote,
        lambda secret: repr(secret)[1:-1],
        html.escape,
        lambda secret: html.escape(secret, quote=False),
        lambda secret: html.escape(secret).replace("&#x27;", "&apos;"),
        lambda secret: html.escape(secret).replace("&#x27;", "&#039;"),
        lambda secret: html.escape(secret).encode("ascii", "xmlcharrefreplace").decode(),
        lambda secret: _with_numbers("&#%d;", "<>&'\"", secret),
        lambda secret: _with_numbers("&#x%X;", "<>&'\"$?=", secret),
        lambda secret: _with_numbers("\\u%04x", "<>&", json.dumps(secret)),
        lambda secret: _with_numbers("\\u%04X", "<>&'", json.dumps(secret)),
        lambda secret: _with_numbers("\\u%04X", "<>&'", json.dumps(secret, ensure_ascii=False)),
        lambda secret: _with_numbers(
            "\\u%04X", "<>&'", json.dumps(secret).replace('\\"', "\\u0022")
        ),
        lambda secret: secret.replace("'", "''"),
        lambda secret: secret.replace('"', '""'),
    ],
)
def test_forms_that_programs_give_a_secret_are_found(written: object) -> None:
    secret = 'it\'s $1 "top/secret" <pä$$wörd>&?'
    text = f"begin {written(secret)} end".encode()
    mask = OutputMask(_forms(secret.encode()))
    masked = mask.feed(text) + mask.release()
    assert masked.startswith(b"begin ")
    assert masked.endswith(b" end")
    assert MASK in masked
    for part in (b"top", b"secret", b"$w", base64.b64encode(b"secret")[:6]):
        assert part not in masked


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("secret", ["correct-horse", "p\u00e4\u00df-w\u00f6rter"])
def test_a_secret_in_wide_characters_is_found(secret: str, encoding: str) -> None:
    mask = OutputMask(_forms(secret.encode()))
    masked = mask.feed(f"say {secret}.".encode(encoding)) + mask.release()
    assert MASK in masked
    assert secret[1:] not in masked.decode(encoding, "replace")


def test_a_secret_with_nul_between_its_letters_is_found() -> None:
    mask = OutputMask(_forms(b"correct-horse"))
    assert (
        mask.feed(b"\0".join(bytes([letter]) for letter in b"correct-horse") + b"\n")
        == MASK + b"\n"
    )


def test_all_but_the_last_byte_and_then_a_pause_shows_nothing() -> None:
    mask = OutputMask(_forms(b"correct-horse"))
    assert (mask.feed(b"it is correct-hors"), mask.release()) == (b"it is ", MASK)
    assert mask.feed(b"e\r\n") == b"*\r\n"


def test_of_halves_with_a_pause_less_than_half_is_shown() -> None:
    mask = OutputMask(_forms(b"correct-horse"))
    assert (mask.feed(b"correc"), mask.release()) == (b"", b"correc")
    assert (mask.feed(b"t-h"), mask.release()) == (b"", b"***")
    assert mask.feed(b"orse\n") == b"****\n"


def test_what_was_released_too_early_is_still_recognised() -> None:
    mask = OutputMask(_forms(b"hunter2"))
    assert (mask.feed(b"password: hun"), mask.release()) == (b"password: ", b"hun")
    assert (mask.feed(b"ter"), mask.release()) == (b"", b"***")
    assert mask.feed(b"2\r\n") == b"*\r\n"


def test_short_secrets_are_not_looked_for() -> None:
    mask = OutputMask(_forms(b"12345"))
    assert mask.feed(b"12345") == b"12345"


def test_each_stream_holds_back_for_itself_until_it_has_been_silent() -> None:
    masks = SessionMasks(["stdout", "stderr"])
    masks.add(b"hunter2")
    assert masks.feed("stdout", b"say hun", 1.0) == b"say "
    assert masks.feed("stderr", b"er2, hu", 2.0) == b"er2, "
    assert (masks.held_bytes, masks.deadline) == (5, 1.0 + HOLD_SECONDS)
    assert list(masks.release(2.0)) == [("stdout", b"hun")]
    assert (masks.held_bytes, masks.deadline) == (2, 2.0 + HOLD_SECONDS)
    assert list(masks.release()) == [("stderr", b"hu")]
    assert (masks.held_bytes, masks.deadline) == (0, None)


def test_output_that_is_full_of_secrets_is_masked_in_one_pass() -> None:
    """To look for every form anew behind each find would take minutes here."""
    count = 64 * 1024
    mask = OutputMask(_forms(b"hunter2"))
    assert mask.feed(b"hunter2\n" * count) == (MASK + b"\n") * count


def test_the_first_find_takes_few_steps() -> None:
    """The holder does nothing else meanwhile: a pattern of all forms took it seconds."""
    secret = b"it's \"<pa>&=+`$1/x y" * 20
    forms, steps = _forms(secret), 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        found = list(forms.finds(b"is " + secret))
    finally:
        sys.setprofile(None)
    assert found == [(3, 3 + len(secret))]
    assert steps < 10_000


def test_a_whole_secret_at_the_end_of_output_is_masked_at_once() -> None:
    mask = OutputMask(_forms(b"hunter2"))
    assert mask.feed(b"is hunter2") == b"is " + MASK
    assert mask.held_bytes == 0
    assert mask.feed(b"!") == b"!"


def test_what_was_released_is_not_shown_again_when_the_secret_goes_on() -> None:
    mask = OutputMask(_forms(b"hunter2hunter2"))
    assert mask.feed(b"is hun") == b"is "
    assert mask.release() == b"hun"
    assert (mask.held_bytes, mask.release()) == (0, b"")
    assert mask.feed(b"gry") == b"gry"


@pytest.mark.parametrize(
    ("secret", "is_masked"), [(b"s" * (MIN_MASKED_BYTES - 1), False), (b"secret", True)]
)
def test_a_secret_is_masked_from_the_least_length_on(secret: bytes, is_masked: bool) -> None:
    masks = SessionMasks(["stdout"])
    masks.add(secret)
    shown = masks.feed("stdout", b"[" + secret + b"]", 0.0)
    assert shown == (b"[" + MASK + b"]" if is_masked else b"[" + secret + b"]")
