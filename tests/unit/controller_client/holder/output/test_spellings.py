"""The forms of a secret are those that programs really write, and each of them is masked."""

import json
import shlex
import shutil
import subprocess
from html import escape
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest

from controller_client.holder.output.mask import MASK, OutputMask, SecretForms
from controller_client.protocol.limits import MIN_MASKED_BYTES

# With what some program escapes and another one does not.
SECRETS = (
    "correct-horse",
    "it's (a) *b*",
    "tri'p l\"e and more",
    "a,b#c d=~e!f",
    "x&y<z>w=1",
    'q"u`o$t\\e!s',
    "p[a]{s}^s|w;o",
    "-~#lead ing",
    "k:~v=~w x",
    "per%cent+plus/sl@sh?",
    "p\u00e4 ss'w\u00f6rd",
    "\u20ac uro & co",
    "back\\slash's",
    "'begins and ends'",
    "a!b$c d",
)
# Each prints one line for each word it is given. Only those that this machine has are run.
PROGRAMS = {
    "bash %q": ["bash", "-c", 'printf "%q\\n" "$@"', "x"],
    "bash @Q": ["bash", "-c", 'for v; do echo "${v@Q}"; done', "x"],
    "bash declare": ["bash", "-c", "for v; do declare -p v; done", "x"],
    "bash -x": ["bash", "-c", 'exec 2>&1; set -x; for v; do : "$v"; done', "x"],
    "dash set": ["dash", "-c", "for v; do set | grep ^v=; done", "x"],
    "zsh q": ["zsh", "-fc", "for v; do print -r -- ${(q)v}; done", "x"],
    "zsh qq": ["zsh", "-fc", "for v; do print -r -- ${(qq)v}; done", "x"],
    "zsh qqq": ["zsh", "-fc", "for v; do print -r -- ${(qqq)v}; done", "x"],
    "zsh typeset": ["zsh", "-fc", "for v; do typeset -p v; done", "x"],
    "zsh -x": ["zsh", "-fc", 'exec 2>&1; set -x; for v; do : "$v"; done', "x"],
    "fish": ["fish", "-c", "for v in $argv; string escape -- $v; end"],
    **{
        f"jq {form}": ["jq", "-nr", f"$ARGS.positional[] | {form}", "--args"]
        for form in ("@uri", "@html", "@sh", "@json", "@base64")
    },
    **{
        f"node {function}": [
            "node",
            "-e",
            f"for (const s of process.argv.slice(1)) console.log(({function})(s))",
        ]
        for function in (
            "encodeURIComponent",
            "encodeURI",
            "JSON.stringify",
            "s => new URLSearchParams({s}).toString()",
            "s => require('util').inspect(s)",
        )
    },
    **{
        f"php {function}": [
            "php",
            "-r",
            f"foreach (array_slice($argv, 1) as $s) echo {function}, PHP_EOL;",
        ]
        for function in (
            "urlencode($s)",
            "rawurlencode($s)",
            "htmlspecialchars($s, ENT_QUOTES)",
            "json_encode($s)",
            "json_encode($s, JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT)",
            "escapeshellarg($s)",
            "var_export($s, true)",
        )
    },
    **{
        f"ruby {function}": [
            "ruby",
            "-rcgi",
            "-rerb",
            "-rjson",
            "-rshellwords",
            "-e",
            f"ARGV.each {{ |s| puts {function} }}",
        ]
        for function in (
            "CGI.escape(s)",
            "CGI.escapeHTML(s)",
            "ERB::Util.url_encode(s)",
            "JSON.generate(s)",
            "s.shellescape",
        )
    },
}
HERE = [name for name, command in PROGRAMS.items() if shutil.which(command[0])]


def _masked(secret: str, text: str) -> str:
    forms = SecretForms()
    forms.add(secret.encode())
    mask = OutputMask(forms)
    return (mask.feed(text.encode()) + mask.release()).decode("utf-8", "replace")


@pytest.mark.parametrize("name", HERE)
def test_a_secret_is_masked_as_a_program_writes_it(name: str) -> None:
    ran = subprocess.run(
        [*PROGRAMS[name], *(("--",) if name.startswith(("node", "ruby")) else ()), *SECRETS],
        stdout=subprocess.PIPE,
        check=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"},
    )
    lines = [line for line in ran.stdout.decode().splitlines() if line.strip("+ ")]
    lines = [line for line in lines if not line.startswith(("+ for", "+zsh:1> v="))]
    assert len(lines) == len(SECRETS)
    for secret, line in zip(SECRETS, lines, strict=True):
        assert MASK.decode() in _masked(secret, line), line


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_as_libraries_write_it(secret: str) -> None:
    html_of_go = escape(secret).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    json_of_go = json.dumps(secret, ensure_ascii=False)
    for character in "<>&":
        json_of_go = json_of_go.replace(character, f"\\u{ord(character):04x}")
    for written in (
        repr(secret),
        shlex.quote(secret),
        json.dumps(secret),
        json.dumps(secret).replace("<", "\\u003C").replace(">", "\\u003E"),
        json_of_go,
        quote(secret),
        quote_plus(secret),
        quote(secret, safe="$&+=:@"),
        quote_plus(secret, safe="*").replace("~", "%7E"),
        html_of_go,
        saxutils.escape(secret),
        saxutils.quoteattr(secret),
    ):
        assert MASK.decode() in _masked(secret, f"begin {written} end"), written
        # The text around it is left.
        assert _masked(secret, f"begin {written} end").startswith("begin ")
        assert _masked(secret, f"begin {written} end").endswith(" end")


def test_a_form_is_longer_than_what_is_too_short_to_be_masked() -> None:
    assert MIN_MASKED_BYTES == 6
    # Escaped, a short secret would be long enough; its forms say what it is.
    assert _masked("a b", "a%20b a b") == "a%20b a b"


def test_a_long_secret_has_few_forms_of_a_few_kilobytes() -> None:
    forms = SecretForms()
    forms.add(b"'\"&" * 341)
    assert forms.longest < 8 * 1024
    mask = OutputMask(forms)
    # Nothing that is not its own beginning is held back.
    assert mask.feed(b"x" * 65536) == b"x" * 65536
