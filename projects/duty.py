"""Work that is done by one process at a time, whichever: it holds the row until a moment that it keeps putting off.

One that dies is followed by another when its moment has come. SQLite has one server process, and needs none of this.
"""

from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.db import IntegrityError, connection, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now

from projects.models import Duty

HOLDER: Final = uuid4().hex
"""This process."""


def take(name: str, seconds: float, holder: str = HOLDER) -> bool:
    """Whether the duty is ours for the next ``seconds``: it was already, or nobody's."""
    if connection.vendor == "sqlite":
        return True
    until = ExpressionWrapper(Now() + Value(timedelta(seconds=seconds)), output_field=DateTimeField())
    free_or_ours = Q(holder=holder) | Q(until__lt=Now())
    if Duty.objects.filter(free_or_ours, name=name).update(holder=holder, until=until):
        return True
    if Duty.objects.filter(name=name).exists():
        return False
    try:
        with transaction.atomic():
            Duty.objects.create(name=name, holder=holder, until=until)
    except IntegrityError:
        return False
    return True
