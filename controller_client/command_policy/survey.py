"""The survey of a command line, which tells what it can of any line, plain or not."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controller_client.command_policy.shell_grammar import (
    Expanded,
    Words,
    parser,
    text_of,
    word_if_literal,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_REPEATING: Final = frozenset(
    {"c_style_for_statement", "for_statement", "function_definition", "while_statement"}
)
_NO_WORDS: Final = frozenset({"file_redirect", "herestring_redirect", "variable_assignment"})
_DECLARING: Final = frozenset({"declaration_command", "unset_command"})
_CALCULATING: Final = frozenset({"binary_expression", "postfix_expression", "unary_expression"})
_SIGNS: Final = frozenset(
    {"++", "--", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|="}
)
_BEGINS_ASSIGNMENT: Final = re.compile(r"[\"']*([A-Za-z_]\w*)(?:\[.*\])?\+?=", re.DOTALL)
# A command in a substitution is a part of the words around it as well, again and again. No line
# that somebody means needs as much.
_MOST_KEPT_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Survey:
    """The parts that can be told of any command line.

    A word that a shell would expand is empty (``Expanded``). ``writes`` has, for each redirection
    into a file, the command whose output it takes, which is empty if it is not one command's.
    ``assigns`` names the variables that it sets or takes away; an empty name may be any. ``values``
    has each with what it is set to, also by a loop. ``is_straight``: no part of it can run twice.
    ``reads`` are the files that it redirects from, ``texts`` its here-documents and here-strings.
    """

    commands: tuple[Words, ...]
    is_whole: bool
    assigns: frozenset[str] = frozenset()
    is_straight: bool = True
    reads: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    writes: tuple[Words, ...] = ()


def surveyed(command: str) -> Survey:
    """Find every simple command in the line: in loops, functions and substitutions too.

    The result is for judging, never for running.
    """
    root = parser().parse(command.encode(errors="replace")).root_node
    commands: list[Words] = []
    writes: list[Words] = []
    reads: list[str] = []
    texts: list[str] = []
    assigns: set[str] = set()
    values: list[tuple[str, str]] = []
    is_straight = True
    kept = 0
    pending: list[tuple[Node, Words]] = [(root, ())]
    while pending and kept <= _MOST_KEPT_BYTES:
        node, writer = pending.pop()
        if node.type == "command":
            kept += node.end_byte - node.start_byte
            writer = _words_of_command(node)
            commands.append(writer)
        elif node.type == "redirected_statement":
            kept += node.end_byte - node.start_byte
            writer = _writer_in(node)
        elif node.type == "file_redirect":
            opened, *operands = _words_of_redirect(node)
            if not any(">" in child.type for child in node.children):
                reads.append(opened)
            elif _is_into_a_file(node, opened):
                writes.append(writer)
            _append_operands(commands, operands)
        elif node.type == "heredoc_redirect":
            _append_operands(commands, _literals(node.children_by_field_name("argument")))
        elif node.type == "heredoc_body":
            texts.append(text_of(node))
        elif node.type == "herestring_redirect":
            texts.append(word_if_literal(node.children[-1]))
        elif node.type in _DECLARING:
            kept += node.end_byte - node.start_byte
            declared = list(_declared_by(node))
            assigns.update(name for name, _ in declared)
            values += [(name, Expanded("$")) for name, is_set in declared if is_set]
        else:
            is_straight = is_straight and node.type not in _REPEATING
            values += (found := _values_within(node))
            assigns.update(name for name, _ in found)
        pending.extend((child, writer) for child in reversed(node.children))
    return Survey(
        tuple(commands),
        not root.has_error and not pending,
        frozenset(assigns),
        is_straight=is_straight,
        reads=tuple(reads),
        texts=tuple(texts),
        values=tuple(values),
        writes=tuple(writes),
    )


def _words_of_command(node: "Node") -> Words:
    words = [child for child in node.children if child.type not in _NO_WORDS]
    return tuple(word_if_literal(child) for child in words) or ("",)


def _writer_in(redirected: "Node") -> Words:
    """Return the command that is redirected: in ``a && b >c`` the grammar redirects both."""
    body = redirected.child_by_field_name("body")
    while body is not None and body.type in {"list", "pipeline"}:
        body = body.children[-1]
    return () if body is None or body.type != "command" else _words_of_command(body)


def _is_into_a_file(redirection: "Node", target: str) -> bool:
    """Tell whether an output goes to a file, and not to ``/dev/null`` or to another output."""
    signs = {child.type for child in redirection.children}
    is_descriptor = ">&" in signs and target.isdigit()
    return not (is_descriptor or target == "/dev/null" or signs & {"<&-", ">&-"})


def _value_of(assignment: "Node") -> tuple[str, str]:
    """Return the variable and its new value. What is added to an old one is not told."""
    name, operator, *value = assignment.children
    is_told = operator.type == "=" and len(value) == 1
    told = word_if_literal(value[0]) if is_told else Expanded("$")
    return _name_of(name), told


def _declared_by(declaration: "Node") -> Iterator[tuple[str, bool]]:
    """Yield what ``declare 'A=1'``, ``local A`` and ``unset A`` name, and whether it is set.

    Plain assignments are not among them.
    """
    keyword, *given = declaration.children
    is_local = keyword.type not in {"export", "readonly"}
    others = [node for node in given if node.type != "variable_assignment"]
    words = [
        text_of(node) if node.type == "variable_name" else word_if_literal(node) for node in others
    ]
    is_reference = is_local and any(word[:1] == "-" and "n" in word for word in words)
    if is_reference:
        # The names of other variables.
        for node in given:
            if node.type == "variable_assignment":
                yield _value_of(node)[1], False
    for node, word in zip(others, words, strict=True):
        if assigned := _BEGINS_ASSIGNMENT.match(text_of(node)):
            yield "" if is_reference else assigned[1], True
        elif not word or (is_local and word[0] not in "-+"):
            yield word.partition("[")[0], False


def _values_within(node: "Node") -> list[tuple[str, str]]:
    """Return what an assignment, a loop, ``$((A = 1))`` or ``${A:=1}`` sets, with the values."""
    if node.type == "variable_assignment":
        return [_value_of(node)]
    if node.type in _REPEATING:
        return _values_of_loop(node)
    if node.type != "expansion" and node.type not in _CALCULATING:
        return []
    signs = {child.type for child in node.children}
    if signs.isdisjoint({"=", ":="} if node.type == "expansion" else _SIGNS):
        return []
    named = [child for child in node.children[:2] if child.type in {"subscript", "variable_name"}]
    return [(_name_of(child), Expanded("$")) for child in named]


def _name_of(variable: "Node") -> str:
    """Return the name of a variable, without its place in an array."""
    return text_of(variable.children[0] if variable.type == "subscript" else variable)


def _values_of_loop(node: "Node") -> list[tuple[str, str]]:
    """Return the variable of a loop with each of its values. Other loops have none."""
    name = node.child_by_field_name("variable")
    if node.type != "for_statement" or name is None:
        return []
    told = _literals(node.children_by_field_name("value")) or [Expanded("$@")]
    return [(text_of(name), value) for value in told]


def _words_of_redirect(node: "Node") -> list[str]:
    """Return the target of a redirection, and the operands that the grammar takes for targets too.

    In ``sh >out deploy.sh`` that is ``deploy.sh``. What closes a descriptor has no target.
    """
    words = _literals(node.children_by_field_name("destination"))
    is_close = any(child.type in {"<&-", ">&-"} for child in node.children)
    return ["", *words] if is_close else words or [""]


def _append_operands(commands: list[Words], operands: list[str]) -> None:
    """Give operands to the last command. The grammar takes the digit of ``0<in sh`` for one."""
    if operands:
        last = commands.pop() if commands else ()
        is_descriptor = len(last) == 1 and last[0].isdigit()
        commands.append(tuple(operands) if is_descriptor else (*last, *operands))


def _literals(nodes: "list[Node]") -> list[str]:
    return [word_if_literal(node) for node in nodes]
