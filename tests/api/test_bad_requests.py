"""Every field of every request, broken once in each way that its schema forbids: the answer names it.

Operations, bodies and parameters come from the OpenAPI document, so that a new one is covered by itself.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_core.errors import JournalError, Newer
from engine_shim.api.problems import refusal_of
from support.optional import needs
from support.served_host import Served, served, write_host

pytestmark = needs("fastapi")

JSON = {"content-type": "application/json"}
OTHERS: list[Any] = [5, "x", [], {}, True, 1.5]
"""Values of all types, of which one that a field does not take is its wrong one."""
NO_JSON = {
    "not JSON": b"{",
    "no UTF-8": b'{"a": "\xff"}',
    "too deep": b"[" * 100_000,
    "too many digits": b'{"a": ' + b"9" * 5000 + b"}",
    "a number that is none": b'{"a": NaN}',
    "a key twice": b'{"a": 1, "a": 2}',
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
}


@dataclass(frozen=True)
class Operation:
    """An operation of the document, with the schema of its body."""

    method: str
    path: str
    about: Any
    document: Any

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_openai(self) -> bool:
        return self.path.startswith("/v1/")

    @property
    def body(self) -> Any:
        schema = self.about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        options = [self.resolve(each) for each in schema.get("anyOf", [schema])]
        return next((each for each in options if "properties" in each), None)

    @property
    def needs_body(self) -> bool:
        return bool(self.about["requestBody"].get("required"))

    def resolve(self, schema: Any) -> Any:
        return self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def fits(self, value: Any, schema: Any) -> bool:
        whole = {**schema, "components": self.document["components"]}
        return jsonschema.Draft202012Validator(whole).is_valid(value)

    def sample(self, schema: Any) -> Any:
        """A value that fits a schema."""
        schema = self.resolve(schema)
        known = [*schema.get("examples", ()), *schema.get("enum", ()), schema.get("const")]
        if (first := next((each for each in known if each), None)) is not None:
            return first
        if "anyOf" in schema or "oneOf" in schema:
            return self.sample(next(iter(schema.get("anyOf") or schema["oneOf"])))
        match schema.get("type"):
            case "object":
                fields = schema.get("properties", {})
                return {name: self.sample(fields[name]) for name in schema.get("required", ())}
            case "array":
                return [self.sample(schema["items"])]
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
        return "x"

    def break_value(self, value: Any, schema: Any) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
        """Yield the value in each way in which its schema forbids it, and where it is at fault then."""
        schema = self.resolve(schema)
        wrong = [each for each in OTHERS if not self.fits(each, schema)]
        if wrong:
            yield wrong[0], ()
        for option in map(self.resolve, schema.get("anyOf") or schema.get("oneOf") or [schema]):
            yield from self._break_limits(option)
            for broken, place in self._break_parts(self.sample(option), option):
                if not self.fits(broken, schema):
                    yield broken, place

    def _break_limits(self, schema: Any) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
        if "maxLength" in schema:
            yield "x" * (schema["maxLength"] + 1), ()
        if schema.get("minLength"):
            yield "", ()
        if "maximum" in schema:
            yield schema["maximum"] + 1, ()
        if "minimum" in schema:
            yield schema["minimum"] - 1, ()
        if "enum" in schema:
            yield f"{schema['enum'][0]}x", ()
        if "pattern" in schema:
            yield next(each for each in ("~ ~", "~\t~") if not self.fits(each, schema)), ()
        if "maxItems" in schema:
            yield [self.sample(schema["items"])] * (schema["maxItems"] + 1), ()

    def _break_parts(self, value: Any, schema: Any) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
        if isinstance(value, list) and value and "items" in schema:
            for broken, place in self.break_value(value[0], schema["items"]):
                yield [broken, *value[1:]], (0, *place)
        if not isinstance(value, dict):
            return
        for name in schema.get("required", ()):
            yield {key: each for key, each in value.items() if key != name}, (name,)
        for name, field in schema.get("properties", {}).items():
            if schema.get("additionalProperties") is False:
                yield {**value, f"{name}z": 1}, (f"{name}z",)
            for broken, place in self.break_value(value.get(name, self.sample(field)), field):
                yield {**value, name: broken}, (name, *place)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    write_host(folder)
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def operations(host: Served) -> list[Operation]:
    document = host.client.get("/openapi.json").json()
    return [
        Operation(method.upper(), path, about, document)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]


def ask(host: Served, operation: Operation, path: str = "", **parts: Any) -> Any:
    for each in operation.about.get("parameters", ()):
        path = (path or operation.path).replace(f"{{{each['name']}}}", "x") if each["in"] == "path" else path
    return host.client.request(operation.method, path or operation.path, **parts)


def find_fault(answer: Any, operation: Operation, place: str) -> str | None:
    """What is wrong with the answer to a request that is at fault at a place; None where it is right."""
    told = answer.json()
    if operation.is_openai:
        source, *parts = place.split("/")
        name = "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in parts).removeprefix(".") or None
        error = told["error"]
        is_right = answer.status_code == 422 and error["param"] == name and (name or source) in error["message"]
    else:
        is_right = (
            answer.status_code == 422
            and answer.headers["content-type"] == "application/problem+json"
            and place in [each["where"] for each in told["errors"]]
            and place in told["detail"]
            and all(each["message"] and "Input should" not in each["message"] for each in told["errors"])
        )
    return None if is_right else f"{operation.name} at {place}: {answer.status_code} {answer.text[:300]}"


def test_each_field_of_each_body_is_named_where_it_is_wrong(host: Served, operations: list[Operation]) -> None:
    faults, tried = [], 0
    for operation in operations:
        if (schema := operation.body) is None:
            continue
        for body, place in operation._break_parts(operation.sample(schema), schema):
            tried += 1
            where = "/".join(map(str, ("body", *place)))
            faults.append(find_fault(ask(host, operation, json=body), operation, where))
    assert [fault for fault in faults if fault] == []
    assert tried > 100


def test_unknown_key_is_told_with_the_one_that_may_be_meant(host: Served, operations: list[Operation]) -> None:
    for operation in operations:
        schema = operation.body
        if schema is None or schema.get("additionalProperties") is not False:
            continue
        for name in schema["properties"]:
            body = {**operation.sample(schema), f"{name}z": 1}
            messages = [each["message"] for each in ask(host, operation, json=body).json()["errors"]]
            assert f"unknown key; did you mean {name}?" in messages, operation.name


@pytest.mark.parametrize("content", NO_JSON.values(), ids=NO_JSON)
def test_body_that_is_no_object_is_told_as_a_whole(host: Served, operations: list[Operation], content: bytes) -> None:
    asked = [each for each in operations if each.body is not None and not (content == b"null" and not each.needs_body)]
    faults = [find_fault(ask(host, each, content=content, headers=JSON), each, "body") for each in asked]
    assert [fault for fault in faults if fault] == []


def test_missing_body_and_one_of_another_type_are_told(host: Served, operations: list[Operation]) -> None:
    asked = [each for each in operations if each.body is not None]
    missing = [find_fault(ask(host, each), each, "body") for each in asked if each.needs_body]
    other = [
        find_fault(ask(host, each, content=b"{}", headers={"content-type": "text/plain"}), each, "body")
        for each in asked
    ]
    assert [fault for fault in (*missing, *other) if fault] == []


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_compressed_body_is_told_as_that(host: Served, coding: str) -> None:
    headers = {**JSON, "Content-Encoding": coding}
    answer = host.client.post("/workflows/desk/runs", content=gzip.compress(b"{}"), headers=headers)
    assert answer.status_code == 422
    assert ("without Content-Encoding" in answer.json()["detail"]) == (coding == "gzip")


def test_each_parameter_is_named_where_it_is_wrong(host: Served, operations: list[Operation]) -> None:
    faults, tried = [], 0
    for operation in operations:
        for parameter in operation.about.get("parameters", ()):
            for value in break_parameter(operation, parameter):
                tried += 1
                answer = ask_with(host, operation, parameter, value)
                place = f"{parameter['in']}/{parameter['name']}"
                told = [each["where"] for each in answer.json().get("errors", ())]
                if operation.is_openai:
                    told = [f"{parameter['in']}/{answer.json()['error']['param']}"]
                if answer.status_code != 422 or not any(each.lower().startswith(place.lower()) for each in told):
                    faults.append(
                        f"{operation.name} with {place}={value[:40]!r}: {answer.status_code} {answer.text[:200]}"
                    )
    assert faults == []
    assert tried > 30


def break_parameter(operation: Operation, parameter: Any) -> Iterator[str]:
    """Texts that a parameter does not take."""
    if parameter["name"] == "traceparent":  # an invalid one is passed over (W3C Trace Context)
        return
    options = parameter["schema"].get("anyOf", [parameter["schema"]])
    for option in options:
        schema = operation.resolve(option.get("items", option))
        if schema.get("type") in ("integer", "boolean") or "enum" in schema or "format" in schema:
            yield "xx"
        for broken, _ in operation._break_limits(schema):
            if not isinstance(broken, str) or broken or parameter["in"] != "path":
                yield str(broken)


def ask_with(host: Served, operation: Operation, parameter: Any, value: str) -> Any:
    body = None if operation.body is None else operation.sample(operation.body)
    headers = {each["name"]: "x" for each in operation.about["parameters"] if each["in"] == "header"}
    headers = {name: each for name, each in headers.items() if name != "last-event-id"}
    match parameter["in"]:
        case "query":
            return ask(host, operation, json=body, params={parameter["name"]: value})
        case "header":
            return ask(host, operation, json=body, headers={**headers, parameter["name"]: value})
    path = operation.path.replace(f"{{{parameter['name']}}}", value)
    return ask(host, operation, path, json=body, headers=headers)


def test_unknown_parameter_is_told_with_the_one_that_may_be_meant(host: Served, operations: list[Operation]) -> None:
    for operation in operations:
        names = [each["name"] for each in operation.about.get("parameters", ()) if each["in"] == "query"]
        for name in names:
            answer = ask(host, operation, params={f"{name}z": "1"})
            assert answer.status_code == 422, operation.name
            [told] = answer.json()["errors"]
            assert (told["where"], told["message"]) == (f"query/{name}z", f"unknown parameter; did you mean {name}?")


def test_parameter_with_one_value_is_given_once(host: Served) -> None:
    told = host.client.get("/runs?limit=1&workflow=desk&workflow=buy&status=failed&status=completed").json()
    assert told["errors"] == [{"where": "query/workflow", "message": "is given twice"}]
    assert host.client.get("/runs?status=failed&status=completed").status_code == 200


def test_limit_is_told_to_its_last_digit(host: Served) -> None:
    assert "must be 9007199254740992 or less" in host.client.get("/runs/x/journal?after=9007199254740993").text


def test_place_is_taken_as_the_command_line_writes_it(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        run = host.submit("buy", article="A-17")["run_id"]
        at = {"decision": "approve", "at": "flow/order.1:0"}
        assert host.client.post(f"/runs/{run}/decide", json=at).json()["status"] == "completed"
        forked = host.client.post(f"/runs/{run}/fork", json={"at": "flow/order.1:0", "repeat_writes": True}).json()
        assert forked["run_id"] != run


@pytest.mark.parametrize("at", ["flow/order.1", "flow/order.1:", ":3", "flow/order.1:-1", "a b:1", 5, True, ["a", 1]])
def test_what_is_no_place_is_told_with_what_one_is(host: Served, at: Any) -> None:
    answer = host.client.post("/runs/x/decide", json={"decision": "approve", "at": at}).json()
    assert [each["where"] for each in answer["errors"]] == ["body/at"]
    assert "STRAND:N, as in flow/agent_core.1:4" in answer["detail"]


@pytest.mark.parametrize(
    ("path", "body", "status", "where"),
    [
        ("/runs/RUN/decide", {"decision": "approve", "at": "flow:7"}, 409, "body/at"),
        ("/runs/RUN/decide", {"decision": "retry"}, 409, "body/decision"),
        ("/runs/RUN/decide", {"decision": "edit"}, 422, "body/args"),
        ("/runs/RUN/decide", {"decision": "approve", "args": {}}, 422, "body/args"),
        ("/runs/RUN/decide", {"decision": "approve", "message": "x"}, 422, "body/message"),
        ("/runs/RUN/decide", {"decision": "edit", "args": {"article": 5}}, 409, "body/args"),
        ("/runs/RUN/messages", {"content": ""}, 422, "body/content"),
        ("/runs/RUN/fork", {"at": "flow/nowhere.1:0"}, 422, "body/at"),
        ("/runs/RUN/replay", {"policy": {"max_stepz": 1}}, 422, "body/policy/max_stepz"),
        ("/runs/RUN/replay", {"policy": {}, "strand": "flow/nowhere.1"}, 422, "body/strand"),
        ("/runs/nowhere/fork", {}, 404, "path/run_id"),
        ("/workflows/nowhere/runs", {}, 404, "path/name"),
        ("/workflows/desk/runs", {"external": {"message": 5}}, 422, "body/external/message"),
        ("/tools/nowhere/execute", {}, 404, "path/code"),
        ("/tools/stock/execute", {"args": {"artcle": "A"}}, 422, "body/args/artcle"),
        ("/tools/approve", {"digest": "x"}, 409, "body/digest"),
        ("/agent/chat", {"message": "x", "agent": "nobody"}, 404, "body/agent"),
        ("/agent/chat", {"message": "", "agent": "clerk"}, 422, "body/message"),
        ("/workflows/desk@/runs", {"external": {"message": "x"}}, 404, "path/name"),
    ],
)
def test_what_only_the_host_can_know_is_named_too(host: Served, path: str, body: Any, status: int, where: str) -> None:
    run = host.submit("buy", article="A-17")["run_id"]
    answer = host.client.post(path.replace("RUN", run), json=body)
    assert answer.status_code == status, answer.text
    assert where in [each["where"] for each in answer.json()["errors"]], answer.text


@pytest.mark.parametrize(
    ("content", "param"),
    [
        (5, "messages[0].content"),
        ([5], "messages[0].content[0]"),
        ([{"text": "x"}], "messages[0].content[0].type"),
        ([{"type": "image_url"}], "messages[0].content[0].type"),
        ([{"type": "text"}], "messages[0].content[0].text"),
    ],
)
def test_part_of_a_message_is_named_as_openai_names_it(host: Served, content: Any, param: str) -> None:
    body = {"model": "agent/clerk", "messages": [{"role": "user", "content": content}]}
    error = host.client.post("/v1/chat/completions", json=body).json()["error"]
    assert (error["param"], error["message"].startswith(f"{param}: ")) == (param, True)
    assert json.dumps(error).count("content[0]") <= 2


CUT_OFF = """
from utools import Tool, ToolResult


