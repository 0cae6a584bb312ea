"""Answers that prompts spell out as words, sentences and lists, and what only looks like them."""

import pytest

from projects.sessions.asked.expectation import Expectation, Surroundings, expectation

_NOTHING = Expectation()


def _asked(text: str, *above: str) -> Expectation:
    return expectation("line", text, Surroundings(lambda: list(above), lambda: None))


def _choice(*answers: str, taken: str | None = None) -> Expectation:
    return Expectation("choice", answers, taken)


def _word(word: str) -> Expectation:
    return Expectation("confirmation_word", (word,))


def _yes_no(*answers: str, taken: str | None = None) -> Expectation:
    return Expectation("yes_no", answers, taken)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Login shell (zsh fish dash) [fish]: ", _choice("zsh", "fish", "dash", taken="fish")),
        ("Table? (gpt or mbr) [mbr] ", _choice("gpt", "mbr", taken="mbr")),
        ("Port? (ix0 ix1 or 'none') ", _choice("ix0", "ix1", "none")),
        ("Mode? ('a', 'b' or '?' for hints) [b] ", _choice("a", "b", "?", taken="b")),
        ("Way in?  (Pick 'ssh', 'vpn' or 'lan') [x::y]: ", Expectation(None, (), "x::y")),
        ("Size ['s1', 's2'] []: ", _choice("s1", "s2")),
        ("Say 'keep', or type 'drop' [keep, drop, ask] ", _choice("keep", "drop", "ask")),
        ("Use (S = sheet, B = book)? ", _choice("S", "B")),
        ("Read it? [+ynh] ", _choice("+", "y", "n", "h")),
        (" Go on [yN]  More [m]", _choice("y", "N", "m", taken="N")),
        ("Theme? dark/light/(auto): ", _choice("dark", "light", "auto", taken="auto")),
        ("usr/local/(bin): ", _NOTHING),
        ("HTTP? (name, number, 'done' or '?') ", _NOTHING),
        ("Tags [red, green, blue] ", _NOTHING),
        ("Place (path relative to home) [home]: ", Expectation(None, (), "home")),
        ("Workers (1 or more) [1]: ", Expectation("number", (), "1")),
        ("Address? (or 'auto' or 'off') [auto] ", Expectation(None, (), "auto")),
        ("Walk or ride? (w-r) ", _NOTHING),
        ("Ratio (a = b, c = d)? ", _NOTHING),
        (" Run [yN]  Other [m]", _NOTHING),
    ],
)
def test_words_in_brackets_are_answers_only_if_something_shows_it(
    text: str, told: Expectation
) -> None:
    assert _asked(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Please enter 'yes', 'no' or the code: ", _yes_no("yes", "no")),
        ("Type 'y' to keep all of it, or 'n' to drop it: ", _yes_no("y", "n")),
        ("Press 'y' to keep it or 'n' to drop it: ", _yes_no("y", "n")),
        ("Enter J for yes, N for no: ", _yes_no("J", "N")),
        ("Answer 'new', 'old' or 'both': ", _choice("new", "old", "both")),
        ("Wait, or press R to retry or M for a shell", _choice("R", "M")),
        ("Type 'yes' to keep it or 'later' to be asked again: ", _NOTHING),
        ("Press Q to quit, or H for help.", _NOTHING),
        ("Enter 'help' for help, or 'quit' to leave: ", _NOTHING),
    ],
)
def test_sentences_tell_the_answers_they_quote(text: str, told: Expectation) -> None:
    assert _asked(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Keep(k) Drop(d) Merge (m) kd: ", _choice("k", "d", "m", taken="kd")),
        ("Keep(k) Drop(d) Merge (m) ok: ", _choice("k", "d", "m")),
        ("(N)ew layout, (O)ld layout or (M)ixed? [o] ", _choice("N", "O", "M", taken="o")),
        ("[V]iew, (E)dit it, (R)ename, (Q)uit: ", _choice("V", "E", "R", "Q", taken="V")),
        ("(V)iew, [E]dit it, (R)ename, (Q)uit: ", _choice("V", "E", "R", "Q")),
        ("[Y] Yes  [N] No: ", _yes_no("Y", "N")),
        ("k keep, d drop, q quit: ", _choice("k", "d", "q")),
        ("x keep, d drop: ", _NOTHING),
    ],
)
def test_letters_are_told_with_the_one_that_enter_takes(text: str, told: Expectation) -> None:
    assert _asked(text) == told


