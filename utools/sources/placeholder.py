"""`{{name}}` in a manifest stands for the argument of that name. What is filled in is never read again. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from utools.json_text import to_text
from utools.lazy_pattern import lazy_compile

PLACEHOLDER = lazy_compile(r"\{\{\s*([^{}\s]+)\s*\}\}")
ABSENT: Final = object()
"""Stands for an argument that was not given."""

Args = Mapping[str, Any]
Encode = Callable[[str], str]


def find_names(template: Any) -> Iterator[str]:
    """Yield the arguments that a template takes, in keys and values."""
    match template:
        case str():
            yield from PLACEHOLDER.findall(template)
        case list() | tuple():
            for each in template:
                yield from find_names(each)
        case dict():
            for key, each in template.items():
                yield from find_names(key)
                yield from find_names(each)
        case _:
            pass


def sole_name(template: str) -> str | None:
    """Return the name, if the template is one placeholder and nothing else."""
    found = PLACEHOLDER.fullmatch(template)
    return found[1] if found else None


def fill_text(template: str, args: Args, encode: Encode = str) -> str:
    """Return the text with its arguments, each encoded; one that was not given leaves nothing behind."""
    return PLACEHOLDER.sub(lambda found: encode(to_text(args[found[1]])) if found[1] in args else "", template)


def fill_value(template: Any, args: Args) -> Any:
    """Return the JSON value with its arguments: a placeholder that is a whole text keeps the argument's type.

    ABSENT for an argument that was not given; a list or an object leaves it out.
    """
    match template:
        case str():
            name = sole_name(template)
            return fill_text(template, args) if name is None else args.get(name, ABSENT)
        case list():
            values = [fill_value(each, args) for each in template]
            return [each for each in values if each is not ABSENT]
        case dict():
            fields = {key: fill_value(each, args) for key, each in template.items()}
            return {key: each for key, each in fields.items() if each is not ABSENT}
        case _:
            return template
