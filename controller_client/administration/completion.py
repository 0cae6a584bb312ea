"""The completion of the command line in bash and zsh, made from the parser itself."""

import argparse
import sys
from collections.abc import Iterator

_BASH = """\
# Completion of holdline-controller for bash: source it, or put it where bash-completion looks.
_holdline_controller() {
  local offered="" typed="" word
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case $word in -*) ;; *) typed="$typed $word" ;; esac
  done
  case $typed in
%s  esac
  case $3 in
    --config|--state-dir|--credential-file|--policy|--ca-file|--session-logs|--log-root)
      COMPREPLY=($(compgen -f -- "$2")); return ;;
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$2"))
}
complete -F _holdline_controller holdline-controller
"""
_ZSH = "#compdef holdline-controller\nautoload -Uz bashcompinit && bashcompinit\n"


def print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script; zsh runs the one of bash."""
    cases = "".join(
        f'    {_pattern(path)}) offered="{" ".join(words)}" ;;\n'
        for path, words in sorted(_choices(parser, ()), reverse=True)
    )
    sys.stdout.write((_ZSH if shell == "zsh" else "") + _BASH % cases)
    return 0


def _pattern(path: tuple[str, ...]) -> str:
    return f"'{''.join(f' {word}' for word in path)}'*"


def _choices(
    parser: argparse.ArgumentParser, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield each path of commands with the words that may follow it."""
    words: list[str] = []
    for action in parser._actions:  # noqa: SLF001 (argparse has no other list of them)
        words += action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            words += action.choices
            for name, below in action.choices.items():
                yield from _choices(below, (*path, name))
        elif action.choices and not action.option_strings:
            words += [str(choice) for choice in action.choices]
    yield path, words
