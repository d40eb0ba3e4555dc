"""The refund desk over HTTP: JSON, and Server-Sent Events that end their run when the client goes away."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel

from agent_core import AgentCoreError, AgentOutput, AnswerError, Approve, DecisionError, Deny, Event, StreamResult
from agent_core.agents import ChatReply, ConversationResult
from engine_shim import EngineError, RunBusy, RunNotFound, RunResult
from service.desk import Desk, Reply, Verdict
from utools import UtoolsError

Given = TypeVar("Given")
STATUSES: dict[type[Exception], int] = {RunNotFound: 404, DecisionError: 409, RunBusy: 409, AnswerError: 502}


@dataclass(frozen=True)
class Principal:
    """Who calls: a customer or a manager of a tenant."""

    tenant: str
    user: str
    role: Literal["customer", "manager"] = "customer"


@dataclass(frozen=True)
class Caller:
    """A principal, at the desk of their tenant."""

    principal: Principal
    desk: Desk

    @property
    def user(self) -> str:
        return self.principal.user

    @property
    def is_manager(self) -> bool:
        return self.principal.role == "manager"


class Complaint(BaseModel):
    number: str
    text: str


class Message(BaseModel):
    text: str


class Decision(BaseModel):
    approved: bool
    message: str = ""


async def stream_sse(
    events: AsyncGenerator[Event | StreamResult[Given], None], encode: Callable[[Given], dict[str, Any]]
) -> AsyncIterator[str]:
    """Yield events as Server-Sent Events. A client that goes away ends the iteration, and so the run."""
    async with aclosing(events):
        try:
            async for event in events:
                if event["event"] == "result":
                    yield _write_sse("result", encode(event["result"]))
                else:
                    yield _write_sse(event["event"], event)
        except (AgentCoreError, EngineError, UtoolsError) as error:
            yield _write_sse("error", {"error": type(error).__name__, "message": str(error)})


def _write_sse(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _encode_output(output: AgentOutput[Verdict]) -> dict[str, Any]:
    answer = output.answer if output.status == "completed" else None
    return {"finish_reason": output.finish_reason, "verdict": answer.model_dump() if answer else None}


def _encode_reply(reply: ChatReply[Reply]) -> dict[str, Any]:
    return {"finish_reason": reply.finish_reason, "reply": reply.final_answer, "run": reply.trace_id}


def _encode_result(result: ConversationResult[Reply]) -> dict[str, Any]:
    return {"steps": result.steps, "reply": result.final_answer}


@dataclass(frozen=True)
class Office:
    """The desks by tenant, the principals by their tokens, and what makes the ids of cases."""

    desks: Mapping[str, Desk]
    principals: Mapping[str, Principal]
    new_id: Callable[[], str] = lambda: uuid4().hex


def find_caller(request: Request, authorization: Annotated[str, Header()] = "") -> Caller:
    office: Office = request.app.state.office
    principal = office.principals.get(authorization.removeprefix("Bearer "))
    if principal is None:
        raise HTTPException(401, "give a token: Authorization: Bearer …")
    return Caller(principal, office.desks[principal.tenant])


By = Annotated[Caller, Depends(find_caller)]
router = APIRouter()


@router.post("/verdicts")
async def judge(complaint: Complaint, caller: By) -> Verdict:
    return await caller.desk.judge(caller.user, complaint.number, complaint.text)


@router.post("/verdicts/events")
async def stream_verdict(complaint: Complaint, caller: By) -> StreamingResponse:
    events = caller.desk.stream_verdict(caller.user, complaint.number, complaint.text)
    return _respond(stream_sse(events, _encode_output))


@router.post("/chats/{chat}")
async def send_message(chat: str, message: Message, caller: By) -> StreamingResponse:
    events = caller.desk.stream_chat(caller.user, chat, message.text)
    return _respond(stream_sse(events, _encode_reply))


@router.post("/questions")
async def ask(question: Message, caller: By) -> StreamingResponse:
    return _respond(stream_sse(caller.desk.stream_answer(caller.user, question.text), _encode_result))


@router.post("/cases")
async def open_case(complaint: Complaint, caller: By, request: Request) -> StreamingResponse:
    case = request.app.state.office.new_id()
    events = caller.desk.open_case(caller.user, complaint.number, complaint.text, case=case)
    return _respond(stream_sse(events, RunResult.as_json), location=f"/cases/{case}")


@router.get("/cases/{case}")
async def show_case(case: str, caller: By) -> dict[str, Any]:
    caller.desk.find_case(case, None if caller.is_manager else caller.user)
    result = caller.desk.engine.result(case)
    return result.as_json() if result else {"run_id": case, "status": caller.desk.engine.status(case)}


@router.post("/cases/{case}/decision")
async def decide(case: str, decision: Decision, caller: By) -> dict[str, Any]:
    if not caller.is_manager:
        raise HTTPException(403, "a manager decides on refunds")
    taken = Approve() if decision.approved else Deny(decision.message)
    return (await caller.desk.decide(case, taken, by=caller.user)).as_json()


async def explain(request: Request, error: Exception) -> Response:
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, status)


def create_app(office: Office) -> FastAPI:
    """Return the application, which closes the desks as it ends."""

    @asynccontextmanager
    async def close_desks(app: FastAPI) -> AsyncGenerator[None]:
        yield
        for desk in office.desks.values():
            await desk.close()

    app = FastAPI(lifespan=close_desks, exception_handlers=dict.fromkeys((AgentCoreError, EngineError), explain))
    app.state.office = office
    app.include_router(router)
    return app


def _respond(events: AsyncIterator[str], **headers: str) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
