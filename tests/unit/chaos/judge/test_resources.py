"""The judge finds what grows in a long run, and takes no warm-up for growth."""

from pathlib import Path
from typing import Any

import pytest

from chaos.judge.record import Call, Record, Span
from chaos.judge.resources import check_exits, check_resources

_SECONDS = 1200


class Long:
    """A run of 20 minutes whose server is warm after one; a test changes one thing of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.samples = [self._sample(at) for at in range(0, _SECONDS, 2)]
        self.database = [{"at": 0.0, "bytes": 1 << 20}, {"at": 1199.0, "bytes": 56 << 20}]

    def _sample(self, at: int) -> dict[str, Any]:
        warm = min(1.0, at / 60)
        used = {"bytes": int((100 + 50 * warm) * (1 << 20)), "descriptors": 24, "threads": 9}
        return {"at": float(at), "process": "server0", "pid": 1, **used}

    def grow(self, what: str, share: float) -> None:
        """Have something grow evenly by so much over the whole run."""
        for sample in self.samples:
            sample[what] = int(sample[what] * (1 + share * sample["at"] / _SECONDS))

    def rules(self) -> list[str]:
        call = Call("n", "get_session", {}, 0.0, 1.0, 2.0, "ok", {})
        record = Record(calls=[call] * 4000, programs=self.directory)
        record.notes["sample"] += self.samples
        record.notes["database"] += self.database
        record.notes["over"].append({"at": float(_SECONDS)})
        return [violation.text.partition(":")[0] for violation in check_resources(record)]


@pytest.fixture
def long(tmp_path: Path) -> Long:
    return Long(tmp_path)


def test_a_run_that_is_flat_once_it_is_warm_has_no_violation(long: Long) -> None:
    assert long.rules() == []


@pytest.mark.parametrize("what", ["bytes", "descriptors", "threads"])
def test_what_grows_all_the_time_is_found(long: Long, what: str) -> None:
    long.grow(what, 1.0)
    assert long.rules() == [what]


@pytest.mark.parametrize(
    ("kind", "at", "is_found"),
    [
        ("server_memory", 70.0, False),
        ("server_memory", 200.0, True),
        ("daemon_memory", 70.0, True),
    ],
)
def test_a_server_that_ends_for_no_reason_is_found(kind: str, at: float, is_found: bool) -> None:
    record = Record(spans=[Span(1, kind, begin=10.0, end=15.0)])
    record.notes["exited"].append({"at": at, "process": "server0", "code": 70})
    assert [each.rule for each in check_exits(record)] == ["servers go on"] * is_found


def test_what_a_process_uses_just_after_its_start_does_not_count(long: Long) -> None:
    for number, sample in enumerate(long.samples):
        sample["pid"] = number // 100
        if number % 100 < 15:
            sample["bytes"] = 1
    assert long.rules() == []


def test_growth_that_starts_anew_with_no_process_is_found(long: Long) -> None:
    long.grow("bytes", 0.5)
    for number, sample in enumerate(long.samples):
        sample["pid"] = number // 100
    assert long.rules() == ["bytes"]


def test_a_database_that_grows_beside_its_output_is_found(long: Long) -> None:
    long.database[-1]["bytes"] = 100 << 20
    assert long.rules() == ["the database"]
    (long.directory / "n.out").write_bytes(bytes(70 << 20))
    assert long.rules() == []
