"""Tools of other libraries, by the real libraries: their schemas, arguments, results and errors."""

import asyncio
import threading
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agent_core import run_agent
from agent_core.testing import TestModel, assert_called, assert_finish
from support.optional import needs
from utools import DefinitionError, Tool, ToolContext, ToolError, ToolRegistry, ToolResult
from utools.adapters import from_openai


class Stay(BaseModel):
    """A stay at a hotel."""

    town: str = Field(min_length=2)
    begins: date = date(2026, 6, 1)
    nights: int = Field(1, ge=1, le=30)


async def call(tool: Tool, **args: Any) -> ToolResult:
    return await ToolRegistry([tool]).execute(tool.code, args, ToolContext(idempotency_key="k1"))


async def output(tool: Tool, **args: Any) -> Any:
    result = await call(tool, **args)
    assert result.success, result.error
    return result.output


async def run_each(*tools: Tool) -> None:
    """An agent calls each of the tools, with arguments that it makes from their schemas."""
    for protocol in ("json", "tools"):
        config = {"model": "test", "max_steps": 9, "prompt": "Try.", "allowed_tools": [each.code for each in tools]}
        done = await run_agent({**config, "protocol": protocol}, registry=tools, model=TestModel())
        for tool in tools:
            assert_called(done, tool.code, times=1)
        assert_finish(done)


# ── functions as OpenAI's API has them ───────────────────────────────────────────────────────────

