"""The lines of a conversation: from a person at the terminal, with arrows and history, or as they are piped in."""

import sys
from collections.abc import Callable, Iterable

from engine_shim.cli import terminal

ReadLine = Callable[[str], str]
"""Gives the next line after a prompt; EOFError at the end of the input, KeyboardInterrupt for a line given up."""


def line_reader(*, attended: bool, history: Iterable[str], words: Iterable[str]) -> ReadLine:
    """What reads the lines. `history` are earlier ones, oldest first; `words` are completed after a `/`."""
    return _terminal_reader(history, words) if attended else _read_plainly


def _read_plainly(_: str) -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line


def _terminal_reader(history: Iterable[str], words: Iterable[str]) -> ReadLine:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.output import create_output

    completer = WordCompleter(list(words), sentence=True)
    session: PromptSession[str] = PromptSession(
        history=InMemoryHistory(list(history)),
        completer=completer,
        complete_while_typing=False,
        output=create_output(stdout=terminal.own_err()),
    )
    return session.prompt
