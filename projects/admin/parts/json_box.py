"""A box for a list or an object that is typed as JSON."""

import json
from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput


class JSONBox(forms.JSONField):
    """A JSON field that refuses what Python's reader takes and no database or page does.

    That is a number of thousands of digits, brackets without end, and a lone surrogate.
    """

    def to_python(self, value: Any) -> Any:
        """Returns what was typed. Raises ValidationError."""
        is_empty = value in self.empty_values
        if not is_empty and isinstance(self.bound_data(value, None), InvalidJSONInput):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Returns what the page shows again: the typed text, if it cannot be read or written."""
        try:
            bound = super().bound_data(data, initial)
            json.dumps(bound, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return InvalidJSONInput(data)
        return bound
