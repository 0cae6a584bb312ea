"""Pages between choosing rows and acting on them, and the page that shows a secret once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

MOST_AT_ONCE: Final = 500
"""Rows that one answer may be about: each is a field of its form."""
_MADE: Final[WeakKeyDictionary[HttpRequest, str]] = WeakKeyDictionary()
"""The secret that each request made, until it is shown."""


@dataclass(frozen=True)
class Question:
    """The page that asks before an action.

    Attributes:
        title: the action and its rows, such as ``Revoke controllers``.
        consequence: what will happen, in whole sentences.
        action: the name of the action in its admin class.
        confirm: the text of the button that goes on.
        nothing: the message if no chosen row can be acted on; empty for none.
        is_for_many: ask only when there are several rows, because one does no harm.
        noun: what one row is called; empty for the name of the model.
        plural: what several rows are called.

    """

    title: str
    consequence: str
    action: str
    confirm: str
    nothing: str = ""
    is_for_many: bool = False
    noun: str = ""
    plural: str = ""


@dataclass(frozen=True)
class Item:
    """One chosen row. Its name, what is known about it and its host are visible text already."""

    pk: Any
    name: str
    about: str = ""
    host: str = ""


def count_of(items: Sequence[Item], noun: str, plural: str) -> str:
    """The number of rows and of their hosts, such as ``3 sessions on 2 hosts``."""
    hosts = len({item.host for item in items if item.host})
    counted = f"{len(items)} {noun if len(items) == 1 else plural}"
    return f"{counted} on {hosts} host{'' if hosts == 1 else 's'}" if hosts else counted


def page_before(
    model_admin: "ModelAdmin[Any]", request: HttpRequest, question: Question, items: Sequence[Item]
) -> HttpResponse | None:
    """The page to show before the action; None if the action may act on ``items`` now.

    The number of rows stands in the title and, for several rows, on the button.
    """
    if not items and question.nothing:
        model_admin.message_user(request, question.nothing, messages.WARNING)
    if len(items) > MOST_AT_ONCE:
        # Also of what is confirmed: the form of the list can name all rows of all its pages.
        model_admin.message_user(
            request,
            f"{len(items)} rows are too many at once. Choose at most {MOST_AT_ONCE}.",
            messages.ERROR,
        )
        return redirect(request.get_full_path())
    is_confirmed = request.POST.get("confirmed") == "yes"
    if is_confirmed or len(items) <= int(question.is_for_many):
        return None
    opts = model_admin.opts
    noun = question.noun or str(opts.verbose_name)
    count = count_of(items, noun, question.plural or str(opts.verbose_name_plural))
    context = {
        **model_admin.admin_site.each_context(request),
        **asdict(question),
        "title": f"{question.title}: {count}",
        "confirm": question.confirm if len(items) == 1 else f"{question.confirm} {count}",
        "opts": opts,
        "items": items,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/projects/confirm.html", context)


def keep_secret(request: HttpRequest, text: str) -> None:
    """Keep the secret that this request made until ``shown_once`` shows it."""
    _MADE[request] = text


def shown_once(
    model_admin: "ModelAdmin[Any]", request: HttpRequest, title: str, advice: str
) -> HttpResponse:
    """The page with the secret that this request made.

    The secret is in no message, no session and no browser cache.
    """
    context = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "text": _MADE.pop(request),
        "advice": advice,
        "opts": model_admin.opts,
    }
    # All pages of the admin are sent with Cache-Control: no-store.
    return TemplateResponse(request, "admin/projects/shown_once.html", context)
