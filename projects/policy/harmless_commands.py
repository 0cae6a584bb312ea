"""Command lines that are known to be harmless. Pure.

They change nothing, start nothing else, and read nothing that is marked as private.

A line is harmless only if every part of it is on a list here: its characters, its program, each
option and each operand. Whatever is not on a list is not known, and a person is asked. The lists
are short on purpose: a program belongs here only if no option that is listed, no configuration file
and no variable makes it write, run or connect to something. ``sort`` (``-o``,
``--compress-program``), ``find`` (``-exec``), ``printf`` and ``test`` (in bash they can evaluate an
array's index), ``env`` and everything of git do not.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

# Every shell, and this host's own splitting of words, reads these characters in the same way.
_WORD: Final = re.compile(
    r"""[A-Za-z0-9_./:,+@%=-]+"""
    r"""|'[A-Za-z0-9_./:,+@%=^$*?(){}\[\]|&;<>"# -]*'"""
    r"""|"[A-Za-z0-9_./:,+@%= -]*\""""
)
_LINE: Final = re.compile(rf" *(?:{_WORD.pattern})(?: +(?:{_WORD.pattern}))* *")
_PROGRAM: Final = re.compile(r"(?:(?:/usr)?/bin/)?([a-z][a-z0-9]*)")
# What programs do with these is not reading a file: they wait, take what another reader would get,
# act on a device, or have the system connect to the host that the path names.
_SPECIAL_ROOTS: Final = ("/dev", "/proc", "/sys", "/run", "/var/run", "/net", "/afs")
_PRIVATE: Final = re.compile(
    r"shadow|passw|secret|token|credential|private|\bkeys?\b|_key|key_|\.key\b|\.pem\b|\.p12\b|\.pfx\b|\.env\b|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|keystore|keytab|kubeconfig|passphrase|wireguard|system-connections|tfstate|auth\.json|rclone"
    r"|\.envrc|\.jks\b|\.kdbx\b|\.ovpn\b|\.boto\b|\.s3cfg\b"
    r"|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.netrc|\.pgpass|\.my\.cnf|\.npmrc|\.pypirc|htpasswd|sudoers|history|\.git-|holdline",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Form:
    """The arguments that a program may be given.

    They are ``letters`` of short options, whole ``options``, those ``with_number``, and operands.
    """

    letters: str = ""
    options: frozenset[str] = frozenset()
    with_number: str = ""
    takes: Callable[[str], bool] | None = None
    most: int = 64


def _is_public_path(word: str) -> bool:
    if _PRIVATE.search(word) or ".." in word.split("/"):
        return False
    # A relative path may start from the root: the directory is given, or the host's user's own.
    whole = posixpath.normpath("/" + word.lstrip("/"))
    return (
        not any(whole == root or whole.startswith(root + "/") for root in _SPECIAL_ROOTS)
        and "//" not in word
        and "/./" not in word
    )


def _is_text(_word: str) -> bool:
    return True


def _is_time_format(word: str) -> bool:
    return word.startswith("+")


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.+-]*", word) is not None


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILES: Final = _is_public_path
_CHECKSUM: Final = Form("b", _options("--binary --tag"), takes=_FILES)
_FORMS: Final = {
    "ls": Form(
        "aAbBcCdfFgGhHiIklLmnNopqQrRsStuUvxXZ1",
        _options("--all --almost-all --color=never --full-time --human-readable"),
        takes=_FILES,
    ),
    "cat": Form("AbeEnstTuv", _options("--number --show-all"), takes=_FILES),
    "head": Form("qv", _options("--quiet --verbose"), with_number="nc", takes=_FILES),
    "tail": Form("qvfF", _options("--quiet --verbose --follow"), with_number="nc", takes=_FILES),
    "wc": Form("cmlLw", takes=_FILES),
    "nl": Form("", takes=_FILES),
    "stat": Form("Lft", takes=_FILES),
    "file": Form("biL", _options("--brief --mime --mime-type"), takes=_FILES),
    "md5sum": _CHECKSUM,
    "sha1sum": _CHECKSUM,
    "sha256sum": _CHECKSUM,
    "sha512sum": _CHECKSUM,
    "basename": Form("az", takes=_is_text),
    "dirname": Form("z", takes=_is_text),
    "realpath": Form("emsz", takes=_FILES),
    "readlink": Form("femnz", takes=_FILES),
    "du": Form(
        "abcDhHklLmsSx0",
        _options("--summarize --human-readable --max-depth=1 --max-depth=2"),
        with_number="d",
        takes=_FILES,
    ),
    "df": Form("ahHiklTP", _options("--total --human-readable"), takes=_FILES),
    "which": Form("a", takes=_is_name),
    "echo": Form("n", takes=_is_text),
    "true": Form(),
    "false": Form(),
    "pwd": Form("LP"),
    "whoami": Form(),
    "id": Form("gGnruz", takes=_is_name, most=1),
    "groups": Form("", takes=_is_name, most=1),
    "uname": Form("asnrvmpio", _options("--all")),
    "arch": Form(),
    "nproc": Form("", _options("--all")),
    # Without an operand: with one it sets the name.
    "hostname": Form("fsiId", _options("--fqdn --short --all-ip-addresses")),
    "date": Form(
        "uRI",
        _options("--utc --iso-8601 --iso-8601=seconds --rfc-3339=seconds"),
        takes=_is_time_format,
        most=1,
    ),
    "uptime": Form("ps", _options("--pretty --since")),
    "free": Form("bkmghltw", _options("--human --mega --giga")),
    "ps": Form(
        "eAfFlHjLT",
        _options("--forest"),
        takes=frozenset({"a", "ax", "aux", "auxf", "auxww", "x", "f"}).__contains__,
        most=1,
    ),
    "lsblk": Form("abdfilmnopStz"),
    "lscpu": Form("ae"),
    "sleep": Form(
        "",
        takes=lambda word: re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?[smh]?", word) is not None,
        most=1,
    ),
}
_GREP: Final = Form(
    "cEFGhHilLnoqsvwxabIz",
    _options("--color=never --ignore-case --count --line-number --fixed-strings"),
    with_number="ABCm",
    takes=_FILES,
)
HARMLESS_PROGRAMS: Final = frozenset({*_FORMS, "grep", "egrep", "fgrep"})
"""Those of which some form is known to be harmless."""


