"""``manage.py run_agent``: gives a model a task and follows it live."""

import asyncio
import contextlib
import getpass
import sys
from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID, uuid4

from django.core.management.base import BaseCommand, CommandError

from agent import services, worker
from agent.conf import conf
from agent.console import Console
from agent.following import Follower
from agent.models import AgentApproval, AgentRun, AgentStep, Approvals
from agent.rendering import Line
from projects.database import in_database
from projects.errors import ControllerActionError
from projects.models import Project

LOOK_SECONDS: Final = 0.25
EXIT_DONE, EXIT_GAVE_UP, EXIT_FAILED, EXIT_STOPPED, EXIT_DETACHED = 0, 1, 2, 3, 130


class Command(BaseCommand):
    """Submits a run, or follows one with --follow. Ends with 0 if the task was done, 1 if the model gave up, 2 failed, 3 stopped."""

    help = "Give a task to a language model and follow it live. Ctrl-C asks whether to detach or to stop it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """TASK, --project, --model, limits."""
        parser.add_argument("task", nargs="?", help="what is to be done, in plain words")
        parser.add_argument("--project", help="name of the project; may be left out if there is only one")
        parser.add_argument("--model", default="", help=f"openai:NAME, anthropic:NAME or scripted:demo (default: {conf.model})")
        parser.add_argument("--controller", action="append", default=[], dest="controllers", help="it may use this one only; may repeat")
        parser.add_argument("--approvals", choices=Approvals.values, default="", help="ask about more calls than the project's policy does")
        parser.add_argument("--max-steps", type=int)
        parser.add_argument("--max-tokens", type=int)
        parser.add_argument("--max-cost-cents", type=int)
        parser.add_argument("--max-seconds", type=float, dest="max_run_seconds")
        parser.add_argument("--here", action="store_true", help="carry it out in this process, with this environment's keys")
        parser.add_argument("--detach", action="store_true", help="only submit; print the run's id")
        parser.add_argument("--follow", metavar="RUN", help="follow this run instead of submitting one")
        parser.add_argument("--stop", metavar="RUN", help="stop this run and follow it to its end")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Submits and follows."""
        lease = uuid4() if options["here"] else None
        if options["stop"]:
            services.run_stop(run_id=_known(options["stop"]), actor=f"cli:{getpass.getuser()}")
        known = options["follow"] or options["stop"]
        run_id = _known(known) if known else self._submit(options, lease)
        if options["detach"]:
            self.stdout.write(str(run_id))
            return
        sys.exit(_Following(run_id, lease).to_its_end())

    def _submit(self, options: dict[str, Any], lease: UUID | None) -> UUID:
        if not options["task"]:
            raise CommandError("say what is to be done, or which run to --follow")
        limits = {name: options[name] for name in ("max_steps", "max_tokens", "max_cost_cents", "max_run_seconds")}
        try:
            run = services.run_submit(
                project=_project(options["project"]),
                task=options["task"],
                actor=f"cli:{getpass.getuser()}",
                model=options["model"],
                controllers=options["controllers"],
                approvals=options["approvals"],
                lease=lease,
                **limits,
            )
        except ControllerActionError as error:
            raise CommandError(str(error)) from None
        return run.id


class _Following:
    """Reads along until the run is over or the reader has had enough."""

    def __init__(self, run_id: UUID, lease: UUID | None) -> None:
        self.run_id, self._lease = run_id, lease
        self._follower, self._console = Follower(), Console(sys.stdout)
        self._can_ask = sys.stdin.isatty()

    def to_its_end(self) -> int:
        """The exit code."""
        self._console.write(Line("note", f"run {self.run_id}"))
        while True:
            try:
                pending = asyncio.run(self._follow())
                if pending is None:
                    return _exit_code(AgentRun.objects.get(id=self.run_id))
                self._ask_about(pending)
            except KeyboardInterrupt:
                self._console.close()
                if self._wants_to_leave():
                    return EXIT_DETACHED

    async def _follow(self) -> int | None:
        """Until the run is over (None) or asks something that can be answered here (the approval's id)."""
        lease, self._lease = self._lease, None
        working = asyncio.create_task(worker.hold(self.run_id, lease)) if lease is not None else None
        try:
            while True:
                run, steps, approvals = await in_database(_look, self.run_id)
                for line, goes_on in self._follower.news(run, steps, approvals):
                    self._console.write(line, goes_on=goes_on)
                if run.state in services.OVER:
                    return None
                pending = [one.pk for one in approvals if one.answer == AgentApproval.Answer.PENDING]
                if pending and self._can_ask and run.state == AgentRun.State.WAITING:
                    return pending[0]
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            if working is not None:
                if not working.done():
                    working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working

    def _ask_about(self, approval_id: int) -> None:
        answer = input("approve? [y]es, or why not: ").strip()
        is_approved = answer.lower() in {"y", "yes"}
        services.approval_answer(
            approval_id=approval_id, is_approved=is_approved, actor=f"cli:{getpass.getuser()}", reason="" if is_approved else answer
        )

    def _wants_to_leave(self) -> bool:
        """Whether the reader goes; asks first, if there is somebody to ask. A second Ctrl-C goes."""
        try:
            answer = input("[d]etach, [s]top the run, or enter to go on: ").strip().lower() if self._can_ask else "d"
        except (KeyboardInterrupt, EOFError):
            answer = "d"
        if answer.startswith("s"):
            services.run_stop(run_id=self.run_id, actor=f"cli:{getpass.getuser()}")
            return False
        if answer.startswith("d"):
            self._console.write(Line("note", f"it goes on; manage.py run_agent --follow {self.run_id}"))
            return True
        return False


def _look(run_id: UUID) -> tuple[AgentRun, list[AgentStep], list[AgentApproval]]:
    # The steps last: what the run row says is never newer than they are.
    run = AgentRun.objects.get(id=run_id)
    return run, list(run.steps.order_by("number")), list(run.approval_requests.order_by("id"))


def _exit_code(run: AgentRun) -> int:
    if run.state == AgentRun.State.FINISHED:
        return EXIT_GAVE_UP if run.is_successful is False else EXIT_DONE
    return EXIT_STOPPED if run.state == AgentRun.State.STOPPED else EXIT_FAILED


def _project(name: str | None) -> Project:
    projects = list(Project.objects.filter(name=name) if name else Project.objects.all()[:2])
    if len(projects) == 1:
        return projects[0]
    raise CommandError(f"there is no project {name!r}; create it with create_project" if name else "say which --project")


def _known(run: str) -> UUID:
    try:
        return AgentRun.objects.get(id=UUID(run)).id
    except (ValueError, AgentRun.DoesNotExist):
        raise CommandError(f"there is no run {run!r}") from None
