"""What an endpoint refuses, and what comes of it: asked again, told to the model, cut, or the end."""

from collections.abc import Sequence
from time import monotonic
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.models import ModelError
from agent_core.models.endpoint.refusals import (
    find_wait,
    has_no_money,
    is_bad_call,
    is_filtered,
    is_passing,
    read_overflow,
)
from support.asking import client, endpoint, failed, question
from support.loopback import Reply, chat, events, http, piece, serving
from utools import ToolRegistry, tool

pytestmark = pytest.mark.usefixtures("each_transport")


@tool(effect="read")
async def look(q: str) -> str:
    """Look it up."""
    return q * 400


def error(message: str, status: int = 400, **more: Any) -> bytes:
    return http(status, {"error": {"message": message, **more}})


def call(arguments: str = '{"q":"a"}') -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}


LOOK = chat(None, finish_reason="tool_calls", tool_calls=[call()])


async def run(replies: Sequence[Reply], *, streamed: bool = False, **config: Any) -> Any:
    """A run against an endpoint that gives these replies, whose record is whole and replays."""
    listen: Any = {"on_event": lambda event: None} if streamed else {}
    journal = MemoryJournal()
    async with serving(*replies) as server:
        model = client(server.url)
        given = {"model": "m", "max_steps": 9, "prompt": "Go.", "allowed_tools": ["look"], "protocol": "tools"}
        output = await run_agent(
            {**given, **config}, registry=ToolRegistry([look]), model=model, journal=journal, run_id="r", **listen
        )
        await model.close()
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical
    return output, [row.record() for row in journal.load("r")["agent"]], server.requests


# ── a model's own call ────────────────────────────────────────────────────────────────────────────

BAD_CALLS: dict[str, dict[str, Any]] = {
    "Groq": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=look{"q": "a"}</function>',
    },
    "a tool that was not offered": {
        "message": "Tool call validation failed: attempted to call tool 'lok' which was not in request.tools",
        "code": "tool_use_failed",
    },
    "no choice": {"message": "Tool choice is none, but model called a tool", "code": "tool_use_failed"},
    "llama.cpp": {
        "message": "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
        "code": 500,
    },
    "llama.cpp's format": {"message": "The model produced output that does not match the expected peg-native format"},
    "Databricks": {"message": "Error: Model response did not respect the required format. Please consider retrying."},
    "Ollama's XML": {"message": "XML syntax error on line 12: element <function> closed by </parameter>"},
    "Harmony": {"message": 'unexpected tokens remaining in message header: Some("to=functions.look")'},
    "Harmony's messages": {"message": "Expected 2 output messages (reasoning and final), but got 12."},
    "llama.cpp, later": {"message": "Failed to parse input at pos 52: <tool_call>{", "code": 500},
    "Ollama": {"message": "error parsing tool call: raw='{\"q\":', err=unexpected end of JSON input"},
    "OpenAI": {"message": "The model produced invalid content. Consider modifying your prompt.", "type": "model_error"},
    "Nova": {"message": "Model produced invalid sequence as part of ToolUse. See the guide."},
    "a gateway": {
        "message": "Provider returned error",
        "metadata": {"raw": "MALFORMED_FUNCTION_CALL: malformed function call"},
    },
}


@pytest.mark.sampled
@pytest.mark.parametrize("status", [400, 424, 500])
@pytest.mark.parametrize("body", BAD_CALLS.values(), ids=BAD_CALLS)
async def test_a_vendor_that_refuses_its_own_models_call_is_told_to_the_model(
    body: dict[str, Any], status: int
) -> None:
    output, records, requests = await run([http(status, {"error": body}), LOOK, chat("A.")])
    assert (output.finish_reason, output.final_answer, len(requests)) == ("final", "A.", 3)
    assert [record["unreadable"]["kind"] for record in records if "unreadable" in record] == ["unknown_type"]
    told = requests[1].json()["messages"][-1]["content"]
    assert "nothing was run" in told
    assert body["message"][:20].replace("{", "(") in told
    assert body.get("failed_generation", "") in requests[1].json()["messages"][-2]["content"]


async def test_it_is_counted_by_max_repairs() -> None:
    refused = http(400, {"error": BAD_CALLS["Groq"]})
    output, _, requests = await run([refused], max_repairs=2)
    assert (output.finish_reason, len(requests)) == ("protocol_error", 3)


