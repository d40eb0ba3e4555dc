"""JMESPath in bounded work and time: each step is charged with the size of its result. Pure."""

from collections.abc import Callable, Iterator
from typing import Any

from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from utools.near_names import near_names
from utools.words.text import Text

MAX_WORK = 5_000_000
MAX_SECONDS = 5.0
CHARGED_CHARACTERS = 16


class QueryError(ValueError):
    """An expression that cannot be read or evaluated, or that costs too much; the message says which."""


def query(expression: str, data: Any, *, clock: Callable[[], float]) -> Any:
    """Return what `expression` finds in `data`; QueryError if it is wrong or takes more than 5 s or 5 million units.

    A unit is a value, or 16 characters of text, in the result of a step. A short expression can double its result at
    each step, and the thread that runs it cannot be stopped. `clock` gives seconds.
    """
    interpreter = _Metered(clock)
    try:
        return interpreter.visit(_parse(expression), data)
    except JMESPathError as error:
        raise QueryError(Text("{kind}: {error}", kind=type(error).__name__, error=error)) from None
    except RecursionError:
        raise QueryError(Text("the expression or the data is nested too deeply")) from None
    except (TypeError, ArithmeticError) as error:  # a function of JMESPath that meets values of several types
        raise QueryError(Text("the expression does not fit its data: {error}", error=error)) from None


def check_query(expression: str) -> None:
    """QueryError for an expression that cannot be read, or calls a function that there is not, or not so."""
    for fault in find_query_faults(parse(expression)):
        raise QueryError(fault)


def parse(expression: str) -> Any:
    """Return the tree of an expression; QueryError for one that cannot be read."""
    try:
        return _parse(expression)
    except JMESPathError as error:
        raise QueryError(Text("{kind}: {error}", kind=type(error).__name__, error=error)) from None
    except RecursionError:
        raise QueryError(Text("the expression is nested too deeply")) from None


def find_query_faults(tree: Any) -> Iterator[str]:
    """Yield the functions in a tree that there are not, or that take another number of arguments; and names behind a
    `!` that reads another name than was meant."""
    left = [tree]
    while left:
        each = left.pop()
        children = [child for child in each["children"] if isinstance(child, dict)]
        if each["type"] == "function_expression":
            yield from _function_faults(each["value"], len(children))
        if each["type"] in ("subexpression", "value_projection") and children[0]["type"] == "not_expression":
            name = children[0]["children"][0].get("value", "a")
            yield f"!{name}.… gives nothing in any case, as ! takes {name} alone: write !({name}.…)"
        left += reversed(children)


def _function_faults(name: str, given: int) -> Iterator[str]:
    known = Functions.FUNCTION_TABLE
    if name not in known:
        near = near_names(name, list(known))
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        yield f"there is no function {name!r}; {advice}"
        return
    signature = known[name]["signature"]
    takes, variadic = len(signature), bool(signature and signature[-1].get("variadic"))
    if given < takes or (given > takes and not variadic):
        count = f"{'at least ' if variadic else ''}{takes} argument{'' if takes == 1 else 's'}"
        yield f"{name} takes {count}, not {given}"


def holds(found: Any) -> bool:
    """Return whether JMESPath counts a value as true: all but null, false, and an empty text, list or object."""
    return not (found is None or found is False or found in ("", [], {}))


def _parse(expression: str) -> Any:
    return Parser().parse(expression).parsed


class _Metered(TreeInterpreter):
    """Charges each step. A value that is reached twice is charged twice, even if it is the same object."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._until = clock() + MAX_SECONDS
        self._left = MAX_WORK
        self._sizes: dict[int, tuple[int, Any]] = {}  # holds the value too, so that no other value gets its id

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        result = super().visit(node, *args, **kwargs)
        self._left -= self._size(result)
        if self._left < 0:
            raise QueryError(Text("this expression yields too much on this data; make it or the data smaller"))
        if self._clock() > self._until:
            raise QueryError(Text("this expression took longer than {seconds:g} s", seconds=MAX_SECONDS))
        return result

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """Return whether the comparison holds; null for values that have no order, as JMESPath says."""
        try:
            return super().visit_comparator(node, value)
        except TypeError:
            return None

    def _size(self, value: Any) -> int:
        if isinstance(value, str):
            return 1 + len(value) // CHARGED_CHARACTERS
        if not isinstance(value, dict | list):
            return 1
        known = self._sizes.get(id(value))
        if known is None:
            parts = [*value.values(), *value] if isinstance(value, dict) else value
            known = self._sizes[id(value)] = (1 + sum(map(self._size, parts)), value)
        return known[0]
