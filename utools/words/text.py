"""Text: what a tool says to a model, written in English and read in the model's language. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

from utools.words.catalogue import TRANSLATED, Words, read_language, words_in

LONGEST: Final = 10_000
"""How many characters of what an error says are kept."""
INNER_ERRORS: Final = 10
"""How many inner errors of a group are told."""


class Text(str):
    """A text in English, made of a template and its values: `Text("there is no file {path!r}", path=path)`.

    The template is its key in the tables of other languages. A value may be a Text, or an error that says one. Without
    values the template is taken as it is written. It is a literal: what is filled in is not looked at again.
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> "Text":
        shown = {name: _shown(value) for name, value in values.items()}
        text = super().__new__(cls, template.format(**shown) if values else template)
        text.template, text.values = template, values
        return text


@runtime_checkable
class Explained(Protocol):
    """An error that explains itself in the words of a language, as `NotJson` does."""

    def explain(self, words: Words) -> str: ...


def join_and(names: Sequence[str]) -> str:
    """Return the names as a list in a sentence: `a and b`; `none` where there are none."""
    if not names:
        return Text("none")
    first, *others = names
    text: str = first
    for name in others:
        text = Text("{first} and {second}", first=text, second=name)
    return text


def translate(said: str | BaseException, language: str) -> str:
    """Return what a text or an error says, in a language; in English where the table of the language does not have
    it."""
    text = text_of(said)
    if text is None or not (table := _table(language)):
        return error_words(said) if isinstance(said, BaseException) else str(said)
    template = table.get(text.template, text.template)
    if not text.values:
        return template
    return template.format(**{name: _translate_value(value, language) for name, value in text.values.items()})


def _translate_value(value: object, language: str) -> object:
    if isinstance(value, Explained):
        return value.explain(words_in(language))
    said = text_of(value)
    return _shown(value) if said is None else translate(said, language)


def _shown(value: object) -> object:
    """Return the value as a template writes it: of an error, what it says."""
    return error_words(value) if isinstance(value, BaseException) else value


def error_words(error: BaseException) -> str:
    """Return what an error says, at most LONGEST characters; of a group its inner errors, too.

    Every text of an error that foreign code raised is made here: its `__str__` may raise, give what no journal can
    hold, or give megabytes. Of an error that says nothing it is the name of its type.
    """
    words = _own_words(error)
    if isinstance(error, BaseExceptionGroup):
        words = f"{words}: {'; '.join(_inner_words(error))}".removeprefix(": ")
    words = words or type(error).__name__
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _own_words(error: BaseException) -> str:
    try:
        return str(error)[: LONGEST + 1].encode("utf-8", "replace").decode()
    except (Exception, SystemExit):  # the author's own code runs here
        return ""


def _inner_words(group: BaseExceptionGroup[Any]) -> list[str]:
    """Return the kind and the words of each inner error of a group, however deep it lies."""
    inner = list(islice(leaves_of(group), INNER_ERRORS + 1))
    told = [f"{type(each).__name__}: {_own_words(each)}".removesuffix(": ") for each in inner[:INNER_ERRORS]]
    return [*told, "…"] if len(inner) > INNER_ERRORS else told


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group that are no groups, in order; any other error itself."""
    left = [error]
    while left:
        each = left.pop()
        if isinstance(each, BaseExceptionGroup):
            left += reversed(each.exceptions)
        else:
            yield each


def text_of(value: object) -> Text | None:
    """Return the Text that a value is, or that an error says."""
    if isinstance(value, BaseException):
        value = value.args[0] if value.args else None
    return value if isinstance(value, Text) else None


def _table(language: str) -> Mapping[str, str]:
    """Return the templates of a language by their English ones."""
    return _read_section("templates", language)


def translate_descriptions(schema: Any, language: str) -> Any:
    """Return a JSON Schema with the descriptions of our own tools in a language; those of others stay as they are."""
    table = _descriptions(language)
    return _with_descriptions(schema, table) if table else schema


def translate_description(said: str, language: str) -> str:
    """Return what one of our own tools is, in a language; a foreign tool's description as it is."""
    return _descriptions(language).get(said, said)


def translate_example(example: Mapping[str, Any], language: str) -> Mapping[str, Any]:
    """Return an example of one of our own tools in a language, with its arguments and output; a foreign tool's as it
    is."""
    table = _read_section("examples", language)
    is_ours = example["user"] in table
    return {key: _with_texts(value, table) for key, value in example.items()} if is_ours else example


def _with_texts(value: Any, table: Mapping[str, str]) -> Any:
    match value:
        case str():
            return table.get(value, value)
        case dict():
            return {key: _with_texts(item, table) for key, item in value.items()}
        case list():
            return [_with_texts(item, table) for item in value]
        case _:
            return value


def _with_descriptions(schema: Any, table: Mapping[str, str]) -> Any:
    match schema:
        case dict():
            told = schema.get("description")
            told = {"description": table.get(told, told)} if isinstance(told, str) else {}
            return {key: _with_descriptions(item, table) for key, item in schema.items()} | told
        case list():
            return [_with_descriptions(item, table) for item in schema]
        case _:
            return schema


def _descriptions(language: str) -> Mapping[str, str]:
    """Return what tools and arguments are, in a language, by the English text."""
    return _read_section("descriptions", language)


def _read_section(section: str, language: str) -> Mapping[str, str]:
    found: Mapping[str, str] = read_language("utools.words", language)[section] if language in TRANSLATED else {}
    return found
