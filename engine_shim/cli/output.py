"""What goes to stdout, and the exit codes: ok, failed, usage, definition or policy, limit, audit, waiting."""

import json
import sys
from typing import Any

from engine_shim.runs.runner import RunResult

OK, FAILED, USAGE, DEFINITION, LIMIT, AUDIT, WAITING = range(7)
_BY_KIND = {
    **dict.fromkeys(("definition", "policy_denied", "invalid_action"), DEFINITION),
    **dict.fromkeys(("max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout"), LIMIT),
}


def exit_code(result: RunResult) -> int:
    """The exit code that tells how a run came out."""
    if result.status == "completed":
        return OK
    if result.status == "waiting":
        return WAITING
    return _BY_KIND.get((result.error or {}).get("kind", ""), FAILED)


def document(value: Any) -> None:
    """One JSON document to stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def line(text: str = "") -> None:
    """One line of plain text to stdout."""
    sys.stdout.write(f"{text}\n")


def error(message: str, *, kind: str, where: str, as_json: bool) -> None:
    """What went wrong: a JSON document to stdout, or a sentence to stderr."""
    if as_json:
        document({"error": {"kind": kind, "message": message, "where": where}})
    else:
        sys.stderr.write(f"agent-core: {message}\n")


def summary(result: RunResult) -> None:
    """A run's result for a person."""
    line(f"{result.status}  {result.run_id}  {' → '.join(result.path)}")
    for name, output in result.outputs.items():
        if isinstance(output, dict) and "final_answer" in output and "finish_reason" in output:
            _agent(name, output)
    if result.error:
        line(f"{result.error['where']}: {result.error['kind']}: {result.error['message']}")
    for entry in result.waiting:
        place = f"{entry['strand']}:{entry['n']}"
        words = "retry|skip|fail" if entry["reason"] == "in_doubt" else "approve|deny|edit"
        line(f"waiting: {entry['tool']} {json.dumps(entry['args'], ensure_ascii=False)}")
        line(f"  agent-core decide {result.run_id} --at {place} {words}")


def _agent(name: str, output: dict[str, Any]) -> None:
    answer, usage = output["final_answer"], output["usage"]
    if output["finish_reason"] == "final":
        line(f"{name}: {answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)}")
    about = "about " if usage["estimated"] else ""
    steps, calls = len({step["step"] for step in output["trace"]}), usage["tool_calls"]
    seconds = output["total_ms"] / 1000
    line(f"  {steps} steps, {calls} tool calls, {about}{usage['total_tokens']} tokens, {seconds:.1f} s")
