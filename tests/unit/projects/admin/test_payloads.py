"""Hostile text in every field of every row: no page of the admin interprets it.

No page lets it mislead a reader either.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from projects.models import CommandSession, Controller, EnrolmentCode, Monitor, Project
from projects.output.log import NewChunk, append
from tests.support.rows import make_controller, make_session
from tests.support.running.append_only import triggers_lifted

pytestmark = pytest.mark.django_db(transaction=True)

MARK = "holdline-payload"
PAYLOADS = (
    f"<script>{MARK}</script>",
    f"\"><img src=x onerror='{MARK}'>",
    f"</pre></textarea></title><svg/onload={MARK}>",
    f"javascript:{MARK}//",
    f"{{{{ {MARK} }}}}{{% debug %}}",
    f"\u202e{MARK}\u2066\u200b\x1b]52;c;AAAA\x07\x9b2J",
    f"\u0455udo {MARK}",
)
RAW = (
    "<script>holdline",
    "<img src=x",
    "<svg/onload",
    "\u202e",
    "\u2066",
    "\u200b",
    "\x1b",
    "\x9b",
    "\x07",
    'href="javascript:',
)
TEXTS = (models.CharField, models.TextField, models.JSONField)


def _rows() -> Controller:
    from projects.accounts.credentials import api_token_create, controller_credential_create
    from projects.audit.log import audit
    from projects.enrolment.codes import enrolment_code_create

    controller = make_controller("host")
    controller_credential_create(controller=controller)
    api_token_create(project=controller.project, name="agent")
    enrolment_code_create(project=controller.project, name="other")
    session = make_session(controller, stdout_next_offset=1)
    append([NewChunk(session.id, "stdout", 0, 1, b"x")])
    Monitor.objects.create(
        session_id=session.id,
        project=controller.project,
        controller=controller,
        log_file="x",
        session_type="file",
    )
    audit("x", "y", (controller.project_id, controller.id, session.id), {"a": "b"})
    return controller


# What a page is found by, what is one of a few words of ours, and what only operators write, into a
# form that checks it.
OURS = {
    *(
        "key_id",
        "digest",
        "hash",
        "action",
        "end_reason",
        "terminal_state",
        "terminal_kind",
        "terminal_evidence",
    ),
    *("allowed_commands", "allowed_directories", "session_limits", "attention_seconds"),
}


def _is_free(field: Any) -> bool:
    """Returns True if others choose the text of the field: no key, no choice and no slug."""
    is_chosen = isinstance(field, TEXTS) and not isinstance(field, models.SlugField)
    return is_chosen and not field.primary_key and not field.choices and field.name not in OURS


def _poison(payload: str) -> None:
    """Straight into the tables, past every validator."""
    with triggers_lifted():
        for model in apps.get_app_config("projects").get_models():
            for field in model._meta.concrete_fields:
                if _is_free(field):
                    text = payload[: field.max_length] if field.max_length else payload
                    value: Any = (
                        [text, {text: text}] if isinstance(field, models.JSONField) else text
                    )
                    model._default_manager.update(**{field.name: value})


def _pages() -> Iterator[str]:
    for model in apps.get_app_config("projects").get_models():
        name = f"admin:projects_{model._meta.model_name}"
        try:
            yield reverse(f"{name}_changelist")
        except NoReverseMatch:
            continue
        for row in model._default_manager.all()[:2]:
            yield reverse(f"{name}_change", args=[row.pk])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_page_interprets_what_others_chose(admin_client: Client, payload: str) -> None:
    controller = _rows()
    _poison(payload)
    Controller.objects.update(alarmed_at=timezone.now())
    session, seen = CommandSession.objects.get(), 0
    # A transcript is output: its own test says what is made of it.
    append([NewChunk(session.id, "stdout", 1, 2, payload.encode())])
    CommandSession.objects.update(stdout_next_offset=1 + len(payload.encode()))
    for page in _pages():
        answer = admin_client.get(page)
        content = answer.content.decode()
        assert answer.status_code == 200, page
        assert (
            answer["X-Frame-Options"],
            "default-src 'self'" in answer["Content-Security-Policy"],
        ) == ("DENY", True)
        assert [raw for raw in RAW if raw in content] == [], page
        seen += MARK in content
    assert seen >= 10
    for place, row in (("commandsession", session), ("controller", controller)):
        action = "terminate" if place == "commandsession" else "revoke"
        asked = admin_client.post(
            f"/admin/projects/{place}/",
            {"action": action, "_selected_action": str(row.pk)},
            follow=True,
        )
        assert [raw for raw in RAW if raw in asked.content.decode()] == []
    admin_client.post(
        "/admin/projects/enrolmentcode/",
        {"action": "withdraw", "_selected_action": str(EnrolmentCode.objects.get().pk)},
    )
    assert Project.objects.count() == 1
