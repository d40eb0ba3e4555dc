"""Tool, ToolContext and @tool."""

import enum
import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from support.signatures import read_section
from utools import DefinitionError, Tool, ToolContext, ToolError, ToolRegistry, ToolResult, tool
from utools.docstring import read_docstring


async def nothing(args: dict[str, Any], context: ToolContext) -> None:
    """Does nothing."""


def made(**changes: Any) -> Tool:
    given = {"code": "t", "description": "d", "config_schema": {"type": "object"}, "execute": nothing}
    return Tool(**{**given, **changes})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"code": ""}, id="empty code"),
        pytest.param({"code": "a b"}, id="space in the code"),
        pytest.param({"code": "a\n"}, id="newline after the code"),
        pytest.param({"code": "é"}, id="letter that is not ASCII"),
        pytest.param({"code": "x" * 129}, id="long code"),
        pytest.param({"description": None}, id="description that is no text"),
        pytest.param({"config_schema": []}, id="schema is no object"),
        pytest.param({"config_schema": {"type": "array"}}, id="schema of no object"),
        pytest.param({"execute": None}, id="nothing to execute"),
        pytest.param({"effect": "delete"}, id="unknown effect"),
        pytest.param({"effect": {"argument": "op"}}, id="half a mapping"),
        pytest.param({"effect": {"argument": "op", "read": "load"}}, id="reads are no list"),
        pytest.param({"cache": {"ttl": 0}}, id="cache that keeps nothing"),
        pytest.param({"cache": 60}, id="cache that is a number"),
        pytest.param({"cache": {"ttl": 60}}, id="cache of a tool that writes"),
        pytest.param({"cache": {"ttl": 60}, "effect": "nested"}, id="cache of a tool that begins runs"),
        pytest.param({"check": "x"}, id="check that cannot be called"),
        pytest.param({"output_schema": dict}, id="output schema that is a class"),
    ],
)
def test_unsound_tool_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        made(**change)


def test_code_may_hold_128_of_the_allowed_characters() -> None:
    code = "aZ0_-.:".ljust(128, "x")
    assert made(code=code).code == code


def test_tool_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        made().code = "other"


def failing(args: dict[str, Any]) -> Any:
    raise KeyError("method")


BY_OP = {"argument": "op", "read": ["prepare", "load"]}


@pytest.mark.parametrize(
    ("effect", "args", "expected"),
    [
        pytest.param("read", {}, "read", id="constant"),
        pytest.param("nested", {}, "nested", id="nested"),
        pytest.param(BY_OP, {"op": "load"}, "read", id="data, listed"),
        pytest.param(BY_OP, {"op": "persist"}, "write", id="data, not listed"),
        pytest.param(BY_OP, {}, "write", id="data, absent"),
        pytest.param(BY_OP, {"op": ["load"]}, "write", id="data, of another type"),
        pytest.param(lambda args: "read" if args["m"] == "GET" else "write", {"m": "GET"}, "read", id="function"),
        pytest.param(failing, {}, "write", id="function that raises"),
        pytest.param(lambda args: "harmless", {}, "write", id="function that returns junk"),
        pytest.param(lambda args: ["read"], {}, "write", id="function that returns a list"),
    ],
)
def test_effect_of_args(effect: Any, args: dict[str, Any], expected: str) -> None:
    assert made(effect=effect).effect_of(args) == expected


def test_secret_that_nobody_allowed_says_how_to_allow_it() -> None:
    with pytest.raises(ToolError, match=r"API_TOKEN.*AGENT_CORE_SECRET_ENV"):
        ToolContext().secret("API_TOKEN")


def test_context_does_nothing_by_default() -> None:
    context = ToolContext()
    context.progress("half way", 0.5)
    assert (context.run_id, context.n, context.log.name) == ("", 0, "utools")


class Point(BaseModel):
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@tool(effect="read")
async def draw(
    points: list[Point],
    json: Annotated[str, Field(max_length=3)],
    context: ToolContext,
    colour: Colour = Colour.RED,
    size: float | None = None,
) -> dict[str, Any]:
    """Draw points.

    They appear at once.

    Args:
        points: What to draw,
            in order.
        json (str): A name that pydantic has too.

    Returns:
        How many were drawn.
    """
    return {"drawn": sum(point.x for point in points), "colour": colour.value, "run": context.run_id, "json": json}


def test_signature_becomes_the_schema() -> None:
    schema = draw.config_schema
    assert list(schema["properties"]) == ["points", "json", "colour", "size"]
    assert schema["required"] == ["points", "json"]
    assert schema["properties"]["points"]["description"] == "What to draw, in order."
    assert schema["properties"]["json"] == {
        "description": "A name that pydantic has too.",
        "maxLength": 3,
        "type": "string",
    }
    assert schema["properties"]["colour"]["default"] == "red"
    assert "title" not in str(schema)


