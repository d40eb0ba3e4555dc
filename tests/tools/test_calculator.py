"""calculator: exact where numbers are, safe whatever the expression."""

from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from agent_core.protocol.step_schema import step_schema
from utools import ToolError, ToolRegistry
from utools.builtin.calculator import calculate, calculator


@pytest.mark.parametrize(
    ("operation", "numbers", "expected"),
    [
        ("sum", [19.99, 5.01, 100], 125),
        ("sum", [], 0),
        ("count", [1, 1, 1], 3),
        ("count", [], 0),
        ("mean", [1, 2, 3, 4, 5], 3),
        ("mean", [1, 2], 1.5),
        ("mean", [0.1, 0.2, 0.3], 0.2),
        ("median", [3, 1, 2], 2),
        ("median", [4, 1, 3, 2], 2.5),
        ("max", [1, 2.5, -3], 2.5),
        ("min", [1, 2.5, -3], -3),
        ("sum", [1e308, -1e308, 1], 1),
    ],
)
def test_statistics_of_numbers(operation: str, numbers: list[float], expected: float) -> None:
    result = calculate({"operation": operation, "numbers": numbers})
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0.1 + 0.2", 0.3),
        ("1.10 * 3", 3.3),
        ("(1 + 2) * 3 - -4", 13),
        ("7 / 2", 3.5),
        ("8 / 2", 4),
        ("7 // 2", 3),
        ("-7 % 3", 2),
        ("5.5 % 2", 1.5),
        ("2 ** 10", 1024),
        ("2 ** -2", 0.25),
        ("2 ** 0.5", 1.4142135623730951),
        ("2 ** 70", 2.0**70),
        ("1e3 + 1_000", 2000),
        ("  1 +\n 2 ", None),
        ("10 ** 400 / 10 ** 399", 10),
        ("1 / 3", 1 / 3),
    ],
)
def test_arithmetic(expression: str, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(ToolError, match="not an arithmetic expression"):
            calculate({"expression": expression})
    else:
        result = calculate({"expression": expression})
        assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param("1 / 0", "division by zero", id="division"),
        pytest.param("1 // 0", "division by zero", id="floor division"),
        pytest.param("1 % 0", "division by zero", id="remainder"),
        pytest.param("0 ** -1", "division by zero", id="power"),
        pytest.param("9 ** 9 ** 9", "exponent may be at most", id="tower"),
        pytest.param("99999999 ** 1000", "too large", id="power of a large number"),
        pytest.param("*".join(["2**1000"] * 12), "too large", id="product of powers"),
        pytest.param("10 ** 400", "too large", id="beyond a float"),
        pytest.param("1e400", "only numbers", id="infinite literal"),
        pytest.param("(-8) ** 0.5", "negative number", id="root of a negative number"),
        pytest.param("__import__('os')", "only numbers", id="call"),
        pytest.param("(1).real", "only numbers", id="attribute"),
        pytest.param("1 if 1 else 2", "only numbers", id="condition"),
        pytest.param("[1]", "only numbers", id="list"),
        pytest.param("2 ^ 3", r"\*\* is the power", id="caret"),
        pytest.param("(1)(2)", "only numbers", id="call of a number"),
        pytest.param("1 +", "not an arithmetic expression", id="unfinished"),
        pytest.param("", "not an arithmetic expression", id="empty"),
        pytest.param("(" * 500 + ")" * 500, "not an arithmetic|nested too deeply", id="parentheses"),
        pytest.param("1" * 1001, "at most 1000", id="long"),
        pytest.param("e", "only numbers", id="a name of allowed letters"),
    ],
)
def test_expression_without_a_value_says_why(expression: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        calculate({"expression": expression})


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"operation": "sum"},
        {"numbers": [1]},
    ],
)
def test_one_whole_form_must_be_given(args: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="or else both"):
        calculate(args)


