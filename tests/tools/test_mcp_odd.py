"""MCP servers that are odd: tools, names and results that are not as the protocol has them, and a probe unanswered."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.mcp_servers import FAULTY
from support.optional import needs
from utools import ToolContext, ToolRegistry, ToolResult
from utools.secrets.redaction import Redactor
from utools.sources.loaded import Loaded
from utools.sources.mcp.listing import list_definitions
from utools.sources.mcp.odd_lines import find_answer, mend_surrogates
from utools.sources.mcp.raw_results import RAW
from utools.sources.mcp.result import read_result
from utools.sources.mcp.servers import McpServer, McpServers
from utools.sources.tool_codes import assign_codes, encode_name, plain_form

pytestmark = needs("mcp")
OBJECT = {"type": "object"}
GOOD = {"name": "good", "description": "Good.", "inputSchema": OBJECT}
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
Start = Callable[..., McpServers]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A server with these tools, ended when the test is over."""
    made: list[McpServers] = []

    def start(*tools: Any, word: str = "", **keys: Any) -> McpServers:
        (tmp_path / "tools.json").write_text(json.dumps(tools))
        command = [sys.executable, FAULTY, str(tmp_path), *filter(None, [word])]
        server = McpServer.model_validate({"command": command, **keys})
        made.append(McpServers({"own": server}, lock=tmp_path / "lock.json", base=tmp_path))
        return made[-1]

    yield start
    for servers in made:
        servers.close()


def codes_of(loaded: Loaded) -> list[str]:
    return [tool.code for tool in loaded.tools]


