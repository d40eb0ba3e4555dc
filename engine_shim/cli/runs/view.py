"""The live view of a run, on stderr: each node and each step as it happens, with a spinner while something is awaited.

A node that is a plain tool has one line, when it is done. The lines of an agent are indented under its name.
"""

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console
from rich.text import Text

from agent_core.decisions import Decision, encode_decision
from agent_core.journal.control import describe_event
from agent_core.journal.path import Segment, is_below, is_within, node_of, parse_segment, segments
from agent_core.run.events import Action, AgentFinished, Event, NodeAction, Observation, PlanStep
from engine_shim.cli import terminal
from engine_shim.cli.output import as_text, count
from engine_shim.cli.terminal import VisibleStream, visible
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT

if TYPE_CHECKING:
    from rich.status import Status

WIDTH = 110
"""How long a line may be where there is no terminal."""
FIRST = "attempt 1 "
NOWHERE = Segment(None, 0, 0)
ROWS = 4
"""How many lines of the terminal a failure may take: its end says what to do about it."""


class View:
    """Prints a run's events as they come. Use it as a context manager, so that the spinner ends with the run."""

    def __init__(self, workflow: Workflow, *, quiet: bool = False) -> None:
        self._workflow, nodes = workflow, workflow.nodes
        self._failed: set[str] = set()
        self._agent_nodes = {name for name, node in nodes.items() if node.tool == AGENT}
        self._agent_strands: set[str] = set()
        self._column = min(max(len(f"{name}[0]" if node.foreach else name) for name, node in nodes.items()), 24)
        self._console = Console(file=terminal.err(), highlight=False, soft_wrap=True, quiet=quiet)
        self._streams = ExitStack()
        self._width = self._console.width if self._console.is_terminal else WIDTH
        self._status: Status | None = None
        self._running: dict[str, None] = {}
        self._tried = ""
        self._plan_steps: dict[str, int] = {}
        self._last_agent: list[str] = []
        self._answer = ""
        self._tokens = 0
        self._cut = self._has_output = False

    def __enter__(self) -> "View":
        if self._console.is_terminal and not self._console.quiet:
            self._status = self._console.status("starting")
            self._status.start()
            # rich shows above the spinner what others write, and would let escapes pass
            self._streams.enter_context(redirect_stdout(cast(TextIO, VisibleStream(sys.stdout))))
            self._streams.enter_context(redirect_stderr(cast(TextIO, VisibleStream(sys.stderr))))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._cut:
            self._print_line(Text("observation_max_len sets how much of an observation the model is shown", "dim"))
        if self._has_output:
            self._console.print()

    def close(self) -> None:
        """End the spinner."""
        self._streams.close()
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, event: Event) -> None:
        """Print one event."""
        strand, names = event["strand"], self._names(event["strand"])
        self._tried = self._attempt(strand)
        if event["event"] != "observation":  # whose length counts
            event = cast(Event, {key: visible(each) if isinstance(each, str) else each for key, each in event.items()})
        if event["event"] == "step_started":
            self._agent_strands.add(strand)
        if names and (
            node_of(strand) in self._agent_nodes or any(is_within(strand, agent) for agent in self._agent_strands)
        ):
            self._show_agent_event(names, event)
        elif names:
            self._show_node_event(names, event)
        elif event["event"] == "finished" and event.get("status") == "completed":
            self._show_continued()

    def _show_node_event(self, names: list[str], event: Event) -> None:
        name, attempt = " › ".join(names), self._tried
        if event["event"] == "action":
            self._running[name] = None
            self._set_status(", ".join(self._running) + (f": {attempt}" if attempt else ""))
        elif event["event"] == "observation":
            success, text = event["success"], event["text"]
            self._settle(names, success)
            self._running.pop(name, None)
            self._set_status(", ".join(self._running))
            text = f"{attempt}: {text}" if attempt and not (success and attempt.startswith(FIRST)) else text
            self._print_node("✓" if success else "✗", "green" if success else "red", name, text)
        elif event["event"] == "waiting" and event["reason"] == "awaiting_event":
            self._print_node("…", "yellow", name, f"waits {describe_event(event)}")
        elif event["event"] == "waiting":
            names = self._names(event["strand"], of_items=False)
            text = f"{event['reason']}: {event['tool']} {_json(event['args'])}"
            self._print_node("?", "yellow", " › ".join(names), text)

    def _print_node(self, mark: str, style: str, name: str, text: str) -> None:
        self._last_agent = []
        flat = " ".join(visible(text[: 4 * self._width]).split())
        rows = ROWS if style == "red" else 1
        self._print_line(Text.assemble((mark, style), " ", name.ljust(self._column), "  ", (flat, "dim")), rows=rows)

    def _show_agent_event(self, names: list[str], event: Event) -> None:
        match event["event"]:
            case "step_started":
                self._answer = ""
                self._set_status(f"{names[-1]}: step {event['step']}, asking {event['model']}")
            case "thought_delta":
                self._answer += event["text"]
                self._set_status(f"{names[-1]}: thinking: {self._tail()}")
            case "thought":
                self._answer = ""
                self._print_under(names, Text(f"  {event['text']}", "dim italic"))
            case "answer_delta":
                self._answer += event["text"]
                self._set_status(f"{names[-1]}: {self._tail()}")
            case "answer_discarded":
                line = Text.assemble("  ", ("the answer is discarded: ", "yellow"), (self._tail(), "dim"))
                self._print_under(names, line)
                self._answer = ""
            case "action":
                self._show_action(names, event)
            case "observation":
                self._show_observation(names, event)
            case "repair":
                line = Text.assemble((f"{event['step']} ", "bold"), (f"{event['kind']} ", "yellow"), event["message"])
                self._print_under(names, line, rows=ROWS)
            case "plan":
                self._print_under(names, Text.assemble((f"{event['step']} ", "bold"), "plan"))
                for each in event["steps"]:
                    self._print_under(names, Text(f"  {each['step']}. {each['description']} ({each['tool']})", "dim"))
            case "plan_step":
                self._show_plan_step(names, event)
            case "waiting" if event["reason"] == "awaiting_event":
                self._print_under(names, Text.assemble(("… ", "yellow"), f"waits {describe_event(event)}"))
            case "waiting":
                called = f"{event['tool']} {_json(event['args'])}"
                self._print_under(names, Text.assemble((f"? {event['reason']} ", "yellow"), called))
            case "finished":
                if "finish_reason" in event:
                    self._show_end(names, event)
            case _:
                pass

    def _show_action(self, names: list[str], event: Action | NodeAction) -> None:
        planned, step = self._plan_steps.get(event["strand"]), event.get("step")
        number = f"{step} " if planned is None else f"{planned}. "
        self._print_under(names, Text.assemble((number, "bold"), f"{event['tool']} {_json(event['args'])}"))
        self._set_status(f"{names[-1]}: running {event['tool']}")

    def _show_plan_step(self, names: list[str], event: PlanStep) -> None:
        if event["status"] == "running":
            self._plan_steps[event["strand"]] = event["plan_step"]
        elif event["status"] == "skipped":
            told = f"  step {event['plan_step']} of the plan was not run: {event.get('message')}"
            self._print_under(names, Text(told, "yellow"))

    def show_decision(self, call: Mapping[str, Any], decision: Decision) -> None:
        """Print a call that waited, with what was decided about it."""
        record = encode_decision(decision)
        shown = (
            f"{record['decision']} {call['tool']} {_json(record.get('args', call['args']))} {record.get('message', '')}"
        )
        names = self._names(call["strand"], of_items=node_of(call["strand"]) in self._agent_nodes)
        self._print_under(names, Text.assemble(("! ", "yellow"), visible(shown).strip()))

    def _settle(self, names: list[str], success: bool) -> None:
        """Keep in mind which nodes of the workflow failed last, or which of their items."""
        if len(names) == 1:
            self._failed.discard(names[0])
            if not success:
                self._failed.add(names[0])

    def _show_continued(self) -> None:
        """Name the nodes that failed without ending the run."""
        for name in filter(self._has_failed, self._workflow.nodes):
            edges = self._workflow.definition.edges or ()
            targets = [edge.target for edge in edges if edge.source == name and edge.on == "error"]
            how = f"by its error edge to {', '.join(targets)}" if targets else "without it"
            self._print_node("!", "yellow", name, f"failed; the run went on {how}")

    def _has_failed(self, name: str) -> bool:
        if self._workflow.nodes[name].on_item_error == "continue":
            return False
        return any(each.partition("[")[0] == name for each in self._failed)

    def _names(self, strand: str, *, of_items: bool = True) -> list[str]:
        """Return the nodes and nested agents that a strand belongs to, from the outside in; calls of a batch have no
        names.

        An item of a node's list is named by its number, unless the strand is that of a call which waits: those are
        counted by themselves.
        """
        parts = [parse_segment(segment) for segment in segments(strand)]
        names = [visible(part.name) for part in parts if part.name is not None]
        node = self._workflow.nodes.get(names[0]) if len(parts) > 1 else None
        if of_items and node is not None and node.foreach is not None:
            names[0] += f"[{parts[1].item}]"
        return names

    def _attempt(self, strand: str) -> str:
        """Return which attempt of a node that may be tried again a strand belongs to; empty for a node that may not."""
        visit, *below = [parse_segment(segment) for segment in segments(strand)] or [NOWHERE]
        node = self._workflow.nodes.get(visit.name or "")
        if node is None or node.retry is None or node.retry.max_attempts == 1:
            return ""
        before = visit.item
        if node.foreach is not None and below:
            if node.approval == "on_write":  # only the journal knows whether somebody was asked first
                return ""
            before = below[0].number // 2 - (node.approval == "always")  # question and answer of each list
        return f"attempt {before + 1} of {node.retry.max_attempts}"

    def _tail(self) -> str:
        """Return the end of the answer as far as it is written, as long as a line has room for."""
        flat = " ".join(self._answer[-2 * self._width :].split())
        room = self._width // 2
        return flat if len(flat) <= room else f"…{flat[-room:]}"

    def _show_observation(self, names: list[str], event: Observation) -> None:
        shown, whole = len(event["text"]), event["characters"]
        self._cut = self._cut or whole > shown
        line = Text(f"  {visible(event['text'])}", "dim" if event["success"] else "red")
        tail = f" (cut from {whole} to {shown} characters)" if whole > shown else ""
        self._print_under(names, line, tail, rows=1 if event["success"] else ROWS)

    def _show_end(self, names: list[str], event: AgentFinished) -> None:
        reason, error, answer = event["finish_reason"], event["error"], event["final_answer"]
        self._settle(names, reason == "final")
        if not any(is_below(event["strand"], each) for each in self._agent_strands):  # whose usage has it too
            self._tokens += event["usage"]["total_tokens"]
        mark, style = ("✓ ", "green") if reason == "final" else ("✗ ", "red")
        text = visible(f"{reason}: {error['message']}") if error else reason
        if error is None and answer is not None:
            text += f": {visible(as_text(answer))}"
        self._print_under(names, Text.assemble((mark, style), text), rows=ROWS if error else 1)

    def _print_under(self, names: list[str], line: Text, tail: str = "", rows: int = 1) -> None:
        """A line under its agent's name, which is printed again after the lines of another one."""
        if [*names, self._tried] != self._last_agent:
            self._last_agent = [*names, self._tried]
            again = "" if not self._tried or self._tried.startswith(FIRST) else f" ({self._tried})"
            self._print_line(Text.assemble(("● ", "cyan"), " › ".join(names), again))
        self._print_line(Text.assemble("    ", line), tail, rows)

    def _print_line(self, line: Text, tail: str = "", rows: int = 1) -> None:
        room = (self._width - 1) * rows - len(tail)
        flat = Text(" ").join(line.split("\n"))
        flat.truncate(room, overflow="ellipsis")
        self._console.print(Text.assemble(flat, (tail, "dim")))
        self._has_output = True

    def _set_status(self, text: str) -> None:
        if self._status is not None:
            self._status.update(_Underway(text, monotonic(), self._tokens))


@dataclass(frozen=True, slots=True)
class _Underway:
    """What is under way, for how long, and the tokens of the agents that have ended; made anew whenever it is drawn."""

    text: str
    began: float
    tokens: int

    def __rich__(self) -> Text:
        seconds = monotonic() - self.began
        parts = [f"{seconds:.0f} s"] if self.text and seconds >= 1 else []
        parts += [count(self.tokens, "token")] if self.tokens else []
        return Text.assemble(self.text or " ", (f"  {', '.join(parts)}" if parts else "", "dim"))


def _json(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))
