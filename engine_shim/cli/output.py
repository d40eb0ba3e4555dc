"""What goes to stdout, and the exit codes: ok, failed, usage, definition or policy, limit, audit, waiting."""

import getpass
import json
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT
from engine_shim.runs.drive import RunResult

OK, FAILED, USAGE, DEFINITION, LIMIT, AUDIT, WAITING = range(7)
INTERRUPTED = 130
LONGEST = 500
"""How much of an output that nobody chose to show is shown."""
_BY_KIND = {
    **dict.fromkeys(("definition", "policy_denied", "invalid_action"), DEFINITION),
    **dict.fromkeys(("max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout", "max_iterations"), LIMIT),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a command that drives a run."""

    store: Path | None = None
    config: Path | None = None
    as_json: bool = False

    def command(self, *words: str) -> str:
        """A command that a person can copy, with the options that this one was given."""
        named = [("--store", self.store), ("--config", self.config)]
        given = [word for name, value in named if value is not None for word in (name, str(value))]
        return shlex.join(["agent-core", *words, *given])


def exit_code(result: RunResult) -> int:
    """The exit code that tells how a run came out."""
    if result.status == "completed":
        return OK
    if result.status in ("waiting", "paused"):
        return WAITING
    return _BY_KIND.get((result.error or {}).get("kind", ""), FAILED)


def document(value: Any) -> None:
    """One JSON document to stdout."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, ensure_ascii=not unicode, indent=2) + "\n")


def line(text: str = "") -> None:
    """One line of plain text to stdout."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def error(message: str, *, kind: str, where: str, as_json: bool) -> None:
    """What went wrong: a JSON document to stdout, or a sentence to stderr."""
    if as_json:
        document({"error": {"kind": kind, "message": message, "where": where}})
    else:
        sys.stderr.write(f"agent-core: {where}: {message}\n" if where else f"agent-core: {message}\n")


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def user() -> str:
    """Who gives this command, as journals name them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a process without a name, as in some containers
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def summary(result: RunResult, workflow: Workflow, options: Options) -> None:
    """A run's result for a person: what it gave, then what became of it."""
    given = list(_given(result, workflow))
    for name, text in given:
        line(f"{name}: {text}")
    if given:
        line()
    rows = [(result.status, " → ".join(result.path)), ("run", result.run_id), *_agents(result, workflow)]
    if result.error:
        rows.append(("error", f"{result.error['where']}: {result.error['kind']}: {result.error['message']}"))
    rows += _waiting(result, options)
    if result.status == "paused":
        rows.append(("go on", options.command("resume", result.run_id)))
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        line(f"{label:<{width}}  {text}".rstrip())


def _given(result: RunResult, workflow: Workflow) -> Iterator[tuple[str, str]]:
    """The declared outputs; where there are none, the agents' answers, or what the last node gave."""
    if result.status != "completed":
        return
    declared, outputs = list(workflow.definition.outputs), result.outputs
    agents = [name for name in _agent_nodes(result, workflow) if outputs[name]["final_answer"] is not None]
    for name in declared or agents or result.path[-1:]:
        text = as_text(outputs[name]["final_answer"] if not declared and agents else outputs[name])
        whole = bool(declared or agents) or len(text) <= LONGEST
        yield name, text if whole else f"{text[:LONGEST]}… ({len(text):,} characters, --json gives all)"


def _agent_nodes(result: RunResult, workflow: Workflow) -> list[str]:
    nodes = workflow.nodes
    return [name for name in result.path if nodes[name].tool == AGENT and "trace" in result.outputs.get(name, ())]


def _agents(result: RunResult, workflow: Workflow) -> Iterator[tuple[str, str]]:
    for name in _agent_nodes(result, workflow):
        output = result.outputs[name]
        usage, about = output["usage"], "about " if output["usage"]["estimated"] else ""
        steps = counted(len({step["step"] for step in output["trace"]}), "step")
        calls, tokens = counted(usage["tool_calls"], "tool call"), counted(usage["total_tokens"], "token")
        yield name, f"{steps}, {calls}, {about}{tokens}, {output['total_ms'] / 1000:.1f} s"


def _waiting(result: RunResult, options: Options) -> Iterator[tuple[str, str]]:
    """What a person is asked, each with the command that answers it."""
    for entry in result.waiting:
        first, others = ("retry", "skip, fail") if entry["reason"] == "in_doubt" else ("approve", "deny, edit")
        why = "may or may not have happened" if entry["reason"] == "in_doubt" else "needs your word"
        place = ["--at", f"{entry['strand']}:{entry['n']}"] if len(result.waiting) > 1 else []
        yield "waiting", f"{entry['tool']} {as_text(entry['args'])} {why}"
        yield "decide", f"{options.command('decide', result.run_id, first, *place)}   (or {others})"
