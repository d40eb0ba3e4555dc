"""Provenance under the first rules of comparison: whether trusted text contains an argument's text. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from agent_core.inherited import Inherited
from agent_core.origins.sources import Tracing, Unproven
from agent_core.outputs import Json
from agent_core.tool_policy import ToolPolicy
from utools.schema.pointer import escape

_WORD = r"[\w@+\-\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_JOINED = _WORD.replace("@", ".@")
"""What may not be next to an occurrence: letters, digits, marks on letters, and `_.@+-`."""

MAX_LEAVES = 500
"""An argument with more texts than this is refused without a search."""


class TrustedTexts:
    """The texts that such a run trusts; where a value stands in them was not recorded."""

    has_untrusted = False
    comparison = 1

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)

    def add_answer(self, tool: str, place: str, output: Any, *, trusted: bool) -> None:
        """The answer of a tool; only one that is marked as trusted counts."""
        if trusted:
            self._texts.extend(texts_in(output))

    def add_edit(self, args: Json, before: Json) -> None:
        """A person's own words are trusted text."""
        self._texts.extend(texts_in(args))

    def add_message(self, text: str, *, vouched: bool) -> None:
        """What a user added while the run continued."""
        if vouched:
            self._texts.append(text)

    def hand_down(self) -> Inherited:
        """Return what a run nested under this one trusts."""
        return {"trusted": list(self._texts)}

    def trace(self, args: Json, policy: ToolPolicy) -> Tracing:
        """Return the first argument under provenance that no trusted text contains."""
        properties = policy["schema"].get("properties", {})
        for name in policy["provenance"]:
            if name in args:
                pointer = find_untrusted(args[name], properties.get(name, {}), self._texts, f"/{name}")
                if pointer is not None:
                    return Tracing(None, Unproven(pointer, "", None))
        return Tracing(None)


def find_untrusted(value: Any, schema: Any, texts: Iterable[str], pointer: str = "") -> str | None:
    """Return the pointer of the first leaf of `value` that no trusted text contains; None when all are contained.

    A text must occur bounded; any other leaf passes only where its schema enumerates it.
    """
    folded = [fold(text) for text in texts]
    found: set[str] = set()
    for leaf_pointer, leaf, rule in _leaves(value, schema, pointer):
        if "enum" in rule or "const" in rule or (isinstance(leaf, str) and leaf in found):
            continue  # the author wrote every value that is possible here, or it was found before
        if not isinstance(leaf, str) or len(found) >= MAX_LEAVES:
            return leaf_pointer
        if not any(occurs(fold(leaf), text) for text in folded):
            return leaf_pointer
        found.add(leaf)
    return None


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys and numbers too, each as it would be written alone."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield key
                yield from texts_in(item)
        case list():
            for item in value:
                yield from texts_in(item)
        case int() | float() if not isinstance(value, bool):
            yield str(value)
        case _:
            pass


def fold(text: str) -> str:
    """NFC and case folding, so that only the letters count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def occurs(needle: str, text: str) -> bool:
    """Return whether `text` contains `needle`, both folded, with no letter, digit or `_.@+-` on either side.

    A full stop that ends a sentence, so before white space or the end, does not count as joined on.
    """
    return bool(needle) and re.search(rf"(?<!{_JOINED}){re.escape(needle)}(?!{_WORD}|\.\S)", text) is not None


def _leaves(value: Any, schema: Any, pointer: str) -> Iterator[tuple[str, Any, Json]]:
    """Yield every leaf with its pointer and its part of the schema; also each key that the schema does not name."""
    rule: Json = schema if isinstance(schema, dict) else {}
    match value:
        case dict():
            properties = rule.get("properties", {})
            for key, item in value.items():
                below = f"{pointer}/{escape(key)}"
                if key not in properties:
                    yield below, key, {}
                yield from _leaves(item, properties.get(key), below)
        case list():
            first, others = rule.get("prefixItems", []), rule.get("items")
            for index, item in enumerate(value):
                yield from _leaves(item, first[index] if index < len(first) else others, f"{pointer}/{index}")
        case _:
            yield pointer, value, rule
