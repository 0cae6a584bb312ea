"""Rules about approvals: asked once, done once if approved, never done if not."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaos.judge.actions import STARTS, typed_by
from chaos.judge.record import Call, Record, Violation, actions


@dataclass
class Question:
    """The answers that a person gave to one question: each with its first and its last time.

    ``sent``: when an answer was sent first; ``done``: when it was known to be taken, or too late.
    """

    sent: dict[str, float] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)

    @property
    def is_surely_denied(self) -> bool:
        """True if ``deny`` was taken before anybody said ``approve``, or nobody ever said so."""
        if "approve" not in self.sent:
            return True
        return self.done.get("deny", float("inf")) <= self.sent["approve"]

    @property
    def is_surely_approved(self) -> bool:
        """True if ``approve`` was answered to before anybody said ``deny``."""
        said = self.done.get("approve", float("inf"))
        return said <= self.sent.get("deny", said)


def check_approvals(record: Record) -> Iterator[Violation]:
    """A held action is asked about once, and its effect is what the person said."""
    questions = _questions(record)
    owners: dict[int, str] = {}
    for name, calls in record.by_session.items():
        for action in actions(calls):
            asked = {each for call in action if (each := _asked(call)) is not None}
            if len(asked) > 1:
                yield Violation("asked once", name, f"{action[0].tool} was asked about as {asked}")
            for number in asked:
                if number in owners and owners[number] != action[0].request_id:
                    yield Violation("asked once", name, f"#{number} is about two calls")
                owners[number] = action[0].request_id
                question = questions.get(number, Question())
                yield from _check_action(record, name, action, number, question)


def _asked(call: Call) -> int | None:
    """The number of the question that a call was answered with; None without one."""
    found = call.body.get("approval_id") if call.code == "APPROVAL_PENDING" else None
    return found if isinstance(found, int) else None


def _questions(record: Record) -> dict[int, Question]:
    found: dict[int, Question] = {}
    for note in record.notes["answer"]:
        number, at, answer = note["approval"], note["at"], str(note["answer"])
        assert isinstance(number, int)
        assert isinstance(at, float)
        question = found.setdefault(number, Question())
        if note["state"] == "sent":
            question.sent.setdefault(answer, at)
        elif note["state"] == "done":
            question.done.setdefault(answer, at)
    return found


def _check_action(
    record: Record, name: str, action: list[Call], number: int, question: Question
) -> Iterator[Violation]:
    last, text = action[-1], f"{action[0].tool}, #{number},"
    done_at = _done_at(record, name, action)
    if question.is_surely_denied and last.outcome == "ok":
        yield Violation("denied means not done", name, f"{text} was not approved, and has a result")
    if question.is_surely_denied and done_at is not None:
        yield Violation("denied means not done", name, f"{text} was not approved, and was done")
    elif done_at is not None and done_at < question.sent.get("approve", done_at):
        yield Violation("denied means not done", name, f"{text} was done before it was approved")
    if question.is_surely_approved and last.code == "DENIED_BY_OPERATOR":
        yield Violation("the first answer holds", name, f"{text} was approved first, and is denied")
    if last.code == "CHANGED_SINCE_APPROVAL":
        yield Violation("the first answer holds", name, f"{text} says that something changed")


def _done_at(record: Record, name: str, action: list[Call]) -> float | None:
    """The time when the program did what the action asked for; None if it did not.

    A start is looked at only if it was the only one.
    """
    truth, text = record.truth(name), typed_by(action[0])
    if text:
        is_only_one = sum(typed_by(each[0]) == text for each in actions(record.by_session[name]))
        return truth.read_at(text) if is_only_one == 1 else None
    starts = [each for each in actions(record.by_session[name]) if each[0].tool in STARTS]
    is_start = action[0].tool in STARTS and len(starts) == 1
    return truth.starts[0] if is_start and truth.starts else None