def test_docstring_becomes_the_description_without_the_arguments() -> None:
    assert draw.description == "Draw points.\n\nThey appear at once.\n\nReturns:\n    How many were drawn."
    assert (draw.code, draw.effect) == ("draw", "read")


WRITTEN = {
    "a blank before the colon": ("city (str) : The city.", {"city": "The city."}, ""),
    "a type in brackets": ("city (dict(str, int), optional): The city.", {"city": "The city."}, ""),
    "bullets": ("- city: The city.\n* `days`: How many.", {"city": "The city.", "days": "How many."}, ""),
    "options below": (
        "mode: One of:\n    - fast: quick\n    slow: not",
        {"mode": "One of: - fast: quick slow: not"},
        "",
    ),
    "no colon": ("city - The city.\ndays - How many.", {}, "city - The city.\ndays - How many."),
}


@pytest.mark.parametrize(("section", "about", "left"), WRITTEN.values(), ids=WRITTEN)
def test_nothing_that_a_docstring_says_of_arguments_is_lost(section: str, about: dict[str, str], left: str) -> None:
    docstring = "Forecast.\n\nArgs:\n    " + section.replace("\n", "\n    ") + "\n\nReturns:\n    The sky."
    kept = f"Forecast.\n\n{left}\n\nReturns" if left else "Forecast.\n\nReturns"
    assert read_docstring(docstring) == (f"{kept}:\n    The sky.", about)


STYLES = {
    "numpy": """Forecast.

    Look it up first.

    Parameters
    ----------
    city : str, optional
        The city: one
        of ours.

    days, hours : int
        How long.

    Other Parameters
    ----------------
    unit
        Of the temperature.

    Returns
    -------
    str
        The sky.
    """,
    "sphinx": """Forecast.

    Look it up first.

    :param str city: The city: one
        of ours.
    :type city: str
    :arg days: How long.
    :keyword int hours: How long.
    :parameter unit: Of the temperature.
    :returns: The sky.
    """,
    "epytext": """Forecast.

    Look it up first.
    @param city: The city: one
        of ours.
    @param days: How long.
    @param hours: How long.
    @param unit: Of the temperature.
    @type unit: str
    @return: The sky.
    """,
}


@pytest.mark.parametrize(("style", "docstring"), STYLES.items(), ids=STYLES)
def test_docstring_of_another_style_describes_each_argument_too(style: str, docstring: str) -> None:
    text, about = read_docstring(inspect.cleandoc(docstring))
    told = {"city": "The city: one of ours.", "days": "How long.", "hours": "How long.", "unit": "Of the temperature."}
    assert about == told
    ends = {"numpy": "Returns\n-------\nstr\n    The sky.", "sphinx": ":returns: The sky."}
    left = [line for line in text.splitlines() if line]
    assert left == ["Forecast.", "Look it up first.", *ends.get(style, "@return: The sky.").splitlines()]


def test_a_text_among_the_parameters_of_numpy_is_kept() -> None:
    docstring = "Do.\n\nParameters\n----------\nOne of both.\nx : int\n    A.\n\nIt is slow.\n\nNotes\n-----\nNone."
    assert read_docstring(docstring) == ("Do.\n\nOne of both.\nIt is slow.\n\nNotes\n-----\nNone.", {"x": "A."})


def test_docstring_that_only_looks_like_a_style_stays_whole() -> None:
    for text in ("Use :param in SQL.", "Parameters\nof a city: none.", "A table.\n\nName\n----\nParameters", "a: b"):
        assert read_docstring(text) == (text, {})


async def test_a_field_in_place_of_a_default_is_that_of_the_parameter() -> None:
    @tool(effect="read")
    def weather(
        city: str = Field(description="The city.", min_length=2),
        days: int = Field(1, ge=1),
        hours: list[int] = Field(default_factory=lambda: [6]),  # noqa: B008
    ) -> Any:
        """Forecast."""
        return [city, days, hours]

    city, days, _ = weather.config_schema["properties"].values()
    assert city == {"type": "string", "minLength": 2, "description": "The city."}
    assert days == {"type": "integer", "minimum": 1, "default": 1}
    assert weather.config_schema["required"] == ["city"]
    assert (await ToolRegistry([weather]).execute("weather", {"city": "Oslo"})).output == ["Oslo", 1, [6]]


def test_the_text_of_an_annotation_describes_its_parameter() -> None:
    @tool(effect="read")
    def weather(city: Annotated[str, "The city."], days: Annotated[int, Field(ge=1), Doc("How many.")] = 1) -> str:
        """Forecast."""
        return city

    city, days = weather.config_schema["properties"].values()
    assert city == {"type": "string", "description": "The city."}
    assert days == {"type": "integer", "minimum": 1, "default": 1, "description": "How many."}


