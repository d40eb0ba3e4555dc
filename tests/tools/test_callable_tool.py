"""`@tool` leaves its function callable, and makes tools of methods, partials and objects."""

import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from pathlib import Path
from types import MethodType
from typing import Any, Unpack, get_type_hints

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from support.optional import needs
from utools import DefinitionError, Tool, ToolContext, ToolRegistry, tool
from utools.callable_tool import FunctionTool


@tool(effect="read")
def stock(article: str, place: str = "north") -> dict[str, str]:
    """Count an article.

    Args:
        article: Its number.
    """
    return {"article": article, "place": place}


@tool(effect="read")
async def price(article: str) -> float:
    """Find a price."""
    return float(len(article))


def properties(each: Tool) -> list[str]:
    return list(each.config_schema["properties"])


async def run(each: Tool, **args: Any) -> Any:
    result = await ToolRegistry([each]).execute(each.code, args)
    assert result.error is None
    return result.output


# ── functions ────────────────────────────────────────────────────────────────────────────────────


def test_decorated_function_is_called_as_it_was() -> None:
    assert stock("A-17") == stock(article="A-17", place="north") == {"article": "A-17", "place": "north"}
    with pytest.raises(TypeError, match="article"):
        stock()  # type: ignore[call-arg]


async def test_decorated_coroutine_function_is_awaited_as_it_was() -> None:
    assert await price("A-17") == 4.0
    assert inspect.iscoroutinefunction(price)
    assert not inspect.iscoroutinefunction(stock)
    assert await run(price, article="A-17") == 4.0


def test_decorated_function_looks_as_it_did() -> None:
    assert (stock.__name__, stock.__qualname__, stock.__module__) == ("stock", "stock", __name__)
    assert stock.__doc__ == stock.__wrapped__.__doc__
    assert inspect.getdoc(stock) == "Count an article.\n\nArgs:\n    article: Its number."
    assert str(inspect.signature(stock)) == "(article: str, place: str = 'north') -> dict[str, str]"
    assert get_type_hints(stock) == {"article": str, "place": str, "return": dict[str, str]}


def test_replaced_tool_is_a_new_tool_of_the_same_function() -> None:
    other = replace(stock, code="count", execute=lambda args, context: "canned")
    assert (other.code, other.__name__, other("A-17")) == ("count", "stock", stock("A-17"))
    assert stock.code == "stock"


def test_tool_is_copied_and_pickled_as_a_function_is() -> None:
    assert copy.copy(stock) is copy.deepcopy(stock) is pickle.loads(pickle.dumps(stock)) is stock
    other = replace(stock, code="count")
    again = copy.copy(other)
    assert again is not other
    assert (again.code, again.__name__, again("A-17")) == ("count", "stock", stock("A-17"))


async def test_function_in_a_function_has_the_names_around_it() -> None:
    class Order(BaseModel):
        number: int

    @tool(effect="read")
    def find(order: "Order") -> int:
        return order.number

    assert find(Order(number=3)) == await run(find, order={"number": 3}) == 3


# ── methods ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Desk:
    """A desk."""

    place: str = "north"

    @tool(effect="read")
    def stock(self, article: str, context: ToolContext | None = None) -> str:
        """Count an article."""
        return f"{article} {self.place} {context.run_id if context else '-'}"

    @tool
    async def order(self, article: str) -> str:
        """Order an article."""
        return f"{article} for {self.place}"

    @tool
    @staticmethod
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @staticmethod
    @tool
    def triple(number: int) -> int:
        """Triple a number."""
        return 3 * number

    @tool
    @classmethod
    def describe(cls, article: str) -> str:
        """Describe an article."""
        return f"{article} of {cls.__name__}"

    @classmethod
    @tool
    def name_of(cls, article: str) -> str:
        """Name an article."""
        return f"{article} at {cls.__name__}"


class Shop(Desk):
    """A desk that is a class of its own."""

    @tool(effect="read")
    def stock(self, article: str, context: ToolContext | None = None) -> str:
        """Count an article in the shop."""
        return f"shop: {super().stock(article)}"


async def test_method_is_a_tool_of_its_instance() -> None:
    north, south = Desk(), Desk("south")
    assert (north.stock("A-17"), south.stock("A-17")) == ("A-17 north -", "A-17 south -")
    assert Desk.stock(south, "A-17") == "A-17 south -"
    registry = ToolRegistry([north.stock, replace(south.stock, code="south")])
    answers = [
        (await registry.execute(code, {"article": "B"}, ToolContext(run_id="r"))).output for code in ("stock", "south")
    ]
    assert answers == ["B north r", "B south r"]
    assert properties(north.stock) == ["article"]
    assert (
        str(inspect.signature(north.stock)) == "(article: str, context: utools.tool.ToolContext | None = None) -> str"
    )


