"""``manage.py remove_second_factor USER``: let a person log in whose device is lost."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from console.models import SecondFactor
from projects.audit.log import audit
from projects.management.naming import actor, names_of, printable
from projects.management.refusals import RefusingCommand, invalid


class Command(RefusingCommand):
    """Deletes the row, and audits that."""

    help = "Remove the second factor of a user: their password alone logs them in from now on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the name of the user."""
        parser.add_argument("user", help="name of the user")

    @transaction.atomic
    def handle(self, *, user: str, **_options: Any) -> str:
        """Removes the factor. Raises CommandError if there is none."""
        if not SecondFactor.objects.filter(user__username=user).delete()[0]:
            users = names_of(SecondFactor.objects.values_list("user__username", flat=True))
            raise invalid(printable(f"{user!r} has no second factor"), f"Users with one: {users}")
        audit(actor(), "second_factor.remove", (None, None, None), {"user": user})
        # Printed by Django, once this transaction has committed.
        return "removed"
