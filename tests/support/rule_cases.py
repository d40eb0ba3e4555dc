"""What a run's rules decide and say, case by case: the texts that a model reads, and how values are compared."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from agent_core import ProtocolError, parse
from agent_core.inherited import SourceRecord
from agent_core.loop.judge import judge
from agent_core.loop.masked import Marks
from agent_core.origins.arguments import Place, leaves_of_arguments
from agent_core.origins.earlier import TrustedTexts, fold, occurs
from agent_core.origins.kinds import probes_of
from agent_core.origins.source import Origin, Source
from agent_core.origins.sources import Sources
from agent_core.words.catalogue import ENGLISH, ENGLISH_1, Words, words_in
from utools.schema.config_schema import ConfigSchema, Narrowing

REPLIES = Path(__file__).parents[2] / "fixtures" / "replies"
ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 99},
        "to": {"type": "string", "format": "email", "minLength": 3, "maxLength": 20, "pattern": "^[a-z@.]+$"},
        "size": {"enum": ["s", "m", "l"]},
        "kind": {"const": "order"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1, "uniqueItems": True},
        "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "one": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "no": {"not": {"type": "string"}},
        "map": {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1, "maxProperties": 2},
        "flag": {"type": "boolean"},
    },
    "required": ["id"],
    "additionalProperties": False,
}
VALUES: list[Any] = [
    {},
    {"id": "1"},
    {"id": 1.0},
    {"id": True},
    {"id": 1.5},
    {"id": 0},
    {"id": 100},
    {"id": 1, "to": "ab"},
    {"id": 1, "to": "ann@example.org.example.org"},
    {"id": 1, "to": "ANN@example.org"},
    {"id": 1, "to": "ann@example.org\n"},
    {"id": 1, "size": "S"},
    {"id": 1, "kind": "offer"},
    {"id": 1, "tags": []},
    {"id": 1, "tags": ["a", "b", "c"]},
    {"id": 1, "tags": ["a", "a"]},
    {"id": 1, "tags": [1, True]},
    {"id": 1, "price": 0},
    {"id": 1, "price": 0.75},
    {"id": 1, "either": "x"},
    {"id": 1, "one": 3},
    {"id": 1, "no": "x"},
    {"id": 1, "map": {}},
    {"id": 1, "map": {"long": 1, "b": 2, "c": 3}},
    {"id": 1, "flag": "true"},
    {"id": 1, "flag": None},
    {"id": 1, "idd": 2, "a/b~c": 3},
    {"id": 1, "to": "x" * 300},
    [],
    "text",
    None,
]
POLICY = {
    "description": "Order.",
    "schema": ORDER,
    "visible": ORDER,
    "hidden": ["kind"],
    "preset": {"kind": "order"},
    "effect": "write",
    "idempotent": False,
    "approval": "never",
    "max_calls": 2,
    "timeout": None,
    "trusted": False,
    "args": {"properties": {"to": {"pattern": "[a-z]+@example\\.org"}}},
    "provenance": {"to": "trusted"},
}
CALLS: dict[str, dict[str, Any]] = {
    "unknown tool": {"tool": "pay", "args": {}},
    "long name": {"tool": "p" * 300, "args": {}},
    "author's key": {"args": {"id": 1, "kind": "order"}},
    "faults": {"args": {"id": "x", "size": "xl", "more": 1}},
    "many faults": {"args": {"id": 1, **{f"key{n}": n for n in range(20)}}},
    "too often": {"args": {"id": 1}, "made": 2},
    "narrowed": {"args": {"id": 1, "to": "ann@example.com"}},
    "control character": {"args": {"id": 1, "to": "ann@example.org\x00"}},
    "unproven": {"args": {"id": 1, "to": "bob@example.org"}},
    "proven": {"args": {"id": 1, "to": "ann@example.org"}},
    "unproven, with approval": {"args": {"id": 1, "to": "bob@example.org"}, "policy": {"approval": "on_write"}},
    "approval": {"args": {"id": 1}, "policy": {"approval": "always"}},
}
OCCURRENCES = [
    ("ann", "Write to Ann."),
    ("ann", "Write to Anna."),
    ("ann@example.org", "Write to ann@example.org."),
    ("ann@example.org", "Write to joann@example.org"),
    ("12", "12,500 pieces"),
    ("12", "12.5 pieces"),
    ("straße", "STRASSE"),
    ("é", "e\u0301"),
    ("", "anything"),
    ("a-17", "(A-17)"),
    ("A-17", "(A-17)"),
    ("info@fußball.de", "info@fussball.de"),
    ("brien@example.com", "o'brien@example.com"),
    ("/home/ann", "/home/ann/notes.txt"),
    ("https://example.com", "https://example.com/x"),
    ("13", "June 13"),
    ("2026-06-13", "June 13"),
    ("张三", "请给张三发邮件"),
    ("ann@example.com", "- -ann@example.com\n"),
    (12500, "12,500"),
    (500, "12,500"),
    ("0.00001", {"rate": 1e-05}),
    ("1e-05", {"rate": 1e-05}),
    ("1e-7", [1e-07]),
    (1e-07, [1e-07]),
    ("12.5", 12.5),
    ("DE89370400440532013000", "DE89 3704 0044 0532 0130 00"),
]


def texts() -> Iterator[tuple[str, Any]]:
    """Everything that code says to a model, in each language: the catalogue, and what is made of it."""
    for words in (ENGLISH, words_in("zh")):
        yield from ((f"{words.language}/{name}", text) for name, text in texts_in(words))
        yield from ((f"{words.language}/words/{name}", text) for name, text in entries(words))


def entries(words: Words) -> Iterator[tuple[str, str]]:
    """Each text of a catalogue by name; those of a table by the table's name and their own."""
    for name in sorted(name for name in dir(words) if not name.startswith("_")):
        text = getattr(words, name)
        if isinstance(text, str):
            yield name, text
        elif isinstance(text, Mapping):
            yield from ((f"{name}/{key}", each) for key, each in text.items())