async def test_it_may_come_in_the_midst_of_a_stream() -> None:
    broken = events(piece("I loo"), {"error": BAD_CALLS["Groq"]})
    output, *_ = await run([broken, events(piece("A."), piece(finish_reason="stop"))], streamed=True)
    assert (output.finish_reason, output.final_answer) == ("final", "A.")


async def test_it_is_told_in_the_json_protocol_too() -> None:
    refused, right = http(400, {"error": BAD_CALLS["no choice"]}), chat('{"type":"final","answer":"A."}')
    output, _, requests = await run([refused, right], protocol="json", response_format="text")
    assert output.final_answer == "A."
    assert "one JSON object" in requests[1].json()["messages"][-1]["content"]


NO_TOOLS = [
    "registry.ollama.ai/library/gemma2:2b does not support tools",
    "No endpoints found that support tool use. To learn more about provider routing, visit our page.",
    "`tool calling` is not supported with this model",
    "deepseek-reasoner does not support Function Calling",
    "tools param requires --jinja flag",
]


@pytest.mark.parametrize("message", NO_TOOLS)
async def test_a_model_that_cannot_call_functions_is_told_with_the_protocol_for_it(message: str) -> None:
    assert "protocol: json in the node's config" in str(await failed(error(message)))


OF_THE_QUESTION = [
    "Invalid 'messages[3].tool_calls[0].function.name': string does not match pattern.",
    "messages.2.content.0.tool_use.input: Input should be a valid dictionary",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "Invalid schema for function 'look': none is not of type object",
]


@pytest.mark.parametrize("message", OF_THE_QUESTION)
async def test_a_refusal_of_what_was_sent_is_none_of_the_models(message: str) -> None:
    assert not is_bad_call("invalid_request_error", message)
    output, *_ = await run([error(message, type="invalid_request_error"), chat("A.")])
    assert output.finish_reason == "model_error"


# ── a wait, and no money ──────────────────────────────────────────────────────────────────────────

WAITS = {
    "Please try again in 2.2s.": 2.2,
    "Please try again in 1m30s. Visit our page.": 90.0,
    "Rate limit reached: Limit 6000, Used 5900. Please try again in 350ms": 0.35,
    "Please retry after 5 seconds.": 5.0,
    "Please retry in 22.4s.": 22.4,
    "retry after 26": 26.0,
    "try again in 1 minute and 5 seconds": 65.0,
    "Try again in 1h2m3s": 3723.0,
    "The limit resets in 3s": 3.0,
    "请在 5 秒后重试": 5.0,
    "Request was throttled. Expected available in 5 seconds.": 5.0,
    "try again later": None,
    "Limit 5 m": None,
    "at most 3s are allowed": None,
}


@pytest.mark.sampled
@pytest.mark.parametrize(("message", "seconds"), WAITS.items())
def test_a_wait_is_read_out_of_the_text(message: str, seconds: float | None) -> None:
    assert find_wait(message, {}) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "more",
    [
        {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]},
        {"retry_after": 34.5},
        {"metadata": {"retry_after_seconds": 34.5}},
    ],
)
def test_a_wait_is_read_out_of_its_field(more: dict[str, Any]) -> None:
    assert find_wait("You exceeded your current quota.", more) == 34.5


async def test_a_wait_in_the_text_is_kept() -> None:
    busy = error("Rate limit reached. Please try again in 150ms.", 429, code="rate_limit_exceeded")
    async with endpoint(busy, chat("ok")) as (model, server):
        start = monotonic()
        assert (await model.complete(question())).content == "ok"
        assert monotonic() - start >= 0.15
    caught = await failed(error("Please try again in 7m12s.", 429))
    assert "432 seconds" in str(caught)
    assert len(server.requests) == 2


async def test_a_header_goes_before_the_text() -> None:
    busy = http(429, {"error": {"message": "Please try again in 7m."}}, retry_after="0")
    async with endpoint(busy, chat("ok")) as (model, _):
        assert (await model.complete(question())).content == "ok"


