"""The lines above, the words to type and the screens that decide what a prompt asks for."""

import pytest

from projects.sessions.asked.drawn import MENU_SIGNS
from projects.sessions.asked.expectation import (
    DrawnScreen,
    Expectation,
    Surroundings,
    expectation,
)

_NOTHING = Expectation()


def _asked(text: str, *above: str) -> Expectation:
    return expectation("line", text, Surroundings(lambda: list(above), lambda: None))


def _drawn(*lines: str, cursor: tuple[int, int] = (0, 0)) -> Expectation:
    screen = DrawnScreen(lines, *cursor)
    return expectation("key", "", Surroundings(list, lambda: screen))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('Reset it? (enter "yes") ', "yes"),
        ("Wirklich? (Schreiben Sie »JA« in Großbuchstaben) ", None),
        ("Sikker? (skriv «ja») ", "ja"),
        ("¿Seguro? (Escriba 'yes' en mayúsculas): ", "YES"),
        ("Please confirm this by typing `shop`: ", "shop"),
        ("Tapez OUI pour confirmer : ", "OUI"),
        ("输入 yes 继续：", "yes"),
        ("続行するには yes と入力してください: ", "yes"),
        ("계속하려면 yes를 입력하세요: ", "yes"),
        ('Command? (type "help") ', None),
    ],
)
def test_a_word_to_type_is_known_by_its_marks(text: str, word: str | None) -> None:
    assert _asked(text) == (Expectation("confirmation_word", (word,)) if word else _NOTHING)


def test_a_name_to_type_is_found_above() -> None:
    asked = "Type the name of the cluster to confirm: "
    assert _asked(asked, "Cluster: blue").choices == ("blue",)
    assert _asked("To confirm, type the cluster name: ", 'The cluster "red" will go.').choices == (
        "red",
    )
    assert _asked(asked, "Cluster: blue", "Cluster: red") == _NOTHING
    phrase = "To continue type in the phrase 'Do it!'"
    assert _asked(" ?] ", phrase) == Expectation("confirmation_word", ("Do it!",))


@pytest.mark.parametrize(
    ("text", "above", "told"),
    [
        ("[no] >>> ", "Do you accept? [yes|no]", Expectation("yes_no", ("yes", "no"), "no")),
        ("  [no]:  ", "Is CN=x right?", Expectation("yes_no", (), "no")),
        ("[yes]: ", "", Expectation("yes_no", (), "yes")),
        ("[/usr/sbin] ", "Which directory is it?", Expectation("path", (), "/usr/sbin")),
        ("[Unknown]: ", "What is your last name?", Expectation("text", (), "Unknown")),
        ('(default is "x"): ', "Enter a name", Expectation("text", (), "x")),
        ("[eu]: ", "Which region?", Expectation(None, (), "eu")),
        ("[main] ", "On branch:", _NOTHING),
        ("(gdb) ", "What is your name?", _NOTHING),
        ("[3] > ", "How many?", _NOTHING),
    ],
)
def test_an_answer_alone_belongs_to_the_line_above(
    text: str, above: str, told: Expectation
) -> None:
    assert _asked(text, above) == told


def test_a_default_alone_counts_if_it_was_told_above() -> None:
    above = ["It goes to:", "/opt/x", "", "  - Press ENTER to confirm", ""]
    assert _asked("[/opt/x] >>> ", *above) == Expectation("path", (), "/opt/x")
    assert _asked("[/opt/x] > ", "$ pwd", "/opt/x") == _NOTHING


def test_lists_above_give_their_defaults_and_their_zero() -> None:
    items = ["1) one", "2) two"]
    assert _asked("Which (0 for none)? [0-2]: ", *items).choices == ("0", "1", "2")
    assert _asked(" > ", "Which one? [two]:", *items) == Expectation("choice", ("1", "2"), "two")
    marked = ["  0   /a   1  auto", "* 1   /b   2  manual", ""]
    kept = "Trykk <enter> for å beholde valget[*], eller skriv inn tallet: "
    assert _asked(kept, *marked) == Expectation("choice", ("0", "1"), "1")
    columns = ["  1. one  2. two", "  3. three", ""]
    assert _asked("Time zone: ", *columns).choices == ()
    assert _asked("Time zone: ", columns[0], "") == Expectation("choice", ("1", "2"))
    assert _asked("Time zone: ", *items, "") == _NOTHING
    assert _asked("What now> ", *items).choices == ("1", "2")


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("Enter a filename: ", None), ("Nom du fichier à lire : ", None),
        ("Into which file? ", None),
        ("Give a file name for the photo: ", None), ("Path to the key []: ", None),
        ("Dateiname: ", None), ("Log directory [/var/log]: ", "/var/log"),
    ],
)  # fmt: skip
def test_places_of_files_are_asked_for(text: str, default: str | None) -> None:
    assert _asked(text) == Expectation("path", (), default)


