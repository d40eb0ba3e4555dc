"""`{{name}}` in a manifest: the argument of that name. What is put in is never read again. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

PLACEHOLDER = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")
ABSENT: Final = object()

Args = Mapping[str, Any]
Encode = Callable[[str], str]


def names_in(value: Any) -> Iterator[str]:
    """The arguments that a template asks for, in keys and values."""
    match value:
        case str():
            yield from PLACEHOLDER.findall(value)
        case list() | tuple():
            for each in value:
                yield from names_in(each)
        case dict():
            for key, each in value.items():
                yield from names_in(key)
                yield from names_in(each)


def whole(template: str) -> str | None:
    """The name, if the template is one placeholder and nothing else."""
    found = PLACEHOLDER.fullmatch(template)
    return found[1] if found else None


def filled(template: str, args: Args, encode: Encode = str) -> str:
    """A text with arguments in it, each encoded; one that was not given leaves nothing behind."""
    return PLACEHOLDER.sub(lambda found: encode(as_text(args[found[1]])) if found[1] in args else "", template)


def value_of(template: Any, args: Args) -> Any:
    """A JSON value with arguments in it: a whole placeholder keeps the argument's type.

    ABSENT stands for an argument that was not given; a list or an object leaves it out.
    """
    match template:
        case str():
            name = whole(template)
            return filled(template, args) if name is None else args.get(name, ABSENT)
        case list():
            values = [value_of(each, args) for each in template]
            return [each for each in values if each is not ABSENT]
        case dict():
            made = {key: value_of(each, args) for key, each in template.items()}
            return {key: each for key, each in made.items() if each is not ABSENT}
    return template


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