NO_MONEY: dict[str, tuple[int, dict[str, Any]]] = {
    "OpenAI": (
        429,
        {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"},
    ),
    "by its type": (429, {"message": "No.", "type": "insufficient_quota"}),
    "a hard limit": (429, {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}),
    "Anthropic": (500, {"message": "Your credit balance is too low to access the API."}),
    "the limit of a contract": (
        429,
        {"type": "rate_limit_error", "message": "No.", "details": {"error_code": "contract_spend_limit_reached"}},
    ),
    "a tier's threshold": (
        429,
        {"type": "rate_limit_error", "message": "No.", "details": {"error_code": "enforced_spend_limit_reached"}},
    ),
    "xAI": (429, {"message": "Your team has either used all available credits or reached its monthly spending limit."}),
    "402": (402, {"message": "Pay."}),
    "Volcengine": (429, {"code": "SetLimitExceeded", "message": "The model service has been paused."}),
    "Cloudflare": (429, {"message": "AiError: you have used up your daily free allocation of 10,000 neurons."}),
    "a gateway": (429, {"message": "用户额度不足, 剩余额度: 0", "type": "new_api_error"}),
    "Zhipu": (429, {"message": "您的账户已欠费，请充值后重试。", "code": "1113"}),
}


@pytest.mark.parametrize(("status", "body"), NO_MONEY.values(), ids=NO_MONEY)
async def test_who_has_no_money_left_is_asked_once(status: int, body: dict[str, Any]) -> None:
    async with endpoint(http(status, {"error": body}, x_should_retry="true")) as (model, server):
        with pytest.raises(ModelError):
            await model.complete(question())
    assert len(server.requests) == 1


def test_a_quota_that_names_a_wait_is_a_rate_limit() -> None:
    message = "You exceeded your current quota. Please retry in 22.4s."
    assert not has_no_money(429, "RESOURCE_EXHAUSTED", message, names_wait=True)
    assert has_no_money(429, "insufficient_quota", message, names_wait=True)


FILTERED = [
    ("data_inspection_failed", "x"),
    ("SensitiveContentDetected", "x"),
    ("content_blocked", "x"),
    ("", "Content Exists Risk"),
    ("api_error", "Output blocked by content filtering policy"),
    ("1301", "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语。"),
    ("1026", "input new_sensitive"),
    ("403", "Input was flagged"),
    ("", "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"),
]


@pytest.mark.parametrize(("codes", "message"), FILTERED)
def test_a_filter_is_known_by_its_code_or_its_words(codes: str, message: str) -> None:
    assert is_filtered(codes, message)


def test_another_refusal_is_of_no_filter() -> None:
    assert not is_filtered("invalid_request_error", "x")


KINDS = ["server_error", "RateLimitError", "ThrottlingException", "too_many_requests", "InternalServerError", "timeout"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_may_pass_is_known_in_each_of_its_spellings(kind: str) -> None:
    assert is_passing(f"x {kind}")
    assert not is_passing("invalid_request_error BadRequestError 400")


# ── a question that is too long ───────────────────────────────────────────────────────────────────

TOO_LONG: list[tuple[str, int | None, int | None]] = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 "
        "tokens. Please reduce the length of the messages.",
        8192,
        9000,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 "
        "in the messages, 1000 in the completion). Please reduce.",
        7192,
        8000,
    ),
    ("prompt is too long: 205000 tokens > 200000 maximum", 200000, 205000),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input "
        "length or `max_tokens` and try again",
        180000,
        190000,
    ),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1200000),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40000,
    ),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 4081, 5000),
    ("Input is too long for requested model.", None, None),
    ("Range of input length should be [1, 30720]", 30720, None),
    ("The prompt (total length 10000) is too long to fit into the model (context length 8192).", 8192, 10000),
    ("the request exceeds the available context size (4096 tokens), try increasing it", 4096, None),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 "
        "`inputs` tokens and 200 `max_new_tokens`",
        3896,
        5000,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 131072, 150000),
    (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 "
        "tokens (38000 of text input, 2000 in the output).",
        30768,
        38000,
    ),
    ("invalid params, context window exceeds limit (2013)", None, None),
    ("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)", 8192, 9000),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested "
        "a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
        3096,
        4000,
    ),
    ("prompt token count of 70000 exceeds the limit of 64000", 64000, 70000),
    ("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", 8192, 9000),
    ("the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model", 4096, 5000),
    (
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, "
        "Requested 31000. The input or output tokens must be reduced in order to run successfully.",
        30000,
        31000,
    ),
    (
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
        "with context length of only 4096 tokens, which is not enough.",
        4096,
        5000,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 5000),
    (
        "This model's maximum context length is 16,385 tokens. However, your messages resulted in 17,000 tokens.",
        16385,
        17000,
    ),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129024, None),
    ("Error code: 400 - {'message': 'Range of input length should be [1, 30720]'}", 30720, None),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 "
        "tokens and your request has 3500 input tokens (1000 > 4096 - 3500).",
        3096,
        3500,
    ),
    ("Prompt exceeds max length", None, None),
    ("model max length exceeded, max length:8192", 8192, None),
    ("Prompt tokens too long", None, None),
    ("Invalid request: Input token length too long", None, None),
    ("Total tokens of image and text exceed max message tokens.", None, None),
    ("The request failed because the size of input text too large", None, None),
    ("输入tokens超过模型最大长度限制", None, None),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 4937>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        4096,
        4937,
    ),
    ("The number of tokens to keep from the initial prompt is greater than the context length.", None, None),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 5000),
    ("The engine prompt length 5000 exceeds the max_model_len 4096. Please reduce prompt.", 4096, 5000),
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000, None),
    ("length of prompt_tokens (57535) must be less than max_seq_len (32768).", 32768, 57535),
    ("max_total_tokens (33802) must be less than or equal to max_seq_len (32768)", 32768, 33802),
    (
        "This model's maximum context length is 131072 tokens. However, you requested 16000 output tokens and your "
        "prompt contains at least 115073 input tokens, for a total of at least 131073 tokens.",
        115072,
        115073,
    ),
    (
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only "
        "131072 tokens, resulting in a maximum input length of 98304 tokens. (parameter=input_tokens, value=98305)",
        98304,
        98305,
    ),
    (
        "You passed 500001 input characters and requested 100 output tokens. However, the model's context length is "
        "only 4096 tokens, resulting in a maximum input length of 3996 tokens (at most 63936 characters). "
        "(parameter=input_text, value=500001)",
        3996,
        None,
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 133000 tokens (120000 "
        "of text input, 8000 of tool input, 5000 in the output).",
        126072,
        128000,
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 4569 tokens (3545 in your prompt; "
        "1024 for the completion). Please reduce your prompt; or completion length.",
        3073,
        3545,
    ),
    ("max_tokens must be at least 1, got -186.", None, None),
    ("prompt too long; exceeded max context length by 1234 tokens", None, None),
    ("The prompt is too long for this model's context window (505759 tokens > 500000 tokens)", 500000, 505759),
    ("Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens", 256000, 5958968),
    (
        "Unable to submit request because the input token count is 32800 but model only supports up to 32768. Reduce "
        "the input token count and try again.",
        32768,
        32800,
    ),
    (
        "The sum of prompt length (5000), query length (0) and max_tokens (1000) should not exceed max_seq_len (4096)",
        3096,
        5000,
    ),
    ("Total message token length exceed model limit", None, None),
    (
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 10890000 instead.",
        None,
        None,
    ),
    ("the max input characters is 11200", None, None),
    ("the max length of current question is 4800", None, None),
    ("上下文长度超出模型最大限制", None, None),
    ("token超过上限。对话历史+问题的字数太多，需要精简输入", None, None),
    ("输入长度超过模型限制", None, None),
    ("Input length 203743 exceeds the maximum length 202752", 202752, 203743),
    ("400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000 ", 8192, 9000),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("message", "room", "counted"), TOO_LONG, ids=[message[:40] for message, *_ in TOO_LONG])
def test_how_much_too_long_a_question_is_stands_in_the_message(
    message: str, room: int | None, counted: int | None
) -> None:
    assert read_overflow(400, "", message, {}) == {"room": room, "counted": counted}


def test_it_may_stand_in_fields() -> None:
    fields = {"n_prompt_tokens": 5000, "n_ctx": 4096}
    assert read_overflow(400, "exceed_context_size_error", "no", fields) == {"room": 4096, "counted": 5000}


def test_what_is_too_large_for_a_proxy_is_too_long_by_an_unknown_number() -> None:
    page = "<html><head><title>413 Request Entity Too Large</title></head></html>"
    assert read_overflow(413, "", page, {}) == {"room": None, "counted": None}


NOT_TOO_LONG = [
    (200, "Too many tokens, please wait before trying again."),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
    (429, "Rate limit reached for gpt-4o: Limit 30000, Used 29000, Requested 2000. Please try again in 2.2s"),
    (429, "Too many tokens, please wait before trying again."),
    (400, "string too long. Expected a string with maximum length 64"),
    (400, "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` "
     "is less than the `context_window` for this model"),
    (400, "tools: maximum 128 items"),
    (400, "Exceeding the limiting length: [max_tokens should be less or equal to 131072]"),
    (400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"),
    (400, "max_tokens must be at least 1, got 0."),
    (400, "max_tokens数量超过限制"),
    (400, "输入图片数量超过限制"),
    (400, "request count exceeds the limit of 100"),
    (404, "The model `x` does not exist"),
    (400, "max_tokens is too large: 4096. This model's maximum context length is 4096 tokens and your "
     "request has 1234 input "
     "tokens (4096 > 4096 - 1234)."),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("status", "message"), NOT_TOO_LONG)
def test_other_limits_are_none_of_the_questions_length(status: int, message: str) -> None:
    assert read_overflow(status, "", message, {}) is None


HISTORY = [
    message
    for n in range(20)
    for message in ({"role": "user", "content": f"q{n} " + "x" * 2000}, {"role": "assistant", "content": "ok"})
]
EXCEEDED = error(
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 12000 tokens.",
    code="context_length_exceeded",
)


@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_a_question_that_is_too_long_is_cut_and_asked_once_more(protocol: str) -> None:
    answer = chat('{"type":"final","answer":"A."}' if protocol == "json" else "A.")
    output, records, requests = await run([EXCEEDED, answer], messages_json=HISTORY, protocol=protocol)
    assert (output.finish_reason, output.final_answer, output.usage["requests"]) == ("final", "A.", 2)
    first, second = (len(request.body) for request in requests)
    assert second < first * 0.75
    assert [record["cut"]["dropped"] > 0 for record in records if "cut" in record] == [True]
    overflow = [record["overflow"] for record in records if "overflow" in record]
    assert overflow == [{"room": 8192, "counted": 12000}]


async def test_what_the_model_cannot_take_is_remembered_by_the_run() -> None:
    output, _, requests = await run([EXCEEDED, LOOK, LOOK, chat("A.")], messages_json=HISTORY)
    assert output.final_answer == "A."
    assert all(len(request.body) < len(requests[0].body) * 0.8 for request in requests[1:])


async def test_a_second_refusal_ends_the_run_and_names_the_key() -> None:
    output, _, requests = await run([EXCEEDED], messages_json=HISTORY)
    assert (output.finish_reason, len(requests)) == ("model_error", 2)
    assert "max_input_tokens" in output.error["message"]


async def test_what_cannot_be_cut_is_not_asked_again() -> None:
    output, _, requests = await run([EXCEEDED])
    assert (output.finish_reason, len(requests)) == ("model_error", 1)
    assert "max_input_tokens" in output.error["message"]


async def test_a_fallback_model_is_asked_when_a_cut_was_not_enough() -> None:
    async with serving(EXCEEDED, EXCEEDED, chat("A.")) as server:
        model = client(server.url)
        config = {"model": "m", "fallback_models": ["n"], "max_steps": 3, "protocol": "tools", "allowed_tools": []}
        output = await run_agent({**config, "messages_json": HISTORY}, registry=ToolRegistry([]), model=model)
        await model.close()
    assert (output.final_answer, len(server.requests)) == ("A.", 3)


async def test_a_refusal_of_the_model_is_counted() -> None:
    output, _, _ = await run([chat(None, refusal="No.")])
    assert (output.finish_reason, output.usage["input_tokens"], output.usage["output_tokens"]) == (
        "content_filter",
        12,
        3,
    )
    assert "the model refused to answer: No." in output.error["message"]


@pytest.mark.sampled
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["1", "1,111", ",111", " ", "wait 1s ", "limit: ", "context length ", "retry after ", "+ 1"]
)
def test_a_refusal_that_echoes_a_long_question_is_read_to_its_end(unit: str) -> None:
    message = f"maximum context length 4096 exceeded: received {unit * (200_000 // len(unit))} tokens"
    assert (find_wait(message, {"retry_after": "1" * 9000}) is not None) == (unit == "wait 1s ")
    assert read_overflow(400, "context_length_exceeded", message, {}) is not None
