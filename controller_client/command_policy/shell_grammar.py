"""The parser that turns a command line into a plan, or names the part that prevents it.

The line is parsed with bash's grammar. Only a plain list (``&&``, ``||``, ``;``, newline) of
pipelines of simple commands with literal words is a plan. Everything else is :class:`NotPlain`:
substitutions, expansions, patterns, redirections, assignments, functions and background jobs. A
plan is run from its *words*, never from the text it was parsed from, so a difference between this
grammar and a shell's cannot run anything that was not checked.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Operator = Literal["", "&&", "||", ";"]
Words = tuple[str, ...]

MAX_COMMANDS: Final = 1000
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_PATTERN: Final = re.compile(r"[*?\[\]{}~]")
_NEVER_BARE: Final = re.compile(r"[\s;&|<>()$`'\"\\]")
_ESCAPE_IN_DOUBLE_QUOTES: Final = re.compile(r'\\([$`"\\])')
_CONTINUATION: Final = "\\\n"
_MAX_PART_CHARS: Final = 80
# Words a shell acts on before it looks for a program. Quoted they lose that power, so a line that
# uses one means something else.
_RESERVED_WORDS: Final = (
    "! [[ ]] { } case coproc do done elif else esac fi for function if in select then time "
    "until while"
)
_RESERVED: Final = frozenset(_RESERVED_WORDS.split())


class Expanded(str):
    """An empty word: what a shell would expand. ``text`` is how the line spells the word."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Make the word from its text."""
        self = super().__new__(cls, "")
        self.text = text
        return self


class CommandNotAllowed(Exception):
    """``part`` of a command line is refused because of ``reason``.

    The text shows the part with everything but plain ASCII escaped.
    """

    code: ClassVar[str] = "COMMAND_NOT_ALLOWED"

    def __init__(self, part: str, reason: str) -> None:
        self.part, self.reason = part, reason
        super().__init__(f"{part!a} is not allowed: {reason}")


class NotPlain(CommandNotAllowed):
    """The line is not a plain list of literal commands; ``part`` is the text at fault."""

    def __init__(self, part: str, reason: str) -> None:
        is_short = len(part) <= _MAX_PART_CHARS
        super().__init__(part if is_short else part[: _MAX_PART_CHARS - 1] + "…", reason)


@dataclass(frozen=True)
class Pipeline:
    """Commands joined by ``|``; ``operator`` joins the pipeline to the one before it."""

    operator: Operator
    commands: tuple[Words, ...]


@dataclass(frozen=True)
class CommandPlan:
    """The pipelines of a plain command line, as words."""

    pipelines: tuple[Pipeline, ...]

    def commands(self) -> Iterator[Words]:
        """Yield every simple command, in order."""
        for pipeline in self.pipelines:
            yield from pipeline.commands

    @property
    def single(self) -> Words | None:
        """The argument vector, if the plan is one simple command: it needs no shell."""
        commands = list(self.commands())
        return commands[0] if len(commands) == 1 else None

    def script(self, render: Callable[[Words], str] | None = None) -> str:
        """Write the plan as shell text.

        ``render`` writes one command. By default each word is quoted and means only itself.
        """
        render = render or quoted
        return " ".join(
            (f"{pipeline.operator} " if pipeline.operator else "")
            + " | ".join(map(render, pipeline.commands))
            for pipeline in self.pipelines
        )


def quoted(words: Words) -> str:
    """Write one command as shell text, with every word quoted."""
    return " ".join(f"'{word}'" if word in _RESERVED else shlex.quote(word) for word in words)


def parse_plan(command: str) -> CommandPlan:
    """Parse ``command`` into its plan. Raises NotPlain."""
    _refuse_unusual_characters(command)
    if _CONTINUATION in command:
        raise NotPlain(_CONTINUATION, "a line continuation")
    root = parser().parse(command.encode()).root_node
    if root.has_error:
        raise NotPlain(
            text_of(_first_error(root)).strip() or command, "not a complete command line"
        )
    _refuse_escaped_blanks(command.encode(), root)
    pipelines = _pipelines(root)
    if not pipelines:
        raise NotPlain(command or "the empty line", "nothing to run")
    return CommandPlan(tuple(pipelines))


def word_if_literal(node: "Node") -> str:
    """Return the value of a word or of a command's name.

    It is ``Expanded``, and so empty, if a shell would expand it.
    """
    try:
        return _word(node.children[0] if node.type == "command_name" else node)
    except NotPlain:
        return Expanded(text_of(node))


@lru_cache(maxsize=1)
def parser() -> "Parser":
    """Return the parser of bash's grammar."""
    # Loaded with the first line that is checked: a daemon without a policy never needs the parser.
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        # The library is there, and there was no memory to load it into.
        raise MemoryError from error
    return Parser(Language(tree_sitter_bash.language()))


def _unseen_line_end(root: "Node", end: int, node: "Node") -> Operator:
    """Find the line end between two commands, for which the grammar does not always have a node."""
    between = (root.text or b"")[end - root.start_byte : node.start_byte - root.start_byte]
    if b"\n" not in between or between.strip(b" \t\n"):
        raise NotPlain(text_of(node), "not a complete command line")
    return ";"


_OPERATORS: Final[dict[str, Operator | Literal["|"]]] = {
    "&&": "&&",
    "||": "||",
    ";": ";",
    "\n": ";",
    "|": "|",
}


