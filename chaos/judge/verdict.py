"""The verdict about a run: every rule, judged from its record."""

from pathlib import Path

from chaos.judge import actions, ends, monitors, output, resources, waiting
from chaos.judge.people import approvals, keyboards, watchers
from chaos.judge.record import Record, Violation, record_of


def violations(record: Record, *, beyond: float) -> list[Violation]:
    """Everything in the record that was promised and did not hold.

    ``beyond``: how much longer than its wait a call may take while no fault is near.
    """
    return [
        *actions.check_starts(record),
        *actions.check_results(record),
        *actions.check_inputs(record),
        *waiting.check_verdicts(record),
        *waiting.check_lengths(record, beyond),
        *output.check_stored(record),
        *output.check_shown(record),
        *output.check_read(record),
        *output.check_one_shots(record),
        *ends.check_alive(record),
        *ends.check_receipts(record),
        *ends.check_answers(record),
        *ends.check_refusals(record),
        *ends.check_suspended(record),
        *ends.check_leftovers(record),
        *monitors.check_monitors(record),
        *approvals.check_approvals(record),
        *keyboards.check_keyboards(record),
        *keyboards.check_lifetimes(record),
        *watchers.check_shown(record),
        *resources.check_resources(record),
        *resources.check_exits(record),
    ]


def judged(directory: Path, *, beyond: float = 1.0) -> tuple[Record, list[Violation]]:
    """Read and judge what a run left in its directory."""
    record = record_of(directory)
    return record, violations(record, beyond=beyond)
