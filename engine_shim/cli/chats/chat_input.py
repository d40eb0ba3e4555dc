"""The lines of a conversation: from a person at the terminal, with arrows and history, or as they are piped in."""

import os
import sys
from collections.abc import Callable, Iterable
from io import TextIOWrapper
from typing import TYPE_CHECKING

from engine_shim.cli import terminal

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

DUMB = "dumb"
"""The TERM of a terminal that shows text and takes no commands, as within editors."""
ReadLine = Callable[[str], str]
"""Gives the next line after a prompt; EOFError at the end of the input."""


def line_reader(*, attended: bool, history: Iterable[str], words: Iterable[str]) -> ReadLine:
    """Return what reads the lines. `history` are earlier ones, oldest first; `words` are completed by the tab key."""
    if attended and os.environ.get("TERM") != DUMB:
        return _terminal_reader(history, words)
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a line that is no text ends no conversation
    return _read_at_prompt if attended else _read_plainly


def encoding_that_failed(line: str) -> str | None:
    """Return the encoding of stdin, if the bytes of a line were no text in it."""
    if not any("\ud800" <= each <= "\udfff" for each in line):
        return None
    return getattr(sys.stdin, "encoding", None) or "UTF-8"


def _read_plainly(_: str) -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line


def _read_at_prompt(prompt: str) -> str:
    """Read a line at a terminal that takes no commands."""
    stderr = terminal.own_err()
    stderr.write(prompt)
    stderr.flush()
    return _read_plainly(prompt)


def _terminal_reader(history: Iterable[str], words: Iterable[str]) -> ReadLine:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(
        history=InMemoryHistory(list(history)),
        completer=WordCompleter(list(words), sentence=True),
        complete_while_typing=False,
        enable_history_search=True,
        key_bindings=_bindings(),
        output=create_output(stdout=terminal.own_err()),
    )
    return session.prompt


def _bindings() -> "KeyBindings":
    """Ctrl-C gives the line up, and ends the input where it is empty; Alt-Enter begins a new line."""
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    def give_up(event: "KeyPressEvent") -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=EOFError)

    def begin_line(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("\n")

    bindings.add("escape", "enter")(begin_line)
    bindings.add("c-c")(give_up)
    bindings.add("<sigint>")(give_up)
    return bindings
