"""What a call gives back: the structured result of a run or a turn, and a short text of the same."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
from mcp_types import CallToolResult, TextContent

from agent_core.agents.reply import ChatReply
from agent_core.journal.control import calls_for_person, describe_event
from agent_core.outputs import Json, RunError, WaitingCall
from agent_core.protocol.clip import clip
from agent_core.statuses import RunStatus
from engine_shim.definition.model import AGENT, Definition
from engine_shim.mcp_server.questions import choices_of, describe_call, key_of
from engine_shim.service.run_view import RunView

LONGEST: Final = 100_000
"""Characters of one output in the text, which is all that many clients show a model; the structured result has the
whole."""
_KEYS: Final = ("run_id", "status", "outputs", "path", "waiting", "error")


def run_result(view: RunView, definition: Definition) -> CallToolResult:
    """Return the result of a call that ran a workflow. A run that failed or was cancelled is an error of the tool."""
    match view.status:
        case "completed":
            text = "\n".join([*_outputs(view, definition), f"run {view.run_id} completed"])
        case "waiting":
            text = _waiting_text(view.run_id, view.waiting)
        case "failed" | "cancelled":
            text = f"run {view.run_id} {_ending(view.status)}{_reason(view.error)}"
        case status:
            text = f"run {view.run_id} is {status}; `agent-core show {view.run_id}` says what comes of it"
    structured = {key: view.as_json()[key] for key in _KEYS}
    return _result(text, structured, is_error=view.status in ("failed", "cancelled"))


def reply_result(reply: ChatReply) -> CallToolResult:
    """Return the result of a call that asked an agent. A turn without an answer is an error, unless it waits."""
    if reply.success:
        text = reply.response
    elif reply.waiting:
        text = _waiting_text(str(reply.trace_id), reply.waiting)
    else:
        text = f"the agent gave no answer: {reply.finish_reason}{_reason(reply.error)} (run {reply.trace_id})"
    return _result(text, reply.as_json(), is_error=not (reply.success or reply.waiting))


def error_result(text: str) -> CallToolResult:
    """Return the result of a call that was refused, and ran nothing."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _result(text: str, structured: Json, *, is_error: bool) -> CallToolResult:
    plain = orjson.loads(orjson.dumps(structured))
    return CallToolResult(content=[TextContent(text=text)], structured_content=plain, is_error=is_error)


def _outputs(view: RunView, definition: Definition) -> Iterator[str]:
    """Yield the declared outputs; without any, the answers of the agents, else the output of the last node. The
    definition may be a newer one than the run's."""
    outputs, nodes = view.outputs, view.nodes
    shown: dict[str, Any] = {name: outputs[name] for name in definition.outputs if name in outputs}
    agents = [] if shown else [node.id for node in definition.nodes if node.tool == AGENT]
    agents = [name for name in agents if "final_answer" in nodes.get(name, ())]
    shown = shown or {name: nodes[name]["final_answer"] for name in agents}
    shown = shown or {name: nodes[name] for name in view.path[-1:] if name in nodes}
    for name, value in shown.items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield f"{name}: {clip(text, LONGEST)}"


def _waiting_text(run: str, waiting: Sequence[WaitingCall]) -> str:
    """Return what waits in a run, and how it is decided, or which signal lets it continue."""
    calls, lines = calls_for_person(waiting), list[str]()
    for wait in waiting:
        if wait not in calls:
            how = f"; `agent-core signal {run} {wait['signal']}` lets it continue" if "signal" in wait else ""
            lines.append(f"run {run} waits {describe_event(wait)}{how}")
    if calls:
        lines.append(f"run {run} waits for a person's decision:")
    for call in calls:
        at = f" --at {key_of(call)}" if len(calls) > 1 else ""
        lines.append(f"- {describe_call(call)}; `agent-core decide {run}{at} {'|'.join(choices_of(call))}`")
    return "\n".join(lines)


def _ending(status: RunStatus) -> str:
    return "was cancelled" if status == "cancelled" else status


def _reason(error: RunError | None) -> str:
    return f": {error['kind']}: {error['message']}" if error else ""
