"""Routes in OpenAI's shape: agents and workflows as models, for clients that know nothing else."""

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Header, Request, Response

from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import describe_events, write_json
from engine_shim.api.attempts import Attempt
from engine_shim.api.held_stream import HeldStream, chain, take_stream
from engine_shim.api.openai_models import (
    ChatCompletionRequest,
    ModelObject,
    ModelObjectList,
    OpenAIChatCompletion,
    OpenAIError,
)
from engine_shim.api.problems import COMMON, open_router, refusal_of
from engine_shim.api.refusal import TITLES, Refusal
from engine_shim.api.served_route import ServedRoute
from engine_shim.service.completions import Completion, Piece, Question, name_run
from engine_shim.service.shares import TooManyRuns

SINCE: Final = 0
"""When a model was made: unknown, and clients only sort by it."""
RUN_HEADER: Final = "X-Run-Id"
KEY_HEADER: Final = "Idempotency-Key"
PLACES: Final = ("body", "query", "path", "header", "external")
"""Where the fields of a request are; `external` are inputs that do not fit the workflow."""
KEEP_ALIVE: Final = b": still here\n\n"
TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 500: "server_error"}


def openai_routes(access: Access) -> APIRouter:
    """Return the routes that OpenAI's clients call, below `/v1`."""
    router = open_router("openai", route_class=OpenAIRoute, prefix="/v1")
    read, run = access.needs("read"), access.needs("run")

    @router.get("/models", response_model=ModelObjectList, responses=_errors())
    async def list_models(caller: Caller = read) -> Response:
        """Return the agents, and the workflows that take a text: `agent/NAME`, `workflow/ID` (or
        `workflow/ID@VERSION`)."""
        names = caller.tenant.completions.list_models()
        return write_json({"object": "list", "data": [_describe(name) for name in names]})

    @router.get("/models/{model:path}", response_model=ModelObject, responses=_errors(404))
    async def get_model(model: str, caller: Caller = read) -> Response:
        """Return one agent or workflow as a model, by the name that the list has, or `workflow/ID@VERSION`."""
        return write_json(_describe(caller.tenant.completions.find_model(model)))

    @router.post(
        "/chat/completions",
        response_model=OpenAIChatCompletion,
        responses={200: {"content": describe_events()}, **_errors(404, 409, 429)},
    )
    async def complete_chat(
        body: ChatCompletionRequest,
        request: Request,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=256)] = None,
        caller: Caller = run,
    ) -> Response:
        """Answer a conversation. The system message is added to the agent's own; a workflow gets the last message.

        Limits are those of the agent. What OpenAI's models could do with other parameters is left undone, and
        parameters that would change the form of the answer are refused. Who left before the answer, and asks the same
        again within two minutes, gets the answer of the same run, unless it was cancelled or its workflow is another.
        """
        completions, messages = caller.tenant.completions, body.read_messages()
        run_id = name_run(body.model, idempotency_key)
        asked = Question(body.model, messages, run_id, caller.name, idempotency_key, body.temperature)
        attempt = await Attempt.of(request, caller, asked)
        question = attempt.question
        headers = {RUN_HEADER: question.run}
        if not body.stream:
            with attempt.until_answered(question.run):
                done = await completions.complete(question)
            return write_json(_write_completion(body.model, done), headers=headers)
        with attempt.until_answered(question.run), take_stream(caller) as taken:  # what is refused has done nothing
            pieces = completions.stream(question)
            first = await anext(pieces)  # what is refused at once is no stream
            chunks = _write_chunks(question, first, pieces, with_usage=body.wants_usage)
            return HeldStream(caller, chunks, headers, taken.pop_all())

    return router


class OpenAIRoute(ServedRoute):
    """A route whose errors have OpenAI's shape."""

    def refuse(self, request: Request, error: Exception) -> Response:
        has_begun_nothing = request.method == "GET" or isinstance(error, TooManyRuns)
        may_retry = has_begun_nothing or KEY_HEADER in request.headers
        return write_refusal(refusal_of(error, self.fields), may_retry=may_retry)


def write_refusal(refusal: Refusal, *, may_retry: bool = True) -> Response:
    """Return a refusal as an answer in OpenAI's shape; whether its client may ask again by itself."""
    headers = refusal.headers() if may_retry else {**refusal.headers(), "X-Should-Retry": "false"}
    return write_json(_write_error(refusal), refusal.status, headers)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a route for its documentation."""
    return {status: {"model": OpenAIError, "description": TITLES[status]} for status in sorted({*COMMON, *statuses})}


def _write_error(refusal: Refusal) -> dict[str, Any]:
    named = [(_name_param(where), where, message) for where, message in refusal.errors]
    text = "; ".join(f"{param or where}: {message}" for param, where, message in named)
    message = text if refusal.kind == "invalid" and named else refusal.detail
    absent = "model" if refusal.kind == "not_found" else None  # nothing else is looked for here
    kind, param = TYPES.get(refusal.status, "invalid_request_error"), named[0][0] if named else absent
    return {"error": {"message": message, "type": kind, "param": param, "code": refusal.kind}}


def _name_param(where: str) -> str | None:
    """Return the name of a field as OpenAI writes it: `messages[0].role`. None for the body as a whole, and for a place
    in a definition of this host, which is none of the caller's fields."""
    place, *parts = where.split("/")
    if place not in PLACES:
        return None
    names = "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in parts)
    return names.removeprefix(".") or None


def _describe(name: str) -> dict[str, Any]:
    return ModelObject(id=name, created=SINCE).model_dump()


def _write_completion(model: str, done: Completion) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": done.text, "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    return {**_head(model, done.run_id, "chat.completion"), "choices": [choice], "usage": write_usage(done)}


async def _write_chunks(
    question: Question,
    first: Piece,
    rest: AsyncIterator[Piece],
    *,
    with_usage: bool,
) -> AsyncIterator[bytes]:
    """Yield the answer as OpenAI streams it. An error in its midst is an event of its own, and ends it."""
    head = _head(question.model, question.run, "chat.completion.chunk")
    more: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _frame({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    try:
        async for piece in chain(first, rest):
            if piece is None:
                yield KEEP_ALIVE
            elif isinstance(piece, str):
                yield chunk({"content": piece})
            else:
                yield chunk({}, "stop")
                if with_usage:
                    yield _frame({**head, "choices": [], "usage": write_usage(piece)})
    except Exception as error:  # the answer has begun, so that no status can say it
        yield _frame(_write_error(refusal_of(error)))
    yield b"data: [DONE]\n\n"


def _head(model: str, identity: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{identity}", "object": kind, "created": int(time.time()), "model": model}


def write_usage(done: Completion) -> dict[str, Any]:
    """Return the tokens of an answer in OpenAI's fields."""
    return {
        "prompt_tokens": done.input_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": done.input_tokens + done.output_tokens,
        "prompt_tokens_details": {"cached_tokens": done.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": done.reasoning_tokens},
    }


def _frame(data: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(data)
