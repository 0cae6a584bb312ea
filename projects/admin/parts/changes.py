"""The changes that a saved form made, for the audit log."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Model

_NEVER_SHOWN = frozenset({"password", "password1", "password2", "usable_password"})


def changes_of(form: Any, **after: Any) -> dict[str, Any]:
    """The values ``before`` and ``after`` of each changed field, without passwords.

    ``after`` names fields whose stored value is not the one in the form.
    """
    names = [name for name in form.changed_data if name not in _NEVER_SHOWN]
    now = {name: _plain(after.get(name, form.cleaned_data.get(name))) for name in names}
    if form.instance.pk is None or not form.initial:
        return {"after": now}
    return {"before": {name: _plain(form.initial.get(name)) for name in names}, "after": now}


def _plain(value: Any) -> Any:
    """The value as the audit log stores it: rows by their names, and no fractions."""
    match value:
        case None | bool() | int() | str() | dict():
            return value
        case Model():
            return str(value)
        case list() | tuple() if not any(isinstance(item, Model) for item in value):
            return list(value)
        case Iterable():
            return sorted(map(str, value))
    return str(value)
