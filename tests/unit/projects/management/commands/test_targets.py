"""set_attention_target, send_test_event and send_again, with what nobody means to type."""

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone

from backup import suspension
from projects.attention.messages import due_letters, has_due_messages
from projects.attention.targets import opened
from projects.attention.telling import message_of
from projects.models import AttentionMessage, AttentionTarget, AuditEvent, Project
from tests.support.targets.listener import listening

pytestmark = pytest.mark.django_db(transaction=True)

Set = Callable[..., str]


@pytest.fixture(autouse=True)
def _lab() -> None:
    Project.objects.create(name="lab")
    Project.objects.create(name="other")


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Set:
    """A function that types these lines into set_attention_target, and returns what it says."""

    def run(typed: str, *arguments: str) -> str:
        monkeypatch.setattr("sys.stdin", StringIO(typed))
        call_command("set_attention_target", *arguments, stdout=(out := StringIO()))
        return out.getvalue()

    return run


def _target() -> AttentionTarget:
    return AttentionTarget.objects.get()


def test_the_key_is_shown_once_and_nothing_shows_the_address(setting: Set) -> None:
    made = setting("https://example.com/zarniwoop\r\n", "lab", "ops", "--way", "webhook")
    key = opened(_target()).key
    assert made.count(key) == 1
    assert "zarniwoop" not in made
    again = setting("https://example.com/zarniwoop", "lab", "ops")
    assert key not in again
    assert opened(_target()).key == key
    stored = str([list(AttentionTarget.objects.values()), list(AuditEvent.objects.values())])
    assert key not in stored
    assert "zarniwoop" not in stored


def test_a_target_that_is_set_again_has_what_the_command_names_alone(setting: Set) -> None:
    address = "https://example.com/hook"
    options = ("--kind", "host_away", "--kind", "host_away", "--with-texts")
    setting(address, "lab", "ops", "--way", "webhook", *options)
    assert (set(_target().kinds), _target().has_texts) == ({"host_away"}, True)
    setting(address, "lab", "ops")
    assert (_target().kinds, _target().has_texts, _target().way) == ([], False, "webhook")


@pytest.mark.parametrize(
    ("way", "typed"),
    [
        ("webhook", ""),
        ("webhook", "\n"),
        ("webhook", " https://example.com/hook"),
        ("webhook", "https://example.com/hook\nsecond line"),
        ("webhook", "https://example.com/a\x0bb"),
        ("webhook", "https://example.com/\u2028x"),
        ("webhook", "example.com/hook"),
        ("webhook", "ftp://example.com/hook"),
        ("webhook", "file:///etc/passwd"),
        ("webhook", "https://ada:secret@example.com/hook"),
        ("webhook", "https://example.com/hook#part"),
        ("webhook", "https://example.com:99999/hook"),
        ("webhook", "https://exämple.com/hook"),
        ("webhook", "https://[::1/hook"),
        ("webhook", "https://example.com/" + "x" * 2048),
        ("ntfy", "https://ntfy.sh"),
        ("ntfy", "https://ntfy.sh/"),
        ("ntfy", "https://ntfy.sh/topic?x=1"),
        ("email", "https://example.com"),
        ("email", "ops@example.com, more@example.com"),
        ("email", "Ops <ops@example.com>"),
        ("email", "ops@example.com\rBcc: more@example.com"),
    ],
)
def test_an_address_that_is_none_is_refused_without_being_quoted(
    setting: Set, way: str, typed: str
) -> None:
    with pytest.raises(CommandError) as refused:
        setting(typed, "lab", "ops", "--way", way)
    assert "secret" not in str(refused.value)
    assert not AttentionTarget.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("key", ["", "short", "whsec_", "whsec_" + "A" * 8, "whsec_!" + "A" * 43])
