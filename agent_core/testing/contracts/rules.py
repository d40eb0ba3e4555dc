"""Rule: one thing that every implementation of a seam must do; and how those that are broken are told."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from traceback import extract_tb
from typing import Any, Final, NamedTuple

LONGEST: Final = 1000
"""Characters of what is told of one broken rule."""


class Rule(NamedTuple):
    """`check` gets a new, empty implementation, and raises AssertionError; a seam of coroutines is awaited."""

    name: str
    check: Callable[..., Any]

    def __str__(self) -> str:
        return self.name

    async def run(self, *subject: Any) -> None:
        """Check it, in a thread of its own unless it is a coroutine: then it may have event loops of its own."""
        if inspect.iscoroutinefunction(self.check):
            await self.check(*subject)
        else:
            await asyncio.to_thread(self.check, *subject)


def rules_of(*checks: Callable[..., Any] | Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that functions check, each by its name in words."""
    rules: list[Rule] = []
    for each in checks:
        rules += [Rule(each.__name__.replace("_", " "), each)] if callable(each) else each
    return tuple(rules)


def rules_for_cases(check: Callable[..., Any], cases: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield a rule for each case that `check` takes behind what it checks."""

    def for_case(case: Any) -> Callable[..., Any]:
        return lambda subject, *more: check(subject, case, *more)

    for name, case in cases.items():
        yield Rule(f"{check.__name__.replace('_', ' ')}: {name}", for_case(case))


class Verdicts:
    """Gathers the rules that are broken, so that they are told all at once.

    Rules are checked by `assert`, which Python leaves out under `-O`: RuntimeError, where nothing would be checked.
    """

    def __init__(self, subject: str) -> None:
        if not __debug__:
            raise RuntimeError("a contract is checked by assert, which python -O leaves out; run it without -O")
        self._subject = subject
        self._broken: list[str] = []

    @contextmanager
    def of(self, rule: Rule) -> Iterator[None]:
        """Note whether a rule is kept."""
        try:
            yield
        except Exception as error:  # the edge to what is checked: whatever it raises breaks the rule
            self._broken.append(f"{rule.name}: {_explain(error)}")

    def tell(self) -> None:
        """AssertionError for rules that are broken, with all of them."""
        if self._broken:
            count = f"{len(self._broken)} {'rule' if len(self._broken) == 1 else 'rules'}"
            raise AssertionError("\n- ".join([f"{self._subject} breaks {count}:", *self._broken]))


def _explain(error: Exception) -> str:
    """Return what was wrong: under pytest with the values, else by the line of the rule that asked for it."""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    text = str(error) or next((each.line or "" for each in reversed(extract_tb(error.__traceback__))), "")
    return kind + (text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


class Raised:
    """The error that a block has raised, once it has ended."""

    error: BaseException


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[Any]:
    """Fail unless the block raises an error of this kind, which it then has as `error`."""
    raised = Raised()
    try:
        yield raised
    except kind as error:
        raised.error = error
    else:
        raise AssertionError(f"{kind.__name__} has to be raised, and nothing was")