async def test_method_may_be_a_coroutine_function_and_may_be_overridden() -> None:
    desk, shop = Desk("south"), Shop("south")
    assert await desk.order("A") == await run(desk.order, article="A") == "A for south"
    assert shop.stock("A") == await run(shop.stock, article="A") == "shop: A south -"
    assert shop.stock.description == "Count an article in the shop."


async def test_static_and_class_methods_are_tools_in_either_order() -> None:
    for desk in (Desk(), Desk):
        assert desk.double(4) == await run(desk.double, number=4) == 8
        assert desk.triple(4) == await run(desk.triple, number=4) == 12
        assert desk.describe("A") == await run(desk.describe, article="A") == "A of Desk"
        assert desk.name_of("A") == await run(desk.name_of, article="A") == "A at Desk"
    assert Shop.describe("A") == "A of Shop"


async def test_tool_that_a_bound_method_calls_is_taken_as_a_tool() -> None:
    """As a newer Python binds what is below @classmethod."""
    later: Any = MethodType(vars(Desk)["stock"], Desk("south"))
    assert later("A") == "A south -"
    assert ToolRegistry([later]).get("stock")
    registry = ToolRegistry()
    registry.register(later)
    assert "stock" in registry


def test_tool_of_an_instance_is_pickled_with_it() -> None:
    again = pickle.loads(pickle.dumps(Desk("south").stock))
    assert isinstance(again, FunctionTool)
    assert again("A-17") == "A-17 south -"


def test_method_without_an_instance_is_refused_by_hosts() -> None:
    with pytest.raises(DefinitionError) as refused:
        ToolRegistry([Desk.stock])
    assert str(refused.value) == (
        "tools.stock: Desk.stock is a method, and has no instance to be called on; "
        "give the tool of an instance, such as Desk(…).stock"
    )


def test_method_that_is_no_tool_says_what_to_write() -> None:
    with pytest.raises(DefinitionError, match="__repr__ is a method: write @tool from utools above it"):
        ToolRegistry([Desk().__repr__])  # type: ignore[list-item]


# ── partials and objects ─────────────────────────────────────────────────────────────────────────


def search(words: str, limit: int, *, store: object, exact: bool = False) -> str:
    """Search a store."""
    return f"{words} {limit} {store} {exact}"


class Lookup:
    """Looks words up."""

    async def __call__(self, word: str) -> str:
        """Look a word up."""
        return word.upper()


async def test_partial_offers_what_it_leaves_open() -> None:
    found = tool(effect="read")(partial(search, store="books", limit=3))
    assert (found.code, found.description, properties(found)) == ("search", "Search a store.", ["words", "exact"])
    assert found("oasis") == await run(found, words="oasis") == "oasis 3 books False"


async def test_object_that_can_be_called_is_a_tool_under_the_name_of_its_class() -> None:
    found = tool(effect="read")(Lookup())
    assert (found.code, found.description) == ("Lookup", "Look a word up.")
    assert await found("oasis") == await run(found, word="oasis") == "OASIS"


async def test_object_with_fields_offers_what_its_call_takes() -> None:
    @dataclass
    class Pay:
        amount: str
        key: str = "k"

        def __call__(self, amount: int, to: str) -> str:
            """Pay."""
            return f"{amount} to {to} by {self.key}"

    pay = tool(Pay("all"))
    assert {name: each["type"] for name, each in pay.config_schema["properties"].items()} == {
        "amount": "integer",
        "to": "string",
    }
    assert await run(pay, amount=3, to="Li") == "3 to Li by k"
    assert get_type_hints(pay) == {"amount": int, "to": str, "return": str}
    named = Pay("all")
    named.__name__ = "pay_out"  # type: ignore[attr-defined]
    assert tool(named).code == "pay_out"
    assert tool(named).config_schema["properties"].keys() == pay.config_schema["properties"].keys()
    assert tool(named).config_schema["properties"]["amount"]["type"] == "integer"


