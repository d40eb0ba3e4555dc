"""The live view of a run, on stderr: each step as it happens, with a spinner while something is awaited."""

import json
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from agent_core.events import Event


class View:
    """Prints events as they come. Use it as a context manager, so that the spinner ends with the run."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status: Status | None = None
        self._cut = False

    def __enter__(self) -> Callable[[Event], None]:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        if self._cut:
            self._say("[dim]what the model saw was cut; observation_max_len sets how much it is shown[/]")

    def _tell(self, event: Event) -> None:
        node = escape(event["node"])
        match event:
            case {"event": "step_started", "step": step}:
                self._wait(f"{node}: step {step}, asking {escape(event['model'])}")
            case {"event": "thought", "text": text}:
                self._say(f"[dim]{node}: {escape(text)}[/]")
            case {"event": "action", "step": step, "tool": tool}:
                self._say(f"{node} [bold]{step}[/] {escape(tool)} {escape(_short(event['args']))}")
                self._wait(f"{node}: running {escape(tool)}")
            case {"event": "observation"}:
                self._observation(event)
            case {"event": "repair", "step": step, "kind": kind}:
                self._say(f"{node} [bold]{step}[/] [yellow]{kind}[/] {escape(event['message'])}")
            case {"event": "waiting", "tool": tool}:
                self._say(f"{node} [yellow]{event['reason']}[/] {escape(tool)} {escape(_short(event['args']))}")
            case {"event": "finished", "finish_reason": reason}:
                colour = "green" if reason == "final" else "red"
                self._say(f"{node} [{colour}]{reason}[/]")

    def _observation(self, event: Event) -> None:
        shown = event["text"] if len(event["text"]) <= 160 else f"{event['text'][:159]}…"
        cut = event["characters"] > len(event["text"])
        self._cut = self._cut or cut
        told = f" [dim](cut from {event['characters']} to {len(event['text'])} characters)[/]" if cut else ""
        colour = "dim" if event["success"] else "red"
        self._say(f"  [{colour}]{escape(shown)}[/]{told}")

    def _say(self, markup: str) -> None:
        self._console.print(markup, soft_wrap=True)

    def _wait(self, markup: str) -> None:
        if self._status is not None:
            self._status.update(markup)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
