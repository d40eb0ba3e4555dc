"""Results of tools: what becomes JSON, and what a write is told of whose result cannot be kept."""

import dataclasses
import enum
import itertools
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agent_core import run_agent
from agent_core.models import ScriptedModel
from engine_shim import Engine, MemoryRunStore, load_workflow
from support.by_hand import Q, action, final
from utools import Tool, ToolContext, ToolRegistry, ToolResult, tool
from utools.errors import ResultError

ANY = {"type": "object"}
AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MADE = "was made, and only its result could not be kept"


class Size(enum.Enum):
    LARGE = "large"


@dataclasses.dataclass
class Receipt:
    number: int
    at: Any


class Order(BaseModel):
    number: int
    at: Any


class Renamed(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    number: int = Field(alias="no")


class Array:
    """As numpy's arrays and scalars are: no list and no number, but `tolist()` gives them."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value


class Hostile:
    def tolist(self) -> Any:
        raise RuntimeError("hunter2")


def a_row() -> sqlite3.Row:
    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        row: sqlite3.Row = db.execute("SELECT 7 AS id, 'paid' AS state").fetchone()
        return row


def giving(value: Any, effect: Any = "write", **options: Any) -> Tool:
    async def execute(args: dict[str, Any], context: ToolContext) -> Any:
        return value

    return Tool("give", "Gives.", ANY, execute, effect=effect, **options)


async def executed(given: Tool) -> ToolResult:
    return await ToolRegistry([given]).execute(given.code, {})


CONVERTED: dict[str, tuple[Any, Any]] = {
    "a time": (AT, "2026-01-02T03:04:00Z"),
    "a date": (date(2026, 1, 2), "2026-01-02"),
    "a decimal number": (Decimal("1.10"), "1.10"),
    "an enum": (Size.LARGE, "large"),
    "a dataclass": (Receipt(1, AT), {"number": 1, "at": "2026-01-02T03:04:00Z"}),
    "models in a list": ([Order(number=1, at=AT)], [{"number": 1, "at": "2026-01-02T03:04:00Z"}]),
    "a model that names its fields": (Renamed(no=1), {"no": 1}),
    "a row": (a_row(), {"id": 7, "state": "paid"}),
    "rows": ([a_row()], [{"id": 7, "state": "paid"}]),
    "a read-only mapping": (MappingProxyType({"a": {1}}), {"a": [1]}),
    "a set": ({"s": {1}}, {"s": [1]}),
    "bytes that are text": (b"ab", "ab"),
    "a UUID": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "a path": (Path("/srv/a"), "/srv/a"),
    "an array": (Array([1, 2]), [1, 2]),
    "a number of an array": ({"mean": Array(1.5)}, {"mean": 1.5}),
    "keys that are no texts": (
        {1: "a", AT: "b", Size.LARGE: "c"},
        {"1": "a", "2026-01-02T03:04:00Z": "b", "large": "c"},
    ),
}


@pytest.mark.parametrize(("value", "output"), CONVERTED.values(), ids=CONVERTED)
@pytest.mark.parametrize("effect", ["read", "write"])
async def test_what_pydantic_converts_is_converted(value: Any, output: Any, effect: str) -> None:
    assert await executed(giving(value, effect)) == ToolResult(output=output)


async def test_metadata_is_converted_too() -> None:
    assert (await executed(giving(ToolResult(metadata={"at": AT})))).metadata == {"at": "2026-01-02T03:04:00Z"}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class Exploding(dict[str, Any]):
    """As a dict is that another thread changes."""

    def items(self) -> Any:
        raise RuntimeError("dictionary changed size during iteration")

    __iter__ = keys = items


class Exiting(dict[str, Any]):
    def items(self) -> Any:
        sys.exit(3)

    __iter__ = keys = items


LOST: dict[str, tuple[Any, str]] = {
    "NaN": ({"a": float("nan")}, "/a is not a finite number"),
    "NaN of a dataclass": (Receipt(1, float("nan")), "/at is not a finite number"),
    "infinity": ([float("inf")], "/0 is not a finite number"),
    "large integer": (2**64, "integer outside"),
    "bytes that are no text": ({"a": b"\xff"}, "/a is of type bytes"),
    "two keys that become one": ({1: "a", "1": "b"}, "two keys that are the same text"),
    "small integer": (-(2**63) - 1, "integer outside"),
    "lone surrogate": ("\ud800", "lone surrogate"),
    "lone surrogate in a key": ({"\ud800": 1}, "lone surrogate"),
    "deep": (deep(65), "more than 64 levels"),
    "an object": ([1, object()], "/1 is of type object"),
    "an object in a dataclass": ({"r": Receipt(1, object())}, "/r is of type Receipt"),
    "an object whose conversion fails": ({"x": Hostile()}, "/x is of type Hostile"),
    "what may never end": ({"n": itertools.count()}, "/n is of type count"),
    "an object that cannot be read": ({"x": Exploding(a=1)}, "reading it failed: RuntimeError"),
    "an object that ends the program": ({"x": Exiting(a=1)}, "reading it failed: SystemExit"),
}


@pytest.mark.parametrize(("value", "why"), LOST.values(), ids=LOST)
async def test_a_write_whose_result_is_no_json_was_made_and_is_no_failure(value: Any, why: str) -> None:
    result = await executed(giving(value))
    assert (result.success, result.error) == (True, None)
    assert MADE in result.output
    assert why in result.output
    assert "again" not in result.output
    assert "hunter2" not in result.output


@pytest.mark.parametrize(("value", "why"), LOST.values(), ids=LOST)
async def test_a_read_whose_result_is_no_json_has_failed(value: Any, why: str) -> None:
    result = await executed(giving(value, "read"))
    assert (result.success, result.output) == (False, None)
    assert why in str(result.error)
    assert str(result.error).isprintable()


async def test_output_64_levels_deep_is_json() -> None:
    assert (await executed(giving(deep(64)))).output == deep(64)


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


BROKEN = "breaks its output_schema: /n must be an integer"


async def test_a_write_whose_result_breaks_its_schema_was_made() -> None:
    assert (await executed(giving({"n": 1, "more": 2}, output_schema=SCHEMA))).output == {"n": 1, "more": 2}
    result = await executed(giving({"n": "1"}, output_schema=SCHEMA))
    assert result.success
    assert MADE in result.output
    assert BROKEN in result.output


async def test_a_read_whose_result_breaks_its_schema_has_failed() -> None:
    result = await executed(giving({"n": "1"}, "read", output_schema=SCHEMA))
    assert (result.success, result.output) == (False, None)
    assert BROKEN in str(result.error)


async def test_the_effect_of_these_arguments_decides() -> None:
    effect = {"argument": "op", "read": ["load"]}
    registry = ToolRegistry([giving(object(), effect)])
    assert not (await registry.execute("give", {"op": "load"})).success
    assert (await registry.execute("give", {"op": "save"})).success


async def test_a_failure_stays_one_whatever_came_with_it() -> None:
    refused = ToolResult(False, output=object(), error="no such account", metadata={"transient": True, "x": object()})
    assert await executed(giving(refused)) == ToolResult(False, error="no such account", metadata={"transient": True})


@pytest.mark.parametrize("metadata", [None, [], {"x": object()}])
async def test_an_output_is_not_lost_over_metadata(metadata: Any) -> None:
    assert await executed(giving(ToolResult(output={"id": 1}, metadata=metadata))) == ToolResult(output={"id": 1})


async def test_a_tool_may_say_itself_that_its_result_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def pay(args: dict[str, Any], context: ToolContext) -> Any:
        raise ResultError("the receipt cannot be read")

    result = await executed(Tool("pay", "Pays.", ANY, pay))
    assert result.success
    assert f"{MADE}: the receipt cannot be read" in result.output
    assert "pay" in caplog.text
    result = await executed(Tool("pay", "Pays.", ANY, pay, effect="read"))
    assert (result.success, result.error) == (False, "the receipt cannot be read")


async def test_a_typed_function_may_give_what_pydantic_cannot_write() -> None:
    paid: list[int] = []

    @tool
    def pay(amount: int) -> Order:
        """Pays."""
        paid.append(amount)
        return Order(number=1, at=object())

    result = await ToolRegistry([pay]).execute("pay", {"amount": 5})
    assert (result.success, paid) == (True, [5])
    assert MADE in result.output


async def test_what_a_function_yields_is_its_result() -> None:
    done: list[int] = []

    @tool
    def pay_all(amounts: list[int]) -> Any:
        """Pays."""
        for amount in amounts:
            done.append(amount)
            yield {"paid": amount}

    @tool
    async def follow(count: int) -> AsyncIterator[int]:
        """Follows."""
        for number in range(count):
            yield number

    registry = ToolRegistry([pay_all, follow])
    assert (await registry.execute("pay_all", {"amounts": [1, 2]})).output == [{"paid": 1}, {"paid": 2}]
    assert done == [1, 2]
    assert (await registry.execute("follow", {"count": 2})).output == [0, 1]


async def test_what_an_async_function_leaves_undone_is_done() -> None:
    """Else a write would be told as made, which nobody has begun."""
    done: list[str] = []

    def work() -> Iterator[str]:
        done.append("work")
        yield "worked"

    async def work_async() -> AsyncIterator[str]:
        done.append("async")
        yield "worked"

    async def forgotten() -> str:
        done.append("awaited")
        return "worked"

    made = {"work": work, "work_async": work_async, "forgotten": forgotten}

    @tool
    async def begin(what: str) -> Any:
        """Begins."""
        return made[what]()

    registry = ToolRegistry([begin])
    assert (await registry.execute("begin", {"what": "work"})).output == ["worked"]
    assert (await registry.execute("begin", {"what": "work_async"})).output == ["worked"]
    assert (await registry.execute("begin", {"what": "forgotten"})).output == "worked"
    assert done == ["work", "async", "awaited"]


async def test_what_has_no_end_is_read_no_longer_than_its_call() -> None:
    ended = threading.Event()

    @tool(effect="read")
    def count() -> Any:
        """Counts."""
        try:
            yield from itertools.count()
        finally:
            ended.set()

    result = await ToolRegistry([count]).execute("count", {}, ToolContext(deadline_s=0.01))
    assert (result.success, result.metadata["cut_off"]) == (False, True)
    assert ended.wait(5)


async def test_very_many_items_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utools.call_results.MOST_YIELDED", 3)

    @tool
    async def count() -> AsyncIterator[int]:
        """Counts."""
        for number in itertools.count():
            yield number

    result = await ToolRegistry([count]).execute("count", {})
    assert result.success
    assert f"{MADE}: it gives more than 3 items" in result.output


def paying(paid: list[str]) -> Tool:
    def pay(args: dict[str, Any], context: ToolContext) -> Any:
        paid.append(args["q"])
        return object()

    return Tool("look", "Pays.", Q, pay)


async def test_the_model_is_told_that_the_write_was_made() -> None:
    paid: list[str] = []
    asked: list[str] = []
    replies: Iterator[str] = iter([action(), final()])

    def reply(messages: Any) -> str:
        asked.append(str(messages[-1]["content"]))
        return next(replies)

    config = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "Go.", "max_repairs": 0}
    output = await run_agent(config, registry=ToolRegistry([paying(paid)]), model=ScriptedModel(reply))
    assert (output.finish_reason, len(paid)) == ("final", 1)
    assert MADE in asked[-1]
    assert "try" not in asked[-1].lower()
    assert output.trace[0]["error"] is None


async def test_a_node_is_not_retried_over_a_lost_result_and_its_error_edge_is_not_taken() -> None:
    paid: list[str] = []
    registry = ToolRegistry([dataclasses.replace(paying(paid), idempotent=True), giving("fallback", "read")])
    flow = {
        "id": "w",
        "nodes": [
            {"id": "pay", "tool": "look", "config": {"q": "x"}, "retry": {"max_attempts": 3}},
            {"id": "instead", "tool": "give"},
        ],
        "edges": [{"from": "pay", "to": "instead", "on": "error"}],
    }
    result = await Engine(registry, store=MemoryRunStore()).run(load_workflow(flow))
    assert (result.status, result.path, paid) == ("completed", ["pay"], ["x"])
    assert MADE in result.outputs["pay"]
