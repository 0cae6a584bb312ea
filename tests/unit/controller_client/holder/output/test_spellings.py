"""The forms of a secret are those that programs really write, and each of them is masked."""

import json
import os
import shlex
import shutil
import subprocess
from html import escape
from pathlib import Path
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
    "a%b&c'(d)*e+f,g",
)
# Each prints one line for each word it is given.
PROGRAMS = {
    "bash %q": ["bash", "-c", 'printf "%q\\n" "$@"', "x"],
    "bash @Q": ["bash", "-c", 'for v; do echo "${v@Q}"; done', "x"],
    "bash declare": ["bash", "-c", "for v; do declare -p v; done", "x"],
    "bash -x": ["bash", "-c", 'exec 2>&1; set -x; for v; do : "$v"; done', "x"],
    "dash set": ["dash", "-c", "for v; do set | grep ^v=; done", "x"],
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
            "s => Object.assign(new URL('http://host/'), {password: s}).href",
        )
    },
}
# What other programs write, which the tests do not need: zsh 5.9, fish 3.6, jq, PHP and Ruby.
WRITTEN = [
    ("zsh q", "a,b#c d=~e!f", "a,b\\#c\\ d=~e!f"),
    ("zsh q", 'q"u`o$t\\e!s', 'q\\"u\\`o\\$t\\\\e!s'),
    ("zsh q", "-~#lead ing", "-~\\#lead\\ ing"),
    ("zsh qq", "'begins and ends'", "''\\''begins and ends'\\'''"),
    ("zsh qq", "back\\slash's", "'back\\slash'\\''s'"),
    ("zsh qqq", 'q"u`o$t\\e!s', '"q\\"u\\`o\\$t\\\\e!s"'),
    ("zsh typeset", "'begins and ends'", "typeset v=\\''begins and ends'\\'"),
    ("zsh typeset", "'lead it's", "typeset v=\\''lead it'\\''s'"),
    ("zsh typeset", "two''in a'row", "typeset v='two'\\'\\''in a'\\''row'"),
    ("zsh typeset", "it's (a) *b*", "typeset v='it'\\''s (a) *b*'"),
    ("fish", "it's ~50%", "it\\'s\\ \\~50\\%"),
    ("fish", "a,b#c d=~e!f's", "a,b\\#c\\ d=\\~e!f\\'s"),
    ("fish", "back\\slash's", "back\\\\slash\\'s"),
    ("jq @uri", "per%cent+plus/sl@sh?", "per%25cent%2Bplus%2Fsl%40sh%3F"),
    ("jq @uri", "pä ss'wörd", "p%C3%A4%20ss'w%C3%B6rd"),
    ("jq @html", "x&y<z>'w'=\"1\"", "x&amp;y&lt;z&gt;&apos;w&apos;=&quot;1&quot;"),
    ("jq @sh", "it's (a) *b*", "'it'\\''s (a) *b*'"),
    ("php urlencode", "per%cent ~/sl@sh?", "per%25cent+%7E%2Fsl%40sh%3F"),
    ("php rawurlencode", "k:~v=~w x*", "k%3A~v%3D~w%20x%2A"),
    ("php htmlspecialchars", "x&y<z>'w'=\"1\"", "x&amp;y&lt;z&gt;&#039;w&#039;=&quot;1&quot;"),
    ("php json_encode", "pä/ss'wörd", '"p\\u00e4\\/ss\'w\\u00f6rd"'),
    (
        "php json_encode hex",
        "x&y<z>'w'=\"1\"",
        '"x\\u0026y\\u003Cz\\u003E\\u0027w\\u0027=\\u00221\\u0022"',
    ),
    ("php escapeshellarg", "'begins and ends'", "''\\''begins and ends'\\'''"),
    ("php var_export", "back\\slash's", "'back\\\\slash\\'s'"),
    ("ruby CGI.escape", "per%cent ~/sl@sh?", "per%25cent+~%2Fsl%40sh%3F"),
    ("ruby CGI.escapeHTML", "x&y<z>'w'=\"1\"", "x&amp;y&lt;z&gt;&#39;w&#39;=&quot;1&quot;"),
    ("ruby ERB::Util.url_encode", "k:~v=~w x*", "k%3A~v%3D~w%20x%2A"),
    ("ruby JSON.generate", 'back\\slash "€"', '"back\\\\slash \\"€\\""'),
    ("ruby shellescape", "k:~v=~w x*", "k:\\~v\\=\\~w\\ x\\*"),
    ("ruby shellescape", "pä ss'wörd", "p\\ä\\ ss\\'w\\örd"),
]


def _masked(secret: str, text: str) -> str:
    forms = SecretForms()
    forms.add(secret.encode())
    mask = OutputMask(forms)
    return (mask.feed(text.encode()) + mask.release()).decode("utf-8", "replace")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_secret_is_masked_as_a_program_writes_it(name: str, tmp_path: Path) -> None:
    program, *arguments = PROGRAMS[name]
    found = shutil.which(program)
    assert found is not None, f"{program} has to be installed"
    ran = subprocess.run(
        [found, *arguments, *(("--",) if program == "node" else ()), *SECRETS],
        stdout=subprocess.PIPE,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)},
    )
    lines = [line for line in ran.stdout.decode().splitlines() if line.strip("+ ")]
    lines = [line for line in lines if not line.startswith("+ for")]
    assert len(lines) == len(SECRETS)
    for secret, line in zip(SECRETS, lines, strict=True):
        assert MASK.decode() in _masked(secret, line), line


@pytest.mark.parametrize(("program", "secret", "written"), WRITTEN)
def test_a_secret_is_masked_as_it_was_written_by(program: str, secret: str, written: str) -> None:
    assert MASK.decode() in _masked(secret, written), program


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_as_libraries_write_it(secret: str) -> None:
    html_of_go = escape(secret).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    json_of_go = json.dumps(secret, ensure_ascii=False)
    for character in "<>&":
        json_of_go = json_of_go.replace(character, f"\\u{ord(character):04x}")
    for written in (
        repr(secret),
        ascii(secret),
        repr(secret.encode()),
        repr([secret.encode(), b"'", b'"']),
        secret.replace("\\", "\\\\"),
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
