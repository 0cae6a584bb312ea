"""The type of columns that hold encrypted bytes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    _Bytes = models.BinaryField[Any, Any]
else:
    _Bytes = models.BinaryField


class SealedField(_Bytes):
    """A column of bytes that ``projects.storage.sealing`` sealed.

    A change of the key finds every column of this type, in every app.
    """

    def deconstruct(self) -> tuple[str, str, Sequence[Any], Mapping[str, Any]]:  # type: ignore[override]  # as read by migrations
        """Hides the type from migrations: for the database it is a column of bytes."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.BinaryField", arguments, options