def _refuse_unusual_characters(command: str) -> None:
    for character in command:
        if character in "\n\t":
            continue
        category = unicodedata.category(character)
        if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or (
            category == "Zs" and character != " "
        ):
            raise NotPlain(f"U+{ord(character):04X}", "a control or unusual blank character")


def _refuse_escaped_blanks(source: bytes, root: "Node") -> None:
    """Refuse escaped blanks: to a shell they begin a word, to the grammar they separate words."""
    pending, end = [root], 0
    while pending:
        node = pending.pop()
        if node.children and node.type not in {"string", "concatenation"}:
            pending.extend(reversed(node.children))
        elif b"\\" in source[end : node.start_byte]:
            break
        else:
            end = max(end, node.end_byte)
    if pending or b"\\" in source[end:]:
        raise NotPlain("\\ ", "an escaped blank at the beginning of a word")


def text_of(node: "Node") -> str:
    """Return the text of a node."""
    return node.text.decode() if node.text is not None else ""


def _first_error(node: "Node") -> "Node":
    while child := next(
        (child for child in node.children if child.has_error or child.is_missing), None
    ):
        node = child
    return node


def _tokens(root: "Node") -> Iterator["Node"]:
    """Yield commands and the operators between them, from left to right.

    The tree nests them, but a shell's precedence is flat.
    """
    pending = list(reversed(root.children))
    while pending:
        node = pending.pop()
        if node.type in {"list", "pipeline"}:
            pending.extend(reversed(node.children))
        else:
            yield node


def _pipelines(root: "Node") -> list[Pipeline]:
    pipelines: list[tuple[Operator, list[Words]]] = []
    operator: Operator | Literal["|"] = ""
    is_joined, end = True, 0
    for count, node in enumerate(_tokens(root)):
        if count > 2 * MAX_COMMANDS:
            raise NotPlain(text_of(node), f"more than {MAX_COMMANDS} commands in one line")
        if node.type == "command":
            if not is_joined:
                operator = _unseen_line_end(root, end, node)
            if operator == "|":
                pipelines[-1][1].append(_command(node))
            else:
                pipelines.append((operator if pipelines else "", [_command(node)]))
            is_joined, end = False, node.end_byte
        elif node.type in _OPERATORS:
            # A line end after an operator is no operator of its own.
            operator = operator if is_joined and node.type == "\n" else _OPERATORS[node.type]
            is_joined = True
        else:
            raise _unsupported(node)
    return [Pipeline(operator, tuple(commands)) for operator, commands in pipelines]


def _command(node: "Node") -> Words:
    words = [
        _word(child.children[0] if child.type == "command_name" else child)
        for child in node.children
    ]
    if not words or not words[0]:
        raise NotPlain(text_of(node), "a command without a name")
    if words[0] in _RESERVED and text_of(node).startswith(words[0]):
        raise NotPlain(words[0], "a shell keyword")
    return tuple(words)


def _word(node: "Node") -> str:
    """Return the literal value of a word. Raises NotPlain for text a shell would expand."""
    text = text_of(node)
    if node.type in {"word", "number"} and node.named_child_count == 0:
        return _bare_word(text)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        for child in node.children:
            if child.type not in {'"', "string_content"}:
                raise _unsupported(child)
        return _ESCAPE_IN_DOUBLE_QUOTES.sub(r"\1", text[1:-1])
    if node.type == "concatenation":
        return "".join(_word(child) for child in node.children)
    raise _unsupported(node)


def _bare_word(text: str) -> str:
    bare = _ESCAPE.sub("", text)
    if _NEVER_BARE.search(bare):
        # The grammar took for one word what a shell takes for several, or for none.
        raise NotPlain(text, "not a complete command line")
    if _PATTERN.search(bare):
        raise NotPlain(text, "a pattern, brace or tilde the shell would expand")
    return _ESCAPE.sub(r"\1", text)


def _unsupported(node: "Node") -> NotPlain:
    if node.type == "redirected_statement":
        node = next((child for child in node.children if child.type.endswith("_redirect")), node)
    return NotPlain(
        text_of(node), _NAMES.get(node.type, f"{node.type.replace('_', ' ')!r} in a command line")
    )


_NAMES: Final = {
    "&": "a background job",
    "|&": "a pipe of standard error",
    "$": "a dollar sign that is not quoted",
    ";;": "not a complete command line",
    "command_substitution": "a command substitution",
    "process_substitution": "a process substitution",
    "simple_expansion": "a variable expansion",
    "expansion": "a variable expansion",
    "arithmetic_expansion": "an arithmetic expansion",
    "variable_assignment": "an assignment",
    "variable_assignments": "an assignment",
    "redirected_statement": "a redirection",
    "file_redirect": "a redirection",
    "herestring_redirect": "a here-string",
    "heredoc_redirect": "a here-document",
    "function_definition": "a function definition",
    "compound_statement": "a command group",
    "subshell": "a subshell",
    "declaration_command": "a declaration",
    "unset_command": "a shell builtin",
    "negated_command": "a negation",
    "test_command": "a test expression",
    "ansi_c_string": "an ANSI-C string",
    "translated_string": "a translated string",
    "brace_expression": "a brace expansion",
    "extglob_pattern": "a pattern, brace or tilde the shell would expand",
    "comment": "a comment",
    "if_statement": "a compound command",
    "while_statement": "a compound command",
    "for_statement": "a compound command",
    "c_style_for_statement": "a compound command",
    "case_statement": "a compound command",
}