def test_a_key_that_cannot_sign_is_refused_and_the_old_one_stays(setting: Set, key: str) -> None:
    setting("https://example.com/hook", "lab", "ops", "--way", "webhook")
    before = opened(_target())
    with pytest.raises(CommandError):
        setting(f"https://example.com/new\n{key}", "lab", "ops", "--with-key")
    assert opened(_target()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("lab", "ops"),
        ("nix", "ops", "--way", "webhook"),
        ("lab", "two words", "--way", "webhook"),
        ("lab", "ops", "--way", "pigeon"),
        ("lab", "ops", "--way", "webhook", "--kind", "everything"),
        ("lab", "ops", "--delete"),
        ("other", "ops", "--delete"),
    ],
)
def test_what_makes_no_target_changes_none(setting: Set, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        setting("https://example.com/hook", *arguments)
    assert not AttentionTarget.objects.exists()


def test_a_deleted_target_goes_with_its_messages_and_its_name_is_free(setting: Set) -> None:
    setting("https://example.com/hook", "lab", "ops", "--way", "webhook")
    message_of(_target(), "test", []).save()
    setting("", "lab", "ops", "--delete")
    assert not AttentionMessage.objects.exists()
    with pytest.raises(CommandError, match="no target 'ops'"):
        setting("", "lab", "ops", "--delete")
    assert "key that signs" in setting("https://example.com/", "lab", "ops", "--way", "webhook")
    actions = AuditEvent.objects.order_by("seq").values_list("action", flat=True)
    assert [action.partition(".")[2] for action in actions] == ["create", "delete", "create"]


def test_an_empty_name_is_the_name_of_no_target(setting: Set) -> None:
    for each in ("ops", "more"):
        for arguments in (
            ("set_attention_target", "lab", "", "--delete"),
            ("send_test_event", "lab", "--target", ""),
            ("send_again", "lab", "--target", ""),
        ):
            with pytest.raises(CommandError, match="has no target ''"):
                call_command(*arguments)
        setting("https://example.com/hook", "lab", each, "--way", "webhook")
    assert AttentionTarget.objects.count() == 2


def test_a_target_of_another_project_is_not_found_by_its_name(setting: Set) -> None:
    setting("https://example.com/hook", "lab", "ops", "--way", "webhook")
    for command in ("send_test_event", "send_again"):
        with pytest.raises(CommandError, match="other has no target 'ops'"):
            call_command(command, "other", "--target", "ops")
        with pytest.raises(CommandError, match="other has no target"):
            call_command(command, "other")


def test_a_test_goes_to_the_named_target_alone_and_is_said_to_be_received(setting: Set) -> None:
    with override_settings(ATTENTION_NETWORKS=("127.0.0.0/8",)), listening() as listener:
        for name in ("ops", "more"):
            setting(f"{listener.url}/{name}", "lab", name, "--way", "webhook")
        call_command("send_test_event", "lab", "--target", "ops", stdout=(out := StringIO()))
        assert out.getvalue() == "ops: received\n"
        assert [request.path for request in listener.requests] == ["/ops"]
        call_command("send_test_event", "lab", stdout=(out := StringIO()))
        assert sorted(out.getvalue().splitlines()) == ["more: received", "ops: received"]


def test_a_test_that_is_not_received_fails_and_is_not_tried_again(setting: Set) -> None:
    setting("https://127.0.0.1/hook", "lab", "ops", "--way", "webhook")
    with pytest.raises(CommandError, match="not every target"):
        call_command("send_test_event", "lab", stdout=(out := StringIO()))
    assert out.getvalue() == "ops: the address is not allowed\n"
    assert not has_due_messages()


def test_after_a_restore_only_a_test_that_somebody_asks_for_is_sent(setting: Set) -> None:
    with override_settings(ATTENTION_NETWORKS=("127.0.0.0/8",)), listening() as listener:
        setting(f"{listener.url}/hook", "lab", "ops", "--way", "webhook")
        message_of(_target(), "taken_over", []).save()
        suspension.suspend(made_at=timezone.now(), release="1", actor="test")
        assert (has_due_messages(), due_letters()) == (False, [])
        call_command("send_test_event", "lab", stdout=StringIO())
        assert len(listener.requests) == 1
        suspension.confirm(actor="test")
        assert has_due_messages()


def test_where_no_letter_is_dead_nothing_is_sent_again(setting: Set) -> None:
    setting("https://example.com/hook", "lab", "ops", "--way", "webhook")
    message_of(_target(), "taken_over", []).save()
    before = list(AttentionMessage.objects.values())
    call_command("send_again", "lab", stdout=(out := StringIO()))
    assert out.getvalue() == "messages that are sent again: 0\n"
    assert list(AttentionMessage.objects.values()) == before
    assert not AuditEvent.objects.filter(action="attention_message.send_again").exists()


def test_a_dead_letter_is_sent_again_once_however_often_it_is_asked(setting: Set) -> None:
    setting("https://example.com/hook", "lab", "ops", "--way", "webhook")
    message_of(_target(), "taken_over", []).save()
    AttentionMessage.objects.update(due_at=None, dead_at=timezone.now(), attempts=30)
    said = []
    for _ in range(2):
        call_command("send_again", "lab", "--target", "ops", stdout=(out := StringIO()))
        said.append(out.getvalue())
    assert said == [f"messages that are sent again: {count}\n" for count in (1, 0)]
    assert AuditEvent.objects.filter(action="attention_message.send_again").count() == 1