@pytest.mark.parametrize(
    "default",
    ["~/.config/foo.yml", "./build/out", "../a/b", "$HOME/.local/share", "src/main/app.py"],
)
@pytest.mark.parametrize("brackets", ["[{}]", "({})"])
def test_the_strokes_of_a_path_separate_no_answers(brackets: str, default: str) -> None:
    found = _asked(f"Config file location {brackets.format(default)}: ")
    assert (found.expects in {"path", None}, found.choices) == (True, ())


@pytest.mark.parametrize("default", ["2024/01/31", "docker.io/library/nginx"])
def test_the_strokes_of_a_date_or_an_image_separate_no_answers(default: str) -> None:
    assert _asked(f"Value [{default}]: ").choices == ()


def test_letters_to_type_are_no_path_and_two_ways_are_no_number() -> None:
    assert _asked("Delete the file or directory (f/d): ").expects is None
    assert _asked("Mirror number or URL: [1] ").expects is None
    assert _asked("Set up a user? (enter a name, or 'no') [no] ").expects is None
    assert _asked("File name format: ").expects != "path"


def test_numbered_rows_need_no_question_above_them() -> None:
    rows = [
        "Run it?",
        "",
        "$ ls",
        "",
        "› 1. Yes (y)",
        "  2. Yes, and never",
        "     ask again",
        "  3. No",
    ]
    choices = ("1. Yes (y)", "2. Yes, and never ask again", "3. No")
    assert _drawn(*rows, "", "  Press enter") == Expectation("choice", choices, "1. Yes (y)")
    assert _drawn("  1. a", "● 2. b") == Expectation("choice", ("1. a", "2. b"), "2. b")
    assert _drawn("Go on?", "❯ 1. Yes", "  2. No").expects == "yes_no"
    assert _drawn("❯ 1. write this", "  2. test it", "", "● I wrote it.", "❯ ") == _NOTHING
    assert _drawn("❯ 3. c", "  4. d") == _NOTHING


def test_buttons_are_read_however_they_are_drawn() -> None:
    yes_no = Expectation("yes_no", ("Yes", "No"))
    assert _drawn("│  [Yes][No]  │") == yes_no
    assert _drawn("│ Leave?     │", "│  Yes    No  │") == yes_no
    assert _drawn("│  < Yes >  < No >  │", cursor=(0, 14)).on_enter == "No"
    keep = "│ [ Save ]  [ Cancel ] │"
    assert _drawn("│ Name: x │", keep, cursor=(1, 4)) == Expectation(
        "choice", ("Save", "Cancel"), "Save"
    )
    assert _drawn("│ Name: x │", keep, cursor=(0, 9)) == _NOTHING
    assert all(map(MENU_SIGNS.search, ("[ OK ]", "\x1b(0lqk", "┌─┐", "› 1. a")))
    assert not MENU_SIGNS.search("\x1b[1;31mtext\x1b[0m 10 [3]")


_PARTS = ["1) Library", "2) Program", "3) Both"]
_STARRED = ["What is it:", "   1) Library", " * 2) Program", "   3) Both"]


@pytest.mark.parametrize(
    ("text", "above", "told"),
    [
        ("Your pick? [Default item(3)] ", _PARTS, Expectation("choice", ("1", "2", "3"), "3")),
        ("Your pick? [Default item(7)] ", _PARTS, _NOTHING),
        ("Your pick? [Default item(3)] ", [], _NOTHING),
        ("Choice? [default: Program] ", _STARRED, Expectation("choice", ("1", "2", "3"), "2")),
        ("Pick [default: both]: ", _PARTS, Expectation("choice", ("1", "2", "3"), "both")),
        ("Name [default: Program]: ", _PARTS, Expectation("text", (), "Program")),
    ],
)
def test_a_default_is_found_in_the_list_above(
    text: str, above: list[str], told: Expectation
) -> None:
    assert _asked(text, *above) == told


@pytest.mark.parametrize(
    ("text", "answers", "on_enter"),
    [
        ("Drop b.txt? (a=all/y/N) ", ("a", "y", "N"), "N"),
        ("Remove it? (w=wipe/k=keep)? ", ("w", "k"), None),
        ("Load it? (s=some/all/none): ", ("s", "all", "none"), None),
        ("Is it old (y=yes/n=no/q=leave)? ", ("y", "n", "q"), None),
    ],
)
def test_letters_with_meanings_between_strokes_are_choices(
    text: str, answers: tuple[str, ...], on_enter: str | None
) -> None:
    assert _asked(text) == Expectation("choice", answers, on_enter)