PARAMETERS = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
FUNCTION = {"name": "book", "description": "Book a room.", "parameters": PARAMETERS, "strict": True}
SHAPES = {
    "chat completions": {"type": "function", "function": FUNCTION},
    "responses": {"type": "function", **FUNCTION},
    "inner object": FUNCTION,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_a_function_is_a_tool_in_each_shape(shape: Any) -> None:
    async def book(town: str) -> str:
        return f"booked in {town}"

    tool = from_openai(shape, book, effect="read")
    assert (tool.code, tool.description, tool.effect, tool.config_schema) == (
        "book",
        "Book a room.",
        "read",
        PARAMETERS,
    )
    assert await output(tool, town="Oslo") == "booked in Oslo"
    assert "/town" in str((await call(tool)).error)
    await run_each(tool)


async def test_a_sync_function_runs_in_a_thread_and_fails_in_its_own_words() -> None:
    def where(**args: Any) -> str:
        if args:
            raise ToolError("no rooms in {town}", **args)
        return threading.current_thread().name

    tool = from_openai({"name": "where"}, where)
    assert tool.effect == "write"
    assert tool.description == "where"
    assert await output(tool) != threading.main_thread().name
    assert (await call(tool, town="Bonn")).error == "no rooms in Bonn"


@pytest.mark.parametrize(
    ("description", "function", "message"),
    [
        ({"type": "function"}, print, r'must be \{"type": "function"'),
        ({"name": "x"}, "print", r"tools\.x: must be a function \(got 'print'\)"),
        ({"name": "x", "parameters": {"type": "array"}}, print, r"tools\.x: .*something else than an object"),
        ({"name": "a name"}, print, "a code is 1 to 128 letters"),
    ],
)
def test_what_describes_no_function_is_refused(description: Any, function: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        from_openai(description, function)


# ── LangChain ────────────────────────────────────────────────────────────────────────────────────


@needs("langchain_core")
async def test_tools_of_langchain_keep_their_schemas_and_values() -> None:
    from langchain_core.tools import StructuredTool, tool

    from utools.adapters import from_langchain

    @tool
    async def book(stay: Stay, notes: list[str] | None = None, smoking: bool = False) -> dict[str, Any]:
        """Book a room."""
        return {"town": stay.town, "begins": stay.begins, "nights": stay.nights, "smoking": smoking, "notes": notes}

    @tool(args_schema=Stay)
    def price(town: str, begins: date, nights: int) -> float:
        """Say what a stay costs."""
        assert isinstance(begins, date)
        return nights * 80.5

    weigh = StructuredTool.from_function(
        lambda kilos: kilos * 2,
        name="weigh",
        description="Weigh.",
        args_schema={"type": "object", "properties": {"kilos": {"type": "number"}}, "required": ["kilos"]},
    )
    made = [from_langchain(book), from_langchain(price, effect="read"), from_langchain(weigh, code="scales")]
    assert [each.code for each in made] == ["book", "price", "scales"]
    assert [each.effect for each in made] == ["write", "read", "write"]
    assert made[0].description == "Book a room."
    assert made[1].config_schema["properties"]["nights"]["maximum"] == 30
    given = await output(made[0], stay={"town": "Oslo", "nights": 2})
    assert given == {"town": "Oslo", "begins": "2026-06-01", "nights": 2, "smoking": False, "notes": None}
    assert await output(made[1], town="Oslo", nights=2) == 161.0
    assert await output(made[2], kilos=1.5) == 3.0
    refused = await call(made[1], town="O", nights=99)
    assert refused.error is not None
    assert "/nights" in refused.error
    await run_each(*made)


@needs("langchain_core")
async def test_a_sync_tool_of_langchain_runs_in_our_threads_and_an_async_one_in_the_loop() -> None:
    from langchain_core.tools import BaseTool, tool

    from utools.adapters import from_langchain

    @tool
    def here() -> str:
        """Name the thread."""
        return threading.current_thread().name

    class There(BaseTool):
        name: str = "there"
        description: str = "Name the thread."

        def _run(self) -> str:
            raise NotImplementedError

        async def _arun(self) -> str:
            await asyncio.sleep(0)
            return threading.current_thread().name

    assert await output(from_langchain(here)) not in (threading.current_thread().name, "asyncio_0")
    assert await output(from_langchain(There())) == threading.current_thread().name


@needs("langchain_core")
async def test_artifacts_go_to_the_host_and_errors_to_the_model() -> None:
    from langchain_core.tools import InjectedToolCallId, ToolException, tool

    from utools.adapters import from_langchain

    @tool(response_format="content_and_artifact")
    def draw(title: str) -> tuple[list[dict[str, str]], dict[str, int]]:
        """Draw a chart."""
        return [{"type": "text", "text": f"a chart of {title}"}, {"type": "text", "text": "done"}], {"points": 3}

    @tool
    def fail(how: str) -> str:
        """Fail."""
        raise ToolException(f"no {how}") if how != "badly" else KeyError(how)

    @tool
    def named(call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Say the id of the call."""
        return call_id

    drawn = await call(from_langchain(draw), title="rain")
    assert (drawn.output, drawn.metadata) == ("a chart of rain\ndone", {"artifact": {"points": 3}})
    assert (await call(from_langchain(fail), how="luck")).error == "no luck"
    assert "KeyError" in str((await call(from_langchain(fail), how="badly")).error)
    fail.handle_tool_error = "ask somebody else"
    handled = await call(from_langchain(fail), how="luck")
    assert (handled.success, handled.error) == (False, "ask somebody else")
    assert from_langchain(named).config_schema.get("properties", {}) == {}
    assert await output(from_langchain(named)) == "k1"


# ── pydantic-ai ──────────────────────────────────────────────────────────────────────────────────


def make_toolset() -> Any:
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext, ToolReturn

    toolset: Any = FunctionToolset()

    @toolset.tool
    async def book(ctx: RunContext[str], stay: Stay, smoking: bool = False) -> dict[str, Any]:
        """Book a room.

        Args:
            stay: When and where.
        """
        return {"by": ctx.deps, "call": ctx.tool_call_id, "begins": stay.begins, "nights": stay.nights}

    @toolset.tool_plain
    def price(nights: int) -> float:
        """Say what a stay costs."""
        if nights > 30:
            raise ModelRetry("at most 30 nights")
        return nights * 80.5

    @toolset.tool_plain
    def draw(title: str) -> ToolReturn:
        """Draw a chart."""
        return ToolReturn({"points": 3}, content=["a chart of", title], metadata={"file": "a.png"})

    return toolset


@needs("pydantic_ai")
async def test_a_toolset_of_pydantic_ai_gives_its_tools() -> None:
    from utools.adapters import from_toolset

    book, price, draw = await from_toolset(make_toolset(), deps="ann", effect={"price": "read"})
    assert [(each.code, each.effect) for each in (book, price, draw)] == [
        ("book", "write"), ("price", "read"), ("draw", "write"),
    ]  # fmt: skip
    assert book.description == "Book a room."
    given = await output(book, stay={"town": "Oslo", "nights": 2})
    assert given == {"by": "ann", "call": "k1", "begins": "2026-06-01", "nights": 2}
    assert await output(price, nights=2) == 161.0
    assert (await call(price, nights=31)).error == "at most 30 nights"
    drawn = await call(draw, title="rain")
    assert drawn.output == {"result": {"points": 3}, "content": "a chart of\nrain"}
    assert drawn.metadata == {"file": "a.png"}
    refused = await call(book, stay={"town": "O", "begins": "soon"})
    assert "/stay/town" in str(refused.error)
    await run_each(book, price, draw)


@needs("pydantic_ai")
async def test_a_date_that_a_schema_does_not_check_is_refused_in_words_for_the_model() -> None:
    from utools.adapters import from_toolset

    (book, *_) = await from_toolset(make_toolset())
    refused = await call(book, stay={"town": "Oslo", "begins": "soon"})
    assert "/stay/begins" in str(refused.error)


@needs("pydantic_ai")
async def test_a_tool_that_pydantic_ai_does_not_execute_is_refused() -> None:
    from pydantic_ai import ExternalToolset, ToolDefinition

    from utools.adapters import from_toolset

    with pytest.raises(
        DefinitionError, match=r"tools\.price: pydantic-ai does not execute it at once, its kind is ext"
    ):
        await from_toolset(ExternalToolset([ToolDefinition(name="price")]))


@needs("pydantic_ai")
async def test_an_approval_that_pydantic_ai_asks_for_is_not_given() -> None:
    from utools.adapters import from_toolset

    (_, price, _) = await from_toolset(make_toolset().approval_required())
    assert "nothing here continues it; ask a person by `approval`" in str((await call(price, nights=2)).error)
