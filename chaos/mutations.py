"""Mistakes that are made in a copy of the product on purpose, to show that the judge finds them.

``python -m chaos mutate`` makes each in turn, and runs a short load against it. The texts are those
of the product now: a mutation whose text is gone fails, and has to be written anew.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Mutation:
    """One mistake: a text of a file and what takes its place.

    ``faults`` are the kinds under which it shows; ``rule`` is the promise that it breaks.
    """

    name: str
    path: str
    before: str
    after: str
    faults: tuple[str, ...]
    rule: str

    def make(self, tree: Path) -> None:
        """Make the mistake in a copy of the product. Raises ValueError if its text is gone."""
        path = tree / self.path
        text = path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: the text is not in {self.path} exactly once")
        path.write_text(text.replace(self.before, self.after))


_ACK_FIRST: Final = """\
        from controller_client.protocol.messages import StreamOffset

        for each in messages:
            if isinstance(each, InteractiveOutput):
                end = each.offset + len(each.data)
                offset = StreamOffset(
                    session_id=each.session_id, stream=each.stream, offset=end
                )
                await self._send(Ack(offsets=[offset]))
        # A daemon collects acknowledgements for half a second.
        await asyncio.sleep(1.5)
        delay = STORAGE_RETRY_SECONDS
"""

MUTATIONS: Final = (
    Mutation(
        "an input is typed twice",
        "controller_client/holder/input/queue.py",
        "        data = self._target.encode(head.command)\n",
        "        data = self._target.encode(head.command) * (1 + head.command.input_seq % 2)\n",
        (),
        "input at most once",
    ),
    Mutation(
        "a start does not know its request_id again",
        "projects/sessions/idempotency.py",
        "self._rows().filter(session__state__in=NEVER_BEGAN).delete()",
        "self._rows().delete()",
        ("front_lossy",),
        "start at most once",
    ),
    Mutation(
        "output is acknowledged before it is committed",
        "projects/link/frame_writer.py",
        "        delay = STORAGE_RETRY_SECONDS\n",
        _ACK_FIRST,
        ("server_kill",),
        "gaps say why",
    ),
    Mutation(
        "a piece of output is acknowledged and not stored",
        "projects/output/log.py",
        "    if len(rows) == 1:\n",
        "    if rows and rows[0][3] % 3 == 0:\n        return\n    if len(rows) == 1:\n",
        (),
        "every byte once",
    ),
    Mutation(
        "a program that works is said to wait as it did before",
        "projects/link/inbound/session_draft.py",
        "        self._verdict = verdict\n",
        "        self._verdict = verdict if not known.kind else verdict._replace(\n"
        "            state=known.state, kind=known.kind, evidence=known.evidence\n"
        "        )\n",
        (),
        "waiting is true",
    ),
    Mutation(
        "an exit code is told wrong",
        "controller_client/holder/session_end.py",
        "            exit_code=exit_code,\n",
        "            exit_code=exit_code and exit_code + 1,\n",
        (),
        "ends are true",
    ),
    Mutation(
        "a repeated turn skips what its lost answer showed",
        "projects/sessions/transactions/input.py",
        "            from_offset=earlier.from_offset,\n            input_seq",
        "            from_offset=session_snapshot(project_id, session_id).shown_offset,\n"
        "            input_seq",
        ("front_lossy",),
        "nothing is skipped",
    ),
    Mutation(
        "a repeated look at a log skips what its lost answer showed",
        "projects/monitors/read.py",
        "    if monitor is None:\n        return place, None\n    data",
        "    if monitor is None or request_id:\n        return place, None\n    data",
        ("front_lossy",),
        "logs are whole",
    ),
    Mutation(
        "the directory of an ended session stays",
        "controller_client/session_files/directory.py",
        "                remove_tree(self.path)\n",
        "                return\n",
        (),
        "nothing is left",
    ),
    Mutation(
        "an audit row is not what its hash covers",
        "projects/audit/log.py",
        "hash_of(previous, Entry(seq, now, about, actor, action, detail))",
        "hash_of(previous, Entry(seq, now, about, actor, action, {}))",
        (),
        "nothing is left",
    ),
)
