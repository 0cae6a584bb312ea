"""``manage.py set_attention_target PROJECT NAME``: where the people of a project are told."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from projects.attention.targets import UnusableTarget, target_delete, target_save
from projects.management.naming import actor, project_named, targets_of
from projects.management.refusals import RefusingCommand, invalid
from projects.management.standard_input import input_text
from projects.models import AttentionTarget
from projects.models.attention_kinds import TELLABLE


class Command(RefusingCommand):
    help = (
        "Make or change a target of messages. The command asks for its address, or reads it from "
        "standard input if that is not a terminal: an address is often a secret, and arguments are "
        "seen by other users of the machine."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("name", help="name of the target")
        parser.add_argument("--way", choices=AttentionTarget.Way.values, help="form of messages")
        parser.add_argument(
            "--kind",
            action="append",
            choices=TELLABLE,
            dest="kinds",
            help="tell this; may repeat (default: everything that the project wants)",
        )
        parser.add_argument(
            "--with-texts",
            action="store_true",
            help="messages also carry prompts and the words of callers",
        )
        parser.add_argument(
            "--with-key",
            action="store_true",
            help="read a key from the second line: one that signs webhooks, or an access token",
        )
        parser.add_argument("--delete", action="store_true", help="delete the target")

    def handle(self, *, project: str, name: str, delete: bool, **options: Any) -> None:
        row = project_named(project)
        target = AttentionTarget.objects.filter(project=row, name=name).first()
        if delete:
            target_delete(targets_of(row, name).get(), actor=actor())
            self.stdout.write(f"target {name} of {project} is deleted")
            return
        way = options["way"] or (target.way if target else None)
        if way is None:
            raise invalid("a new target needs --way", "Add --way")
        target = target or AttentionTarget(project=row, name=name)
        target.way, target.kinds = way, options["kinds"] or []
        target.has_texts = options["with_texts"]
        address, key = _read(with_key=options["with_key"])
        try:
            made = target_save(target, address=address, key=key, actor=actor())
        except UnusableTarget as problem:
            raise invalid(str(problem)) from None
        self.stdout.write(f"target {name} of {project} is set")
        if made is not None:
            self.stdout.write(f"key that signs its webhooks, shown this once: {made}")


def _read(*, with_key: bool) -> tuple[str, str | None]:
    if sys.stdin.isatty():
        address = getpass.getpass("Address: ")
        return address, getpass.getpass("Key: ") if with_key else None
    lines = input_text().splitlines()
    if len(lines) != 1 + with_key:
        raise invalid(f"standard input has to have {1 + with_key} lines")
    return lines[0], lines[1] if with_key else None
