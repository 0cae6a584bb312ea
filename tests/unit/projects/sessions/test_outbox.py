"""The outbox is dense, and its commands are sealed."""

from uuid import uuid4

import pytest

from controller_client.protocol.codec import decode_from_server
from controller_client.protocol.messages import SendInput
from projects.models import Controller, ControllerCommand
from projects.sessions import outbox
from projects.storage.sealing import open_sealed
from tests.support.rows import make_controller, make_session


@pytest.mark.django_db
def test_commands_are_numbered_without_holes_and_sealed() -> None:
    controller = make_controller()
    session = make_session(controller)
    for input_seq in (1, 2):
        seq = outbox.allocate_seq(controller.id)
        assert seq == input_seq
        message = SendInput(
            seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hunter2\n"
        )
        outbox.enqueue(controller_id=controller.id, session_id=session.id, message=message)
    rows = list(ControllerCommand.objects.order_by("seq"))
    assert [
        (row.seq, row.type, row.input_seq, row.sent_epoch, row.failure_code) for row in rows
    ] == [
        (1, "SEND_INPUT", 1, None, ""),
        (2, "SEND_INPUT", 2, None, ""),
    ]
    assert b"hunter2" not in bytes(rows[0].body or b"")
    assert decode_from_server.decode(open_sealed(rows[1].body or b"")) == message


@pytest.mark.django_db
def test_a_controller_that_is_gone_has_no_outbox() -> None:
    with pytest.raises(Controller.DoesNotExist):
        outbox.allocate_seq(uuid4())
