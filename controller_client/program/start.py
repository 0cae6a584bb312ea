"""Runs the program of a START: on a terminal or on pipes, with its environment and limits."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from controller_client.program.child_environment import build_environment, default_cwd
from controller_client.program.child_setup import Launch
from controller_client.program.command_line import argv_for, resolve_program
from controller_client.program.directory_guard import open_directory, start_directory
from controller_client.program.pipe_process import PipeProcess
from controller_client.program.platforms import this_platform
from controller_client.program.process import Process
from controller_client.program.pty_process import NoTerminal, PtyProcess
from controller_client.program.started_program import StartedProgram
from controller_client.program.windows_process import WindowsProcess
from controller_client.protocol.limits import MAX_STDIN_BYTES
from controller_client.protocol.messages import Admission, IoMode, StartInteractiveCmd
from controller_client.system.control_group import SessionGroup
from controller_client.system.start_failure import StartFailed, from_os_error

_OPEN: Final = Admission()


class Running(NamedTuple):
    """A program that was started.

    ``program`` is the proof of its file. ``warning`` says why it did not get a terminal.
    """

    process: Process
    program: StartedProgram
    warning: str | None = None


def start_program(start: StartInteractiveCmd, group: SessionGroup | None) -> Running:
    """Run the program of ``start``. Raises StartFailed before anything runs."""
    if len(start.stdin_data) > MAX_STDIN_BYTES:
        raise StartFailed(
            "INPUT_TOO_LARGE",
            f"an input of {len(start.stdin_data)} bytes is over the limit of {MAX_STDIN_BYTES}",
        )
    if start.io_mode == "pipe":
        return _on_pipes(start, group)
    try:
        return _on_terminal(start, group)
    except NoTerminal as error:
        if not start.pipe_fallback:
            raise
        warning = (
            f"no terminal could be had, so the program runs on pipes ({error.failure.message})"
        )
        return _on_pipes(start, group)._replace(warning=warning)


def _on_terminal(start: StartInteractiveCmd, group: SessionGroup | None) -> Running:
    kind = WindowsProcess if this_platform().terminal_library == "pywinpty" else PtyProcess
    return _run(
        _launch(start, "pty", group),
        lambda launch: kind.start(launch, rows=start.rows, cols=start.cols),
    )


def _on_pipes(start: StartInteractiveCmd, group: SessionGroup | None) -> Running:
    has_input = start.stdin == "open" or bool(start.stdin_data)
    return _run(
        _launch(start, "pipe", group), lambda launch: PipeProcess.start(launch, has_input=has_input)
    )


def _run(launch: Launch, begin: Callable[[Launch], Process]) -> Running:
    program = StartedProgram.about_to_run(launch.program)
    try:
        return Running(begin(replace(launch, closes_terminal=program.closes_terminal)), program)
    except BaseException:
        program.close()
        raise
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
        group_fd=_open_members(group) if group is not None else None,
        keeps_user=admission.keeps_user,
    )


def _open_members(group: SessionGroup) -> int | None:
    try:
        return group.open_members()
    except OSError as error:
        raise from_os_error(error, "the program cannot be put into its control group") from None


def _let_go(launch: Launch) -> None:
    for descriptor in (launch.cwd_fd, launch.group_fd):
        if descriptor is not None:
            os.close(descriptor)
