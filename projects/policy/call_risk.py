"""The one judge of calls: must a person be asked before a call is carried out? Pure.

``ask-all`` asks about every call that is not a pure read. ``ask-risky`` asks about every call that
is not known to be harmless. The risk class sorts what is asked and says where to look; no policy
lets a call pass because its class is a low one. What is listed here is what is known; a tool, an
argument or a program that is new is not known, and is asked about.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from controller_client.command_policy.programs import base_name
from controller_client.command_policy.shell_grammar import Words
from controller_client.command_policy.survey import surveyed
from projects.models import ApprovalPolicy
from projects.policy.harmless_commands import is_plain_directory, why_not_harmless

Risk = Literal["reading", "changing", "secret", "destructive", "privileged", "unclear"]

AUTO: Final = ApprovalPolicy.AUTO.value
ASK_RISKY: Final = ApprovalPolicy.ASK_RISKY.value
ASK_ALL: Final = ApprovalPolicy.ASK_ALL.value

HARMLESS: Final = frozenset[Risk]({"reading", "changing"})
"""Known to do no harm: reads, and changes of no more than what the caller itself started."""
Kind = Literal["reads", "shows", "starts", "types", "ends", "follows"]
TOOLS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(
        (
            *("list_controllers", "list_sessions", "list_session_monitors", "get_session"),
            *("read_session_output", "search_session_output", "read_output"),
            *("query_command_status", "get_session_updates"),
        ),
        "reads",
    ),
    "resize_session": "shows",
    "execute_command": "starts",
    "start_command": "starts",
    "start_interactive_command": "starts",
    "run_command": "starts",
    "send_command_input": "types",
    "write_input": "types",
    "stop_command": "ends",
    "stop_session_monitor": "ends",
    "start_session_monitor": "follows",
}
"""What each tool does. A tool that ``reads`` or ``shows`` never asks. One that is not here asks."""


def _all_that(kind: Kind) -> frozenset[str]:
    return frozenset(tool for tool, does in TOOLS.items() if does == kind)


NEVER_ASKING: Final = _all_that("reads") | _all_that("shows")
MONITORS: Final = frozenset({"start_session_monitor", "stop_session_monitor"})
"""Tools whose ``session_id`` is that of a monitor."""
STARTERS: Final = _all_that("starts")
TYPERS: Final = _all_that("types")

# Arguments that say where, how long and how much, and change nothing of what is done.
QUIET_ARGUMENTS: Final = frozenset(
    (
        *("session_id", "sessionId", "controller", "request_id", "requestId"),
        *("wait_seconds", "wait_for", "timeout", "timeout_seconds", "lifetime", "lifetime_seconds"),
        *("max_output_bytes", "max_buffer_size", "rows", "cols", "use_pty", "view"),
    )
)
# Arguments of one attempt. A repeat of the same call may have other ones.
WAITING_ARGUMENTS: Final = frozenset(
    {"request_id", "requestId", "wait_seconds", "wait_for", "max_output_bytes", "view"}
)
_DIRECTORIES: Final = ("cwd", "working_directory")
_ENDING_SIGNALS: Final = frozenset({"SIGTERM", "SIGKILL", "TERM", "KILL"})
_MOST_SHOWN_CHARS: Final = 80
_MOST_JUDGED_CHARS: Final = 16 * 1024
"""A call is judged in the event loop, before its arguments are checked."""
_PRIVILEGED_PROGRAMS: Final = (
    "sudo sudoedit su doas pkexec runuser run0 chroot setpriv nsenter passwd chpasswd visudo "
    "vipw useradd usermod userdel groupadd"
)
_DESTRUCTIVE_PROGRAMS: Final = (
    "rm rmdir unlink shred truncate dd mv mkfs fdisk sfdisk parted wipefs umount swapoff lvremove "
    "vgremove reboot shutdown poweroff halt"
    " init kill pkill killall iptables nft ufw dropdb crontab chown chmod chattr"
)
_PRIVILEGED: Final = frozenset(_PRIVILEGED_PROGRAMS.split())
_DESTRUCTIVE: Final = frozenset(_DESTRUCTIVE_PROGRAMS.split())
# (program, word): the word makes it destructive.
_DESTRUCTIVE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "git": frozenset({"push", "clean", "reset", "filter-branch", "gc", "checkout", "restore"}),
    "systemctl": frozenset(
        {"stop", "disable", "mask", "kill", "poweroff", "reboot", "halt", "isolate", "restart"}
    ),
    "service": frozenset({"stop", "restart"}),
    "docker": frozenset({"rm", "rmi", "prune", "kill", "stop", "down"}),
    "kubectl": frozenset({"delete", "drain", "replace"}),
    "apt": frozenset({"remove", "purge", "autoremove"}),
    "apt-get": frozenset({"remove", "purge", "autoremove"}),
    "dpkg": frozenset({"-r", "-P", "--purge", "--remove"}),
    "find": frozenset({"-delete"}),
    "rsync": frozenset({"--delete"}),
    "terraform": frozenset({"destroy", "apply"}),
}
_LINE_END: Final = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Standing:
    """The facts known of the session that a call is about; by default none.

    ``prompt_kind``: of the prompt that was reached after the last whole line, with nothing typed
    behind it; empty if that is not known. ``is_own``: the caller started it. ``is_vouched``: a
    person approved its start.
    """

    prompt_kind: str = ""
    is_own: bool = False
    is_vouched: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The risk class of a call, and the part of the call that put it there.

    ``acts``: the call does more than read what there is.
    """

    risk: Risk
    reason: str = ""
    acts: bool = True