MEANT: dict[str, Any] = {
    "empty": {},
    "null": None,
    "no_type": {"properties": {"a": {"type": "string"}}},
    "true": True,
    "type_null": {"type": None},
    "null_keys": {"type": "object", "properties": None, "required": None, "description": None},
    "unknown_keys": {"type": "object", "x-vendor": {"a": 1}, "nullable": False},
    "draft_3": {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
}


@pytest.mark.parametrize("schema", MEANT.values(), ids=MEANT)
async def test_schema_whose_meaning_is_clear_is_taken_so(start: Start, schema: Any) -> None:
    loaded = start(GOOD, {"name": "odd", "inputSchema": schema}, {"name": "bare"}).load()
    assert codes_of(loaded) == ["mcp.own.good", "mcp.own.odd", "mcp.own.bare"]
    assert loaded.left_out == []
    result = await ToolRegistry(loaded.tools).execute("mcp.own.odd", {"a": "x"})
    assert result.success


LEFT_OUT: dict[str, tuple[Any, str]] = {
    "text": ("object", "its inputSchema is no JSON object"),
    "list": ([OBJECT], "its inputSchema is no JSON object"),
    "string": ({"type": "string"}, "describes something else than an object of arguments"),
    "array": ({"type": "array"}, "describes something else than an object of arguments"),
    "false": (False, "its inputSchema is no JSON object"),
    "unknown_type": ({"type": "object", "properties": {"a": {"type": "strin"}}}, "schema/properties/a/type"),
    "elsewhere": ({"type": "object", "properties": {"a": {"$ref": "https://x/y"}}}, "only local references"),
}


@pytest.mark.parametrize(("schema", "why"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_tool_that_cannot_be_used_is_left_out_alone_and_named_at_each_start(
    start: Start, schema: Any, why: str
) -> None:
    for _ in range(2):  # what is approved is in the lock file the second time
        loaded = start(GOOD, {"name": "odd", "inputSchema": schema}).load()
        assert codes_of(loaded) == ["mcp.own.good"]
        assert [(each.name, each.where) for each in loaded.left_out] == [("mcp.own.odd", "mcp_servers/own/odd")]
        assert why in loaded.left_out[0].why
        assert "pydantic" not in loaded.left_out[0].why


def test_tool_that_is_called_as_a_task_only_is_left_out_and_named(start: Start) -> None:
    words = ("required", "optional", "forbidden")
    offered = [{**GOOD, "name": each, "execution": {"taskSupport": each}} for each in words]
    loaded = start(*offered, {**GOOD, "execution": "odd"}).load()
    assert codes_of(loaded) == ["mcp.own.optional", "mcp.own.forbidden", "mcp.own.good"]
    assert [(each.name, "as a task only" in each.why) for each in loaded.left_out] == [("mcp.own.required", True)]


def test_nothing_is_told_of_an_odd_tool_that_the_operator_does_not_take(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = start(GOOD, {"name": "odd", "inputSchema": False}, tools=["g*"]).load()
    assert (codes_of(loaded), loaded.left_out, caplog.text) == (["mcp.own.good"], [], "")


def test_what_is_no_tool_is_passed_over(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    odd = [5, None, {}, {"name": 5}, {"name": ""}, {"name": " "}, {**GOOD, "description": "Another."}]
    assert codes_of(start(GOOD, *odd).load()) == ["mcp.own.good"]
    assert caplog.text.count("it has no name") == 6
    assert "another one is called 'good' too" in caplog.text


def test_annotations_and_texts_of_other_types_say_nothing(start: Start) -> None:
    odd = {"annotations": {"readOnlyHint": "yes", "title": 5}, "description": 5, "title": {}, "outputSchema": "x"}
    listed = [
        {**GOOD, **odd},
        {**GOOD, "name": "b", "annotations": 5},
        {**GOOD, "name": "c", "description": "x" * 10**6},
    ]
    good, _, long = start(*listed, trust_annotations=True).load().tools
    assert (good.description, good.effect, good.output_schema) == ("good", "write", None)
    assert len(long.description) < 10**5


async def test_output_schema_that_is_none_is_not_checked(start: Start) -> None:
    loaded = start({**GOOD, "outputSchema": {"type": "numbr"}}).load()
    assert (codes_of(loaded), loaded.left_out) == (["mcp.own.good"], [])


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


async def test_tools_in_another_script_have_codes_of_their_own_and_are_called_by_their_names(start: Start) -> None:
    loaded = start(*({"name": name, "inputSchema": OBJECT} for name in ("查询", "天气", "café"))).load()
    assert codes_of(loaded) == ["mcp.own.:67e5:8be2", "mcp.own.:5929:6c14", "mcp.own.caf:00e9"]
    registry = ToolRegistry(loaded.tools)
    assert [(await registry.execute(code, {})).output for code in codes_of(loaded)] == ["查询", "天气", "café"]


LONG = "a" * 200
NAMES: dict[str, tuple[list[str], list[str]]] = {
    "plain": (["a b", "get.it", "x:y"], ["p.a_b", "p.get.it", "p.x:y"]),
    "one_in_the_way": (["a b", "a/b", "a_b"], ["p.a:0020b", "p.a:002fb", "p.a_b"]),
    "none_has_it": (["a b", "a/b"], ["p.a:0020b", "p.a:002fb"]),
    "emoji": (["😀"], ["p.::01f600"]),
    "long": ([LONG], [f"p.{LONG}"[:128]]),
    "true_collision": (["x:67e5", "x查"], ["p.x:67e5"]),
}


@pytest.mark.parametrize(("names", "codes"), NAMES.values(), ids=NAMES)
def test_each_name_has_one_code_whatever_the_order(names: list[str], codes: list[str]) -> None:
    assert list(assign_codes("p.", {name: plain_form(name) for name in names}).values()) == codes
    turned = assign_codes("p.", {name: plain_form(name) for name in reversed(names)})
    assert sorted(turned.values()) == sorted(codes)


def test_long_names_that_begin_alike_differ_at_their_end() -> None:
    codes = assign_codes("p.", {f"{LONG}{each}": f"{LONG}{each}" for each in "bc"}) | {
        "查": encode_name("p.", "查" * 99)
    }
    assert len({*codes.values()}) == 3
    assert all(len(code) == 128 for code in codes.values())


def test_name_whose_code_another_one_has_is_left_out_and_named(start: Start) -> None:
    loaded = start({"name": "x查", "inputSchema": OBJECT}, {"name": "x:67e5", "inputSchema": OBJECT}).load()
    assert codes_of(loaded) == ["mcp.own.x:67e5"]
    assert [each.where for each in loaded.left_out] == ["mcp_servers/own/x查"]


# ── results ───────────────────────────────────────────────────────────────────────────────────────


def texts(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in said]


IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
OUTPUTS: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"content": texts("a")}, "a"),
    "texts": ({"content": texts("a", "b")}, ["a", "b"]),
    "nothing": ({}, []),
    "null": ({"content": None, "structuredContent": None, "isError": None}, []),
    "unknown_block": ({"content": [{"type": "hologram", "x": 1}, *texts("a")]}, [{"type": "hologram", "x": 1}, "a"]),
    "bytes_of_an_unknown_block": (
        {"content": [{"type": "hologram", "data": "aGVsbG8=", "mimeType": "x/y"}]},
        {"type": "hologram", "data": "(5 bytes of x/y)", "mimeType": "x/y"},
    ),
    "no_block": ({"content": ["plain", 5, {"type": "text"}]}, ["plain", 5, {"type": "text"}]),
    "no_list": ({"content": "plain"}, "plain"),
    "resources": (
        {
            "content": [
                {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGVsbG8="}},
                {"type": "resource_link", "uri": "file:///c", "name": "c", "size": 3},
            ]
        },
        [
            {"type": "resource", "uri": "file:///a", "mime_type": "text/plain", "text": "inside"},
            {"type": "resource", "uri": "file:///b", "bytes": 5},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "bytes": 3},
        ],
    ),
    "structured": ({"content": [], "structuredContent": {"n": 3}}, {"n": 3}),
    "structured_list": ({"content": texts("[1, 2]"), "structuredContent": [1, 2]}, [1, 2]),
    "said_twice": ({"content": texts('{"n": 3}', "3", " "), "structuredContent": {"n": 3}}, {"n": 3}),
    "said_beside": (
        {"content": [*texts("three, as ever"), IMAGE], "structuredContent": {"n": 3}},
        {"n": 3, "_content": ["three, as ever", {"type": "image", "mime_type": "image/png", "bytes": 5}]},
    ),
}


@pytest.mark.parametrize(("answer", "output"), OUTPUTS.values(), ids=OUTPUTS)
async def test_nothing_of_a_result_is_lost(start: Start, answer: dict[str, Any], output: Any) -> None:
    registry = ToolRegistry(start({**GOOD, "name": "result"}).load().tools)
    assert await called(registry, answer) == ToolResult(output=output)


async def called(registry: ToolRegistry, answer: dict[str, Any]) -> ToolResult:
    return await registry.execute("mcp.own.result", {"text": json.dumps(answer)}, ToolContext())


async def test_answer_that_asks_for_more_where_the_protocol_has_no_such_thing_is_told_in_a_line(start: Start) -> None:
    registry = ToolRegistry(start({**GOOD, "name": "result"}).load().tools)
    result = await called(registry, {"resultType": "input_required", "requestState": "s"})
    assert result.error == "the answer of the MCP server own is not sound: content: Field required"


FAILED: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"content": texts("no such city")}, "no such city"),
    "structured": ({"content": texts("see there"), "structuredContent": {"line": 1}}, 'see there\n{"line": 1}'),
    "said_twice": ({"content": texts('{"line": 1}'), "structuredContent": {"line": 1}}, '{"line": 1}'),
    "structured_alone": ({"structuredContent": {"line": 1}}, '{"line": 1}'),
    "block": ({"content": [IMAGE]}, '{"type": "image", "mime_type": "image/png", "bytes": 5}'),
    "silent": ({"content": []}, "the server says that it failed, and not why"),
}


