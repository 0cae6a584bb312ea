"""Every scenario and criterion of the five requirement documents, by id.

``S0`` start/read/write/stop sessions, ``S1`` design of interactive execution, ``S2`` session
monitors, ``S3`` interactive commands over the controller connection, ``S4`` real-time output. An id
is ``<document>.<section>.<number>``: sections are the document's own requirement numbers (``R1``),
or ``P`` protocol message, ``D`` design, ``C`` constraint, ``V`` verification, ``T`` tool contract,
``E`` error case, ``U`` test case.

A criterion is held by a test that marks itself ``@pytest.mark.requirement("S3.R1.2")``, or it is
deferred with a reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """One criterion: its source, and the behaviour it asks for.

    ``deferred`` says why no test holds the criterion yet; None: a test holds it.
    """

    source: str
    behaviour: str
    deferred: str | None = None


_AGENT = "the agent loop comes after the tools it calls"


def _section(
    source: str, prefix: str, *behaviours: str, deferred: str | None = None
) -> dict[str, Requirement]:
    return {
        f"{prefix}.{number}": Requirement(source, text, deferred)
        for number, text in enumerate(behaviours, 1)
    }


_S0 = (
    _section(
        "S0 Start Command Session",
        "S0.R1",
        (
            "start_command with `sleep 10` starts the process in the background and returns a "
            "valid sessionId and pid"
        ),
        (
            "start_command with `echo hello` and timeout 1000 waits for output and returns "
            "sessionId, pid and stdout `hello\\n`"
        ),
        (
            "start_command takes command, cwd? and timeout? (ms, default 0) and returns "
            "sessionId, pid, stdout?, stderr?"
        ),
    )
    | _section(
        "S0 Read Session Output",
        "S0.R2",
        "read_output returns what was printed, and isActive tells whether the process runs",
        "read_output with a timeout waits for output and returns immediately when it comes",
        "read_output returns stdout and stderr since the last read",
    )
    | _section(
        "S0 Write Session Input",
        "S0.R3",
        "write_input writes to the process stdin and returns success",
    )
    | _section(
        "S0 Stop Command Session",
        "S0.R4",
        "stop_command terminates the process and returns success",
        "stop_command takes a signal, SIGTERM by default",
    )
)

_S1 = (
    _section(
        "S1 Phase 1: One-shot with Input",
        "S1.R1",
        "execute_command with input spawns the process and writes input to stdin",
        "stdin is closed after the input",
        "stdout and stderr are buffered until exit and returned",
    )
    | _section(
        "S1 Session Store",
        "S1.R2",
        "a started process persists across tool calls under its session id",
    )
    | _section(
        "S1 Buffering",
        "S1.R3",
        "output is kept for the caller; a read returns all that was added since the last one",
    )
    | _section(
        "S1 Concurrency & Cleanup",
        "S1.R4",
        "a session whose client disappears does not live for ever, and can be ended explicitly",
    )
    | _section(
        "S1 Security", "S1.R5", "cwd restrictions of execute_command also apply to start_command"
    )
    | _section(
        "S1 Platform",
        "S1.R6",
        "the running OS is detected; on Linux, also inside WSL, `wsl` is never prepended",
    )
    | _section(
        "S1 Platform, Windows",
        "S1.R7",
        (
            "on Windows the wsl wrapper runs commands in WSL (no Windows host runs the tests: the "
            "decision table is the test)"
        ),
    )
    | _section(
        "S1 Agent Guidance",
        "S1.R8",
        (
            "the description of execute_command says it is not for interactive or long-running "
            "commands"
        ),
        "a timeout of execute_command hints at start_command",
    )
)

_S2_TOOLS = {
    "start_session_monitor": (
        "R1",
        ("SESSION_ALREADY_EXISTS", "FILE_NOT_FOUND", "FILE_NOT_READABLE", "INVALID_SESSION_ID"),
    ),
    "get_session_updates": ("R2", ("SESSION_NOT_FOUND", "FILE_READ_ERROR")),
    "stop_session_monitor": ("R3", ("SESSION_NOT_FOUND",)),
}
_S2_CASES = {
    "R1": (
        "a monitor starts",
        "a duplicate session id is refused",
        "a missing log file is refused",
    ),
    "R2": (
        "new content is returned",
        "no new content gives an empty string and has_more false",
        "an unknown session is refused",
    ),
    "R3": (
        "a monitor stops with its totals",
        "an unknown session is refused",
        "the log file is deleted unless save_log",
    ),
}
# Its test cases call with ids such as "abc123-def456-...", which its own pattern refuses: the tests
# use UUID4 ids, as the pattern asks.
_S2: dict[str, Requirement] = {}
for _tool, (_number, _codes) in _S2_TOOLS.items():
    _S2 |= _section(f"S2 {_tool}", f"S2.{_number}T", f"{_tool} has S2's input and output schema")
    _S2 |= _section(
        f"S2 {_tool}, errors", f"S2.{_number}E", *(f"{_tool} answers {code}" for code in _codes)
    )
    _S2 |= _section(f"S2 {_tool}, test cases", f"S2.{_number}U", *_S2_CASES[_number])

_S3 = (
    _section(
        "S3 R1: Start an interactive command session",
        "S3.R1",
        "the agent can start a command in an interactive PTY session",
        "the controller spawns the process through pexpect, which allocates a PTY",
        "the controller streams output chunks to the server from the beginning",
        "the server returns the session id and the initial output",
    )
    | _section(
        "S3 R2: Send input to a running session",
        "S3.R2",
        "the agent can send text input, including newlines, to a running session",
        "the controller writes the input to the PTY's stdin",
        "output produced after the input is collected and returned",
        "the agent receives the new output to decide its next action",
    )
    | _section(
        "S3 R3: Graceful session lifecycle",
        "S3.R3",
        "a session ends by itself when its process exits",
        "the agent can explicitly terminate a running session",
        "a session has a maximum lifetime, configurable, five minutes by default",
        "one active interactive session per project at a time",
        "when a session ends, by itself or not, the final output and the exit code are returned",
    )
    | _section(
        "S3 R4: Non-breaking change",
        "S3.R4",
        "execute_command stays unchanged for non-interactive commands",
    )
    | {
        "S3.R4.2": Requirement(
            "S3 R4: Non-breaking change",
            "the interactive tools are additive: two tools of their own",
        )
    }
    | {
        "S3.R4.3": Requirement(
            "S3 R4: Non-breaking change", "RUN_COMMAND / COMMAND_RESULT stay unchanged"
        )
    }
    | {
        "S3.R5.1": Requirement(
            "S3 R5: AI agent integration",
            "tools start_interactive_command and send_command_input exist",
        )
    }
    | {
        "S3.R5.2": Requirement(
            "S3 R5: AI agent integration", "the agent's system prompt says when to use which tool"
        )
    }
    | {
        "S3.R5.3": Requirement(
            "S3 R5: AI agent integration", "the agent decides which tool to use for its command"
        )
    }
    | _section(
        "S3 New Protocol Messages",
        "S3.P1",
        "START_INTERACTIVE_CMD, server to client: spawn a PTY process, begin a session",
        "INTERACTIVE_OUTPUT, client to server: an output chunk of the PTY",
        "SEND_INPUT, server to client: write to the PTY's stdin",
        "INTERACTIVE_CMD_DONE, client to server: the process exited, the session is complete",
        "TERMINATE_CMD, server to client: kill the process",
    )
    | _section(
        "S3 Server-Side Architecture",
        "S3.D1",
        (
            "services.controller_start_interactive_command(project_id, command) returns an "
            "InteractiveCommandResult"
        ),
        (
            "services.controller_send_input(project_id, session_id, input_text) returns an "
            "InteractiveOutputResult"
        ),
        (
            "services.controller_terminate_interactive_command(project_id, session_id) returns a "
            "CommandResult"
        ),
        "starting waits for the first output",
        "sending input waits for the next output, or for the end if the process exits after it",
    )
    | _section(
        "S3 Controller Client Architecture",
        "S3.D2",
        (
            "the controller's session wraps a pexpect child: output collection, input, lifecycle, "
            "timeout enforcement"
        ),
    )
    | _section(
        "S3 Agent Tool Definitions",
        "S3.D3",
        "start_interactive_command(command) gives the session id and the initial output",
        "send_command_input(session_id, input_text) gives the output after the input",
    )
    | _section(
        "S3 Constraints",
        "S3.C1",
        "Linux and macOS hosts are supported through pexpect",
        "at most one active interactive session per project",
        "the session timeout defaults to 300 s and is set by INTERACTIVE_CMD_TIMEOUT_SECONDS",
        "output chunks are capped at 64 KB per message",
        "interactivity is chosen by calling start_interactive_command; it is not auto-detected",
    )
    | _section(
        "S3 Verification",
        "S3.V1",
        "`sudo apt install …` runs through start_interactive_command",
        "the agent sees sudo's password prompt in the output",
        "the agent sends the password through send_command_input",
        "the agent sees the installation's progress",
        "the process completes and the agent sees exit code 0",
    )
    | {
        "S3.V1.6": Requirement(
            "S3 Verification", "non-interactive execute_command still works unchanged"
        )
    }
    | {
        "S3.V1.7": Requirement(
            "S3 Verification", "an abandoned session ends by itself after its timeout"
        )
    }
    | {
        "S3.V1.8": Requirement(
            "S3 Verification",
            "a hung session is killed by empty input with the terminate flag, or expires",
        )
    }
)

_S4 = (
    _section(
        "S4 R1: Real-time capture", "S4.R1", "stdout is captured incrementally as it is produced"
    )
    | {
        "S4.R1.2": Requirement(
            "S4 R1: Real-time capture", "stderr is captured incrementally as it is produced"
        )
    }
    | {
        "S4.R1.3": Requirement(
            "S4 R1: Real-time capture", "while a command runs, all output accumulates without loss"
        )
    }
    | {
        "S4.R1.4": Requirement(
            "S4 R1: Real-time capture", "captured output keeps its chronological order"
        )
    }
    | _section(
        "S4 R2: Status while running",
        "S4.R2",
        "query_command_status of a running command returns the stdout so far",
        "query_command_status of a running command returns the stderr so far",
        "repeated queries return progressively more output",
        "a query never blocks or delays the command",
    )
    | {"S4.R3.1": Requirement("S4 R3: PTY mode", "commands run in a pseudo-terminal")}
    | {
        "S4.R3.2": Requirement(
            "S4 R3: PTY mode",
            (
                "on Windows pywinpty emulates the terminal (no Windows host runs the tests: "
                "decision table, and a stand-in console)"
            ),
        )
    }
    | {"S4.R3.3": Requirement("S4 R3: PTY mode", "on Unix the standard pty mechanism is used")}
    | {
        "S4.R3.4": Requirement(
            "S4 R3: PTY mode", "a PTY that cannot be had falls back to pipes with a warning"
        )
    }
    | {
        "S4.R3.5": Requirement(
            "S4 R3: PTY mode",
            "ANSI sequences and control characters are captured; view raw returns them",
        )
    }
    | {
        "S4.R4.1": Requirement(
            "S4 R4: Buffers", "the buffer's maximum is configurable per command, 10 MB by default"
        )
    }
    | {
        "S4.R4.2": Requirement(
            "S4 R4: Buffers", "past the maximum older output is dropped and the newest kept"
        )
    }
    | {"S4.R4.3": Requirement("S4 R4: Buffers", "a truncation is shown in what a reader gets")}
    | {
        "S4.R4.4": Requirement(
            "S4 R4: Buffers", "the final output stays after the command completed"
        )
    }
    | _section(
        "S4 R5: Incremental reads",
        "S4.R5",
        "a read with an offset returns only output after it",
        "the answer carries the total length, to be used as the next offset",
        "an offset past the end gives empty output without an error",
        "without an offset all accumulated output is returned",
    )
    | _section(
        "S4 R6: Compatibility",
        "S4.R6",
        "run_command keeps its parameters",
        "query_command_status keeps its answer",
        "new parameters have defaults that keep the behaviour",
        "without PTY mode plain pipes are used",
    )
    | {
        "S4.R7.1": Requirement(
            "S4 R7: Errors", "a PTY that cannot be created gives a descriptive error"
        )
    }
    | {
        "S4.R7.2": Requirement(
            "S4 R7: Errors", "a failing buffer operation is logged and execution goes on"
        )
    }
    | {"S4.R7.3": Requirement("S4 R7: Errors", "output captured before a timeout is kept")}
    | {
        "S4.R7.4": Requirement(
            "S4 R7: Errors", "an unexpected error during capture does not crash the service"
        )
    }
)

REQUIREMENTS: dict[str, Requirement] = _S0 | _S1 | _S2 | _S3 | _S4
