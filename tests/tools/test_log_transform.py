"""log_transform: lines of several formats become fields, which are filtered and counted."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.growth import growth
from utools import ToolContext, ToolError, ToolRegistry
from utools.builtin.log_transform import MAX_BYTES, log_transform, parse_line, transform

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
    "number_that_json_has_not": ('{"a":1e999}', {"message": '{"a":1e999}'}),
    "number_too_large": (f'{{"a":{"9" * 30}}}', {"message": f'{{"a":{"9" * 30}}}'}),
    "half_a_character": (r'{"a":"\ud800"}', {"message": r'{"a":"\ud800"}'}),
    "quotes_in_a_value": (r'msg="say \"no\"" n=1', {"message": 'say "no"', "n": "1"}),
    "quote_without_an_end": ('a="b c=1', {"a": '"b', "c": "1"}),
    "empty_values": ('a="" b= c=1', {"a": "", "b": "", "c": "1"}),
    "name_within_a_word": ("1abc=2 -x=3 é=4 ok=5", {"message": "1abc=2 -x=3 é=4 ok=5", "ok": "5"}),
    "request_without_a_version": ('h - u [t] "GET /a" 200 -', {"path": "/a", "status": "200", "size": "-"}),
    "quote_in_a_request": (r'h - u [t] "GET /\"a HTTP/1.1" 200 -', {"path": r"/\"a", "status": "200"}),
}


@pytest.mark.parametrize(("line", "fields"), LINES.values(), ids=LINES)
def test_a_line_becomes_fields(line: str, fields: dict[str, Any]) -> None:
    assert fields.items() <= parse_line(line).items()


def test_no_field_is_named_by_a_piece_of_a_word() -> None:
    assert set(parse_line("1abc=2 -x=3 é=4 " + "n" * 65 + "=5")) == {"message"}


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


def told_of(text: str, **args: Any) -> dict[str, Any]:
    return transform(io.StringIO(text, newline=None), args)


def test_only_the_last_lines_are_given_and_long_ones_are_cut() -> None:
    told = told_of("\n".join(f"line {i}" for i in range(200)) + "\n" + "x" * 20_000, limit=2)
    assert (told["total"], told["lines"][0]["message"], len(told["lines"][1]["message"])) == (201, "line 199", 8192)
    assert told_of("a\nb", limit=0) == {"total": 2, "matched": 2, "lines": []}


@pytest.mark.parametrize("length", [8191, 8192, 8193, 16_384, 16_385])
def test_a_long_line_is_one_line(length: int) -> None:
    told = told_of(f"{'x' * length}\r\n\r\nafter")
    assert [line["message"] for line in told["lines"]] == ["x" * min(length, 8192), "after"]


async def test_a_line_that_json_cannot_hold_does_not_hide_the_others() -> None:
    told = await called(text='{"a":NaN}\n{"n":1}\n{"a":' + "[" * 63 + "]" * 63 + "}")
    assert (told["matched"], told["lines"][0], told["lines"][1]["n"]) == (3, {"message": '{"a":NaN}'}, 1)


async def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "app.log").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    result = await ToolRegistry([log_transform(tmp_path)]).execute("log_transform", {"path": "app.log"}, ToolContext())
    assert result.error == "'app.log' has 33554433 bytes, and at most 33554432 are read; give a smaller file"


@pytest.mark.exhaustive
async def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    line = "2026-01-12T08:03:12Z WARN payment slow order=1002\n"
    (tmp_path / "app.log").write_text(line * 40_000)
    registry = ToolRegistry([log_transform(tmp_path)])
    tracemalloc.start()
    try:
        result = await registry.execute("log_transform", {"path": "app.log", "count_by": "order"}, ToolContext())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.output["counts"] == {"1002": 40_000}
    assert peak < 2 * len(line) * 40_000


def test_a_field_with_a_value_of_its_own_in_each_line_is_not_counted() -> None:
    assert len(told_of("\n".join(f"n={i}" for i in range(100_000)), count_by="n")["counts"]) == 100
    with pytest.raises(ToolError, match="the field 'n' has more than 100000 different values; count by one"):
        told_of("\n".join(f"n={i}" for i in range(100_001)), count_by="n")


HOSTILE = ["a", "a.", "a=", 'a="', 'a="\\', '\\"', "=", " ", '"', "[", "2026-01-01 ", 'h - u [t] "GET /', "{", '{"a":']


@pytest.mark.sampled
@pytest.mark.parametrize("part", HOSTILE)
@pytest.mark.parametrize("start", ["", 'h - u [t] "GET /', "2026-01-01T00:00:00 info ", '{"a":'])
def test_looking_at_a_line_grows_with_it_and_no_faster(start: str, part: str) -> None:
    lines = (start + part * (size // len(part)) for size in (20_000, 80_000))
    assert growth(parse_line, *lines) < 10


@given(st.text(max_size=200))
def test_any_text_is_lines(text: str) -> None:
    told = told_of(text, count_by="level", contains="a", since="2026-01-01T00:00:00Z")
    assert told["matched"] <= told["total"]


async def test_reading_ends_with_the_time_of_its_call() -> None:
    registry = ToolRegistry([log_transform(DATA)])
    result = await registry.execute("log_transform", {"text": "a\n"}, ToolContext(deadline_s=0.0))
    assert result.error == "not done within 0 seconds; ask for less"


def test_reading_is_stopped_in_the_middle() -> None:
    looks: list[None] = []

    def check() -> None:
        looks.append(None)
        if len(looks) == 3:
            raise ToolError("enough")

    with pytest.raises(ToolError, match="enough"):
        transform(io.StringIO("a\n" * 1_000_000), {}, check)


async def test_what_a_line_must_hold_is_no_longer_than_a_line() -> None:
    assert "/contains" in str(await called(text="a\n", contains="x" * 8193))
    told = await called(text="Straße\nstrasse\nx", contains="STRASSE")
    assert told["matched"] == 2