ABSENT = "must be absent: nothing is allowed here, got"
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, ["/expression is required but missing."]),
    "numbers alone": ({"numbers": [1]}, ["/operation is required but missing."]),
    "an operation alone": ({"operation": "sum"}, ["/numbers is required but missing."]),
    "both forms": (
        {"expression": "1", "operation": "sum", "numbers": [1]},
        [f'/operation {ABSENT} "sum".', f"/numbers {ABSENT} [1]."],
    ),
    "an expression with an operation": ({"expression": "1", "operation": "sum"}, [f'/operation {ABSENT} "sum".']),
    "an expression with numbers": ({"expression": "1", "numbers": []}, [f"/numbers {ABSENT} []."]),
    "another name": (
        {"expression": "1", "digits": 2},
        ["/digits is not a known property (known: expression, numbers, operation), got 2."],
    ),
    "an unknown operation": (
        {"operation": "avg", "numbers": [1]},
        ['/operation must be one of ["mean", "max", "min", "sum", "count", "median"], got "avg".'],
    ),
    "numbers as text": (
        {"operation": "sum", "numbers": ["1", "2", "3", "4"]},
        [f'/numbers/{index} must be a number, got "{index + 1}".' for index in range(4)],
    ),
}


@pytest.mark.parametrize(("args", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_whole_form_is_refused_by_the_schema(args: dict[str, Any], told: list[str]) -> None:
    assert [fault.message for fault in ToolRegistry([calculator()]).validate("calculator", args)] == told


def constraint() -> dict[str, Any]:
    """What a constrained model is held to when it calls the calculator."""
    schema = ToolRegistry([calculator()])._schema("calculator").schema
    return cast(dict[str, Any], step_schema([("calculator", schema)])["anyOf"][0]["properties"]["args"])


@pytest.mark.parametrize(("args", "told"), REFUSED.values(), ids=REFUSED)
def test_a_constrained_model_cannot_write_what_is_refused(args: dict[str, Any], told: list[str]) -> None:
    assert not Draft202012Validator(constraint()).is_valid(args)


@pytest.mark.parametrize("args", [{"expression": "1 + 1"}, {"operation": "sum", "numbers": [1, 2]}])
def test_a_constrained_model_can_write_each_form(args: dict[str, Any]) -> None:
    assert Draft202012Validator(constraint()).is_valid(args)
    assert ToolRegistry([calculator()]).validate("calculator", args) == []


def test_the_constraint_is_made_of_whole_objects() -> None:
    """Engines that make a grammar of a schema read each alternative alone, and know no dependencies."""
    form = constraint()
    assert form.keys() == {"type", "anyOf", "examples"}
    assert [(list(each["properties"]), each["required"]) for each in form["anyOf"]] == [
        (["operation", "numbers"], ["operation", "numbers"]),
        (["expression"], ["expression"]),
    ]
    assert all(each["additionalProperties"] is False for each in form["anyOf"])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("max(3, 5, 4) - 1", 4),
        ("mean(1, 2) * 2", 3),
        ("sum(1, count(7, 8), -median(1, 9, 2))", 1),
        ("min(2 ** 3, 9)", 8),
    ],
)
def test_an_expression_may_hold_the_operations(expression: str, value: float) -> None:
    assert calculate({"expression": expression}) == value


@pytest.mark.parametrize("expression", ["max()", "mean", "open(1)", "max(1)(2)", "sum(*1)", "max(n=1)", "maxmin(1)"])
def test_nothing_else_is_called(expression: str) -> None:
    with pytest.raises(ToolError):
        calculate({"expression": expression})


@pytest.mark.parametrize("operation", ["mean", "median", "max", "min"])
def test_statistics_of_nothing_are_an_error(operation: str) -> None:
    with pytest.raises(ToolError, match="at least one number"):
        calculate({"operation": operation, "numbers": []})


def test_numbers_as_text_are_refused() -> None:
    faults = ToolRegistry([calculator()]).validate("calculator", {"operation": "avg", "numbers": ["1", True]})
    assert [fault.pointer for fault in faults] == ["/operation", "/numbers/0", "/numbers/1"]