def why_not_harmless(line: str) -> str | None:
    """None if the line is known to be harmless, whoever reads it: a shell, or nobody.

    Else the part that is not known, in words.
    """
    if not _LINE.fullmatch(line):
        return "is more than one plain command in plain characters"
    words = [_unquoted(found) for found in _WORD.findall(line)]
    first = _WORD.search(line)
    named = _PROGRAM.fullmatch(first[0] if first else "")
    if named is None or named[1] not in HARMLESS_PROGRAMS:
        return f"runs {words[0][:80]!a}, which is not known to be harmless"
    program, given = named[1], words[1:]
    if program in {"grep", "egrep", "fgrep"}:
        # The first operand is what is looked for, not a file.
        pattern = next(
            (
                index
                for index, word in enumerate(given)
                # A lone "-" is a pattern as well.
                if (word == "-" or not word.startswith("-"))
                and not _is_number_of(given, index, _GREP)
            ),
            None,
        )
        given = given if pattern is None else given[:pattern] + given[pattern + 1 :]
        form = _GREP
    else:
        form = _FORMS[program]
    if program == "ps" and len({word.startswith("-") for word in given}) > 1:
        # It reads all of its words in the other way then, in which "e" shows environments.
        return "gives ps options of two kinds, which are not known to be harmless"
    odd = _odd_word(given, form)
    return (
        None if odd is None else f"gives {program} {odd[:80]!a}, which is not known to be harmless"
    )


def is_plain_directory(directory: str) -> bool:
    """True if starting there is known to change nothing.

    The directory is an absolute path, neither private nor a device's.
    """
    return (
        directory.startswith("/")
        and re.fullmatch(r"[A-Za-z0-9_./:,+@% -]+", directory) is not None
        and _is_public_path(directory)
    )


def _unquoted(word: str) -> str:
    return word[1:-1] if word[:1] in {"'", '"'} else word


def _is_number_of(words: Sequence[str], index: int, form: Form) -> bool:
    """True if this word is the number of the option before it."""
    before = words[index - 1] if index else ""
    return (
        len(before) == 2
        and before[0] == "-"
        and before[1] in form.with_number
        and words[index].isdigit()
    )


def _odd_word(words: Sequence[str], form: Form) -> str | None:
    """The first word that is not known."""
    operands = 0
    for index, word in enumerate(words):
        if word.startswith("-") and word != "-":
            if not _is_known_option(word, words[index + 1 : index + 2], form):
                return word
        elif not _is_number_of(words, index, form):
            operands += 1
            if form.takes is None or operands > form.most or not form.takes(word):
                return word
    return None


def _is_known_option(word: str, following: Sequence[str], form: Form) -> bool:
    if word in form.options:
        return True
    letters = word[1:]
    if form.with_number and letters.isdigit():
        # As in head -20.
        return True
    if letters[:1] in set(form.with_number):
        return letters[1:].isdigit() or (
            not letters[1:] and bool(following) and following[0].isdigit()
        )
    return bool(letters) and all(letter in form.letters for letter in letters)
