"""The option show --trace: what the agents of a run emitted as their `trace`, from a replay of it."""

from collections.abc import Iterator
from typing import Any

from agent_core.audit.replay import Replay, replay
from agent_core.journal.chain import check_chains
from agent_core.journal.started import loop_of
from engine_shim.cli import output
from engine_shim.cli.records.recorded import find_recorded
from utools.databases.store_address import StoreAddress

LONGEST = 160


def show_trace(run: str, store: StoreAddress | None, *, as_json: bool) -> int:
    """Write the trace of each agent that is no tool of another, step by step."""
    recorded = find_recorded(run, store)
    run_id, tape = recorded.load()
    check_chains(run_id, tape)
    if not any(loop_of(rows[0]) == "agent" for rows in tape.values()):
        if as_json:
            output.document({"run_id": run_id, "traces": {}, "missing": None})
        else:
            output.line("no agent ran in this run")
        return output.OK
    found = replay(recorded.source, run_id=run_id)
    outputs = {strand: outcome.output for strand, outcome in found.outputs.items()}
    if as_json:
        traces = {strand: each["trace"] for strand, each in outputs.items()}
        output.document({"run_id": run_id, "traces": traces, "missing": _missing(found)})
    else:
        for strand, each in outputs.items():
            output.line(strand)
            for text in _table(each["trace"], each["final_answer"]):
                output.line(f"  {text}")
            if each["error"] is not None:
                output.line(f"  ended by {each['error']['kind']}: {output.flatten(each['error']['message'], LONGEST)}")
        if (missing := _missing(found)) is not None:
            output.line(f"{missing}: no trace, since the replay ends there; see `agent-core replay`")
    return output.AUDIT if found.divergence else output.OK


def _missing(found: Replay) -> str | None:
    """Return the strand in which the replay ended, if it did not come to the end."""
    return found.divergence["strand"] if found.divergence else found.tape_ended


def _table(steps: list[dict[str, Any]], answer: Any) -> Iterator[str]:
    rows = [("step", "ms", "tool", "arguments → observation"), *(_cells(step, answer) for step in steps)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for step, elapsed, tool, text in rows:
        yield f"{step:>{widths[0]}}  {elapsed:>{widths[1]}}  {tool:<{widths[2]}}  {text}".rstrip()


def _cells(step: dict[str, Any], answer: Any) -> tuple[str, str, str, str]:
    """Return the cells of a step. One without an action or an error is the last one, which gave the answer."""
    if step["action"] is None and not step["error"]:
        return (
            str(step["step"]),
            f"{step['elapsed_ms']:.0f}",
            "",
            output.flatten(f"final: {output.as_text(answer)}", LONGEST),
        )
    action = step["action"] or {"tool": "", "args": None}
    args = "" if action["args"] is None else output.as_text(action["args"])
    args = " ".join([args, *output.list_origins(step, "({})")])
    result = f"error: {step['error']}" if step["error"] else step["observation"] or ""
    text = output.flatten(" → ".join(filter(None, (args, result))), LONGEST)
    return str(step["step"]), f"{step['elapsed_ms']:.0f}", action["tool"], text
