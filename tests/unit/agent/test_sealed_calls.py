"""An interrupted run keeps input for a hidden prompt sealed, even when the keys change."""

import json
from typing import Any

import pytest
from cryptography.fernet import Fernet

from agent.models import AgentRun, AgentStep
from agent.runs import answered_calls, records
from projects.models import Controller
from projects.secrets.store import secrets_reseal
from projects.storage.sealing import seal
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller()


def test_hidden_input_of_an_open_step_outlives_a_change_of_keys(
    controller: Controller, settings: Any
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    limits = {
        "max_steps": 1,
        "max_tokens": 1,
        "max_cost_cents": 1,
        "max_run_seconds": 1,
        "output_bytes": 1,
    }
    run = AgentRun.objects.create(
        project=controller.project, task="tidy up", model="scripted:demo", **limits
    )
    calls = [
        {"id": "1", "name": "send_command_input", "arguments": {"input_text": "correct-horse"}}
    ]
    AgentStep.objects.create(run=run, number=1, sealed=seal(json.dumps(calls).encode()))
    settings.ENCRYPTION_KEYS = [new, old]
    assert secrets_reseal() == (0, 1)
    settings.ENCRYPTION_KEYS = [new]
    _, steps = records.run_loaded(run.id)
    assert answered_calls.calls_of(steps[0])[0].arguments == {"input_text": "correct-horse"}