def texts_in(words: Words) -> Iterator[tuple[str, Any]]:
    """Protocol errors, faults and refusals, case by case."""
    for file in sorted(REPLIES.glob("*.json")):
        for entry in json.loads(file.read_text("utf-8")):
            for mode in ("strict", "tolerant"):
                step = parse(entry["raw"], mode=mode, finish_reason=entry["finish_reason"], words=words)  # type: ignore[arg-type]
                yield f"{entry['id']}/{mode}", step.message if isinstance(step, ProtocolError) else None
    yield "cut off", getattr(parse("{", finish_reason="length", words=words), "message", None)
    yield "too large", getattr(parse("x" * (2**20 + 1), words=words), "message", None)
    schema = ConfigSchema(ORDER)
    for index, value in enumerate(VALUES):
        yield (
            f"faults/{index}",
            [[fault.pointer, fault.expected, fault.got, fault.message] for fault in schema.faults(value, words)],
        )
    read: SourceRecord = {"kind": "user", "label": "user message 1", "value": "to ann@example.org"}
    proof = TrustedTexts([str(read["value"])]) if words is ENGLISH_1 else Sources([read], ())
    for name, call in CALLS.items():
        tools = {"order": {**POLICY, **call.get("policy", {})}}
        verdict = judge(
            call.get("tool", "order"),
            call["args"],
            "write",
            tools=tools,
            made=call.get("made", 0),
            proof=proof,
            marks=Marks(),
            words=words,
        )  # type: ignore[arg-type]
        yield f"judge/{name}", [verdict.verdict, verdict.reason, verdict.message]


MULTIPLES: list[tuple[int | float, int | float]] = [
    *((19.99, 0.01), (0.07, 0.01), (4.35, 0.01), (19.995, 0.01), (1e-05, 1e-06), (7, 0.5), (7.0, 2), (6.0, 2), (6, 3)),
    *((1e308, 0.1), (1e308, 1e-320), (0.1 + 0.2, 0.1), (2**63, 3), (-0.03, 0.01), (0, 0.01)),
]
OF_LATER = ("stands/", "narrowed/{", "multiple/")


def comparisons() -> Iterator[tuple[str, Any]]:
    """Which values are equal, legal or contained."""
    schema, narrowing = ConfigSchema(ORDER), Narrowing({"properties": {"to": {"pattern": "[a-z]+"}}})
    for index, value in enumerate(VALUES):
        yield f"legal/{index}", not schema.faults(value)
        yield f"narrowed/{index}", not narrowing.faults(value)
    for schema_text, text in narrowings():
        yield f"narrowed/{schema_text}/{text!a}", not Narrowing(json.loads(schema_text)).faults({"to": text})
    for number, step in MULTIPLES:
        yield f"multiple/{number} of {step}", not ConfigSchema({"multipleOf": step}).faults(number)
    for needle, text in OCCURRENCES:
        yield f"stands/{needle!a} in {text!a}", stands(needle, text)


def narrowings() -> Iterator[tuple[str, str]]:
    """Narrowings of a text that allow and forbid by patterns, each with texts."""
    word, other = {"pattern": "www"}, {"pattern": "ftp"}
    rules = [
        {"not": word},
        {"not": {"not": word}},
        {"if": word, "then": False},
        {"if": {"not": word}, "then": {"maxLength": 3}},
        {"oneOf": [word, other]},
        {"oneOf": [True, word]},
        {"anyOf": [word, other]},
        {"not": {"anyOf": [word, other]}},
        {"not": {"pattern": "a\\nb"}},
        {"pattern": "[a-z\\n]+"},
    ]
    for rule in rules:
        for text in ("www", "see www now", "ftp", "www ftp", "none", "two\nlines", "a\nb", "tab\t", "\x00www"):
            yield json.dumps({"properties": {"to": rule}}), text


def earlier_comparisons() -> Iterator[tuple[str, Any]]:
    """The same, under the first rules."""
    yield from ((name, value) for name, value in comparisons() if not name.startswith(OF_LATER))
    for needle, text in OCCURRENCES[:10]:
        yield f"occurs/{needle!a} in {text!a}", occurs(fold(needle), fold(text))


def stands(value: Any, text: Any, **part: Any) -> bool:
    """Whether a value of this schema stands in a text, or in a tool's answer."""
    source = Source(Origin("user", "user"), text)
    (leaf,) = leaves_of_arguments({"value": value}, Place.of_arguments({"properties": {"value": part}}, None))
    return all(any(True for _ in source.find(probe)) for probe in probes_of(leaf.value, leaf.format, leaf.name))


def prompts() -> Iterator[tuple[str, Any]]:
    """The templates that ship with the package, by their hash."""

    def walk(folder: Traversable, name: str) -> Iterator[tuple[str, Any]]:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir() and not entry.name.startswith("_"):
                yield from walk(entry, f"{name}{entry.name}/")
            elif entry.name.endswith(".md") and entry.name != "README.md":
                yield f"{name}{entry.name}", sha256(entry.read_bytes()).hexdigest()

    yield from walk(files("agent_core.prompts"), "")