@pytest.mark.parametrize(("answer", "error"), FAILED.values(), ids=FAILED)
async def test_all_that_is_said_of_a_failure_is_told(start: Start, answer: dict[str, Any], error: str) -> None:
    registry = ToolRegistry(start({**GOOD, "name": "result", "outputSchema": COUNT}).load().tools)
    failed = await called(registry, {**answer, "isError": True})
    assert (failed.success, failed.error) == (False, error)


BREACHES: dict[str, tuple[dict[str, Any], str]] = {
    "wrong": (
        {"content": texts("n should be one"), "structuredContent": {"n": "three"}},
        'must be an integer, got "three". It is {"n": "three"}; it says: n should be one',
    ),
    "missing": ({"content": texts("which city?")}, "holds no structured content that fits it; it says: which city?"),
    "nothing": ({"content": []}, "holds no structured content that fits it"),
}


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize(("answer", "told"), BREACHES.values(), ids=BREACHES)
async def test_breach_of_the_output_schema_is_told_with_what_is_said_beside_it(
    start: Start, answer: dict[str, Any], told: str, effect: str
) -> None:
    reads = {"read_only": ["result"]} if effect == "read" else {}
    registry = ToolRegistry(start({**GOOD, "name": "result", "outputSchema": COUNT}, **reads).load().tools)
    result = await called(registry, answer)
    assert result.success == (effect == "write")  # a write was made: a failure would have it made again
    assert told in str(result.output if result.success else result.error)


def test_json_in_the_only_text_is_the_structured_content_of_an_older_server() -> None:
    assert read_result({"content": texts('{"n": 3}')}, COUNT).output == {"n": 3}


def test_what_a_closed_schema_has_no_place_for_is_in_the_metadata() -> None:
    answer = {"content": texts("as ever"), "structuredContent": {"n": 3}}
    result = read_result(answer, {**COUNT, "additionalProperties": False})
    assert (result.output, result.metadata) == ({"n": 3}, {"content": ["as ever"]})


