"""json_transform and the metered JMESPath below it."""

import itertools
from time import monotonic
from typing import Any

import pytest

from utools import ToolError, ToolRegistry
from utools.builtin.json_transform import json_transform, transform
from utools.query import QueryError, query

PEOPLE = {"people": [{"name": "Ada", "age": 36}, {"name": "Bo", "age": 3}]}


def test_values_without_an_order_compare_to_null() -> None:
    assert query("p < `5`", {"p": "12"}, clock=lambda: 0.0) is None
    assert query("p[?a > `1`]", {"p": [{"a": 2}, {"a": "x"}]}, clock=lambda: 0.0) == [{"a": 2}]
    with pytest.raises(QueryError, match="does not fit its data"):
        query("max_by(@, &a)", [{"a": 1}, {"a": "x"}], clock=lambda: 0.0)


@pytest.mark.parametrize(
    ("data", "expression", "expected"),
    [
        pytest.param(PEOPLE, "people[?age > `30`].name", ["Ada"], id="filter"),
        pytest.param(PEOPLE, "{n: length(people), sum: sum(people[].age)}", {"n": 2, "sum": 39}, id="reshape"),
        pytest.param('{"a": [1, 2]}', "a[-1]", 2, id="data as text"),
        pytest.param({"a": 1}, "b", None, id="nothing there"),
        pytest.param([3, 1, 2], "sort(@)", [1, 2, 3], id="function"),
    ],
)
async def test_expression_selects(data: Any, expression: str, expected: Any) -> None:
    result = await ToolRegistry([json_transform()]).execute("json_transform", {"data": data, "expression": expression})
    assert (result.success, result.output) == (True, expected)


@pytest.mark.parametrize(
    ("data", "expression", "why"),
    [
        pytest.param({}, "a[", "JMESPath: .*Error", id="unfinished"),
        pytest.param({}, "nope(@)", "Unknown function", id="unknown function"),
        pytest.param({}, "sum(@)", "JMESPathTypeError", id="wrong type"),
        pytest.param("{", "@", "not JSON", id="text that is not JSON"),
        pytest.param("[" * 100_000, "@", "not JSON", id="text nested too deeply"),
        pytest.param("[" + "1," * 2**20 + "1]", "@", "larger than 2 MiB", id="large text"),
        pytest.param({}, "(" * 900 + "@" + ")" * 900, "nested too deeply", id="deep expression"),
        pytest.param(["x" * 2**20], "@", "larger than 1 MiB", id="large result"),
    ],
)
def test_what_cannot_be_transformed_says_why(data: Any, expression: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        transform(data, expression)


DOUBLING = [
    pytest.param("|".join(["[@,@]"] * 300), id="shared structure"),
    pytest.param("|".join(["[@,@]"] * 300) + "|to_string(@)", id="written out"),
    pytest.param("|".join(["[@,@][]"] * 200), id="flattened"),
    pytest.param("|".join(["join('',[to_string(@),to_string(@)])"] * 50), id="text"),
    pytest.param("|".join(["{a:@,b:@}"] * 200) + "|@==@", id="compared"),
]


@pytest.mark.sampled
@pytest.mark.parametrize("expression", DOUBLING)
def test_expression_that_doubles_its_result_is_stopped(expression: str) -> None:
    with pytest.raises(QueryError, match="yields too much"):
        query(expression, [1, 2], clock=monotonic)


def test_query_is_stopped_by_the_clock() -> None:
    clock = itertools.count(step=3.0)
    with pytest.raises(QueryError, match="longer than 5 s"):
        query("a.b.c", {"a": {"b": {"c": 1}}}, clock=lambda: next(clock))


def test_ordinary_work_on_large_data_is_within_the_bounds() -> None:
    rows = [{"id": number, "tags": ["x", "y"]} for number in range(20_000)]
    assert query("length([?contains(tags, 'y')].{i: id, t: tags})", rows, clock=monotonic) == 20_000
