"""OpenAI's chat completions, by the types of the openai SDK."""

from collections.abc import Iterator

import orjson
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter, with_config

from support.loopback import Request
from support.wires.turn import Asked, Json, Turn

CREATED = 1_790_000_000
FINISH = {"malformed_call": "MALFORMED_FUNCTION_CALL"}


BODY = TypeAdapter(with_config(ConfigDict(extra="forbid"))(CompletionCreateParamsNonStreaming))


class ChatStandIn:
    provider = "openai"
    api = "chat"
    keys = "OPENAI_API_KEY"
    url_env = "OPENAI_BASE_URL"

    def is_its_path(self, request: Request) -> bool:
        return request.target == "/v1/chat/completions"

    def key_of(self, request: Request) -> str | None:
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        return key if kind == "Bearer" else None

    def read(self, request: Request) -> Asked:
        body = orjson.loads(request.body)
        BODY.validate_python({name: value for name, value in body.items() if name != "stream"})
        said: list[str] = []
        calls: list[tuple[str, Json]] = []
        results: list[str] = []
        open_calls: list[str] = []
        for message in body["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == open_calls.pop(0)
                results.append(message["content"])
                continue
            assert not open_calls, "a call was not answered"
            if message.get("content"):
                said.append(message["content"])
            for call in message.get("tool_calls", ()):
                calls.append((call["function"]["name"], orjson.loads(call["function"]["arguments"])))
                open_calls.append(call["id"])
        known = ("model", "messages", "tools", "stream", "stream_options")
        options = {name: value for name, value in body.items() if name not in known}
        tools = [tool["function"]["name"] for tool in body.get("tools", ())]
        return Asked(body["model"], said, tools, calls, results, [], bool(body.get("stream")), options, [])

    def whole(self, turn: Turn, number: int) -> bytes:
        choice = {"index": 0, "message": _message(turn, number), "finish_reason": "stop"}
        about = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": CREATED, "model": "m1"}
        whole = ChatCompletion.model_validate({**about, "choices": [choice], "usage": _usage(turn)})
        return orjson.dumps(_ending(whole.model_dump(mode="json", exclude_none=True), _finish(turn)))

    def events(self, turn: Turn, number: int) -> list[bytes]:
        return [b"data: %b\n\n" % orjson.dumps(each) for each in self._chunks(turn, number)] + [b"data: [DONE]\n\n"]

    def _chunks(self, turn: Turn, number: int) -> Iterator[Json]:
        message = _message(turn, number)
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": turn.text[start : start + 5]} for start in range(0, len(turn.text), 5)]
        for index, call in enumerate(message.get("tool_calls", ())):
            deltas.append({"tool_calls": [{"index": index, **call}]})
        about = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": CREATED, "model": "m1"}
        for delta in deltas:
            chunk = {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            yield ChatCompletionChunk.model_validate(chunk).model_dump(mode="json", exclude_none=True)
        yield {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(turn)}]}
        yield {**about, "choices": [], "usage": _usage(turn)}

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        return orjson.dumps({"error": {"message": message, "type": kind or "error", "param": None, "code": None}})


def _message(turn: Turn, number: int) -> Json:
    calls = [
        {"id": f"call_{number}_{index}", "type": "function", "function": _function(name, args)}
        for index, (name, args) in enumerate(turn.calls)
    ]
    return {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}


def _function(name: str, args: Json) -> Json:
    return {"name": name, "arguments": orjson.dumps(args).decode()}


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls and turn.finish == "stop" else FINISH.get(turn.finish, turn.finish)


def _ending(whole: Json, finish: str) -> Json:
    whole["choices"][0]["finish_reason"] = finish
    return whole


def _usage(turn: Turn) -> Json:
    counts = turn.counts
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }


STAND_IN = ChatStandIn()