# ── the probe ─────────────────────────────────────────────────────────────────────────────────────


def test_server_that_passes_over_the_probe_starts_in_less_than_the_library_waits_for_it(start: Start) -> None:
    loaded = start(GOOD, word="deaf", start_timeout=8).load()
    assert codes_of(loaded) == ["mcp.own.good"]


FINE = {"content": [{"type": "text", "text": "fine"}]}
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 3, "result": FINE})
NOTE = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
ASKED = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "ping"})
GLUED: dict[str, tuple[str, Any]] = {
    "a text before it": (f"loading {{1}} [INFO] {ANSWER}", FINE),
    "a text after it": (f"{ANSWER} done in {{2}} ms", FINE),
    "another message before it": (NOTE + ANSWER, FINE),
    "a batch": (f"[{NOTE}, {ANSWER}]", FINE),
    "no version of the protocol": (ANSWER.replace('"jsonrpc": "2.0", ', ""), FINE),
    "an id with a point": (ANSWER.replace('"id": 3', '"id": 3.0'), FINE),
    "another id": (ANSWER.replace('"id": 3', '"id": 4'), None),
    "a request": (f"got {ASKED}", None),
    "half an answer": (f"loading {ANSWER[:-1]}", None),
}


@pytest.mark.parametrize(("line", "result"), GLUED.values(), ids=GLUED)
def test_answer_is_found_in_a_line_that_is_more_or_less_than_a_message(line: str, result: Any) -> None:
    found = find_answer(line.encode(), {3})
    assert found == (None if result is None else {"jsonrpc": "2.0", "id": 3, "result": result})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("it is broken", "refused: it is broken"),
        ({"code": "E_FULL", "message": "no room"}, "refused: no room: E_FULL"),
        (
            {"code": -32602, "message": "Invalid:\n [\n  {}", "data": {"at": "city"}},
            'refused: Invalid: [ {}: {"at": "city"}',
        ),
    ],
)
async def test_refusal_is_told_whole(start: Start, error: Any, told: str) -> None:
    answer = json.dumps({"jsonrpc": "2.0", "id": "ID", "error": error}).replace('"ID"', "ID")
    registry = ToolRegistry(start({"name": "answer", "inputSchema": OBJECT}).tools())
    result = await registry.execute("mcp.own.answer", {"text": answer}, ToolContext(deadline_s=20))
    assert (result.success, result.metadata) == (False, {})
    assert told in str(result.error)


async def test_answer_with_its_id_as_a_text_is_read_as_any(start: Start) -> None:
    answer = json.dumps({"jsonrpc": "2.0", "id": "ID", "result": {"content": [], "structuredContent": {"n": 1}}})
    registry = ToolRegistry(start({"name": "answer", "inputSchema": OBJECT}).tools())
    result = await registry.execute("mcp.own.answer", {"text": answer}, ToolContext(deadline_s=20))
    assert (result.output, result.error) == ({"n": 1}, None)


def test_half_a_character_takes_no_answer_with_it() -> None:
    """JavaScript leaves one where it cuts a text within an emoji."""
    assert json.loads(mend_surrogates(b'["cut \\ud83d", "\\ud83d\\ude00", "\\\\ud83d"]')) == [
        "cut \ufffd",
        "\U0001f600",
        "\\ud83d",
    ]


def test_structured_content_that_is_no_json_of_ours_is_given_as_it_was_sent() -> None:
    answer = {"content": [{"type": "text", "text": "see"}], "structuredContent": {"mean": float("nan")}}
    assert read_result(answer).output == ["see", '{"mean": NaN}']


def test_answer_without_contents_says_what_it_has() -> None:
    assert read_result({"task": {"taskId": "7"}, "isError": False}).output == {"task": {"taskId": "7"}}


async def test_tools_of_many_pages_are_listed_and_a_cursor_that_comes_again_ends_the_list() -> None:
    class Client:
        async def list_tools(self, cursor: str | None = None) -> Any:
            page = int(cursor or 0)
            tool = {"name": f"t{page}", "inputSchema": OBJECT}
            following = str(min(page + 1, 120))
            return SimpleNamespace(
                tools=[SimpleNamespace(name=tool["name"])], meta={RAW: [tool]}, next_cursor=following
            )

    listed = await list_definitions(cast(Any, Client()), "own", Redactor({}))
    assert list(listed) == [f"t{page}" for page in range(121)]
