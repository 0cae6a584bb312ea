"""``manage.py run_agent TASK``: give a task to a model, or return to a run, and follow it live.

Exits with 0 if the task was done, 1 if the model gave up, 2 if the run failed, 3 if it was stopped,
4 if it was refused, 130 if the reader detached.
"""

import asyncio
import logging
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from agent import services
from agent.conf import conf
from agent.management.live import Live, can_ask
from agent.management.naming import run_named
from agent.models import AgentRun
from agent.views.console import Console, JsonLines
from agent.views.rendering import Line
from agent.views.run_data import run_data
from projects.management.naming import actor, project_named
from projects.management.refusals import RefusingCommand
from projects.models import ApprovalPolicy


class Command(RefusingCommand):
    help = (
        "Give a task to a language model and follow the run live. Ctrl-C asks whether to detach "
        "or to stop the run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "task",
            nargs="?",
            help="the task in plain words; with --resume: a message to the model",
        )
        parser.add_argument("--project", help="name of the project (default: the only project)")
        parser.add_argument(
            "--model",
            default="",
            help=f"openai:NAME, anthropic:NAME or scripted:demo (default: {conf.model})",
        )
        parser.add_argument(
            "--controller",
            action="append",
            default=[],
            dest="controllers",
            help="the run may use only this controller; may repeat",
        )
        parser.add_argument(
            "--approvals",
            choices=ApprovalPolicy.values,
            default="",
            help="a stricter policy than the project's",
        )
        parser.add_argument("--max-steps", type=int, help="most answers of the model")
        parser.add_argument("--max-tokens", type=int, help="most tokens read and written")
        parser.add_argument("--max-cost-cents", type=int, help="most US cents; 0: no limit")
        parser.add_argument(
            "--max-seconds", type=float, dest="max_run_seconds", help="longest time of work"
        )
        parser.add_argument(
            "--output-bytes", type=int, help="most output of one call that the model is shown"
        )
        parser.add_argument(
            "--here",
            action="store_true",
            help="carry the run out in this process, with this environment's API keys",
        )
        parser.add_argument(
            "--detach", action="store_true", help="print the run's id and do not follow it"
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object per line, the run itself last, and ask nothing",
        )
        known = parser.add_mutually_exclusive_group()
        known.add_argument(
            "--follow", metavar="RUN", help="follow this run; a unique prefix of its id is enough"
        )
        known.add_argument("--stop", metavar="RUN", help="stop this run, and follow it to its end")
        known.add_argument(
            "--resume",
            metavar="RUN",
            help="resume a run that is over, with a message and new limits",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        run_id = self._run(options)
        is_json = options["json"]
        if options["detach"]:
            self.stdout.write(str(run_id))
            return
        if options["here"]:
            # The followed run shows the reader everything that the worker would log.
            logging.disable(logging.WARNING)
        sink = JsonLines(sys.stdout) if is_json else Console(sys.stdout)
        try:
            sink.write(Line("note", f"run {run_id}"))
            live = Live(run_id, sink, is_here=options["here"], can_ask=can_ask() and not is_json)
            code = asyncio.run(live.to_its_end())
        except BrokenPipeError:
            # The reader is gone, which is the same as detaching.
            if options["here"]:
                services.run_reserve(run_id=run_id, is_reserved=False)
            raise
        if isinstance(sink, JsonLines):
            sink.write_data(run_data(AgentRun.objects.select_related("project").get(id=run_id)))
        sys.exit(code)

    def _run(self, options: dict[str, Any]) -> UUID:
        limits = {name: options[name] for name in services.Limits.__annotations__}
        is_here = options["here"]
        if options["resume"]:
            run_id = run_named(options["resume"])
            services.run_resume(
                run_id=run_id,
                actor=actor(),
                said=options["task"] or "",
                is_reserved=is_here,
                **limits,
            )
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
