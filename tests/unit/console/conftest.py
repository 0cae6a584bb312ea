"""A person of the console, one project with a host and a session, and another project."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.test import Client

from projects.models import CommandSession, Controller, Project

PersonWith = Callable[..., Client]


def read(answer: Any) -> str:
    """The whole text of an answer, also of one that is streamed."""
    if not answer.streaming:
        return str(answer.text)

    async def collect() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(collect)().decode()


@dataclass(frozen=True)
class Tenant:
    """A project with one host and one active session."""

    project: Project
    host: Controller
    session: CommandSession


def _tenant(name: str) -> Tenant:
    project = Project.objects.create(name=name)
    host = Controller.objects.create(project=project, name=f"host-of-{name}")
    session = CommandSession.objects.create(
        project=project, controller=host, command=f"command-of-{name}", state="RUNNING"
    )
    return Tenant(project, host, session)


@pytest.fixture
def ours(db: None) -> Tenant:
    """The project of the person."""
    return _tenant("ours")


@pytest.fixture
def theirs(db: None) -> Tenant:
    """A project that the person is no member of."""
    return _tenant("theirs")


@pytest.fixture
def person_with(ours: Tenant) -> PersonWith:
    """A function that logs a member of ``ours`` in with these rights."""

    def log_in(*codenames: str) -> Client:
        user = User.objects.create_user("ann", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        ours.project.members.add(user)
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def session(db: None) -> CommandSession:
    """A session of a project that nobody is a member of."""
    project = Project.objects.create(name="theirs")
    host = Controller.objects.create(project=project, name="web-17")
    return CommandSession.objects.create(
        project=project, controller=host, command="hidden-command", state="RUNNING"
    )
