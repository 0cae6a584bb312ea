"""A leader lease: one process at a time does a piece of work, and renews the lease while it does.

When the leader dies, its lease expires and another process takes it. On SQLite there is only one
server process, which always leads.
"""

from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.db import IntegrityError, connection, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now

from projects.models import Duty

_JUMP_SECONDS: Final = 60.0
HOLDER: Final = uuid4().hex
"""The random id of this process, in the rows that it holds."""


def take(name: str, seconds: float, holder: str = HOLDER) -> bool:
    """Take or renew the lease ``name`` for ``seconds``; False if another process holds it."""
    if connection.vendor == "sqlite":
        return True
    until = ExpressionWrapper(
        Now() + Value(timedelta(seconds=seconds)), output_field=DateTimeField()
    )
    # Longer than any lease: the database's clock was put back since that one was taken.
    too_far = Now() + Value(timedelta(seconds=seconds + _JUMP_SECONDS))
    is_too_far = Q(until__gt=ExpressionWrapper(too_far, output_field=DateTimeField()))
    free_or_ours = Q(holder=holder) | Q(until__lt=Now()) | is_too_far
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