@pytest.mark.parametrize(
    ("text", "on_enter"),
    [
        ("Read it? [y/n/A] ", None),
        ("Read it? [yes/no/All] ", None),
        ("Read it? (y)es/(n)o/(A)ll ", None),
        ("Read it? [y/N/a] ", "N"),
        ("Read it? [ynaH] ", "H"),
    ],
)
def test_a_third_capital_beside_a_small_yes_and_no_is_no_default(
    text: str, on_enter: str | None
) -> None:
    assert _asked(text).expects == "choice"
    assert _asked(text).on_enter == on_enter


@pytest.mark.parametrize(
    ("above", "answers"),
    [
        (["Do: (a) add, (ed) edit,"], ("a", "ed", "mv", "rm", "q")),
        (["Do: (a) add,", "    (ed) edit,"], ("a", "ed", "mv", "rm", "q")),
        (["Do: a add, ed edit,"], ()),
        (["(a) add, " * 60], ()),
    ],
)
def test_lettered_answers_go_on_from_the_lines_above(
    above: list[str], answers: tuple[str, ...]
) -> None:
    asked = "    (mv) move, (rm) remove, (q) quit: "
    assert _asked(asked, *above) == Expectation("choice", answers)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Accept it? (yes, y, no, n): ", Expectation("yes_no", ("yes", "y", "no", "n"))),
        ("Weiter [ja/nein/j/n]? ", Expectation("yes_no", ("ja", "nein", "j", "n"))),
        ("Which one [a/b/e/h]? ", Expectation("choice", ("a", "b", "e", "h"))),
    ],
)
def test_words_and_letters_for_yes_and_no_can_stand_together(text: str, told: Expectation) -> None:
    assert _asked(text) == told


@pytest.mark.parametrize("text", ["✔ Go on? [Y/n] ", "  ✓ Which? (a/b/c) ", ">>> Go on? [y/N] "])
def test_what_is_answered_and_an_interpreter_ask_for_nothing(text: str) -> None:
    assert _asked(text) == _NOTHING


@pytest.mark.parametrize(
    ("above", "told"),
    [
        (['This drops the "blue" volume.'], Expectation("confirmation_word", ("blue",))),
        (["This drops a volume."], _NOTHING),
    ],
)
def test_the_name_of_what_is_to_be_dropped_is_no_free_text(
    above: list[str], told: Expectation
) -> None:
    assert _asked("To continue, enter the name of the volume to be deleted: ", *above) == told


@pytest.mark.parametrize(
    ("text", "answers", "on_enter"),
    [
        ("Please choose (2): ", ("1", "2", "3"), "2"),
        ('Your choice ("q" to quit): ', ("1", "2", "3", "q"), None),
        ("Select one (x to leave): ", ("1", "2", "3", "x"), None),
        ("Which one (0 for none)? ", ("1", "2", "3", "0"), None),
    ],
)
def test_brackets_beside_a_list_name_its_default_or_one_more_answer(
    text: str, answers: tuple[str, ...], on_enter: str | None
) -> None:
    assert _asked(text, *_PARTS) == Expectation("choice", answers, on_enter)
    assert _asked("Speed (2): ", *_PARTS) == _NOTHING


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[J] Ja  [A] Alle  [N] Nein (Standard ist "N"): ',
            Expectation("choice", ("J", "A", "N"), "N"),
        ),
        ("(Y)es, [N]o, (S)top: ", Expectation("choice", ("Y", "N", "S"), "N")),
        ("(r)un, [k]eep, (q)uit: ", Expectation("choice", ("r", "k", "q"))),
        ("Worker threads (1 or more) [4]: ", Expectation("number", (), "4")),
        ("Puerto [8080]: ", Expectation("number", (), "8080")),
        ("端口 [80]：", Expectation("number", (), "80")),
        ("レポート [80]: ", Expectation(None, (), "80")),
    ],
)
def test_what_enter_takes_is_told_with_the_kind(text: str, told: Expectation) -> None:
    assert _asked(text) == told


@pytest.mark.parametrize(
    ("text", "above", "answers"),
    [
        ("Your choice: ", ["1) on", "2) off", "0) leave"], ("1", "2", "0")),
        ("Your choice [0-2]: ", ["1) on", "2) off", "0) leave"], ("0", "1", "2")),
        ("Your choice: ", ["1) a  3) c", "2) b  4) d"], ("1", "2", "3", "4")),
    ],
)
def test_numbers_are_told_in_the_order_of_the_list_or_the_range(
    text: str, above: list[str], answers: tuple[str, ...]
) -> None:
    assert _asked(text, *above).choices == answers


@pytest.mark.parametrize("text", ["> ", "? ", "[yes]: ", "(k)eep, (d)rop: ", "Choice: "])
def test_what_stands_above_is_looked_at_once(text: str) -> None:
    looks: list[str] = []

    def lines_above() -> list[str]:
        looks.append(text)
        return ["Go on or stop?", "  1) one", "  2) two"]

    expectation("line", text, Surroundings(lines_above, lambda: None))
    assert len(looks) <= 1
