"""formatter: what it writes, and templates that try to get out or never end."""

import asyncio
import re
import sys
from typing import Any

import pytest

from utools import ToolContext, ToolRegistry
from utools.builtin.formatter import SCHEMA, formatter


async def called(**args: Any) -> str:
    result = await ToolRegistry([formatter()]).execute("formatter", args, ToolContext())
    return str(result.output if result.success else f"error: {result.error}")


WRITTEN: list[tuple[dict[str, Any], str]] = [
    ({"number": 1234567.891}, "1,234,567.89"),
    ({"number": 1234567.891, "style": "plain", "decimals": 0}, "1234568"),
    ({"number": 0.1234, "style": "percent", "decimals": 1}, "12.3%"),
    ({"date": "2026-01-31T08:00:00Z", "timezone": "Asia/Shanghai"}, "2026-01-31 16:00"),
    ({"date": "2026-01-31", "pattern": "%d.%m.%Y"}, "31.01.2026"),
    ({"rows": [{"a": 1, "b": "x|y"}, {"a": [2], "c": "two\nlines"}]},
     "| a | b | c |\n| --- | --- | --- |\n| 1 | x\\|y |  |\n| [2] |  | two lines |"),
    ({"rows": [{"a": 1, "b": 2}], "columns": ["b"]}, "| b |\n| --- |\n| 2 |"),
    ({"rows": []}, ""),
    ({"template": "Dear {{ name }}, {% for i in items %}{{ i }};{% endfor %}", "data": {"name": "雪", "items": [1, 2]}},
     "Dear 雪, 1;2;"),
    ({"template": "{{ total | round(1) }}", "data": {"total": 2.26}}, "2.3"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "text"), WRITTEN, ids=[str(args)[:50] for args, _ in WRITTEN])
async def test_a_value_is_written(args: dict[str, Any], text: str) -> None:
    assert await called(**args) == text


async def test_a_template_is_written_where_a_system_takes_no_bound_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS takes none."""
    refused = """
import resource
set_limit = resource.setrlimit
def refuse_memory(kind, limits):
    if kind == resource.RLIMIT_AS:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(kind, limits)
resource.setrlimit = refuse_memory
"""
    module = sys.modules[formatter.__module__]  # its package gives the function by this name
    program = refused + module._read_program()
    monkeypatch.setattr(module, "_read_program", lambda: program)
    assert await called(template="Dear {{ name }}", data={"name": "Ann"}) == "Dear Ann"


def test_a_template_is_written_in_the_event_loop_of_a_server() -> None:
    """Whose transports are no instances of those of asyncio."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        text = runner.run(asyncio.wait_for(called(template="Dear {{ name }}", data={"name": "雪"}), 20))
    assert text == "Dear 雪"


LONG = {"letters": "x", "Chinese": "雪", "four bytes": "𝄞", "escaped in JSON": "\x01", "a quote": '"'}


@pytest.mark.sampled
@pytest.mark.parametrize("char", LONG.values(), ids=LONG)
async def test_a_text_may_be_as_long_as_the_schema_says_whatever_it_is_written_in(char: str) -> None:
    longest = int(re.findall(r"\d+", SCHEMA["properties"]["template"]["description"])[0])
    assert await called(template="{{ c * n }}", data={"c": char, "n": longest}) == char * longest
    told = await called(template="{{ c * n }}", data={"c": char, "n": longest + 1})
    assert told == f"error: the template cannot be rendered: it makes {longest + 1} characters, of {longest} at most"


@pytest.mark.parametrize("language", ["C", "POSIX", "de_DE.ISO-8859-1", "en_US.UTF-8"])
async def test_a_text_is_the_same_in_every_locale(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", language)
    assert await called(template="雪 {{ c }}", data={"c": "ü𝄞"}) == "雪 ü𝄞"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "give one of"),
    ({"number": 1, "date": "now"}, "give one of"),
    ({"date": "tomorrow"}, "no time in ISO 8601"),
    ({"date": "now", "timezone": "Mars/Olympus"}, "no time zone"),
    ({"date": "now", "timezone": "../../etc/passwd"}, "no time zone"),
    ({"date": "0001-01-01T00:00:00+00:00", "timezone": "America/New_York"}, "cannot be written"),
    ({"template": "{{ nobody }}"}, "'nobody' is undefined"),
    ({"template": "{% if %}"}, "cannot be rendered"),
    ({"template": "{{ 1 / 0 }}"}, "division by zero"),
    ({"template": r"{{ '\ud800' }}"}, "it makes a text with a lone surrogate"),
    ({"template": r"{{ {}['\ud800'] }}"}, "has no attribute '\\ud800'"),
    ({"template": "{{ " + "x" * 60_000 + " }}"}, "x…"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("args", "told"), WRONG, ids=[str(args)[:50] for args, _ in WRONG])
async def test_what_is_wrong_is_said(args: dict[str, Any], told: str) -> None:
    assert told in await called(**args)


LARGE: dict[str, dict[str, Any]] = {
    "columns": {"rows": [{}] * 1000, "columns": ["a" * 9] * 1000},
    "columns_of_rows": {"rows": [dict.fromkeys(map(str, range(2000)), 1)] * 200},
    "spaces": {"rows": [{"a": " " * 100_000}], "columns": ["a"] * 1000},
}


@pytest.mark.sampled
@pytest.mark.parametrize("args", LARGE.values(), ids=LARGE)
async def test_a_table_has_an_end(args: dict[str, Any]) -> None:
    assert "the table has more than 1048576 characters; give fewer rows or columns" in await called(**args)


async def test_a_table_has_no_more_columns_than_it_may() -> None:
    assert "/columns" in await called(rows=[{}], columns=["a"] * 1001)
    assert (await called(rows=[{}] * 1000, columns=["a"] * 100)).count("\n") == 1001


HOSTILE = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ self.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ request.application.__globals__ }}",
    "{{ lipsum.__globals__['os'].environ }}",
    "{{ ''|attr('__class__') }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(x) }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os }}",
    "{{ x.append(1) }}",
    "{{ namespace.__init__.__globals__ }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'x' * 10 ** 10 }}",
    "{% set x = 'x' * 10 ** 6 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "{{ 10 ** (10 ** 10) }}",
    "{{ range(10 ** 9) | list }}",
    "{{ 'x' | center(10 ** 10) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ lipsum(n=100000) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
]


SLOW = ("{{ 10 ** (10 ** 10) }}", "{{ lipsum(n=100000) }}")
"""Those that end like another one, by the limit of processor time."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "template", [pytest.param(each, marks=pytest.mark.exhaustive) if each in SLOW else each for each in HOSTILE]
)
async def test_a_template_does_not_get_out_and_has_an_end(template: str) -> None:
    text = await called(template=template, data={"x": [1]})
    assert text.startswith("error: the template"), text
    assert "root:" not in text
    assert "PATH" not in text
