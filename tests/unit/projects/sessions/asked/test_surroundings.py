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
