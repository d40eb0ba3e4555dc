"""How a client is asked about waiting calls: within the call, or, since 2026-07-28, by having it call again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ElicitRequest, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agent_core.outputs import WaitingCall
from engine_shim.mcp_server.callers import Context
from engine_shim.mcp_server.questions import form_of, key_of


@dataclass(frozen=True, slots=True)
class CallState:
    """What a client carries from one round of a call to the next, sealed: the run, what was asked, and how far the
    client knows its events."""

    run: str
    asked: Sequence[str] = ()
    position: Sequence[int] = (0, 0)

    @classmethod
    def read(cls, text: str) -> "CallState":
        """Return the state in a text of `write`."""
        return cls(**orjson.loads(text))

    def write(self) -> str:
        """Return the state as a text."""
        return orjson.dumps({"run": self.run, "asked": [*self.asked], "position": [*self.position]}).decode()


def can_be_asked(context: Context) -> bool:
    """Return whether the client shows forms to a person."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return _asks_by_rounds(context) or context.session.can_send_request


async def ask(
    context: Context, calls: Collection[WaitingCall], state: CallState
) -> Mapping[str, Any] | InputRequiredResult:
    """Return the answers of the person, by call; or the result by which a client is told to ask, and to call again."""
    if _asks_by_rounds(context):
        requests = {key_of(call): ElicitRequest(params=form_of(call, state.run)) for call in calls}
        return InputRequiredResult(input_requests={**requests}, request_state=state.write())
    return {key_of(call): await _ask_now(context, call, state.run) for call in calls}


async def _ask_now(context: Context, call: WaitingCall, run: str) -> ElicitResult | None:
    """Return what the person answers; None where the client cannot ask after all."""
    request = ElicitRequest(params=form_of(call, run))
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    try:
        return await context.session.send_request(request, ElicitResult, metadata=metadata)
    except (MCPError, ValidationError):
        return None


def _asks_by_rounds(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS
