"""ToolRegistry: finding, describing, validating and executing tools."""

import asyncio
import json
import os
from collections.abc import Iterator
from datetime import date
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from utools import DefinitionError, Tool, ToolContext, ToolError, ToolRegistry, ToolResult, default_registry, tool
from utools.builtin import builtin_tools
from utools.errors import UnknownTool
from utools.words.text import translate_description

ANY = {"type": "object"}


class Unusual(BaseException):
    """What no `except Exception` catches."""


def giving(value: Any, code: str = "give", **options: Any) -> Tool:
    async def execute(args: dict[str, Any], context: ToolContext) -> Any:
        return value

    return Tool(code, "d", ANY, execute, **options)


def raising(error: BaseException, code: str = "fail") -> Tool:
    async def execute(args: dict[str, Any], context: ToolContext) -> Any:
        raise error

    return Tool(code, "d", ANY, execute)


async def executed(given: Tool, args: dict[str, Any] | None = None) -> ToolResult:
    return await ToolRegistry([given]).execute(given.code, args or {})


def test_doubled_code_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"tools\.give"):
        ToolRegistry([giving(1), giving(2)])


@pytest.mark.parametrize("name", ["config_schema", "output_schema"])
def test_unsound_schema_is_refused_at_registration_with_its_place(name: str) -> None:
    schemas: dict[str, Any] = {"config_schema": ANY, name: {"properties": {"q": {"type": "strin"}}}}
    unsound = Tool(code="x", description="d", execute=print, **schemas)
    with pytest.raises(DefinitionError) as refused:
        ToolRegistry([unsound])
    assert refused.value.where == f"tools.x.{name}/properties/q/type"


@pytest.mark.parametrize("properties", [None, [], [{"q": {}}], "q", 5])
def test_properties_that_are_no_object_are_refused_at_registration(properties: Any) -> None:
    with pytest.raises(DefinitionError, match=r"tools\.x\.config_schema/properties: not a valid JSON Schema"):
        ToolRegistry([Tool("x", "d", {"type": "object", "properties": properties}, print)])


EXAMPLE = {"user": "Buy.", "args": {}, "output": "bought", "answer": "Done."}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"description": "d\ud800"}, r"description: it holds a lone surrogate"),
        ({"examples": [{**EXAMPLE, "answer": "\udc00"}]}, "examples: /0/answer holds a lone surrogate"),
        ({"examples": [{**EXAMPLE, "output": float("nan")}]}, "examples: /0/output is not a finite number"),
    ],
)
def test_texts_that_no_journal_holds_are_refused_at_registration(texts: dict[str, Any], message: str) -> None:
    """Each run that may call the tool would end with them."""
    with pytest.raises(DefinitionError, match=rf"^tools\.x\.{message}"):
        ToolRegistry([Tool(**{"code": "x", "description": "d", "config_schema": ANY, "execute": print, **texts})])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tool("x", "d", ANY, print, examples=5), r"tools\.x\.examples: must be a list of examples"),  # type: ignore[arg-type]
        (lambda: Tool("x", "d", ANY, print, idempotent="no"), r"tools\.x\.idempotent: must be True or False"),  # type: ignore[arg-type]
    ],
    ids=["examples", "idempotent"],
)
def test_a_wrong_type_is_told_with_its_place(make: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        make()


def test_example_may_hold_what_its_json_tells() -> None:
    example = {**EXAMPLE, "output": [{"day": date(2026, 1, 1)}, UUID(int=1)]}
    assert ToolRegistry([Tool("x", "d", ANY, print, examples=[example])]).get("x").examples == [example]


def test_unknown_code_is_a_key_error_that_lists_near_matches() -> None:
    with pytest.raises(KeyError) as unknown:
        ToolRegistry([giving(1, "file_search"), giving(1, "echo")]).get("file_serch")
    assert isinstance(unknown.value, UnknownTool)
    assert str(unknown.value) == "no tool is called 'file_serch'; did you mean file_search?"


CODES = ["echo", "mcp.files.read", "mcp.files.write", "mcp.web.get"]


@pytest.fixture
def several() -> ToolRegistry:
    return ToolRegistry(giving(1, code) for code in reversed(CODES))


def test_all_are_sorted_by_code(several: ToolRegistry) -> None:
    assert [each.code for each in several.all()] == CODES


@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        pytest.param(["*"], [], CODES, id="everything"),
        pytest.param([], [], [], id="an empty list means no tools"),
        pytest.param(["mcp.files.*", "echo"], [], CODES[:3], id="globs and codes"),
        pytest.param(["mcp.*"], ["*.write", "mcp.web.get"], ["mcp.files.read"], id="deny wins"),
        pytest.param(["ECHO"], [], [], id="case matters"),
    ],
)
def test_definitions_follow_allow_and_deny(
    several: ToolRegistry, allow: list[str], deny: list[str], expected: list[str]
) -> None:
    assert [each["function"]["name"] for each in several.definitions(allow, deny)] == expected
    assert several.matching(allow) == sorted({*expected, *several.matching(allow)})


def test_definition_hides_what_only_the_author_may_set() -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "root": {"type": "string", "x-author": True}},
        "required": ["q", "root"],
    }
    registry = ToolRegistry([Tool("t", "Finds.", schema, print)])
    parameters = {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    }
    function = {"name": "t", "description": "Finds.", "parameters": parameters}
    assert registry.definitions() == [{"type": "function", "function": function}]


async def test_invalid_arguments_never_reach_the_tool() -> None:
    called: list[Any] = []
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    registry = ToolRegistry([Tool("t", "d", schema, lambda args, context: called.append(args))])
    result = await registry.execute("t", {"q": 1, "x": 2})
    assert (result.success, called) == (False, [])
    assert result.error is not None
    assert "/q must be a string" in result.error
    assert "/x is not a known property" in result.error


async def test_error_lists_no_more_faults_than_anyone_reads() -> None:
    registry = ToolRegistry([Tool("t", "d", {"type": "object", "properties": {}}, print)])
    result = await registry.execute("t", {f"x{number}": 1 for number in range(100)})
    assert str(result.error).endswith("And 80 more.")


@pytest.mark.parametrize(
    ("value", "output"),
    [
        pytest.param(None, None, id="null"),
        pytest.param((1, [2, ("x",)]), [1, [2, ["x"]]], id="tuples become lists"),
        pytest.param(2**64 - 1, 2**64 - 1, id="largest integer"),
        pytest.param(-(2**63), -(2**63), id="smallest integer"),
        pytest.param(ToolResult(output={"a": 1}), {"a": 1}, id="result"),
    ],
)
async def test_json_value_is_the_output(value: Any, output: Any) -> None:
    assert await executed(giving(value)) == ToolResult(output=output)


@pytest.mark.parametrize(
    ("error", "text", "marks"),
    [
        pytest.param(ToolError("no such order /x"), "no such order /x", "", id="tool error, as it is"),
        pytest.param(ToolError("busy", transient=True), "busy", "transient", id="transient tool error"),
        pytest.param(TimeoutError("slow"), "TimeoutError: slow", "transient cut_off", id="timeout"),
        pytest.param(
            ConnectionResetError("gone"), "ConnectionResetError: gone", "transient cut_off", id="dropped connection"
        ),
        pytest.param(ConnectionRefusedError("no"), "ConnectionRefusedError: no", "transient", id="never connected"),
        pytest.param(EOFError("half"), "EOFError: half", "cut_off", id="half an answer"),
        pytest.param(ValueError("no"), "ValueError: no", "", id="any other"),
        pytest.param(SystemExit(3), "it called sys.exit(3)", "", id="exit"),
        pytest.param(GeneratorExit("x"), "GeneratorExit: x", "", id="generator exit"),
        pytest.param(Unusual("x"), "Unusual: x", "", id="an exception of its own making"),
        pytest.param(
            OSError(2, "none", "/srv/app/data/x y.txt"),
            "FileNotFoundError: [Errno 2] none: '…/x y.txt'",
            "",
            id="path",
        ),
        pytest.param(ValueError("bad \ud800"), "ValueError: bad ?", "", id="lone surrogate"),
    ],
)
async def test_exception_becomes_a_failed_result(error: BaseException, text: str, marks: str) -> None:
    result = await executed(raising(error))
    assert result == ToolResult(False, None, text, dict.fromkeys(marks.split(), True))


async def test_the_log_says_where_a_tools_own_code_failed_and_nothing_of_its_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def parsed(args: dict[str, Any], context: ToolContext) -> Any:
        return json.loads(args["text"])

    await executed(Tool("parse", "Parses.", {"properties": {"text": {}}}, parsed), {"text": "hunter2"})
    (told,) = caplog.messages
    assert told.startswith("the tool parse failed: JSONDecodeError at ")
    assert f"{__file__}:{parsed.__code__.co_firstlineno + 1} in parsed" in told
    assert "hunter2" not in told
    caplog.clear()
    await executed(raising(ToolError("as it should be")))
    await executed(raising(TimeoutError("too late")))
    assert not caplog.messages


async def test_error_text_shows_no_environment_value() -> None:
    name, value = next(
        (name, value) for name, value in sorted(os.environ.items()) if len(value) >= 6 and "/" not in value
    )
    result = await executed(raising(ValueError(f"with {value}")))
    assert value not in str(result.error)
    assert "[redacted:" in str(result.error), name


@pytest.mark.parametrize(
    "way", [lambda text: raising(ToolError(text)), lambda text: giving(ToolResult(False, error=text))]
)
async def test_what_a_tool_says_of_its_failure_is_scrubbed(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UTOOLS_TEST_KEY", "sk-9f8e7d6c")
    text = "at /home/bob/x.txt with sk-9f8e7d6c\nTraceback (most recent call last):\n  File 'a'\nValueError: no"
    assert (await executed(way(text))).error == "at …/x.txt with [redacted:UTOOLS_TEST_KEY] ValueError: no"


async def test_failure_without_a_reason_gets_one() -> None:
    result = await executed(giving(ToolResult(success=False)))
    assert result.error == "The tool give failed without saying why."


async def test_cancellation_passes_through() -> None:
    with pytest.raises(asyncio.CancelledError):
        await executed(raising(asyncio.CancelledError()))


async def test_coroutine_that_is_closed_ends() -> None:
    async def forever(args: dict[str, Any], context: ToolContext) -> None:
        await asyncio.get_running_loop().create_future()

    after: list[ToolResult] = []

    async def host() -> None:
        after.append(await executed(Tool("t", "d", ANY, forever)))

    coroutine = host()
    coroutine.send(None)
    coroutine.close()
    assert after == []


def test_interrupt_passes_through() -> None:
    coroutine = executed(raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        coroutine.send(None)


class Callable:
    async def __call__(self, args: dict[str, Any], context: ToolContext) -> str:
        return "object"


async def awaited(prefix: str, args: dict[str, Any], context: ToolContext) -> str:
    return prefix


@pytest.mark.parametrize(
    ("execute", "output"),
    [
        pytest.param(lambda args, context: "sync", "sync", id="sync function"),
        pytest.param(partial(awaited, "partial"), "partial", id="partial of an async function"),
        pytest.param(Callable(), "object", id="object with an async call"),
        pytest.param(lambda args, context: awaited("late", args, context), "late", id="sync function, async answer"),
    ],
)
async def test_any_callable_can_be_executed(execute: Any, output: str) -> None:
    assert (await executed(Tool("t", "d", ANY, execute))).output == output


@tool
def offered() -> str:
    """Is offered by a package."""
    return "x"


OFFERED = [giving(1, "one"), giving(2, "two")]
MIXED = [giving(1, "one"), "two"]
HERE = __name__


def factory() -> list[Tool]:
    return OFFERED


def broken() -> list[Tool]:
    raise RuntimeError("no licence")


def entry(name: str) -> EntryPoint:
    return EntryPoint(name, f"{HERE}:{name}", "utools.tools")


@pytest.mark.parametrize(
    ("name", "codes"), [("offered", ["offered"]), ("OFFERED", ["one", "two"]), ("factory", ["one", "two"])]
)
def test_entry_point_offers_tools(name: str, codes: list[str]) -> None:
    registry = ToolRegistry()
    assert registry.discover([entry(name)]) == codes
    assert [each.code for each in registry.all()] == codes


@pytest.mark.parametrize("name", ["broken", "HERE", "MIXED", "absent"])
def test_package_that_cannot_be_loaded_is_named(name: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(DefinitionError) as refused:
        registry.discover([entry("OFFERED"), entry(name)])
    assert f"entry point {name} of {HERE}:{name}" in str(refused.value)
    assert registry.all() == []


def test_code_that_a_package_doubles_is_reported_with_the_package() -> None:
    with pytest.raises(DefinitionError, match=r"entry point factory of .*: tools\.one: another tool"):
        ToolRegistry().discover([entry("OFFERED"), entry("factory")])


def test_installed_package_is_found_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "acme_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[utools.tools]\nacme = acme_tools:made\n")
    module = tmp_path / "acme_tools.py"
    module.write_text("from utools import tool\n@tool\ndef greet(name: str) -> str:\n    return name\nmade = [greet]\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = ToolRegistry()
    assert registry.discover()[-1] == "greet"
    with pytest.raises(DefinitionError, match="entry point acme of acme-tools"):
        registry.discover()


def test_package_that_comes_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert "salute" not in ToolRegistry().discover()
    module = tmp_path / "late_tools.py"
    module.write_text(
        "from utools import tool\n@tool\ndef salute(name: str) -> str:\n    return name\nmade = [salute]\n"
    )
    info = tmp_path / "late_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: late-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[utools.tools]\nlate = late_tools:made\n")
    os.utime(tmp_path, ns=(1, 1))  # a file system's clock may stand still for some milliseconds
    assert "salute" in ToolRegistry().discover()


def test_discovery_finds_the_built_in_tools_that_are_not_there_yet() -> None:
    codes = sorted(tool.code for tool in builtin_tools())
    assert sorted(ToolRegistry().discover()) == codes
    assert default_registry().discover() == []
    own = Tool("echo", "My own.", {}, lambda args, context: "mine")
    registry = ToolRegistry([own])
    assert sorted([*registry.discover(), "echo"]) == codes
    assert registry.get("echo") is own


def test_the_schemas_of_the_built_in_tools_are_good() -> None:
    """`default_registry` takes them without a check."""
    assert ToolRegistry(builtin_tools()).all()


def test_every_built_in_tool_says_what_it_gives_but_the_one_that_may_give_anything() -> None:
    silent = [tool.code for tool in builtin_tools() if tool.output_schema is None]
    assert silent == ["json_transform"]


def _undescribed(schema: dict[str, Any], where: str) -> list[str]:
    """The properties of a schema, and of those in it, that say nothing of themselves."""
    return [
        name
        for key, rule in schema.get("properties", {}).items()
        for name in [
            *([] if rule.get("description") else [f"{where}/{key}"]),
            *_undescribed(rule, f"{where}/{key}"),
        ]
    ]


def test_every_argument_of_the_built_in_tools_is_described() -> None:
    tools = builtin_tools()
    assert [name for tool in tools for name in _undescribed(tool.config_schema, tool.code)] == []


def _descriptions(schema: Any) -> Iterator[str]:
    """What a schema says in words, on each level."""
    if isinstance(schema, dict):
        yield from (said for key, said in schema.items() if key == "description" and isinstance(said, str))
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _descriptions(part)


def test_every_description_of_the_built_in_tools_is_translated() -> None:
    said = [each for tool in builtin_tools() for each in (tool.description, *_descriptions(tool.config_schema))]
    assert [each for each in said if translate_description(each, "zh") == each] == []
