"""The forms that programs give a secret when they print it: each is looked for in the output.

Escaping differs from program to program in the characters that are escaped, and in the case of
their digits. Most secrets have few such characters, so most of these forms are the same.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final
from urllib.parse import quote_from_bytes

# What is not escaped in a URL besides letters, digits and "_.-~": by curl and most libraries; in a
# path, by Python and by Go; by encodeURIComponent and by encodeURI; in a form, and as the password
# of an address, by browsers.
_UNESCAPED_IN_URLS: Final = (*("", "/", "$&+=:@", "!'()*", ";,/?:@&=+$#!'()*", "*", "!$%&'()*+,"),)
# What is written as a number in JSON besides what has to be: by templates, by Go and Django, by PHP
# if it is asked to, by Gson, by .NET.
_NUMBERED_IN_JSON: Final = (
    *("", "<>", "<>&", '<>&"', "<>&'", "<>&'\"", "<>&'=", "<>&'+`", "<>&'\"+`"),
)
_APOSTROPHES: Final = ("'", "&#x27;", "&#39;", "&#039;", "&apos;")
# Written as a number: what has a meaning in HTML, or all that belongs to no word.
_NUMBERED_IN_HTML: Final = (
    re.compile(r"[<>&\"']").match,
    re.compile(r"[^\w ./-]").match,
)
_REFERENCES: Final = ("&#%d;", "&#x%x;", "&#x%X;")
_APOSTROPHES_IN_A_ROW: Final = re.compile("'+")
_QUOTATION_MARKS: Final = ('"', "&quot;", "&#34;")
# What a backslash is put before: by bash, by zsh, by fish, by Ruby, and by whoever is careful.
_QUOTED_BY_SHELLS: Final = (
    re.compile(r"[ !\"$&'()*,;<>?\[\\\]^`{|}]|^[#~]|(?<=[:=])~"),
    re.compile(r"[ !\"#$&'()*;<>?\[\\\]^`{|}]|^[=~]"),
    re.compile(r"[ \"#$&'()*;<>?\[\\\]^`{|}]|^[=~]"),
    re.compile(r"[ \"#$%&'()*;<>?\[\\\]{|}~]"),
    re.compile(r"[^\w,:+/@.-]", re.ASCII),
    re.compile(r"[^\w@%+=:,./-]"),
    # Between quotation marks, and between quotation marks where ! stands for a line of the history.
    re.compile(r'[$`"\\]'),
    re.compile(r'[$`"\\!]'),
    # Between apostrophes after a dollar, and in a text of Python.
    re.compile(r"['\\]"),
    re.compile("'"),
)


def forms_of(secret: bytes) -> Iterator[bytes]:
    """Yield the secret as it is and as programs write it."""
    text = secret.decode("utf-8", "surrogateescape")
    yield secret
    yield from _base64_forms(secret)
    forms = (*_in_json(text), *_in_html(text), *_in_shells(text), *_in_tables(text))
    for form in (*_in_urls(secret), *forms, *_in_source(secret, text)):
        yield form.encode("utf-8", "surrogateescape")
    # UTF-16 of either byte order. For ASCII both orders have the same inner part, letters with a
    # NUL between them, so that part is looked for.
    for wide in (
        text.encode("utf-16-le", "surrogatepass"),
        text.encode("utf-16-be", "surrogatepass"),
    ):
        yield wide.strip(b"\0") if text.isascii() else wide


def _base64_forms(secret: bytes) -> Iterator[bytes]:
    """Yield base64 of the secret alone, and the characters that are sure inside other text.

    Which characters are sure depends on the alignment: 0, 1 or 2 bytes before the secret.
    """
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(secret).rstrip(b"=")
        for lead in range(3):
            encoded = encode(b"\0" * lead + secret)
            first = (lead * 8 + 5) // 6
            yield encoded[first : (lead + len(secret)) * 8 // 6]


def _in_urls(secret: bytes) -> Iterator[str]:
    for unescaped in _UNESCAPED_IN_URLS:
        quoted = quote_from_bytes(secret, safe=unescaped)
        for blank, tilde, is_lower in product(("%20", "+"), ("~", "%7E"), (False, True)):
            form = quoted.replace("%20", blank).replace("~", tilde)
            yield re.sub("%[0-9A-F]{2}", _lower, form) if is_lower else form


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


def _in_json(text: str) -> Iterator[str]:
    # A holder that is given no secret needs no json.
    import json

    # Django writes these numbers in capitals, and those of other letters not.
    styles = ("\\u%04x", "\\u%04X")
    for numbered, is_ascii, style in product(_NUMBERED_IN_JSON, (True, False), styles):
        form = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        for character in numbered:
            escaped = style % ord(character)
            form = form.replace('\\"' if character == '"' else character, escaped)
        for slash in ("/", "\\/"):
            slashed = form.replace("/", slash)
            yield slashed
            yield re.sub(r"(?<!\\)((?:\\\\)*\\u)([0-9a-f]{4})", _upper, slashed)


def _upper(found: re.Match[str]) -> str:
    return found[1] + found[2].upper()


def _in_html(text: str) -> Iterable[str]:
    # Without the module html, whose entities take memory. A > may stay as it is.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    for form in (escaped.replace(">", "&gt;"), escaped):
        for apostrophe, quotation_mark in product(_APOSTROPHES, _QUOTATION_MARKS):
            quoted = form.replace("'", apostrophe).replace('"', quotation_mark)
            yield quoted
            yield quoted.encode("ascii", "xmlcharrefreplace").decode()
    for reference, is_numbered in product(_REFERENCES, _NUMBERED_IN_HTML):
        yield "".join(reference % ord(one) if is_numbered(one) else one for one in text)


def _in_shells(text: str) -> Iterator[str]:
    # Between apostrophes, without those around it, which may hold more than the secret.
    yield text.replace("'", "'\"'\"'")
    # zsh writes an apostrophe at either end outside of the others, and several in a row together.
    for written in (text.replace("'", "'\\''"), _APOSTROPHES_IN_A_ROW.sub(_quoted_in_zsh, text)):
        yield written[text.startswith("'") : len(written) - text.endswith("'")]
    for quoted in _QUOTED_BY_SHELLS:
        yield quoted.sub(lambda found: f"\\{found[0]}", text)


def _in_source(secret: bytes, text: str) -> Iterator[str]:
    # As many list a value: a backslash is doubled, and nothing else is changed.
    yield text.replace("\\", "\\\\")
    # As Python writes bytes, and a text in ASCII. Where both kinds of quotation marks are in it, a
    # backslash stands before each apostrophe.
    for written in (ascii(b'"' + secret)[3:-1], ascii('"' + text)[2:-1]):
        yield written
        yield written.replace("\\'", "'")


def _quoted_in_zsh(found: re.Match[str]) -> str:
    return "'" + "\\'" * len(found[0]) + "'"


def _in_tables(text: str) -> Iterator[str]:
    # SQL and YAML double an apostrophe, SQL and CSV a quotation mark.
    yield text.replace("'", "''")
    yield text.replace('"', '""')
