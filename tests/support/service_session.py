"""A program that calls the services in another process than the server's, and prints the results.

Run it as ``python -m tests.support.service_session PROJECT`` in the environment of a stack's
server. It starts a command, answers it and terminates it. Its channel layer is its own, so every
doorbell that it rings or waits for is lost.
"""

import asyncio
import json
import sys
from typing import Any


async def _session(project_name: str) -> dict[str, Any]:
    from projects.models import Project
    from projects.sessions import interactive as services

    project = await Project.objects.aget(name=project_name)
    ask = "bash -c 'read -p \"Name: \" n; echo hello $n; sleep 1000'"
    started = await services.controller_start_interactive_command(project.id, ask, wait_seconds=20)
    answered = await services.controller_send_input(
        project.id, started.session_id, "ada\n", wait_seconds=20, wait_for="hello ada"
    )
    ended = await services.controller_terminate_interactive_command(project.id, started.session_id)
    results: dict[str, Any] = {"started": started, "answered": answered, "ended": ended}
    return {
        name: {"type": type(result).__name__, **vars(result)} for name, result in results.items()
    }


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(json.dumps(asyncio.run(_session(sys.argv[1])), default=str) + "\n")
