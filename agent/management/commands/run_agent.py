"""``manage.py run_agent``: gives a model a task and follows it live."""

import asyncio
import logging
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand

from agent import services
from agent.conf import conf
from agent.console import Console, JsonLines
from agent.management.live import Live, can_ask
from agent.management.naming import actor, project_named, refusals, run_named
from agent.models import AgentRun, Approvals
from agent.rendering import Line
from agent.run_data import run_data


class Command(BaseCommand):
    """Submits a run, or comes back to one, and follows it.

    Ends with 0 if the task was done, 1 if the model gave up, 2 if the run failed, 3 if it was stopped, 4 if it was refused, 130 if it was
    left.
    """

    help = "Give a task to a language model and follow it live. Ctrl-C asks whether to detach or to stop it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """TASK, --project, --model, limits; or RUN of --follow, --stop, --resume."""
        parser.add_argument("task", nargs="?", help="what is to be done, in plain words; with --resume: what the model is told")
        parser.add_argument("--project", help="name of the project; may be left out if there is only one")
        parser.add_argument("--model", default="", help=f"openai:NAME, anthropic:NAME or scripted:demo (default: {conf.model})")
        parser.add_argument("--controller", action="append", default=[], dest="controllers", help="it may use this one only; may repeat")
        parser.add_argument("--approvals", choices=Approvals.values, default="", help="ask about more calls than the project's policy does")
        parser.add_argument("--max-steps", type=int)
        parser.add_argument("--max-tokens", type=int)
        parser.add_argument("--max-cost-cents", type=int, help="0: no limit")
        parser.add_argument("--max-seconds", type=float, dest="max_run_seconds")
        parser.add_argument("--output-bytes", type=int, help="what one call shows to the model")
        parser.add_argument("--here", action="store_true", help="carry it out in this process, with this environment's keys")
        parser.add_argument("--detach", action="store_true", help="do not follow; print the run's id")
        parser.add_argument("--json", action="store_true", help="one JSON object a line, the run itself last; asks nothing")
        known = parser.add_mutually_exclusive_group()
        known.add_argument("--follow", metavar="RUN", help="follow this run; the beginning of its id will do")
        known.add_argument("--stop", metavar="RUN", help="stop this run and follow it to its end")
        known.add_argument("--resume", metavar="RUN", help="let a run that is over go on, with what is told to it and with new limits")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Submits or finds the run, and follows it."""
        with refusals():
            run_id = self._run(options)
        is_json = options["json"]
        if options["detach"]:
            self.stdout.write(str(run_id))
            return
        if options["here"]:
            # The reader is told of whatever the worker would log.
            logging.disable(logging.WARNING)
        sink = JsonLines(sys.stdout) if is_json else Console(sys.stdout)
        sink.write(Line("note", f"run {run_id}"))
        live = Live(run_id, sink, is_here=options["here"], can_ask=can_ask() and not is_json)
        code = asyncio.run(live.to_its_end())
        if isinstance(sink, JsonLines):
            sink.write_data(run_data(AgentRun.objects.select_related("project").get(id=run_id)))
        sys.exit(code)

    def _run(self, options: dict[str, Any]) -> UUID:
        limits = {name: options[name] for name in services.Limits.__annotations__}
        is_here = options["here"]
        if options["resume"]:
            run_id = run_named(options["resume"])
            services.run_resume(run_id=run_id, actor=actor(), said=options["task"] or "", is_reserved=is_here, **limits)
            return run_id
        if options["follow"] or options["stop"]:
            run_id = run_named(options["follow"] or options["stop"])
            if options["stop"]:
                services.run_stop(run_id=run_id, actor=actor())
            if is_here:
                services.run_reserve(run_id=run_id, is_reserved=True)
            return run_id
        run = services.run_submit(
            project=project_named(options["project"]),
            task=options["task"] or "",
            actor=actor(),
            is_reserved=is_here,
            **{name: options[name] for name in ("model", "controllers", "approvals")},
            **limits,
        )
        return run.id
