"""Validation of a value by a sound schema, in bounded depth and time. Pure."""

import copy
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal

from utools.schema.faults import Fault, Follow, faults, word_faults
from utools.schema.keywords import bounded_keywords
from utools.schema.plain_faults import Unclear, find_plain_faults
from utools.schema.plain_fit import plain_fit
from utools.schema.shape import resolver, spell_out
from utools.schema.validation_pass import Pass, TooManyWays, current_pass
from utools.words.catalogue import Words

MAX_DEPTH = 64
REFERENCES_FOLLOWED = 1000
REFERENCES_FOLLOWED_EACH = 50
"""How many references one validation follows: so many, and so many more for each value within the value."""

Validate = Callable[[Any, Words], list[Fault]]


Reading = Literal["usual", "strict", "earlier"]
"""How patterns are read: as JSON Schema does; as a Narrowing does; as one did under the second rules of comparison."""


def validation(schema: dict[str, Any], *, reading: Reading = "usual", decimals: bool = True) -> Validate:
    """Return a function that finds every fault of a value. jsonschema is loaded for the first value that neither
    plainly fits nor plainly does not. `decimals`: what is a multiple is told by the decimals that are written."""
    spelled = copy.deepcopy(schema)
    follow = resolver(spelled)
    spell_out(spelled, follow)
    surely_fits, ask = plain_fit(spelled, follow), jsonschema_validation(spelled, follow, reading, decimals=decimals)

    def validate(value: Any, words: Words) -> list[Fault]:
        if surely_fits(value):
            return []
        size = _size(value)
        if size is None:
            return [_unchecked(words.too_deep.format(depth=MAX_DEPTH), words)]
        try:
            return word_faults(find_plain_faults(spelled, value, (), follow, words), value, words)
        except Unclear:
            return ask(value, size, words)

    return partial(_validate_at_any_depth, validate)


def jsonschema_validation(
    schema: dict[str, Any], follow: Follow, reading: Reading, *, decimals: bool = True
) -> Callable[[Any, int, Words], list[Fault]]:
    """Return a function that has jsonschema find every fault of a value with so many values in it."""
    validators: dict[int, Any] = {}

    @cache
    def validator() -> Any:
        from referencing import Registry

        registry: Registry[Any] = Registry()  # empty, so that nothing can be fetched
        return _dialect(reading, decimals)(schema, registry=registry)

    def validate(value: Any, size: int, words: Words) -> list[Fault]:
        references = REFERENCES_FOLLOWED + REFERENCES_FOLLOWED_EACH * size
        token = current_pass.set(Pass(follow, validators, references))
        try:
            return faults(validator().iter_errors(value), value, follow, words)
        except TooManyWays:
            return [_unchecked(words.too_many_ways, words)]
        finally:
            current_pass.reset(token)

    return validate


@cache
def _dialect(reading: Reading, decimals: bool, /) -> Any:
    """Draft 2020-12 with the keywords of ours."""
    from jsonschema import Draft202012Validator, validators

    from utools.schema.multiple import multiple_of
    from utools.schema.strict_keywords import earlier_keywords, strict_keywords

    extend: Callable[..., Any] = validators.extend
    own = {"usual": dict, "strict": strict_keywords, "earlier": earlier_keywords}[reading]
    return extend(
        Draft202012Validator, {**bounded_keywords(), **own(), **({"multipleOf": multiple_of} if decimals else {})}
    )


def _validate_at_any_depth(validate: Validate, value: Any, words: Words) -> list[Fault]:
    """Validate; with a whole stack if the caller's runs out, so that the verdict does not depend on its depth."""
    try:
        return validate(value, words)
    except BaseException as error:
        if not _is_out_of_stack(error):
            raise
    from concurrent.futures import ThreadPoolExecutor  # the thread is nothing but an empty stack; it is joined at once

    try:
        with ThreadPoolExecutor(1) as stack:
            return stack.submit(validate, value, words).result()
    except BaseException as error:
        if not _is_out_of_stack(error):
            raise
    return [_unchecked(words.endless_schema, words)]


def _is_out_of_stack(error: BaseException) -> bool:
    """Return whether the stack ran out. jsonschema's maps are written in Rust, which panics where it runs out within
    them."""
    return isinstance(error, RecursionError) or type(error).__name__ == "PanicException"


def _unchecked(expected: str, words: Words) -> Fault:
    problem = words.must_be.format(expected=expected)
    sentence = words.fault_without_value.format(at=words.the_value, problem=problem)
    return Fault("", expected, words.uncheckable, sentence)


def _size(value: Any) -> int | None:
    """Return how many values there are in `value`; None if it has more than MAX_DEPTH levels of lists and objects."""
    level: list[Any] = [value]
    count = 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        containers = [each for each in level if isinstance(each, (dict, list))]
        if not containers:
            return count
        level = []
        for each in containers:
            level += each.values() if isinstance(each, dict) else each
    return None if level else count
