"""What a prompt asks for is given where it is certain, and is right where it is given.

``tests/data/prompts.jsonl`` holds 252 prompts in 27 languages. Its truth was written from the
programs' documentation and catalogues before any code judged a prompt. At the first run an answer
was given for 199 of them (79.0 %), and for 164 of the 170 questions for yes, no or a choice
(96.5 %); 197 of the 199 were right (99.0 %). ``docs/architecture.md`` has the last figures.

``later_prompts.jsonl`` holds prompts that were written later, without a look into the code, and
before any code judged them. They are those with one true answer of four lists. At their first runs
91.5 %, 92.3 %, 88.7 % and 87.3 % of what was given was right.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from projects.sessions.asked.confirmation import may_tell_answers, word_above
from projects.sessions.asked.expectation import (
    DrawnScreen,
    Expectation,
    Surroundings,
    expectation,
)
from projects.sessions.asked.sentences import told_above

_DATA = Path(__file__).parents[4] / "data"


def _listed(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text().splitlines()]


_PROMPTS = _listed("prompts.jsonl")
_LATER = _listed("later_prompts.jsonl")
_NOTHING = Expectation()


def _around(above: list[str], screen: DrawnScreen | None = None) -> Surroundings:
    return Surroundings(lambda: above, lambda: screen)


def _asked(text: str, *above: str, kind: str = "line") -> Expectation:
    return expectation(kind, text, _around(list(above)))


def _drawn(*lines: str, cursor: tuple[int, int] = (0, 0)) -> Expectation:
    return expectation("key", "", _around([], DrawnScreen(lines, *cursor)))


def _judged(entry: dict[str, Any]) -> Expectation:
    screen = None
    if "screen" in entry:
        lines = entry["screen"]
        screen = DrawnScreen(lines, *entry.get("cursor", (len(lines) - 1, 0)))
    return expectation(entry["kind"], entry["text"], _around(entry.get("above", []), screen))


def _truth(entry: dict[str, Any]) -> Expectation:
    return Expectation(entry["expects"], tuple(entry.get("choices", ())), entry.get("on_enter"))


Judged = list[tuple[Expectation, Expectation]]
_JUDGED = [(_judged(entry), _truth(entry)) for entry in _PROMPTS]
_LISTS = pytest.mark.parametrize(
    "judged",
    [_JUDGED, [(_judged(entry), _truth(entry)) for entry in _LATER]],
    ids=["the first list", "the later list"],
)


def test_the_list_has_200_prompts_and_15_languages() -> None:
    assert len(_PROMPTS) >= 200
    assert len({entry["language"] for entry in _PROMPTS}) >= 15


def test_no_line_that_tells_an_answer_is_passed_over() -> None:
    entries = (*_PROMPTS, *_LATER)
    lines = {line for entry in entries for line in (entry["text"], *entry.get("above", []))}
    telling = [line for line in lines if told_above([line]) or word_above([line])]
    assert len(telling) > 20
    assert [line for line in telling if not may_tell_answers(["", line, "1 of 2"])] == []


@_LISTS
def test_most_prompts_are_told_what_they_ask_for(judged: Judged) -> None:
    given = [found for found, _ in judged if found.expects is not None]
    assert len(given) >= 0.6 * len(judged)


@_LISTS
def test_nearly_all_yes_no_and_choice_prompts_are_told(judged: Judged) -> None:
    questions = [pair for pair in judged if pair[1].expects in {"yes_no", "choice"}]
    given = [found for found, _ in questions if found.expects is not None]
    assert len(given) >= 0.9 * len(questions)


@_LISTS
def test_what_is_told_is_right(judged: Judged) -> None:
    given = [pair for pair in judged if pair[0] != _NOTHING]
    wrong = [pair for pair in given if pair[0] != pair[1]]
    assert len(wrong) <= 0.03 * len(given), wrong


def test_secret_is_told_exactly_when_the_kind_is() -> None:
    for entry in _PROMPTS + _LATER:
        assert (_judged(entry).expects == "secret") is (entry["kind"] == "secret")
        assert _judged({**entry, "kind": "secret"}) == Expectation("secret")


@pytest.mark.parametrize(
    "text", ["Password: ", "Passwort: ", "パスワード: ", "Token [abc]: ", "Store password? [y/N] "]
)
def test_no_word_of_a_language_opens_a_secret(text: str) -> None:
    assert _asked(text).expects != "secret"


@pytest.mark.parametrize(
    ("text", "answers", "on_enter"),
    [
        ("Weiter? [J/n] ", ("J", "n"), "J"),
        ("Proceed ([y]/n)? ", ("y", "n"), "y"),
        ("Go on (yes/no) [no]: ", ("yes", "no"), "no"),
        ("Go on (Y/N)? ", ("Y", "N"), None),
        ("Är du säker [Y=ja/N=nej]? ", ("Y", "N"), None),
        ("Silinsin mi? (e/H ya da y/N) ", ("e", "H"), "H"),
        ("Poistetaanko kaikki? (y tai n) ", ("y", "n"), None),
        ("Kas te soovite seda? (j/E) ", ("j", "E"), "E"),
        ("Continue? (Y)es/(N)o [Yes]: ", ("Y", "N"), "Y"),
        ("Break it? ([y]es, [N]o): ", ("y", "N"), "N"),
        ("Do you accept? Y/n ", ("Y", "n"), "Y"),
        ("Remove it? [ny](n): ", ("n", "y"), "n"),
        ("是否继续？(y/n，默认 y)：", ("y", "n"), "y"),
        ("مطمئن هستید؟ (بله/خیر): ", ("بله", "خیر"), None),
        ("Upgrade now? (default: yes) [yes, no] ", ("yes", "no"), "yes"),
        ("Keep the old one? (y=keep/n=drop) ", ("y", "n"), None),
        ("Hide it? (y=Yes/n=No) [Yes]: ", ("y", "n"), "y"),
        ("Beenden (j:Ja n:Nein)? ", ("j", "n"), None),
        ("Wipe it (enter YES or NO)? ", ("YES", "NO"), None),
        ("Ready? (press y or n) ", ("y", "n"), None),
        ("Please answer yes or no: ", ("yes", "no"), None),
        ("Svar enten «ja» eller «nej»: ", ("ja", "nej"), None),
        ('Really ("yes" / "no")? ', ("yes", "no"), None),
        ("Merge? [y]/n: ", ("y", "n"), "y"),
        ("Upgrade? Yes/No [No]: ", ("Yes", "No"), "No"),
        ("Apply it? [y/N] -> ", ("y", "N"), "N"),
        ("Confirm (y/N) ▸ ", ("y", "N"), "N"),
    ],
)
def test_yes_and_no_are_known_however_they_are_written(
    text: str, answers: tuple[str, ...], on_enter: str | None
) -> None:
    assert _asked(text) == Expectation("yes_no", answers, on_enter)


@pytest.mark.parametrize(
    "text",
    [
        "ready (3/7)", "usage: n/a", "12 MB/s", "Owner (user/group): ", "Modell (GTX, RTX, Arc)",
        "see printf(3) and exec(2) ", "mysql> ", "[ 42%] Building CXX object a.o", "Name: ", "",
        "Speed (m/s): ", "ETA 00:10 [2.1MB/s] ", "Keep [a] or discard [d]? ", "Command [?]: ",
        "Devam edilsin mi yoksa durdurulsun mu? ", "Que faire ou quoi ? ", "Ratio [16/9]: ",
        "Which branch? [main/dev] ", "Tags [a,b]: ", "Abort, Retry, Fail? ",
        "Type KEEP to keep or DROP to drop: ", "(a) one, (b) two, (c) three",
        "In [7]: ", "Out[3]: ", "[12] > ", "MariaDB [shop]> ", "127.0.0.1:6379[2]> ", "(venv) ",
        "mysql [h] {u} ((none)) > ", "Did you mean 'x'?", "Speed (KB/s): ", "Language (python): ",
        "Type yes, no or cancel: ", "To delete this app, type its name: ", "Enter PIN to confirm: ",
        "<b>bold</b> or <i>not</i>: ", "Rate it (1 = bad, 5 = good): ",
        "lines 1-23", "RES (KiB)",
        "Choose: (p) put off, (mf) mine, help (h): ", "Type yes to go on, no to stop: ",
        "I/O", "Is A or B better? ", "What is wrong? ", "Copied file(s) to dir(s) ",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_told(text: str) -> None:
    assert _asked(text) == _NOTHING


def test_a_list_above_counts_only_if_the_prompt_asks_for_it() -> None:
    steps = ["1. Download", "2. Unpack", "3. Install"]
    assert _asked("Name: ", *steps) == _NOTHING
    assert _asked("Your choice: ", *steps) == Expectation("choice", ("1", "2", "3"))
    assert _asked("Step [2]: ", *steps) == Expectation("choice", ("1", "2", "3"), "2")
    assert _asked("Step [9]: ", *steps).expects is None
    assert _asked("Port (1-9): ", *steps) == Expectation("number")
    gaps = ["(1) one", "(4) four", "(6) six"]
    assert _asked("Your choice: ", *gaps) == Expectation("choice", ("1", "4", "6"))
    assert _asked("선택 [1-3] (기본값 1): ", *steps) == Expectation("choice", ("1", "2", "3"), "1")


@pytest.mark.parametrize(
    ("text", "answers", "on_enter"),
    [
        (
            "Discard [y,n,q,a,d,K,g,/,e,?]? ",
            ("y", "n", "q", "a", "d", "K", "g", "/", "e", "?"),
            None,
        ),
        ("Shelve? ([y]es, [N]o, [f]inish, [q]uit): ", ("y", "N", "f", "q"), "N"),
        ("Record this? [Ynesq?] ", ("Y", "n", "e", "s", "q", "?"), "Y"),
        ("(R)eject or accept (t)emporarily? ", ("R", "t"), None),
        ("(r)eject, accept (o)nce, (a)lways", ("r", "o", "a"), None),
        ('[P] Prepend  [A] Append  [N] No (default is "P"). ', ("P", "A", "N"), "P"),
        ("mget a.txt [anpqy?]? ", ("a", "n", "p", "q", "y", "?"), None),
        ("Partition type?  primary/extended? ", ("primary", "extended"), None),
        ("Colour (red, green, blue) [green]: ", ("red", "green", "blue"), "green"),
        ("Escolha uma opção [1-3]: ", ("1", "2", "3"), None),
        ("Run it? ([Y]es/[n]o/[s]how): ", ("Y", "n", "s"), "Y"),
        ("Do: install x (N)o/(y)es/(a)ll: ", ("N", "y", "a"), "N"),
        ("What now? (a)bort/(R)etry/(i)gnore: ", ("a", "R", "i"), "R"),
        ("(R)etry/(a)bort/(i)gnore: ", ("R", "a", "i"), None),
        ("Overwrite? (ynadiH) ", ("y", "n", "a", "d", "i", "H"), "H"),
        ("Fix it? [yes, no or all] [n]: ", ("yes", "no", "all"), "no"),
        ("Save it? (y, n, !, q or C-g) ", ("y", "n", "!", "q", "C-g"), None),
        ("Which server? ('a', 'b' or 'none') [a] ", ("a", "b", "none"), "a"),
        ("Datei oder Ordner (d oder o): ", ("d", "o"), None),
        ("<d>elete, <k>eep or <c>ancel?", ("d", "k", "c"), None),
        ("Choose: (p) put off, (df) show, (e) edit: ", ("p", "df", "e"), None),
        ("拒否 (R)、許可 (t)? ", ("R", "t"), None),
        ("Enter 0 = off, 1 = on or 2 = auto: ", ("0", "1", "2"), None),
        ("Send? (y=ja, n=nej, q=sluta): ", ("y", "n", "q"), None),
        ("Run? [Y/n/e(dit)]: ", ("Y", "n", "e"), "Y"),
        ("Leave to (S)hell, (H)alt? [halt] ", ("S", "H"), "H"),
        ("Edit (e), run (r) or cancel (c)? ", ("e", "r", "c"), None),
        ("What next: [v]iew, [e]dit, [q]uit [v] ", ("v", "e", "q"), "v"),
        ("Do you accept it? [accept/decline] ", ("accept", "decline"), None),
        ("Enable it (on/off)? [on] ", ("on", "off"), "on"),
        ("Correct 'a' to 'b' [nyae]? ", ("n", "y", "a", "e"), None),
        ("[123?q]? ", ("1", "2", "3", "?", "q"), None),
        ("Replace 'x'? (Y)es, (N)o, (A)ll ", ("Y", "N", "A"), None),
    ],
)
def test_choices_are_read_from_what_marks_them(
    text: str, answers: tuple[str, ...], on_enter: str | None
) -> None:
    assert _asked(text) == Expectation("choice", answers, on_enter)


@pytest.mark.parametrize(
    "items",
    [
        ["1) a", "2) b"], ["[1] a", "[2] b"], [" 1. a   2. b"], ["1 - a", "2 - b"],
        ["* 1    a", "  2    b"], ["1: a\t2: b"], ["(1) a", "(2) b", ""],
    ],
)  # fmt: skip
def test_a_list_is_read_however_its_items_are_numbered(items: list[str]) -> None:
    assert _asked("Auswahlnummer: ", *items) == Expectation("choice", ("1", "2"))


@pytest.mark.parametrize(
    "text",
    [
        "Wie viele? ",
        "Enter a number from 1 to 10: ",
        "Size (3072) [1-9]: ",
        "Zahl von 1 bis 9 ein: ",
        "Skaitlis no 1 līdz 9: ",
        "1 から 5 までの数字を入力: ",
        "Valid for (days): ",
        "Timeout (seconds) [30]: ",
        "Quelle taille de clé ? (3072) ",
        "Maximum number of users (USERS) [64] ",
        "Number of lines: ",
        "Partition number? ",
    ],
)
def test_numbers_are_asked_for_by_ranges_and_counts(text: str) -> None:
    assert _asked(text).expects == "number"


def test_a_word_to_type_is_told_with_its_capitals() -> None:
    asked = "To confirm, type 'delete prod' in capital letters: "
    assert _asked(asked) == Expectation("confirmation_word", ("DELETE PROD",))
    assert _asked("Enter a value: ", "Only 'yes' will be accepted.").choices == ("yes",)
    assert _asked("Type 'help' for help, 'q' to quit: ").expects is None
    assert _asked("Type anything to continue: ").expects is None


def test_the_marked_row_of_a_drawn_menu_is_what_enter_takes() -> None:
    menu = _drawn("? Which one? ", "  red", "❯ green", "  blue")
    assert menu == Expectation("choice", ("red", "green", "blue"), "green")
    assert _drawn("Some text", "> quoted", "  more of it") == _NOTHING


def test_what_is_around_is_looked_at_only_where_it_decides() -> None:
    looks: list[str] = []
    around = Surroundings(lambda: looks.append("above") or [], lambda: looks.append("screen"))
    for text in (">>> ", "mysql> ", "Name: ", "Go on? [Y/n] ", "root@h:~# "):
        expectation("line", text, around)
    expectation("key", "Go on? [Y/n] ", around)
    assert looks == []
    expectation("line", "Your choice: ", around)
    expectation("screen", "", around)
    assert looks == ["above", "screen"]


def test_a_list_with_many_items_is_told_without_them() -> None:
    items = [f"{number}) item" for number in range(1, 100)]
    assert _asked("Your choice: ", *items[:40]).choices == tuple(map(str, range(1, 41)))
    menu = _drawn("? Which one?", "❯ 0", *(f"  {number}" for number in range(1, 60)))
    assert menu == Expectation("choice", (), "0")


@pytest.mark.parametrize("kind", ["line", "key", "screen"])
@pytest.mark.parametrize(
    "piece", ["[", "(", "[y/n]", "(a)b", "1) ", "a/", "'x' type ", "? ", "❯ ", "default ", " "]
)
def test_hostile_prompts_give_little_and_come_to_an_end(kind: str, piece: str) -> None:
    for text in (piece * 10_000, piece * (1_000_000 // len(piece))):
        lines = [text] * 50
        found = expectation(kind, text, _around(lines, DrawnScreen(lines[:2], 0, 0)))
        assert sum(map(len, found.choices)) + len(found.on_enter or "") < 4000


def test_no_control_character_gets_into_an_answer() -> None:
    found = _asked("Colour (re\x1b[31md/blu\x07e/gr\u202een): ")
    drawn = _drawn("? Which?", "❯ a\x1b]0;x\x07", "  b\u202e")
    for answer in (*found.choices, *drawn.choices, drawn.on_enter or ""):
        assert answer.isprintable()
