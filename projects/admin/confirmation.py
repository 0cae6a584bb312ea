"""The page between choosing rows and something being done to them that cannot be undone; and the page that shows a secret once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


@dataclass(frozen=True)
class Question:
    """What the page asks: its title, what will come of it, the name of the action, and the words of the button."""

    title: str
    consequence: str
    action: str
    confirm: str


@dataclass(frozen=True)
class Item:
    """One chosen row: its key, what it is called, and what else is to be known of it. Already made visible."""

    pk: Any
    name: str
    about: str = ""


def is_confirmed(request: HttpRequest) -> bool:
    """Whether this POST comes from the page."""
    return request.POST.get("confirmed") == "yes"


def confirmation(model_admin: "ModelAdmin[Any]", request: HttpRequest, question: Question, items: Sequence[Item]) -> HttpResponse:
    """The page that asks."""
    context = {
        **model_admin.admin_site.each_context(request),
        **asdict(question),
        "opts": model_admin.opts,
        "items": items,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/projects/confirm.html", context)


def shown_once(model_admin: "ModelAdmin[Any]", request: HttpRequest, title: str, text: str, advice: str) -> HttpResponse:
    """The page with a secret on it, which is nowhere else: not in a message, not in the session, and no browser keeps it."""
    context = {**model_admin.admin_site.each_context(request), "title": title, "text": text, "advice": advice, "opts": model_admin.opts}
    # As all pages of the admin: Cache-Control says no-store.
    return TemplateResponse(request, "admin/projects/shown_once.html", context)
