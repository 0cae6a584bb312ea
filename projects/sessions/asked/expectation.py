"""The judgement: what a prompt asks for, where that is certain."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

from controller_client.protocol.terminal_text.unseen import without_controls
from projects.sessions.asked.answers import Options
from projects.sessions.asked.brackets import Group, default_in, groups_at_end
from projects.sessions.asked.confirmation import (
    leaves_it_to_lines_above,
    lines_for,
    may_tell_answers,
    name_above,
    thing_to_name,
    word_above,
    word_in,
)
from projects.sessions.asked.drawn import drawn_menu
from projects.sessions.asked.letters import begins_with_a_letter
from projects.sessions.asked.menus import (
    asks_to_choose,
    can_ask_for_columns,
    columns_above,
    item_named,
    keeps_marked_item,
    labels_within,
    may_choose,
    menu_above,
    number_alone,
    with_answers_beside,
)
from projects.sessions.asked.options import options_in
from projects.sessions.asked.questions import (
    allows_other_than_numbers,
    allows_other_than_yes_or_no,
    are_letters_to_type,
    asks_for_free_text,
    asks_for_number,
    asks_for_path,
    asks_yes_or_no,
    is_a_demand,
    is_a_unit,
    is_an_answer_alone,
    is_demanding,
    is_either,
    is_left_open,
    is_open,
    is_plain,
    is_told_above,
    is_value,
    range_in,
)
from projects.sessions.asked.sentences import (
    asks_above_a_pointer,
    asks_what_to_do,
    has_unknown_end,
    is_a_pointer,
    is_quoted_before,
    letters_above,
    may_end_in_a_word,
    may_have_words_with_letters,
    return_for,
    sentence_at_end,
    taken_alone,
    told_above,
    told_in,
    without_program,
    without_way_to_leave,
    words_at_end,
    words_with_letters,
)
from projects.sessions.asked.words import COUNTS, NUMBER_OF_ITEM, is_a_yes_or_a_no, means_yes_or_no

Expects = Literal["yes_no", "choice", "path", "number", "secret", "confirmation_word", "text"]

MAX_LINE_CHARS: Final = 512
MAX_LINES: Final = 40
MAX_CHOICES: Final = 40
_MAX_CHOICE_CHARS: Final = 80
_MAX_DEFAULT_CHARS: Final = 200
_GAP: Final = " " * 16
_LONG_GAP: Final = re.compile(r"\s{17,}")
"""More blanks in a row tell no more, and cost much."""
_ASKS_NOTHING: Final = re.compile(r"\s*[✔✓]|>>> ")
"""How a question that was answered begins, and the prompt of an interpreter."""


class Expectation(NamedTuple):
    """The answer that a prompt asks for; empty where that is not certain."""

    expects: Expects | None = None
    choices: tuple[str, ...] = ()
    on_enter: str | None = None


class DrawnScreen(NamedTuple):
    """The rows of a rendered screen, and the place of its cursor, from 0."""

    lines: Sequence[str]
    cursor_row: int
    cursor_column: int


class Surroundings(NamedTuple):
    """The ways to look at what stands around a prompt; called only where that decides."""

    lines_above: Callable[[], Sequence[str]]
    screen: Callable[[], DrawnScreen | None]


def expectation(kind: str, text: str, around: Surroundings) -> Expectation:
    """Return what a prompt of this kind, with this text left of the cursor, asks for."""
    if kind == "secret":
        return Expectation("secret")
    if kind == "shell":
        return Expectation()
    line = _LONG_GAP.sub(_GAP, text[-MAX_LINE_CHARS:])
    # Several ways to judge a line look above it, and each look reads the output.
    around = around._replace(lines_above=cache(around.lines_above))
    found = Expectation() if kind == "screen" else _of_line(line, around)
    if found == Expectation() and kind in {"key", "screen"}:
        found = _of_screen(around.screen())
    return _bounded(found)


def _of_line(line: str, around: Surroundings) -> Expectation:
    if not line.strip() or _ASKS_NOTHING.match(line):
        return Expectation()
    if is_a_pointer(line):
        return _of_pointer(line, _lines_above(around), around)
    if (taken := taken_alone(line)) is not None:
        return Expectation("yes_no", (), taken)
    if (left := without_way_to_leave(line)) is not None:
        return _with_a_way_to_leave(*left, around)
    found = _alone(line, around)
    if found.expects is None and is_an_answer_alone(line):
        return _with_the_question_above(line, found, _lines_above(around), around)
    return found


def _with_a_way_to_leave(line: str, answer: str, around: Surroundings) -> Expectation:
    """Return what a line asks for that ends in a note on how to leave, with that answer."""
    if line:
        found = _alone(line if is_open(line) else f"{line}: ", around)
        is_listed = found.expects in {"choice", "yes_no"} and found.choices
        choices = tuple(dict.fromkeys((*found.choices, answer)))
        return found._replace(expects="choice", choices=choices) if is_listed else found
    last = next((text for text in reversed(_lines_above(around)) if text.strip()), "")
    found = _alone(f"{last.rstrip(' :')}: ", around)
    return found if found.expects in {"text", "path", "number"} else Expectation()


def _of_pointer(pointer: str, above: list[str], around: Surroundings) -> Expectation:
    """Return what the lines above a pointer ask for, which says nothing itself."""
    if leaves_it_to_lines_above(pointer):
        found = _with_lines_above(pointer, [], None, None, above)
        if found is not None:
            return found
    return _of_line_above(pointer, above, around)


def _of_line_above(pointer: str, above: list[str], around: Surroundings) -> Expectation:
    """Return what the last line above a pointer asks for, if it does so for certain."""
    last = next((text for text in reversed(above) if text.strip()), "")
    if not is_left_open(last):
        return Expectation()
    found = _alone(f"{last.rstrip()} ", around)
    if found.choices and found.expects in {"yes_no", "choice"}:
        return found
    is_direct = bool(above[-1].strip()) and asks_above_a_pointer(last, pointer)
    return found if is_direct and found.expects in {"text", "path", "number"} else Expectation()


def _with_the_question_above(
    line: str, found: Expectation, above: list[str], around: Surroundings
) -> Expectation:
    """Return what a bracketed answer alone asks for, by the line above or by its own words."""
    last = above[-1].rstrip() if above else ""
    if last and (found.on_enter or is_left_open(last)):
        joined = _alone(f"{last} {line.strip()}", around)
        if joined.expects is not None or (is_open(line) and joined != Expectation()):
            return joined
    group = next(iter(groups_at_end(line)), None)
    if group is None or not line[group.end :].strip() or not is_value(group.text):
        return found
    if len(group.text) > 1 and means_yes_or_no(group.text):
        return Expectation("yes_no", (), group.text)
    is_path = asks_for_path("", group.text) and is_told_above(group.text, above)
    return Expectation("path", (), group.text) if is_path else found


def _alone(line: str, around: Surroundings) -> Expectation:
    """Return what the line asks for, without the question that a line above it may hold."""
    groups = groups_at_end(line)
    if (options := options_in(line, groups)) is not None:
        if begins_with_a_letter(line):
            options = _with_answers_above(line, options, _lines_above(around))
        return _of_options(line, options, around)
    if (told := _told(line, groups, around)) is not None:
        return _of_options(line, told, around)
    if (word := word_in(line)) is not None:
        return Expectation("confirmation_word", (word,))
    return _by_words(line, groups, around)


def _by_words(line: str, groups: list[Group], around: Surroundings) -> Expectation:
    """Return what the words of a line ask for that spells no answers out."""
    default, numbers = _default(line, groups), _range(line, groups)
    thing = thing_to_name(line)
    may_be_above = may_choose(line) or leaves_it_to_lines_above(line)
    if may_be_above or default or numbers or thing:
        found = _with_lines_above(line, groups, default, numbers, _lines_above(around))
        if found is not None:
            return found
    default = default if default and is_plain(default) else None
    if numbers and len(numbers) <= MAX_CHOICES and may_choose(line) and not _counts(line):
        choices = () if allows_other_than_numbers(line) else tuple(map(str, numbers))
        return Expectation("choice", choices, default)
    by_question = None if thing else _by_question(line, groups, default, numbers)
    is_told = may_be_above or default or numbers or thing or by_question
    if not is_told and can_ask_for_columns(line):
        menu = columns_above(_lines_above(around))
        return Expectation("choice", menu.labels, menu.default) if menu else Expectation()
    if by_question == "text" and default is None:
        default = words_at_end(line, groups)
        if default is None and has_unknown_end(groups):
            return Expectation()
    return Expectation(by_question, (), default)


def _told(line: str, groups: list[Group], around: Surroundings) -> Options | None:
    """Return the answers that the words of the line tell, or lines above that belong to it."""
    if (told := told_in(line)) is not None:
        return told
    if may_have_words_with_letters(line):
        return words_with_letters(line, _lines_above(around))
    if begins_with_a_letter(line) and is_open(line):
        none_yet = Options((), None, are_all=False)
        joined = _with_answers_above(line, none_yet, _lines_above(around))
        return joined if joined.answers else None
    if asks_what_to_do(line) or may_end_in_a_word(line, groups):
        return letters_above(line, groups, _lines_above(around))
    return None


def _counts(line: str) -> bool:
    """Return whether the line asks for a count, and not for the number of an item."""
    return bool(COUNTS.search(line)) and not NUMBER_OF_ITEM.search(line)


def _with_answers_above(line: str, options: Options, above: list[str]) -> Options:
    """Return all answers of a list that began above, in lines that end in a comma."""
    start = len(above)
    while start and above[start - 1].rstrip().endswith((",", "，", "、")):
        start -= 1
    if start == len(above):
        return options
    joined = " ".join(map(str.strip, [*above[start:], line]))
    is_short = len(joined) <= MAX_LINE_CHARS
    found = options_in(joined, groups_at_end(joined)) if is_short else None
    own = f", {line.strip()}"
    alone = options_in(own, groups_at_end(own)) or options
    if found is not None and len(found.answers) > len(alone.answers):
        return found
    return options._replace(default=None, are_all=False)


def _lines_above(around: Surroundings) -> list[str]:
    lines = around.lines_above()[-MAX_LINES:]
    return [_LONG_GAP.sub(_GAP, line[:MAX_LINE_CHARS]) for line in lines]


def _with_lines_above(
    line: str, groups: list[Group], default: str | None, numbers: range | None, above: list[str]
) -> Expectation | None:
    leaves_it = leaves_it_to_lines_above(line)
    may_be_told = leaves_it and may_tell_answers(above)
    if may_be_told and (told := told_above(above)) is not None:
        return _of_options(line, told, Surroundings(lambda: above, lambda: None))
    if may_be_told and (word := word_above(lines_for(line, above))) is not None:
        return Expectation("confirmation_word", (word,))
    if (thing := thing_to_name(line)) is not None:
        name = name_above(above, thing)
        return Expectation("confirmation_word", (name,)) if name else None
    menu = menu_above(without_program(line, above))
    if menu is None:
        return None
    named = item_named(line, default, menu) if default else number_alone(line, groups, menu)
    if (default and named is None) or not asks_to_choose(line, menu, named, numbers):
        return None
    taken = named or keeps_marked_item(line, above) or menu.default or sentence_at_end(groups)
    return Expectation("choice", with_answers_beside(line, labels_within(menu, numbers)), taken)


def _of_options(line: str, options: Options, around: Surroundings) -> Expectation:
    default = options.default
    if default is None and line.rstrip().endswith(">"):
        menu = menu_above(_lines_above(around))
        default = menu.default if menu and menu.default in options.answers else None
    expects: Expects = "yes_no" if options.are_yes_and_no else "choice"
    return Expectation(expects, options.answers if options.are_all else (), default)


def _of_screen(screen: DrawnScreen | None) -> Expectation:
    if screen is None:
        return Expectation()
    lines = [line[:MAX_LINE_CHARS] for line in screen.lines]
    menu = drawn_menu(lines, screen.cursor_row, screen.cursor_column)
    if menu is None:
        return Expectation()
    return Expectation("yes_no" if menu.are_yes_and_no else "choice", menu.labels, menu.taken)


def _default(line: str, groups: list[Group]) -> str | None:
    """Return the default that the end of the line names."""
    for group in reversed(groups):
        if (named := default_in(group.text)) is not None:
            return named
        if _is_default(line, group):
            return group.text
    if groups and is_quoted_before(line, groups[-1]):
        return groups[-1].text
    return None if groups else return_for(line)


def _is_default(line: str, group: Group) -> bool:
    before = line[: group.start].rstrip()
    if not is_value(group.text) or not any(char.isalpha() for char in before):
        return False
    if range_in(group.text) is not None:
        return False
    if group.opener == "[":
        is_asked = is_a_demand(line[: group.start], line[group.end :])
        return is_asked or (")" in before and asks_for_number(before, group.text))
    if group.opener == "<":
        return means_yes_or_no(group.text) or _is_letter_at_word(line, group)
    is_asked = before.endswith((":", "?", "？", "："))
    return group.opener == "(" and (is_asked or asks_for_path("", group.text))


def _is_letter_at_word(line: str, group: Group) -> bool:
    """Return whether a yes or a no of any language stands as in ``Fix<j>? ``."""
    is_at_word = line[group.start - 1 : group.start].isalpha() and len(group.text) == 1
    return is_at_word and line[group.end :].strip() == "?" and is_a_yes_or_a_no(group.text)


def _range(line: str, groups: list[Group]) -> range | None:
    parts = [group.text for group in groups] or [line] * is_demanding(line)
    return next(filter(None, map(range_in, parts)), None)


def _by_question(
    line: str, groups: list[Group], default: str | None, numbers: range | None
) -> Expects | None:
    question = line[: groups[0].start] if groups else line
    if numbers is not None:
        return None if allows_other_than_numbers(question) else "number"
    is_told = bool(groups) and _is_letter_at_word(line, groups[-1])
    if default is not None and (means_yes_or_no(default) or is_told):
        allows_other = allows_other_than_yes_or_no([group.text for group in groups[:-1]])
        return "yes_no" if "?" in line and not allows_other else None
    is_counted = is_open(line) and groups and is_a_unit(groups[0].text)
    is_counted = is_counted and (default or "0").isdecimal()
    if is_counted or (
        asks_for_number(question, default) and not allows_other_than_numbers(question)
    ):
        return "number"
    is_free = not any(are_letters_to_type(group.text) for group in groups)
    is_empty = bool(groups) and not groups[-1].text
    if is_free and asks_for_path(line if is_empty else question, default):
        return "path"
    if (
        default is None
        and asks_yes_or_no(line)
        and not any(is_either(group.text) for group in groups)
    ):
        return "yes_no"
    has_default = default is not None or any(not group.text for group in groups)
    return "text" if asks_for_free_text(question, has_default=has_default) else None


def _bounded(found: Expectation) -> Expectation:
    """Return the same with nothing that is long, or that acts on a terminal."""
    choices = tuple(without_controls(choice[:_MAX_CHOICE_CHARS]) for choice in found.choices)
    on_enter = found.on_enter and without_controls(found.on_enter[:_MAX_DEFAULT_CHARS])
    return Expectation(
        found.expects, choices if len(choices) <= MAX_CHOICES else (), on_enter or None
    )
