"""What came of a call, refused, failed or done, as the loop weighs it. Pure."""

from collections.abc import Sequence
from typing import Any

from agent_core.effects import CallReply, Failed, FinishReason, Result, ToolReply
from agent_core.loop.judge import Verdict


def succeeded(result: CallReply | Verdict) -> bool:
    """Whether a call did what it was made for."""
    return isinstance(result, ToolReply) and result.success


def tool_failed(failures: Sequence[CallReply | Verdict]) -> bool:
    """Whether a tool is among what failed, rather than refusals alone."""
    return any(not isinstance(result, Verdict) for result in failures)


def failure(result: CallReply | Verdict) -> tuple[FinishReason, str]:
    """How a run ends that ends over this, and with which message."""
    if isinstance(result, Verdict):
        return result.reason or "policy_denied", result.message
    assert isinstance(result, Result)
    return "tool_error", error_in(result) or ""


def error_in(result: Result) -> str | None:
    """What the tool, or the world around it, says went wrong."""
    match result:
        case Failed(message=message):
            return message
        case ToolReply(success=False, error=error):
            return error or "the tool failed and did not say why"
        case _:
            return None


def output_of(result: Result) -> Any:
    return result.output if isinstance(result, ToolReply) else None
