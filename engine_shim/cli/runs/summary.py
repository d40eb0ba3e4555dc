"""The result of a run for a person: its outputs, then its status; and the exit code that says the same."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from agent_core.errors import DecisionError, JournalError
from agent_core.journal.control import calls_for_person, describe_event
from agent_core.loop.plan_check import PLAN
from agent_core.outputs import Json
from engine_shim.cli.output import (
    DEFINITION,
    FAILED,
    LIMIT,
    OK,
    WAITING,
    Options,
    as_text,
    count,
    document,
    in_line,
    line,
    list_origins,
)
from engine_shim.cli.store import open_named_store
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT
from engine_shim.runs.drive import RunResult
from engine_shim.runs.failures import RETRIABLE, find_failures

ANSWER = "final_answer"
LONGEST = 500
"""How many characters are shown of an output that was not chosen to be shown."""
_BY_KIND = {
    **dict.fromkeys(("definition", "policy_denied", "invalid_action"), DEFINITION),
    **dict.fromkeys(("max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout"), LIMIT),
    **dict.fromkeys(("max_iterations", "max_visits"), LIMIT),
}


def exit_code(result: RunResult) -> int:
    """Return the exit code of a run's result."""
    if result.status == "completed":
        return OK
    if result.status in ("waiting", "paused"):
        return WAITING
    return code_of_kind(result.error["kind"] if result.error else "")


def code_of_kind(kind: str) -> int:
    """Return the exit code of a run that ended by an error of this kind."""
    return _BY_KIND.get(kind, FAILED)


def report(result: RunResult, workflow: Workflow, options: Options) -> int:
    """Write the result; returns the exit code."""
    if options.as_json:
        document(result.as_json())
    else:
        write_summary(result, workflow, options)
    return exit_code(result)


def write_summary(result: RunResult, workflow: Workflow, options: Options) -> None:
    """Write the outputs, then a table of what became of the run."""
    outputs = list(_outputs(result, workflow))
    for name, text in outputs:
        line(f"{name}: {text}")
    if outputs:
        line()
    rows = [(result.status, " → ".join(result.path)), ("run", result.run_id), *_agent_rows(result, workflow)]
    if result.error:
        rows.append(("error", f"{result.error.get('where')}: {result.error['kind']}: {result.error['message']}"))
        if result.error["kind"] in RETRIABLE and _may_be_tried_again(result.run_id, options):
            rows.append(("try again", options.command("resume", result.run_id, "--retry-failed")))
    rows += _waiting_rows(result, options)
    if result.status == "paused":
        rows.append(("go on", options.command("resume", result.run_id)))
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        line(f"{label:<{width}}  {in_line(text)}".rstrip())


def _may_be_tried_again(run_id: str, options: Options) -> bool:
    """Return whether a failed run failed over what a second try may change: a model or a read."""
    try:
        with closing(open_named_store(options.store, options.config)) as store:
            return bool(find_failures(run_id, store.journal.load(run_id)))
    except (DecisionError, JournalError):
        return False


def _outputs(result: RunResult, workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the declared outputs; without any, the agents' primary outputs, or the output of the last node."""
    if result.status != "completed":
        return
    declared, outputs = list(workflow.definition.outputs), result.outputs
    primary = {name: _primary_output(result, workflow, name) for name in _agent_runs(result, workflow)}
    agents = [name for name, output in primary.items() if output is not None]
    for name in declared or agents or result.path[-1:]:
        text = as_text(primary[name] if not declared and agents else outputs[name])
        whole = bool(declared or agents) or len(text) <= LONGEST
        yield name, text if whole else f"{text[:LONGEST]}… ({len(text):,} characters, --json gives all)"


def _agent_runs(result: RunResult, workflow: Workflow) -> dict[str, list[Json]]:
    """Return the outputs of each agent node that has some: its own, or those of its items that did not fail."""
    found = {}
    for name in result.path:
        node, output = workflow.nodes[name], result.nodes.get(name, {})
        runs = [output] if node.foreach is None else [each for each in output.get("results", ()) if each]
        if node.tool == AGENT and runs and "trace" in runs[0]:
            found[name] = runs
    return found


def _primary_output(result: RunResult, workflow: Workflow, name: str) -> Any:
    """Return the output of an agent that its author wants to see, or those of its items; the answer where a placeholder
    has chosen it."""
    node, output = workflow.nodes[name], result.nodes[name]
    chosen = node.config.get("primary_output", ANSWER)
    if node.foreach is None:
        return output.get(chosen, output[ANSWER])
    return [each and each.get(chosen, each[ANSWER]) for each in output["results"]]


def _agent_rows(result: RunResult, workflow: Workflow) -> Iterator[tuple[str, str]]:
    for name, runs in _agent_runs(result, workflow).items():
        usages = [each["usage"] for each in runs]
        about = "about " if any(each["estimated"] for each in usages) else ""
        steps = count(sum(len({step["step"] for step in each["trace"]}) for each in runs), "step")
        calls = count(sum(each["tool_calls"] for each in usages), "tool call")
        tokens = count(sum(each["total_tokens"] for each in usages), "token")
        items = "" if workflow.nodes[name].foreach is None else f"{count(len(runs), 'item')}, "
        seconds = sum(each["total_ms"] for each in runs) / 1000
        yield name, f"{items}{steps}, {calls}, {about}{tokens}, {seconds:.1f} s"


def _waiting_rows(result: RunResult, options: Options) -> Iterator[tuple[str, str]]:
    """Yield what waits, for an event or for a person, each with the command that ends the wait."""
    waits = [each for each in result.waiting if each["reason"] == "awaiting_event"]
    for entry in waits:
        yield "waits", describe_event(entry)
        if "signal" in entry:
            yield "signal", options.command("signal", result.run_id, entry["signal"])
    calls = calls_for_person(result.waiting)
    for entry in calls:
        in_doubt = entry["reason"] == "in_doubt"
        first, others = ("retry", "skip, fail, done --output JSON") if in_doubt else ("approve", "deny, edit")
        why = "may or may not have happened" if in_doubt else "needs your decision"
        location = ["--at", f"{entry['strand']}:{entry['n']}"] if len(calls) > 1 else []
        if entry["tool"] == PLAN and entry["args"].keys() == {"steps"}:
            yield "waiting", f"{PLAN} {why}"
            yield from map(_step_row, entry["args"]["steps"])
        else:
            yield "waiting", " ".join([entry["tool"], as_text(entry["args"]), why, *list_origins(entry, "({})")])
            if because := entry.get("message"):
                yield "because", because
        yield "decide", f"{options.command('decide', result.run_id, first, *location)}   (or {others})"


def _step_row(step: Json) -> tuple[str, str]:
    """Return a step of a plan: what it calls, and what for."""
    return f"step {step['step']}", f"{step['tool']} {as_text(step['parameters'])}   {step['description']}"