_READS: Final = Judgement("reading", acts=False)
_OTHERS: Final[Mapping[str, Judgement]] = {
    "reads": _READS,
    "shows": Judgement("changing", "changes the size of a terminal", acts=False),
    "follows": Judgement("changing", "follows a log"),
}
_NOTHING_KNOWN: Final = Standing()


def is_asked(policy: str, judgement: Judgement) -> bool:
    """True if a person is asked first. A policy nobody knows asks about every call that acts."""
    if policy == AUTO:
        return False
    return judgement.risk not in HARMLESS if policy == ASK_RISKY else judgement.acts


def judged(
    tool: str, arguments: Mapping[str, Any] | None, standing: Standing = _NOTHING_KNOWN
) -> Judgement:
    """Judges what a call with these arguments may do.

    ``arguments`` are as the caller gave them, not yet checked.
    """
    kind = TOOLS.get(tool)
    # What is left out and what is given as nothing are the same to every tool.
    given = {
        name: value
        for name, value in (arguments or {}).items()
        if value not in (None, "", False, 0) and value not in ([], (), {})
    }
    if kind == "starts":
        return _of_start(given)
    if kind == "types":
        return _of_input(tool, given, standing)
    if kind == "ends":
        return _of_end(tool, given, standing)
    return _OTHERS.get(kind or "") or Judgement(
        "unclear", f"calls {tool[:_MOST_SHOWN_CHARS]!a}, which is not known"
    )


def _of_start(given: Mapping[str, Any]) -> Judgement:
    line = str(given.get("command", ""))
    asked = [
        _gift(name, given[name])
        for name in given
        if name not in {"command", *_DIRECTORIES, *QUIET_ARGUMENTS}
    ]
    asked += [
        f"starts in {str(given[name])[:_MOST_SHOWN_CHARS]!a}"
        for name in _DIRECTORIES
        if name in given and not is_plain_directory(str(given[name]))
    ]
    line_judgement = _of_line(line)
    if not asked:
        return line_judgement
    # What it is given may make it another program: variables, a script on standard input.
    worst = _worse(line_judgement, Judgement("unclear"), _of_script(given.get("input")))
    reasons = [*asked, *([line_judgement.reason] if line_judgement.reason else [])]
    return Judgement(worst.risk, "; ".join(reasons))


def _gift(name: str, value: Any) -> str:
    if name == "env" and isinstance(value, Mapping):
        return f"sets {_shown(', '.join(map(str, value)))}"
    return f"gives it {_shown(name)}"


