"""Routes for agents and conversations."""

from typing import Any

from fastapi import APIRouter, Response

from agent_core.agents.errors import AgentNotFound
from agent_core.outputs import Json
from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import write_json
from engine_shim.api.chat_models import AgentList, ChatAnswer, ChatBegun, ChatRequest, Conversation, ConversationList
from engine_shim.api.links import CHAT_LINKS, CONVERSATION_LINKS
from engine_shim.api.problems import NoContent, define_problem, open_router, responses
from engine_shim.api.run_answers import Key, Wait
from engine_shim.service.conversations import ConversationService, ConversationSpent

MOST_LISTED = 100
ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {"links": CHAT_LINKS},
    202: {"model": ChatBegun, "description": "The turn goes on", "links": CHAT_LINKS},
}
STORED: dict[int | str, dict[str, Any]] = {200: {"links": CONVERSATION_LINKS}}


def chat_routes(access: Access) -> APIRouter:
    """Return the routes for conversations with the agents of a host."""
    router = open_router("agents")
    read, run = access.needs("read"), access.needs("run")

    @router.get("/agents", response_model=AgentList, responses=responses())
    async def list_agents(caller: Caller = read) -> Response:
        """Return the agents of the catalogue."""
        conversations = caller.tenant.conversations
        return write_json({"agents": conversations.describe_agents() if conversations else []})

    @router.post("/agent/chat", response_model=ChatAnswer, responses={**ANSWERED, **responses(404, 429)})
    async def chat(
        body: ChatRequest,
        wait: Wait = True,
        idempotency_key: Key = None,
        traceparent: TraceParent = None,
        caller: Caller = run,
    ) -> Response:
        """Let an agent answer a message; with `?wait=false`, in the background. A turn without an answer has
        `success: false`; a waiting call is decided at `/runs/{trace_id}/decide`."""
        conversations = _conversations(caller)
        try:
            turn = await conversations.begin(
                body.message,
                body.conversation_id,
                agent=body.agent,
                max_tool_calls=body.max_tool_calls,
                max_tokens=body.max_tokens,
                by=caller.name,
                key=idempotency_key,
                trace=traceparent,
                is_followed=not wait,
            )
        except ConversationSpent as error:
            return write_json(error.reply.as_json())
        if not wait:
            return write_json({"conversation_id": turn.conversation, "trace_id": turn.run, "status": "running"}, 202)
        return write_json(_with_limit((await conversations.wait_for_reply(turn.run)).as_json(), body))

    @router.get("/agent/conversations", response_model=ConversationList, responses=responses())
    async def list_conversations(caller: Caller = read) -> Response:
        """Return the stored conversations, those with the newest turns first, at most 100."""
        return write_json({"conversations": await caller.tenant.list_conversations(MOST_LISTED)})

    @router.get(
        "/agent/conversations/{conversation_id}", response_model=Conversation, responses={**STORED, **responses(404)}
    )
    async def show_conversation(conversation_id: str, caller: Caller = read) -> Response:
        """Return the stored messages of a conversation."""
        messages = await _conversations(caller).history(conversation_id)
        return write_json({"conversation_id": conversation_id, "messages": messages})

    @router.delete(
        "/agent/conversations/{conversation_id}",
        status_code=204,
        response_class=NoContent,
        responses=define_problem(404),
    )
    async def delete_conversation(conversation_id: str, caller: Caller = run) -> Response:
        """Delete a conversation. The records of its runs stay."""
        await _conversations(caller).delete(conversation_id)
        return Response(status_code=204)

    return router


def _with_limit(reply: Json, body: ChatRequest) -> Json:
    """Return the reply; of a turn that ran into a limit of the request, the error says which."""
    limit = {"token_budget": "max_tokens", "max_tool_calls": "max_tool_calls"}.get(reply["finish_reason"])
    if limit is None or reply["error"] is None:
        return reply
    message = f"{reply['error']['message']}; {limit} of this request is {getattr(body, limit):,}"
    return {**reply, "error": {**reply["error"], "message": message}}


def _conversations(caller: Caller) -> ConversationService:
    """Return the conversations of the caller's host. AgentNotFound where it has no agents."""
    if caller.tenant.conversations is None:
        raise AgentNotFound("", [])
    return caller.tenant.conversations
