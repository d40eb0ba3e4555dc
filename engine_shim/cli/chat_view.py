"""ChatView: a turn as it happens: its steps dimly on stderr, its answer on stdout."""

import json

from rich.console import Console
from rich.text import Text

from agent_core.agents.reply import ChatReply
from agent_core.run.events import Event
from engine_shim.cli import output, terminal
from engine_shim.cli.terminal import visible

WIDTH = 110
"""How long a line of a step may be where there is no terminal."""


class ChatView:
    """Shows one turn after another. On a terminal the answer is shown while it is written."""

    def __init__(self) -> None:
        self._console = Console(file=terminal.err(), highlight=False, soft_wrap=True)
        self._width = self._console.width if self._console.is_terminal else WIDTH
        self._streams = terminal.out().isatty()
        self._shown = ""

    def show(self, event: Event) -> None:
        """Print one event of the turn's own run, or of one nested in it."""
        match event:
            case {"event": "answer_delta", "text": text} if self._streams and event["strand"] == "agent":
                self._shown += text
                self._write(visible(text))
            case {"event": "answer_discarded"} if event["strand"] == "agent":
                self._break_off()
            case {"event": "thought", "text": text}:
                self.note(text)
            case {"event": "action", "tool": tool}:
                self.note(f"{tool} {json.dumps(event['args'], ensure_ascii=False)}")
            case {"event": "observation", "success": success, "text": text}:
                self.note(f"  {'→' if success else '✗'} {text}")
            case {"event": "repair", "kind": kind, "message": message}:
                self.note(f"{kind}: {message}")

    def end(self, reply: ChatReply) -> None:
        """Print the answer, as far as it was not shown yet, or why there is none."""
        if self._shown != reply.response:
            self._break_off()
            output.line(reply.response)
        elif self._shown:
            self._write("\n")
        self._shown = ""
        if reply.error is not None and reply.finish_reason != "awaiting_approval":
            self.note(f"{reply.error['kind']}: {reply.error['message']}", style="red")
        terminal.out().flush()

    def give_up(self) -> None:
        """Leave the line of an answer that is not written to its end."""
        self._break_off()

    def note(self, text: str, style: str = "dim") -> None:
        """Print a line about the conversation, cut to the width of the terminal."""
        self._break_off()
        line = Text(visible(" ".join(text.split("\n"))), style)
        line.truncate(self._width - 1, overflow="ellipsis")
        self._console.print(line)

    def _break_off(self) -> None:
        if self._shown:
            self._write("\n")
        self._shown = ""

    @staticmethod
    def _write(text: str) -> None:
        terminal.out().write(text)
        terminal.out().flush()
