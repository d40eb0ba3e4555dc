"""ChatView: a turn as it happens: its steps dimly on stderr, its answer on stdout."""

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from agent_core.agents.reply import ChatReply
from agent_core.run.events import Event
from engine_shim.cli import output, terminal
from engine_shim.cli.log import logs_json
from engine_shim.cli.terminal import visible
from engine_shim.runs.conversations import AGENT_STRAND

if TYPE_CHECKING:
    from rich.status import Status

WIDTH = 110
"""How long a line of a step may be where there is no terminal."""


class ChatView:
    """Shows one turn after another. On a terminal the answer is shown while it is written, behind the agent's name.

    Use it as a context manager around a turn, so that the spinner ends with it.
    """

    def __init__(self) -> None:
        self._console = Console(file=terminal.err(), highlight=False, soft_wrap=True, quiet=logs_json())
        self._width = self._console.width if self._console.is_terminal else WIDTH
        self._streams = terminal.out().isatty()
        self._status: Status | None = None
        self._shown = self._thought = ""
        self.agent = ""

    def __enter__(self) -> "ChatView":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_spinner()

    def show(self, event: Event) -> None:
        """Print one event of the turn's agent, or of a run nested in its own."""
        if not is_of_agent(event):
            return
        own = event["strand"] == AGENT_STRAND
        if event["event"] == "answer_delta" and own and self._streams:
            self._stop_spinner()
            self._write(visible(f"{'' if self._shown else self._speaker}{event['text']}"))
            self._shown += event["text"]
        elif event["event"] == "answer_discarded" and own:
            self._break_off()
        elif event["event"] == "step_started":
            self._thought = ""
            self._spin(f"asking {event['model']}")
        elif event["event"] == "thought_delta":
            self._thought += event["text"]
            self._show_thought()
        elif event["event"] != "finished" and (step := describe_step(event)):  # the reply says how it ended
            self.step(step if own else f"  {event['node']}: {step}")
            if event["event"] == "action":
                self._spin(f"running {event['tool']}")

    def end(self, reply: ChatReply) -> None:
        """Print the answer, as far as it was not shown yet, or why there is none."""
        if self._shown != reply.response:
            self._break_off()
            output.line(f"{self._speaker if reply.response else ''}{reply.response}")
        elif self._shown:
            self._write("\n")
        self._shown = ""
        if reply.error is not None and not reply.waiting:
            self.fail(f"{reply.error['kind']}: {reply.error['message']}")
        terminal.out().flush()

    def fail(self, message: str) -> None:
        """Print what went wrong, as every command does."""
        self._stop_spinner()
        self._break_off()
        output.error(output.mask(message), kind="", where="", as_json=False)

    def note(self, text: str) -> None:
        """Print something about the conversation."""
        self._print(Text(visible(text), "dim"))

    def step(self, text: str) -> None:
        """Print a line, cut to the width of the terminal."""
        line = Text(visible(" ".join(text.split())), "dim")
        line.truncate(self._width - 1, overflow="ellipsis")
        self._print(line)

    @property
    def _speaker(self) -> str:
        """What stands before an answer: on a terminal the agent's name, in a pipe nothing."""
        return f"{self.agent}> " if self._streams else ""

    def _print(self, text: Text) -> None:
        self._stop_spinner()
        self._break_off()
        self._console.print(text)

    def _spin(self, text: str) -> None:
        """Show what is waited for, where there is a terminal."""
        self._stop_spinner()
        if self._console.is_terminal and not self._console.quiet and not self._shown:
            self._status = self._console.status(Text(visible(text), "dim"))
            self._status.start()

    def _show_thought(self) -> None:
        """Show the end of a thought that is being written, in place of what is waited for."""
        if self._status is not None:
            flat = " ".join(self._thought[-2 * self._width :].split())
            self._status.update(Text(visible(flat[-self._width // 2 :]), "dim"))

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _break_off(self) -> None:
        """Leave the line of an answer that is not written to its end."""
        if self._shown:
            self._write("\n")
        self._shown = ""

    @staticmethod
    def _write(text: str) -> None:
        terminal.out().write(text)
        terminal.out().flush()


def is_of_agent(event: Event) -> bool:
    """Return whether an event is of the agent of a turn: those of the turn's other nodes are no news."""
    return event["strand"].startswith(AGENT_STRAND)


def describe_step(event: Event) -> str | None:
    """Return a line for an event of a run; None for one that has none."""
    match event["event"]:
        case "thought":
            return event["text"]
        case "action":
            return f"{event['tool']} {json.dumps(event['args'], ensure_ascii=False)}"
        case "observation":
            return f"{'→' if event['success'] else '✗'} {event['text']}"
        case "repair":
            return f"{event['kind']}: {event['message']}"
        case "plan":
            return f"plan: {'; '.join(each['description'] for each in event['steps'])}"
        case "plan_step":
            skipped = event["status"] == "skipped"
            return f"step {event['plan_step']} of the plan was not run: {event.get('message')}" if skipped else None
        case "finished" if "usage" in event:
            return f"{event['finish_reason']}, {output.count(event['usage']['total_tokens'], 'token')}"
        case _:
            return None
