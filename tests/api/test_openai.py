"""Agents and workflows as models, asked by the official client of OpenAI."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from openai import APIStatusError, OpenAI
from openai.types import CompletionUsage

from engine_shim.api.app import create_app
from engine_shim.api.openai import write_refusal, write_usage
from engine_shim.api.refusal import Refusal
from engine_shim.definition.load import load_workflow
from engine_shim.host.config import read_host_config
from engine_shim.service.chat_mapping import find_text_input
from engine_shim.service.completions import Completion, Question
from engine_shim.service.feeds import EXPECTED_S
from engine_shim.service.service import Service
from support.by_hand import action
from support.served_host import Served, served, write_host

BAD_FINAL = '{"type": "final", "answer": "There are thirteen."} and more'


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), is_open=False) as found:
        yield found


@pytest.fixture(scope="module")
def client(host: Served) -> Iterator[OpenAI]:
    token = host.issue("ann", "run", "read")["Authorization"].removeprefix("Bearer ")
    with OpenAI(base_url=f"{host.url}/v1", api_key=token, max_retries=0) as found:
        yield found


ASKED: list[Any] = [{"role": "user", "content": "How many A-17?"}]


def test_agents_and_workflows_that_take_a_text_are_models(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["agent/buyer", "agent/clerk", "workflow/buy", "workflow/count", "workflow/desk", "workflow/wait"]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (True, "message"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "message"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ({"enum": [1, 2]}, None),
    ],
)
def test_workflow_is_a_model_if_its_input_may_be_a_text(rule: Any, name: str | None) -> None:
    flow = {"id": "w", "inputs": {"properties": {"message": rule}}, "nodes": [{"tool": "echo"}]}
    assert find_text_input(load_workflow(flow).definition) == name


def test_fault_of_the_hosts_own_definition_names_no_field_of_the_caller() -> None:
    refusal = Refusal(422, "invalid", "", (("nodes/0/config/model", "is not here"),))
    error = json.loads(bytes(write_refusal(refusal).body))["error"]
    assert (error["message"], error["param"]) == ("nodes/0/config/model: is not here", None)


@pytest.mark.parametrize("model", ["agent/clerk", "workflow/desk@1"])
def test_answer_is_that_of_a_run_that_verifies(host: Served, client: OpenAI, model: str) -> None:
    answered = client.chat.completions.with_raw_response.create(model=model, messages=ASKED)
    done = answered.parse()
    assert done.choices[0].message.content == "There are 12."
    assert (done.choices[0].finish_reason, done.model) == ("stop", model)
    assert done.usage is not None
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
    assert done.usage.prompt_tokens_details is not None
    run = answered.headers["x-run-id"]
    assert done.id == f"chatcmpl-{run}"
    header = host.issue("bob", "read")
    assert host.client.get(f"/runs/{run}/verify", headers=header).json()["ok"]
    assert host.client.get(f"/runs/{run}", headers=header).json()["submitted_by"] == "ann"


@pytest.mark.parametrize("model", ["agent/clerk", "workflow/desk@1", "workflow/desk@2"])
def test_streamed_answer_is_the_same_and_ends_with_the_usage(client: OpenAI, model: str) -> None:
    options: Any = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=model, messages=ASKED, stream=True, stream_options=options))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == "There are 12."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


def test_tokens_from_a_cache_and_of_thoughts_are_told_apart() -> None:
    done = Completion("r", "text", 1000, 70, cached_tokens=600, reasoning_tokens=40)
    usage = CompletionUsage.model_validate(write_usage(done))
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (1000, 70, 1070)
    assert usage.prompt_tokens_details.cached_tokens == 600
    assert usage.completion_tokens_details.reasoning_tokens == 40


def test_history_and_system_message_reach_the_agent(host: Served, client: OpenAI) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there."}]},
        {"role": "assistant", "content": "Hello."},
        *ASKED,
    ]
    answered = client.chat.completions.with_raw_response.create(model="agent/clerk", messages=messages, temperature=0)
    started = host.store.journal.load(answered.headers["x-run-id"])["flow/agent_core.1"][0].record()
    told = [(message["role"], message["content"]) for message in started["config"]["messages_json"]]
    assert told == [("system", "Be short."), ("user", "Hello\nthere."), ("assistant", "Hello.")]
    assert started["config"]["prompt"] == "How many A-17?"
    assert started["config"]["temperature"] == 0


def test_same_key_is_the_same_answer(client: OpenAI) -> None:
    headers = {"Idempotency-Key": "one"}
    for model in ("agent/clerk", "workflow/desk@1"):
        ids = {client.chat.completions.create(model=model, messages=ASKED, extra_headers=headers).id for _ in range(2)}
        assert len(ids) == 1


def test_a_proxy_passes_each_piece_of_a_stream_on_as_it_comes(client: OpenAI) -> None:
    made = client.chat.completions.with_raw_response.create(model="workflow/desk", messages=ASKED, stream=True)
    assert made.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "messages", "more", "status", "param"),
    [
        ("agent/nobody", ASKED, {}, 404, "model"),
        ("gpt-4o", ASKED, {}, 404, "model"),
        ("workflow/nothing", ASKED, {}, 404, "model"),
        ("agent/clerk", [], {}, 422, "messages"),
        ("agent/clerk", [{"role": "assistant", "content": "x"}], {}, 422, "messages[0].role"),
        ("agent/clerk", [*ASKED, {"role": "system", "content": "x"}, *ASKED], {}, 422, "messages[1].role"),
        ("agent/clerk", ASKED, {"n": 2}, 422, "n"),
        ("agent/clerk", ASKED, {"tools": [{"type": "function", "function": {"name": "f"}}]}, 422, "tools"),
        ("agent/clerk", ASKED, {"response_format": {"type": "json_object"}}, 422, "response_format"),
        ("agent/clerk", ASKED, {"temperature": 3}, 422, "temperature"),
    ],
)
@pytest.mark.sampled
def test_what_cannot_be_answered_is_an_error_of_openais_shape(
    client: OpenAI, model: str, messages: list[Any], more: dict[str, Any], status: int, param: str | None, stream: bool
) -> None:
    with pytest.raises(APIStatusError) as told:
        client.chat.completions.create(model=model, messages=messages, stream=stream, **more)
    assert told.value.status_code == status
    body: Any = told.value.body
    assert body["param"] == param
    assert body["message"]


def test_wrong_key_is_an_authentication_error(host: Served) -> None:
    with OpenAI(base_url=f"{host.url}/v1", api_key="act_0_0", max_retries=0) as stranger:
        with pytest.raises(APIStatusError) as told:
            stranger.chat.completions.create(model="agent/clerk", messages=ASKED)
        assert (told.value.status_code, told.value.type) == (401, "authentication_error")


def test_what_the_server_itself_refuses_is_told_in_the_shape_that_clients_read(host: Served, client: OpenAI) -> None:
    with pytest.raises(APIStatusError) as told:
        client.chat.completions.create(model="agent/clerk", messages=[{"role": "user", "content": "x" * 5_000_000}])
    assert (told.value.status_code, told.value.code) == (413, "too_large")
    assert "4,194,304 bytes" in told.value.message
    for headers, code in (({"Host": "evil.example"}, "host"), ({"Origin": "https://evil.example"}, "origin")):
        assert httpx2.get(f"{host.url}/v1/models", headers=headers).json()["error"]["code"] == code
    assert httpx2.get(f"{host.url}/runs", headers={"Host": "evil.example"}).json()["kind"] == "host"


@pytest.mark.parametrize("base", ["", "/v1", "/v1/chat/completions"])
def test_client_that_asks_for_what_is_not_there_is_told_what_is(host: Served, base: str) -> None:
    with OpenAI(base_url=f"{host.url}{base}", api_key="none", max_retries=0) as stranger:
        asked = [lambda: stranger.responses.create(model="agent/clerk", input="x")]
        if base != "/v1":
            asked += [stranger.models.list, lambda: stranger.chat.completions.create(model="x", messages=ASKED)]
        for ask in asked:
            with pytest.raises(APIStatusError, match="base URL to one that ends in /v1") as told:
                ask()
            assert told.value.status_code == 404
    assert "base URL" not in httpx2.get(f"{host.url}/nothing").text


@pytest.mark.parametrize("stream", [False, True])
def test_waiting_run_is_an_error_that_says_where_it_is_decided(host: Served, client: OpenAI, stream: bool) -> None:
    for model in ("agent/buyer", "workflow/buy"):
        with pytest.raises(Exception, match="waits for a person") as told:
            list(client.chat.completions.create(model=model, messages=ASKED, stream=stream))
        assert "/decide" in str(told.value)


def test_waiting_answer_of_an_agent_is_decided_and_ends(host: Served, client: OpenAI) -> None:
    with pytest.raises(APIStatusError) as told:
        client.chat.completions.create(model="agent/buyer", messages=ASKED, temperature=0)
    run = str(told.value).split("/runs/")[1].split("/")[0]
    header = host.issue("boss", "decide", "read")
    done = host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}, headers=header).json()
    assert (done["status"], done["outputs"]["agent_core"]["final_answer"]) == ("completed", "It is ordered.")


def test_failed_run_is_no_answer(client: OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "1 / 0"}]
    with pytest.raises(APIStatusError) as told:
        client.chat.completions.create(model="workflow/count", messages=messages)
    assert (told.value.status_code, told.value.code) == (400, "tool_error")


def test_piece_that_is_taken_back_is_followed_by_the_answer(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("repaired")
    with served(folder) as host:
        replies = [action("stock", article="A-17"), BAD_FINAL, {"type": "final", "answer": "There are 12."}]
        (folder / "clerk-replies.json").write_text(json.dumps(replies))
        with OpenAI(base_url=f"{host.url}/v1", api_key="none", max_retries=0) as client:
            chunks = list(client.chat.completions.create(model="agent/clerk", messages=ASKED, stream=True))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == "There are thirteen.\n\nThere are 12."


def test_streamed_answer_of_a_type_is_told_once(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"pieces": {"type": "integer"}}}
    config = {"model": "scripted:typed.replies", "prompt": "{{external.message}}", "max_steps": 2, "allowed_tools": []}
    node = {"tool": "agent_core", "config": {**config, "protocol": "tools", "answer_schema": schema}}
    with served(tmp_path) as host:
        (tmp_path / "workflows" / "typed.replies").write_text(json.dumps(['{"pieces": 12}']))
        (tmp_path / "workflows" / "typed.json").write_text(json.dumps({**QUICK, "id": "typed", "nodes": [node]}))
        host.service.tenants[None].workflows.reload()
        with OpenAI(base_url=f"{host.url}/v1", api_key="none", max_retries=0) as client:
            chunks = list(client.chat.completions.create(model="workflow/typed", messages=ASKED, stream=True))
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == '{"pieces":12}'


QUICK = {
    "id": "quick",
    "inputs": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "nodes": [{"id": "order", "tool": "order", "config": {"article": "{{external.message}}", "pieces": 1}}],
}


class Losing(httpx2.BaseTransport):
    """A network that loses the first answer to a question, after the server has given it."""

    def __init__(self) -> None:
        self.asked, self._inner = 0, httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        response = self._inner.handle_request(request)
        if self.asked == 1:
            response.read()
            raise httpx2.ReadError("the connection is gone", request=request)
        return response

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("key", [None, "once"])
@pytest.mark.sampled
def test_client_that_tries_again_repeats_no_write(tmp_path: Path, key: str | None, stream: bool) -> None:
    write_host(tmp_path)
    (tmp_path / "workflows" / "quick.json").write_text(json.dumps(QUICK))
    headers = {} if key is None else {"Idempotency-Key": key}
    with (
        served(tmp_path) as host,
        httpx2.Client(transport=Losing()) as network,
        OpenAI(base_url=f"{host.url}/v1", api_key="none", http_client=network) as client,
    ):
        asked: Any = {"model": "workflow/quick", "messages": ASKED, "stream": stream, "extra_headers": headers}
        if key is None:
            with pytest.raises(APIStatusError) as told:
                client.chat.completions.create(**asked)
            assert (told.value.status_code, told.value.code) == (409, "retry_without_key")
        else:
            done = client.chat.completions.create(**asked)
            assert "ordered 1" in (str(list(done)) if stream else done.choices[0].message.content)
    assert (tmp_path / "orders.txt").read_text() == "How many A-17? 1\n"


@pytest.mark.exhaustive
def test_client_is_told_not_to_repeat_what_a_server_that_ends_has_begun(tmp_path: Path) -> None:
    with served(tmp_path) as host, OpenAI(base_url=f"{host.url}/v1", api_key="none", max_retries=2) as client:
        told: list[Any] = []

        def ask() -> None:
            messages: Any = [{"role": "user", "content": "never"}]
            try:
                client.chat.completions.create(model="workflow/wait", messages=messages)
            except APIStatusError as error:
                told.append(error)

        asking = Thread(target=ask)
        asking.start()
        host.await_file("never.begun")
        host.service.let_go()
        asking.join(10)
        assert told[0].status_code == 503
        assert told[0].response.request.headers["x-stainless-retry-count"] == "0"
        assert len(host.store.entries()) == 1


def test_caller_who_leaves_an_answer_that_is_streamed_leaves_nothing_behind(tmp_path: Path) -> None:
    write_host(tmp_path)

    async def leave() -> list[str]:
        service = Service.of_host(read_host_config(tmp_path / "agent-core.yaml"), tmp_path / "runs.db", is_open=True)
        async with service.running():
            tenant = service.tenants[None]
            question = Question("workflow/wait", [{"role": "user", "content": "left"}], "left", "ann")
            before = asyncio.all_tasks()
            asking = asyncio.create_task(anext(tenant.completions.stream(question)))
            while not (tmp_path / "left.begun").exists():
                await asyncio.sleep(0.01)
            asking.cancel()
            (tmp_path / "left").touch()
            await tenant.runs.wait("left", 10)
            for _ in range(round((EXPECTED_S + 20) / 0.05)):  # who is expected to follow is waited for that long
                await asyncio.sleep(0.05)
                if not (left := asyncio.all_tasks() - before):
                    break
            return [str(task.get_coro()) for task in left]

    assert asyncio.run(leave()) == []


# ── what other clients send ───────────────────────────────────────────────────────────────────────

CALLED: Any = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
HISTORIES: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "null": ([{"role": "assistant", "content": None}], []),
    "empty": ([{"role": "assistant", "content": ""}], []),
    "nulls beside": (
        [{"role": "assistant", "content": "x", "refusal": None, "tool_calls": None, "audio": None, "annotations": []}],
        [("assistant", "x")],
    ),
    "a refusal": ([{"role": "assistant", "content": None, "refusal": "No."}], [("assistant", "No.")]),
    "a refusal part": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
        [("assistant", "No.")],
    ),
    "parts of the Responses API": (
        [{"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]}],
        [("assistant", "x")],
    ),
    "calls of the client's own": (
        [
            {"role": "assistant", "content": None, "tool_calls": [CALLED]},
            {"role": "tool", "tool_call_id": "c", "content": "Snow."},
            {"role": "assistant", "content": "It snows."},
        ],
        [("assistant", ""), ("tool", "Snow."), ("assistant", "It snows.")],
    ),
    "an older call": (
        [
            {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
            {"role": "function", "name": "weather", "content": "Snow."},
        ],
        [("assistant", ""), ("tool", "Snow.")],
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("history", "expected"), HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("model", ["agent/clerk", "workflow/desk@1"])
def test_a_history_in_the_common_shape_is_taken(
    host: Served, client: OpenAI, model: str, history: list[Any], expected: list[tuple[str, str]]
) -> None:
    messages: Any = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": "Hi."},
        *history,
        *ASKED,
    ]
    answered = client.chat.completions.with_raw_response.create(model=model, messages=messages)
    assert answered.parse().choices[0].message.content == "There are 12."
    if model.startswith("agent"):
        started = host.store.journal.load(answered.headers["x-run-id"])["flow/agent_core.1"][0].record()
        told = [(message["role"], message["content"] or "") for message in started["config"]["messages_json"]]
        assert told == [("system", "Be short."), ("user", "Hi."), *expected]


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages[0].content"),
        ([{"role": "user", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": ""}], "messages[0].content"),
        ([{"role": "assistant", "parts": [{"text": "a"}]}, {"role": "user", "content": "b"}], "messages[0].parts"),
        (
            [{"role": "assistant", "content": [{"type": "tool_use"}]}, {"role": "user", "content": "b"}],
            "messages[0].content",
        ),
    ],
    ids=["image", "null", "empty", "parts", "a call as a part"],
)
def test_what_cannot_be_taken_is_named_with_its_place(client: OpenAI, messages: list[Any], param: str) -> None:
    with pytest.raises(APIStatusError) as told:
        client.chat.completions.create(model="agent/clerk", messages=messages)
    body: Any = told.value.body
    assert told.value.status_code == 422
    assert body["param"].startswith(param)


@pytest.mark.parametrize("stream", [None, True])
def test_a_parameter_that_is_null_is_one_that_is_not_given(host: Served, stream: bool | None) -> None:
    nulls = (
        "temperature",
        "n",
        "tools",
        "tool_choice",
        "response_format",
        "stop",
        "max_tokens",
        "logprobs",
        "functions",
    )
    more = {**dict.fromkeys(nulls), "stream": stream, "stream_options": {"include_usage": None}}
    body = {"model": "agent/clerk", "messages": ASKED, **more}
    answer = host.client.post("/v1/chat/completions", json=body, headers=host.issue("nulls", "run"))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", ["agent/clerk", "workflow/desk", "workflow/desk@1"])
def test_a_model_is_found_by_its_name(host: Served, client: OpenAI, name: str) -> None:
    assert client.models.retrieve(name).id == name
    found = httpx2.get(f"{host.url}/v1/models/{name.replace('/', '%2F')}", headers=host.issue("bob", "read"))
    assert (found.status_code, found.json()["id"]) == (200, name)


@pytest.mark.parametrize("name", ["gpt-4o", "agent/nobody", "workflow/desk@99", "workflow/nothing", "agent"])
def test_a_model_that_is_not_there_is_a_404_of_openais_shape(client: OpenAI, name: str) -> None:
    with pytest.raises(APIStatusError) as told:
        client.models.retrieve(name)
    body: Any = told.value.body
    assert (told.value.status_code, body["type"]) == (404, "invalid_request_error")
    assert name in body["message"]


@pytest.mark.exhaustive
def test_all_of_it_works_in_a_program_of_ones_own(tmp_path: Path) -> None:
    write_host(tmp_path)

    async def ask() -> list[tuple[int, Any]]:
        service = Service.of_host(read_host_config(tmp_path / "agent-core.yaml"), tmp_path / "runs.db", is_open=True)
        app = FastAPI()
        app.mount("/desk", create_app(service, hosts=("127.0.0.1",)))
        transport = httpx2.ASGITransport(app)
        async with service.running(), httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1/desk") as http:
            body = {"model": "agent/clerk", "messages": ASKED}
            answers = [
                await http.get("/v1/models/agent/clerk"),
                await http.get("/v1/models/agent/nobody"),
                await http.post("/v1/chat/completions", json=body),
                await http.get("/v1/nothing"),
            ]
        return [(answer.status_code, answer.json()) for answer in answers]

    found, missing, answered, nothing = asyncio.run(ask())
    assert (found[0], found[1]["id"]) == (200, "agent/clerk")
    assert (missing[0], set(missing[1])) == (404, {"error"})
    assert answered[1]["choices"][0]["message"]["content"] == "There are 12."
    assert (nothing[0], set(nothing[1]), nothing[1]["error"]["param"]) == (404, {"error"}, None)
