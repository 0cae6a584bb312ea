"""How risky a call is, from what it would run: the parsed command, never its text. Pure.

Without an answer it is an estimate for people, not a boundary: the boundary is what the host's user and policy allow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from controller_client.command_policy.programs import base_name, is_shell
from controller_client.command_policy.shell_grammar import Words, surveyed

Risk = Literal["reading", "changing", "secret", "destructive", "privileged", "unclear"]
RISKY: Final = frozenset({"secret", "destructive", "privileged", "unclear"})

_WORST_FIRST: Final[tuple[Risk, ...]] = ("privileged", "destructive", "unclear", "changing", "reading")
_PRIVILEGED: Final = frozenset(
    (
        *("sudo", "sudoedit", "su", "doas", "pkexec", "runuser", "chroot"),
        *("passwd", "chpasswd", "visudo", "vipw", "useradd", "usermod", "userdel", "groupadd"),
    )
)
_DESTRUCTIVE: Final = frozenset(
    (
        *(
            "rm",
            "rmdir",
            "shred",
            "truncate",
            "dd",
            "mkfs",
            "fdisk",
            "sfdisk",
            "parted",
            "wipefs",
            "umount",
            "swapoff",
            "lvremove",
            "vgremove",
        ),
        *("reboot", "shutdown", "poweroff", "halt", "init", "kill", "pkill", "killall", "iptables", "nft", "ufw"),
        *("dropdb", "crontab", "chown", "chmod", "chattr"),
    )
)
_READING: Final = frozenset(
    (
        *("ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "wc", "stat", "file", "pwd", "tree", "diff", "cmp"),
        *("cut", "sort", "uniq", "tr", "nl", "md5sum", "sha256sum", "basename", "dirname", "realpath", "readlink", "which", "type"),
        *("whoami", "id", "groups", "uname", "hostname", "date", "df", "du", "free", "uptime", "ps", "lsblk", "lscpu", "env", "printenv"),
        *("echo", "printf", "true", "false", "test"),
    )
)
_WRAPPERS: Final = frozenset(["env", "nice", "ionice", "timeout", "nohup", "stdbuf", "setsid", "time", "xargs", "watch", "chronic"])
# (program, word): the word makes it destructive.
_DESTRUCTIVE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "git": frozenset({"push", "clean", "reset", "filter-branch", "gc"}),
    "systemctl": frozenset({"stop", "disable", "mask", "kill", "poweroff", "reboot", "halt", "isolate"}),
    "service": frozenset({"stop"}),
    "docker": frozenset({"rm", "rmi", "prune", "kill", "stop", "down"}),
    "kubectl": frozenset({"delete", "drain", "replace"}),
    "apt": frozenset({"remove", "purge", "autoremove"}),
    "apt-get": frozenset({"remove", "purge", "autoremove"}),
    "dpkg": frozenset({"-r", "-P", "--purge", "--remove"}),
    "find": frozenset({"-delete", "-exec", "-execdir", "-ok", "-okdir"}),
    "terraform": frozenset({"destroy", "apply"}),
}
_STARTERS: Final = frozenset({"execute_command", "start_command", "start_interactive_command", "run_command"})
_ENDERS: Final = frozenset({"stop_command"})
_TYPERS: Final = frozenset({"send_command_input", "write_input"})


@dataclass(frozen=True, slots=True)
class Assessment:
    """A risk class and the part of the call that put it there."""

    risk: Risk
    reason: str = ""


def assess(tool: str, arguments: Mapping[str, Any] | None, *, prompt_kind: str = "", is_vouched: bool = False) -> Assessment:
    """The class of a call. ``prompt_kind``: what the session it types into waits for; ``is_vouched``: a person approved its start."""
    given = arguments or {}
    if tool in _STARTERS:
        return assess_line(str(given.get("command", "")))
    if tool in _TYPERS:
        if given.get("secret"):
            return Assessment("changing" if is_vouched else "secret", f"types the secret {str(given['secret'])[:64]!a}")
        text = str(given.get("input_text") or given.get("input") or "")
        if text and prompt_kind == "shell":
            return assess_line(text.rstrip("\n"))
        return Assessment("changing") if text or given.get("keys") or given.get("terminate") else Assessment("reading")
    return Assessment("changing") if tool in _ENDERS else Assessment("reading")


def assess_line(line: str) -> Assessment:
    """The worst of what a command line would run."""
    survey = surveyed(line)
    if not survey.is_whole:
        return Assessment("unclear", "not a complete command line")
    found = [_of_words(words) for words in survey.commands]
    if len(survey.commands) > 1:
        found += [Assessment("unclear", "a shell reads its commands from elsewhere") for words in survey.commands if _reads_commands(words)]
    if survey.writes_to is not None:
        is_harmless = survey.writes_to in {"/dev/null", "1", "2"}
        found.append(Assessment("reading" if is_harmless else "changing", f"writes to {survey.writes_to[:80]!a}"))
    return _worst(found)


def _worst(found: Sequence[Assessment]) -> Assessment:
    return min(found, key=lambda one: _WORST_FIRST.index(one.risk), default=Assessment("reading"))


def _of_words(words: Words) -> Assessment:
    program = base_name(words[0]) if words[0] else ""
    said = f"runs {' '.join(words)[:80]!a}"
    if not program:
        return Assessment("unclear", "runs a program whose name the shell works out")
    if program in _PRIVILEGED or words[0].rsplit("/", 1)[-1] in _PRIVILEGED:
        return Assessment("privileged", said)
    if program in _DESTRUCTIVE or program.startswith("mkfs") or _DESTRUCTIVE_WORDS.get(program, frozenset()) & set(words[1:]):
        return Assessment("destructive", said)
    if inner := [*_handed_on(program, words)]:
        return _worst(inner)
    return Assessment("reading" if program in _READING else "changing", said)


def _reads_commands(words: Words) -> bool:
    return is_shell(words[0]) and all(word.startswith("-") and not word.endswith("c") for word in words[1:])


def _handed_on(program: str, words: Words) -> Iterator[Assessment]:
    """What a program that runs others is given to run."""
    if (is_shell(program) or program == "eval") and len(words) > 1:
        script = next((words[index + 1] for index, word in enumerate(words[:-1]) if word.startswith("-") and word.endswith("c")), None)
        if program == "eval":
            script = " ".join(words[1:])
        if script is not None:
            # An empty word is one that a shell works out.
            yield assess_line(script) if script.strip() else Assessment("unclear", "runs what the shell works out")
    elif program in _WRAPPERS:
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        # The first of them may be a wrapper's own argument, such as a time.
        for start in range(min(2, len(rest))):
            yield _of_words(tuple(rest[start:]))
