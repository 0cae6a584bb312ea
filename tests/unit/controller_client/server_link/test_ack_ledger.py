"""Every acknowledgement of the server reaches the holder, and none reaches it twice."""

from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.messages import Stream, StreamOffset
from controller_client.server_link.ack_ledger import AckLedger


def _at(stream: Stream, offset: int) -> StreamOffset:
    return StreamOffset(session_id="s", stream=stream, offset=offset)


def test_several_acknowledgements_become_one() -> None:
    ledger = AckLedger("s")
    ledger.commit([_at("stdout", 10)])
    ledger.commit([_at("stdout", 30), _at("stderr", 5)])
    assert ledger.pending_bytes == 35
    (ack,) = ledger.take_pending()
    assert ack.offsets == [_at("stdout", 30), _at("stderr", 5)]
    assert ledger.pending_bytes == 0
    assert ledger.take_pending() == []


def test_an_attached_holder_starts_at_the_offsets_of_the_server() -> None:
    ledger = AckLedger("s")
    ledger.commit([_at("stdout", 10)])
    ledger.begin({"stdout": 7})
    assert ledger.take_all() == [_at("stdout", 7)]
    assert ledger.take_pending() == []
    ledger.commit([_at("stdout", 8)])
    assert [ack.offsets for ack in ledger.take_pending()] == [[_at("stdout", 8)]]


@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.integers(0, 100), st.booleans()))
)
def test_whenever_it_is_taken_the_holder_ends_where_the_server_does(
    steps: list[tuple[Stream, int, bool]],
) -> None:
    ledger = AckLedger("s")
    committed: dict[Stream, int] = {}
    known: dict[Stream, int] = {}
    for stream, size, is_taken in steps:
        committed[stream] = committed.get(stream, 0) + size
        ledger.commit([_at(stream, committed[stream])])
        for position in (
            position
            for ack in (ledger.take_pending() if is_taken else ())
            for position in ack.offsets
        ):
            assert position.offset > known.get(position.stream, 0)
            known[position.stream] = position.offset
    for position in (position for ack in ledger.take_pending() for position in ack.offsets):
        known[position.stream] = position.offset
    assert known == {stream: offset for stream, offset in committed.items() if offset}
    assert ledger.pending_bytes == 0