def logged(function: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return call


async def test_decorators_below_are_seen_through() -> None:
    for decorate in (logged, cache):
        found = tool(decorate(stock.function))
        assert (found.code, properties(found)) == ("stock", ["article", "place"])
        assert found("A") == await run(found, article="A") == stock("A")


# ── what cannot be a tool ────────────────────────────────────────────────────────────────────────


class Order(TypedDict):
    article: str


class Odd:
    """Methods that no model could call."""

    def unlisted(self, *articles: str) -> None:
        """Takes any number."""

    def unpacked(self, **order: Unpack["Order"]) -> None:
        """Takes the keys of a TypedDict."""

    def unreadable(self, order: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Has a type that is not there."""

    def untyped(self, article) -> None:  # type: ignore[no-untyped-def]
        """Has no type."""


REFUSED: dict[str, tuple[Any, str]] = {
    "lambda": (
        lambda a: a,
        f'tools: a lambda has no name that models could call; give one: tool(code="…")(lambda …), at {__name__}, line ',
    ),
    "a tool": (stock, "tools: @tool goes above a function; give its options by name; stock is a Tool already (got "),
    "any number": (
        Odd.unlisted,
        "tools.unlisted.articles: the parameter '*articles' stands for any number of arguments",
    ),
    "unpacked": (
        Odd.unpacked,
        "tools.unpacked.order: the parameter '**order' stands for any number of arguments; write order: Order",
    ),
    "unreadable": (
        Odd.unreadable,
        "tools.unreadable.order: the type of the parameter 'order' cannot be read: name 'Missing' is not defined",
    ),
    "untyped": (Odd.untyped, "tools.untyped.article: the parameter 'article' needs a type, such as article: str"),
}


@pytest.mark.parametrize(("function", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_tool_says_why_and_where(function: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        tool(function)
    assert str(refused.value).startswith(told)


# ── types ────────────────────────────────────────────────────────────────────────────────────────

TYPED = '''
"""What a type checker knows of decorated functions."""

from collections.abc import Coroutine
from typing import Any, assert_type

from utools import Tool, ToolRegistry, tool


@tool
def stock(article: str, place: str = "north") -> int:
    return 1


@tool(effect="read")
async def price(article: str) -> float:
    return 1.0


class Desk:
    @tool(effect="read")
    def stock(self, article: str) -> int:
        return 1

    @tool
    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    @tool
    @classmethod
    def describe(cls, article: str) -> str:
        return article


async def use(desk: Desk) -> None:
    assert_type(stock("A-17", place="south"), int)
    assert_type(await price("A-17"), float)
    assert_type(desk.stock("A-17"), int)
    assert_type(Desk.stock(desk, "A-17"), int)
    assert_type(Desk.double(2), int)
    assert_type(Desk.describe("A-17"), str)
    given: list[Tool] = [stock, price, desk.stock, Desk.double, Desk.describe]
    ToolRegistry(given)
'''


@pytest.mark.exhaustive
@needs("mypy", "basedpyright")
@pytest.mark.parametrize("checker", ["mypy --strict", "basedpyright --level error"])
def test_type_checkers_know_the_parameters_and_the_result(checker: str, tmp_path: Path) -> None:
    program, *options = checker.split()
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(TYPED)
    wrong.write_text(f"{TYPED}    stock(17)\n    desk.stock(17)\n")
    command = [Path(sys.executable).with_name(program), *options, right, wrong]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if "error: " in line]
    assert ["wrong.py:" in line for line in told] == [True] * 2, done.stdout


# ── what the program gives its run ───────────────────────────────────────────────────────────────


@tool(effect="read")
def of_desk(context: ToolContext[Desk]) -> str:
    """Name a desk."""
    return type(context.deps).__name__


@tool(effect="read")
def of_desk_or_none(context: ToolContext[Desk | None], other: ToolContext[Any] | None = None) -> str:
    """Name a desk, if there is one."""
    return type(context.deps).__name__


@tool(effect="read")
def of_anything(context: ToolContext) -> str:
    """Name anything."""
    return type(context.deps).__name__


@pytest.mark.parametrize("each", [of_desk_or_none, of_anything])
async def test_tool_that_takes_no_certain_deps_needs_none(each: Tool) -> None:
    assert (await ToolRegistry([each]).execute(each.code, {})).output == "NoneType"


@pytest.mark.parametrize(("language", "said"), [("en", "was given nothing"), ("zh", "没有得到任何对象")])
async def test_tool_that_needs_deps_says_so_where_there_are_none(language: str, said: str) -> None:
    registry = ToolRegistry([of_desk])
    result = await registry.execute("of_desk", {}, ToolContext(language=language))
    assert not result.success
    assert said in str(result.error)
    assert (await registry.execute("of_desk", {}, ToolContext(deps=object()))).output == "object"