async def test_function_gets_its_annotated_types_and_the_context() -> None:
    args = {"points": [{"x": 1}, {"x": 2, "y": 5}], "json": "abc", "colour": "blue"}
    result = await ToolRegistry([draw]).execute("draw", args, ToolContext(run_id="r"))
    assert result == ToolResult(output={"drawn": 3, "colour": "blue", "run": "r", "json": "abc"})


def test_nested_models_refuse_unknown_properties_too() -> None:
    faults = ToolRegistry([draw]).validate("draw", {"points": [{"x": 1, "z": 1}], "json": "a", "context": {}})
    assert [fault.pointer for fault in faults] == ["/points/0/z", "/context"]


@tool
def plain() -> Point:
    return Point(x=1)


async def test_bare_decorator_takes_a_sync_function_without_arguments_or_docstring() -> None:
    registry = ToolRegistry([plain])
    assert (plain.description, plain.effect) == ("plain", "write")
    assert [fault.pointer for fault in registry.validate("plain", {"x": 1})] == ["/x"]
    assert (await registry.execute("plain", {})).output == {"x": 1, "y": 0}


def test_options_of_the_decorator_are_those_of_the_tool() -> None:
    cached = tool(code="a.b", description="d", idempotent=True, cache={"ttl": 5}, effect="read")(lambda: None)
    assert (cached.code, cached.description, cached.idempotent, cached.cache) == ("a.b", "d", True, {"ttl": 5})


def untyped(a) -> None:
    """Has a parameter without a type."""


def unlisted(*a: int) -> None:
    """Has parameters without a name."""


def unreadable(a: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Has a type that does not exist."""


def opaque(a: Callable[[], None]) -> None:
    """Has a type that no JSON can hold."""


def named(**a: int) -> None:
    """Has parameters of any name."""


def by_position(a: int, /) -> None:
    """Has a parameter that no name reaches."""


def valued(a: 5) -> None:  # type: ignore[valid-type]
    """Has a value for a type."""


def in_need(context) -> None:
    """Has a context without its type."""


class Database:
    """Has no JSON form."""


def connected(query: str, a: Database) -> None:
    """Has a parameter that no model can give."""


WAYS_OUT: dict[Callable[..., Any], str] = {
    untyped: "the parameter 'a' needs a type, such as a: str",
    valued: "the parameter 'a' has a type without a JSON form, 5; take a str, int, float, bool",
    unlisted: "the parameter '*a' stands for any number of arguments; write a: list[int]",
    named: "the parameter '**a' stands for any number of arguments; write a: dict[str, int]",
    by_position: "the parameter 'a' is positional-only, and calls give arguments by name; remove the / after it",
    unreadable: "the type of the parameter 'a' cannot be read: name 'Missing' is not defined; import it, or correct it",
    opaque: "the parameter 'a' has a type without a JSON form, collections.abc.Callable[[], None]; take a str, int",
    connected: f"the parameter 'a' has a type without a JSON form, {__name__}.Database; take a str, int, float, bool",
}


@pytest.mark.parametrize(("function", "told"), WAYS_OUT.items(), ids=[each.__name__ for each in WAYS_OUT])
def test_signature_that_cannot_be_described_names_its_parameter(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        tool(function)
    assert refused.value.where == f"tools.{function.__name__}.a"
    assert refused.value.message.startswith(told)


def test_a_context_without_its_type_is_told_its_type() -> None:
    with pytest.raises(DefinitionError, match="the parameter 'context' needs a type, such as context: ToolContext"):
        tool(in_need)


async def test_a_default_of_none_says_that_none_will_do() -> None:
    @tool(effect="read")
    def days(count: int = None, most: Annotated[int | None, Field(ge=1)] = None) -> bool:  # type: ignore[assignment]  # noqa: RUF013
        """Count days."""
        return count is None and most is None

    count, most = days.config_schema["properties"].values()
    assert count == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert most == {"anyOf": [{"minimum": 1, "type": "integer"}, {"type": "null"}], "default": None}
    assert (await ToolRegistry([days]).execute("days", {"count": None})).output is True


def test_decorator_shows_its_options() -> None:
    options = {*inspect.signature(tool).parameters} - {"function", "unknown"}
    documented = read_section(inspect.getdoc(tool) or "", "Args").keys()
    known = {"code", "description", "effect", "idempotent", "output_schema", "cache", "check", "examples", "node_only"}
    assert options == known <= documented


MISUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "misspelt": (lambda: tool(efect="read"), "@tool has no option 'efect'; did you mean effect?"),
    "unknown": (lambda: tool(x=1), "there are code, description, effect, idempotent, output_schema, cache, check"),
    "no function": (lambda: tool("stock"), "tools: @tool goes above a function; give its options by name"),
}


@pytest.mark.parametrize(("misuse", "told"), MISUSED.values(), ids=MISUSED)
def test_decorator_that_is_misused_says_how(misuse: Callable[[], Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        misuse()
    assert told in str(refused.value)
