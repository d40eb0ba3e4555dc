"""log_transform: lines of several formats become fields, which are filtered and counted."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utools import ToolContext, ToolRegistry
from utools.builtin.log_transform import log_transform, parsed, transformed

DATA = Path(__file__).parents[2] / "fixtures" / "data"

LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (
        "2026-01-12T08:03:12Z WARN  payment slow order=1002 ms=2310",
        {"time": "2026-01-12T08:03:12Z", "level": "warning", "order": "1002", "ms": "2310"},
    ),
    "brackets": ("[2026-01-12 08:03:12,250] [ERROR] it broke", {"level": "error", "message": "it broke"}),
    "json": (
        '{"ts":"2026-01-12T08:00:00Z","severity":"FATAL","msg":"out","n":1}',
        {"time": "2026-01-12T08:00:00Z", "level": "critical", "message": "out", "n": 1},
    ),
    "logfmt": ('level=info msg="a b" user=ann', {"level": "info", "message": "a b", "user": "ann"}),
    "access": (
        '10.0.0.1 - ann [12/Jan/2026:08:00:00 +0000] "GET /a?b HTTP/1.1" 404 12 "-" "curl"',
        {"host": "10.0.0.1", "method": "GET", "path": "/a?b", "status": "404", "size": "12"},
    ),
    "anything": ("  at Foo.bar(Baz.java:7)", {"message": "  at Foo.bar(Baz.java:7)"}),
    "broken_json": ('{"a":', {"message": '{"a":'}),
}


@pytest.mark.parametrize(("line", "fields"), LINES.values(), ids=LINES)
def test_a_line_becomes_fields(line: str, fields: dict[str, Any]) -> None:
    assert fields.items() <= parsed(line).items()


async def called(**args: Any) -> Any:
    result = await ToolRegistry([log_transform(DATA)]).execute("log_transform", args, ToolContext())
    return result.output if result.success else result.error


async def test_a_file_is_filtered_and_counted() -> None:
    told = await called(path="logs/app.log", count_by="level", limit=1)
    assert told["total"] == told["matched"] == sum(told["counts"].values())
    bad = await called(path="logs/app.log", level="warning")
    assert {line["level"] for line in bad["lines"]} <= {"warning", "error", "critical"}
    assert 0 < bad["matched"] < told["total"]
    one = await called(path="logs/app.log", where={"order": "1003"}, contains="FAILED")
    assert [line["code"] for line in one["lines"]] == ["timeout"]
    early = await called(path="logs/app.log", until="2026-01-12T08:03:12Z", since="2026-01-12T09:00:07+01:00")
    assert [line["message"] for line in early["lines"]] == ["order 1001 accepted"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "give either"),
        ({"path": "logs/app.log", "text": "x"}, "give either"),
        ({"path": "../secret"}, "does not lie inside"),
        ({"text": "x", "since": "yesterday"}, "since must be a time in ISO 8601"),
        ({"text": "x", "level": "loud"}, "level"),
    ],
)
async def test_what_cannot_be_done_is_said(args: dict[str, Any], told: str) -> None:
    assert told in str(await called(**args))


def test_only_the_last_lines_are_given_and_long_ones_are_cut() -> None:
    told = transformed("\n".join(f"line {i}" for i in range(200)) + "\n" + "x" * 20_000, {"limit": 2})
    assert (told["total"], told["lines"][0]["message"], len(told["lines"][1]["message"])) == (201, "line 199", 8192)
    assert transformed("a\nb", {"limit": 0})["lines"] == []


@given(st.text(max_size=200))
def test_any_text_is_lines(text: str) -> None:
    told = transformed(text, {"count_by": "level", "contains": "a", "since": "2026-01-01T00:00:00Z"})
    assert told["matched"] <= told["total"]