def _of_input(tool: str, given: Mapping[str, Any], standing: Standing) -> Judgement:
    acting = {name: value for name, value in given.items() if name not in QUIET_ARGUMENTS}
    if not acting and tool == "send_command_input":
        # It only waits on.
        return _READS
    if set(acting) == {"ask_person"} and tool == "send_command_input":
        return Judgement("changing", "asks a person to type a secret")
    if set(acting) == {"terminate"}:
        return _ending(standing)
    if set(acting) == {"secret"}:
        is_meant = standing.is_vouched and standing.is_own
        return Judgement(
            "changing" if is_meant else "secret", f"types the secret {_shown(acting['secret'])}"
        )
    text = str(acting.get("input_text") or acting.get("input") or "")
    if (why := _why_no_line(tool, acting, text, standing)) is not None:
        # The text is not quoted: it may answer a question for a secret.
        return Judgement(
            _of_script(text).risk,
            f"{' and '.join(sorted(map(str, acting)))[:_MOST_SHOWN_CHARS] or 'nothing'}: {why}",
        )
    return _of_line(text[:-1]) if text.strip(" \n") else Judgement("reading", "types an empty line")


def _why_no_line(tool: str, acting: Mapping[str, Any], text: str, standing: Standing) -> str | None:
    """None if the input is one whole line for a waiting shell that the caller started.

    Else the text says what is not known of the input.
    """
    if standing.prompt_kind != "shell" or not standing.is_own:
        return (
            "it is not known to reach a shell's prompt, and any other program may do anything "
            "with it"
        )
    if set(acting) != {"input_text"} or tool != "send_command_input":
        return "what it edits, ends or signals is not known"
    if not text.endswith("\n") or _LINE_END.search(text[:-1]):
        return "it is something else than one whole line"
    return None


def _of_end(tool: str, given: Mapping[str, Any], standing: Standing) -> Judgement:
    if tool == "stop_session_monitor":
        if given.get("save_log") is True:
            return Judgement("changing", "stops following a log")
        return Judgement("destructive", "deletes the log unless it is kept by save_log")
    signal = given.get("signal")
    if signal is not None and str(signal).upper() not in _ENDING_SIGNALS:
        return Judgement(
            "unclear", f"sends {_shown(signal)}, and what the program does then is its own"
        )
    return _ending(standing)


def _ending(standing: Standing) -> Judgement:
    # A session that the caller started is ended by its lifetime in any case.
    if standing.is_own:
        return Judgement("changing", "ends a session that the caller started")
    return Judgement("destructive", "ends a session that the caller did not start")


def _of_line(line: str) -> Judgement:
    """Judges a command line: harmless, or the worst class of the programs it would run.

    Only what can be parsed is judged.
    """
    if len(line) > _MOST_JUDGED_CHARS:
        return Judgement("unclear", "is longer than what is looked at")
    if (odd := why_not_harmless(line)) is None:
        return Judgement("reading", f"runs {line[:_MOST_SHOWN_CHARS]!a}")
    survey = surveyed(line)
    found = [judgement for words in survey.commands if (judgement := _of_words(words)) is not None]
    return _worse(*found, Judgement("unclear", odd)) if found else Judgement("unclear", odd)


def _of_script(text: Any) -> Judgement:
    """Judges a text that may be a script: its class can only be worse than unclear."""
    found = [_of_line(line) for line in _LINE_END.split(str(text or ""))[:100] if line.strip()]
    return _worse(*(one for one in found if one.risk != "reading"), Judgement("unclear"))


_WORST_FIRST: Final[Sequence[Risk]] = (
    "privileged",
    "destructive",
    "secret",
    "unclear",
    "changing",
    "reading",
)


def _worse(*found: Judgement) -> Judgement:
    return min(found, key=lambda one: _WORST_FIRST.index(one.risk))


def _of_words(words: Words) -> Judgement | None:
    """The class of a program by its name and words; None if nothing is known of it.

    A word counts wherever it stands.
    """
    said = f"runs {' '.join(words)[:_MOST_SHOWN_CHARS]!a}"
    names = [base_name(word) for word in words if word]
    if any(name in _PRIVILEGED for name in names):
        return Judgement("privileged", said)
    is_destructive = any(name in _DESTRUCTIVE or name.startswith("mkfs") for name in names)
    if is_destructive or any(
        not _DESTRUCTIVE_WORDS.get(name, frozenset()).isdisjoint(words) for name in names
    ):
        return Judgement("destructive", said)
    # A script in one word, such as that of sh -c, is looked into as well.
    inner = [_of_line(word) for word in words[1:] if " " in word.strip()]
    worse = [one for one in inner if one.risk in {"privileged", "destructive"}]
    return _worse(*worse) if worse else None


def _shown(value: Any) -> str:
    return f"{str(value)[:_MOST_SHOWN_CHARS]!a}"
