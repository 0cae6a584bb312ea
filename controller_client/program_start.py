"""From a START to a program that runs: what is executed, where, with what environment and limits, and on what."""

import os
from pathlib import Path
from typing import Final

from controller_client.child_environment import build_environment, default_cwd
from controller_client.child_setup import Launch
from controller_client.command_line import argv_for, resolve_program
from controller_client.control_group import SessionGroup
from controller_client.directory_guard import open_directory, start_directory
from controller_client.pipe_process import PipeProcess
from controller_client.platforms import this_platform
from controller_client.process import Process
from controller_client.protocol.limits import MAX_STDIN_BYTES
from controller_client.protocol.messages import Admission, IoMode, StartInteractiveCmd
from controller_client.pty_process import NoTerminal, PtyProcess
from controller_client.start_failure import StartFailed
from controller_client.windows_process import WindowsProcess

_OPEN: Final = Admission()


def start_program(start: StartInteractiveCmd, group: SessionGroup | None) -> tuple[Process, str | None]:
    """The program of ``start``, and a warning if it did not get what was asked for. Raises StartFailed before anything runs."""
    if len(start.stdin_data) > MAX_STDIN_BYTES:
        raise StartFailed("INPUT_TOO_LARGE", f"an input of {len(start.stdin_data)} bytes is over the limit of {MAX_STDIN_BYTES}")
    if start.io_mode == "pipe":
        return _on_pipes(start, group), None
    try:
        return _on_terminal(start, group), None
    except NoTerminal as error:
        if not start.pipe_fallback:
            raise
        return _on_pipes(start, group), f"no terminal could be had, so the program runs on pipes ({error.failure.message})"


def _on_terminal(start: StartInteractiveCmd, group: SessionGroup | None) -> Process:
    launch = _launch(start, "pty", group)
    try:
        if this_platform().terminal_library == "pywinpty":
            return WindowsProcess.start(launch, rows=start.rows, cols=start.cols)
        return PtyProcess.start(launch, rows=start.rows, cols=start.cols)
    finally:
        _let_go(launch)


def _on_pipes(start: StartInteractiveCmd, group: SessionGroup | None) -> Process:
    launch = _launch(start, "pipe", group)
    try:
        return PipeProcess.start(launch, has_input=start.stdin == "open" or bool(start.stdin_data))
    finally:
        _let_go(launch)


def _launch(start: StartInteractiveCmd, io_mode: IoMode, group: SessionGroup | None) -> Launch:
    admission = start.admission or _OPEN
    environment = build_environment(start.session_id, start.env, io_mode)
    wanted = str(Path(environment["HOME"], start.cwd)) if start.cwd else None
    cwd = start_directory(wanted, default_cwd(environment), admission.roots)
    argv = this_platform().command(start.argv or argv_for(start.command or ""))
    if any("\0" in word for word in (*argv, cwd)):
        raise StartFailed("START_FAILED", "a command cannot contain a NUL character")
    program = admission.program or resolve_program(argv[0], environment["PATH"], cwd)
    return Launch(
        program=program,
        argv=argv,
        env=environment,
        cwd=cwd,
        limits=group.left_over(start.limits) if group is not None else start.limits,
        cwd_fd=open_directory(cwd, admission.roots) if admission.roots else None,
        group_fd=group.open_members() if group is not None else None,
        keeps_user=admission.keeps_user,
    )


def _let_go(launch: Launch) -> None:
    for descriptor in (launch.cwd_fd, launch.group_fd):
        if descriptor is not None:
            os.close(descriptor)