async def pay(args, context):
    return ToolResult(False, error="the line went dead", metadata={"cut_off": True})


GIVES = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
PAY = [Tool("pay", "Pays.", {"type": "object"}, pay, output_schema=GIVES)]
"""


def test_result_of_a_write_in_doubt_is_told_or_named_as_the_field_at_fault(tmp_path: Path) -> None:
    (tmp_path / "pay.py").write_text(CUT_OFF)
    write_host(tmp_path, tools=["pay.py:PAY"], execute_tools=[])
    for other in (tmp_path / "workflows").iterdir():
        other.unlink()
    for agent in (tmp_path / "agents").iterdir():
        agent.unlink()
    (tmp_path / "workflows" / "pay.json").write_text(json.dumps({"id": "pay", "nodes": [{"tool": "pay"}]}))
    with served(tmp_path) as host:
        waiting = host.submit("pay")
        decide = f"/runs/{waiting['run_id']}/decide"
        assert waiting["waiting"][0]["reason"] == "in_doubt"
        for body, status in (
            ({"decision": "done", "output": {"order": "17"}}, 409),
            ({"decision": "done"}, 409),
            ({"decision": "skip", "output": {"order": 17}}, 422),
        ):
            answer = host.client.post(decide, json=body)
            told = [each["where"] for each in answer.json()["errors"]]
            assert (answer.status_code, told) == (status, ["body/output"])
        done = host.client.post(decide, json={"decision": "done", "output": {"order": 17}}).json()
        assert (done["status"], done["outputs"]["pay"]) == ("completed", {"order": 17})


def test_a_run_of_a_newer_version_is_refused_with_the_reason_and_a_store_without() -> None:
    newer = refusal_of(Newer("r1", "it has format 9, this agent_core knows 2: use a newer version"))
    assert (newer.status, newer.kind) == (503, "newer_version")
    assert newer.detail.endswith("format 9, this agent_core knows 2: use a newer version")
    away = refusal_of(JournalError("cannot open /srv/runs.db"))
    assert (away.status, away.kind, "/srv" in away.detail) == (503, "store", False)