@pytest.mark.parametrize(
    ("above", "text", "told"),
    [
        (["(k) one, (dr) two,"], "   (z) Show more: ", _choice("k", "dr", "z")),
        (["k keep, d drop"], "  q quit, h help: ", _choice("k", "d", "q", "h")),
        (["You can (k)eep it or (d)rop it."], "What do you want to do? ", _choice("k", "d")),
        (["It was (k)ept and (d)ropped."], "What do you want to do? ", _NOTHING),
        (["s)top, g)o on, !)force"], "Action: (stop) ", _choice("s", "g", "!", taken="s")),
        (["s)top, g)o on"], "Action: (other) ", Expectation(None, (), "other")),
        (["Agree to it?"], "agree/refuse/print: ", _choice("agree", "refuse", "print")),
        (["Owners"], "root/wheel/nobody: ", _NOTHING),
        (["Keep x? [k/D/a]"], "(default 'D', use 'a' to ask) ", _choice("k", "D", "a", taken="D")),
        (["Keep it? (yes/no) [no]:"], " > ", _yes_no("yes", "no", taken="no")),
        (["Enter the name of it:"], " > ", Expectation("text")),
        (["Done:"], "> ", _NOTHING),
        (['Enter "yes" to copy and "no" to start with'], "Enter a value: ", _yes_no("yes", "no")),
        (["Type 'yes' to continue."], "Confirm the list: ", _word("yes")),
        (["Type 'yes' to continue.", *"12345"], "Confirm the list: ", _NOTHING),
        (["Your e-mail address"], " (Enter 'q' to quit): ", Expectation("text")),
        (["a: x"], " Y: : ", _yes_no(taken="Y")),
    ],
)  # fmt: skip
def test_lines_above_complete_a_prompt(above: list[str], text: str, told: Expectation) -> None:
    assert _asked(text, *above) == told


_LIST = ["1) one", "2) two"]


@pytest.mark.parametrize(
    ("above", "text", "told"),
    [
        (_LIST, "Number [1-2] (press 'q' to leave): ", _choice("1", "2", "q")),
        (_LIST, "Your choice [1-2, or \"x\" to leave]: ", _choice("1", "2", "x")),
        (_LIST, "Choose [1-2,q]: ", _choice("1", "2", "q")),
        (["(1) a *default*", "(3) b", "(5) c"], "Selection? ", _choice("1", "3", "5", taken="1")),
        (["1) a", "2) b (press Enter)"], "> ", _choice("1", "2", taken="2")),
        (["app: (1) a", "app: (2) b"], "app: Enter your choice: ", _choice("1", "2")),
        (["app: (1) a", "app: (2) b"], "other: Enter your choice: ", _NOTHING),
        (["   k) Keep   d) Drop", "-----"], "Loader> ", _choice("k", "d")),
        (["  1. a  2. b", "", "(Enter the items to take.)"], "Boot disks: ", _choice("1", "2")),
        (
            ["Use 'k' to keep it", "Use 'd' to drop it"],
            "How should I treat it? [Ask me later] ",
            _choice("k", "d", taken="Ask me later"),
        ),
        (["Use 'k' to keep it", "Use 'd' to drop it"], "Name: ", _NOTHING),
        (_LIST, "How should I say it? ", _NOTHING),
        (_LIST, "Enter number of copies: ", Expectation("number")),
    ],
)  # fmt: skip
def test_lists_above_are_read_with_their_marks(
    above: list[str], text: str, told: Expectation
) -> None:
    assert _asked(text, *above) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("< cp ... ./a.txt > ? ", _yes_no()),
        ("cp ./a.txt ./b.txt?...", _yes_no()),
        ("What are you doing?...", _NOTHING),
        ("It has changed. Do you want to load it? ", _yes_no()),
        ("It may be large.  Open it anyway? ", _yes_no()),
        ("Repariere<j>? ", _yes_no(taken="j")),
        ("Sektor (1-9, 3 par défaut) : ", Expectation("number", (), "3")),
        ("Bölüm (1-9, öntanımlı 3): ", Expectation("number", (), "3")),
        ("Server version: 8.0.3 ", _NOTHING),
        ("Version [2.1]: ", Expectation("text", (), "2.1")),
        ("Organization name [Blue Sky Ltd]: ", Expectation("text", (), "Blue Sky Ltd")),
        ("Your name [press Enter to skip]: ", _NOTHING),
        ("Project name (blue): ", Expectation("text", (), "blue")),
        ("Project name (optional): ", Expectation("text")),
        ("Path to the key, or RETURN for /k/x: ", Expectation("path", (), "/k/x")),
        ("Output file [a.bin]: ", Expectation("path", (), "a.bin")),
        ("File to merge: ", Expectation("path")),
        ("Enter the number of your choice (1-3): ", _choice("1", "2", "3")),
    ],
)
def test_questions_and_their_defaults_are_told_apart(text: str, told: Expectation) -> None:
    assert _asked(text) == told


def test_no_form_of_a_prompt_makes_it_a_secret() -> None:
    for text in ("Password (Enter 'c' to cancel): ", "Secret name (abc): ", "Password > "):
        assert _asked(text, "Enter your password:").expects != "secret"
