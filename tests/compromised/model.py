"""A model that an outsider commands: it calls every tool, and fills every argument with a value from every place."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product
from typing import Any

import orjson

from agent_core.journal.record import Tape
from agent_core.models.client import Completion, ModelInfo, Question
from agent_core.outputs import Json
from engine_shim.store.run_store import RunStore
from support.samples import sample
from utools.schema.compiled import compile_schema

WORD = re.compile(r"[\s\"']([A-Za-z0-9][A-Za-z0-9-]*(?:@[a-z.]+[a-z])?)(?=[\s\"'.,:?]*(?:\s|$))")
OWN = "own"
"""The place of what stands nowhere."""
PARENT = "parent's"
LONGEST_LEAF = 60


class CompromisedModel:
    """Knows all that its run has read. Its call k is the same whenever it is asked for it.

    `taken` is, by strand and question, where the value of the call was taken from, and the value; None where it could
    take none from there. `read` is what stood at each place then.
    """

    def __init__(self, store: RunStore, calls: Mapping[str, Json]) -> None:
        self._store, self._calls = store, calls
        self.run = ""
        self.taken: dict[tuple[str, int], tuple[str, str, Any] | None] = {}
        self.read: dict[tuple[str, int], Mapping[str, Sequence[Any]]] = {}

    async def complete(self, question: Question) -> Completion:
        tape = self._store.journal.load(self.run)
        started = tape[question.strand][0].record()
        step = self._step(question.strand, question.index, started, tape)
        return Completion(orjson.dumps(step).decode())

    def info(self) -> ModelInfo:
        return ModelInfo("compromised")

    async def close(self) -> None: ...

    def _step(self, strand: str, index: int, started: Json, tape: Tape) -> Json:
        tools = {code: tool["visible"] for code, tool in started["tools"].items()}
        if index < len(tools):
            code = list(tools)[index]
            return _action(code, self._legal(code, tools[code]))
        places = ["author", "user", PARENT, *tools, OWN]
        wishes = [(code, name, place) for code in tools for name, place in product(_arguments(tools[code]), places)]
        if index - len(tools) >= len(wishes):
            return {"type": "final", "answer": "Done."}
        code, name, place = wishes[index - len(tools)]
        args = self._legal(code, tools[code])
        own = sha256(f"{strand} {index}".encode()).hexdigest()
        number = int(own[:7], 16)
        read = {OWN: [f"zq{own[:8]}", number + 10**7, number % 800 + 101]} | _texts(strand, tape)
        others = " ".join(str(text) for each, texts in read.items() if each != place for text in texts)
        values = _values(read.get(place, ()))
        rarest = [value for value in values if str(value) not in others] or values
        filled = _fill(tools[code], args, name, rarest, index)
        self.taken[strand, index] = None if filled is None else (place, name, filled[name])
        self.read[strand, index] = read
        return _action(code, filled or args)

    def _legal(self, code: str, schema: Json) -> Json:
        """Arguments that the tool takes."""
        return {**sample(schema), **self._calls.get(code, {})}


def _action(code: str, args: Json) -> Json:
    return {"type": "action", "tool": code, "args": args}


def _arguments(schema: Json) -> list[str]:
    """The arguments whose value is no choice among few."""
    return [name for name, part in schema.get("properties", {}).items() if "enum" not in part]


def _fill(schema: Json, args: Json, name: str, values: Sequence[Any], index: int) -> Json | None:
    """The arguments with a value from the place in one of them; None when the place has none that it takes."""
    part = schema["properties"][name]
    is_list = part.get("type") == "array"
    legal = compile_schema(schema)
    for count in range(len(values)):
        value = values[(index + count) % len(values)]
        filled = {**args, name: [value] if is_list else value}
        if not legal.faults(filled):
            return filled
    return None


# ── what the run has read ────────────────────────────────────────────────────────────────────────


def _texts(strand: str, tape: Tape) -> Mapping[str, Sequence[Any]]:
    """The texts and answers at each place, as the journal has them."""
    started = tape[strand][0].record()
    config, is_nested = started["config"], _parent(strand, tape) is not None
    own = [message["content"] for message in started.get("messages", ()) if message["role"] == "user"]
    return {
        "author": [text for key in ("system_prompt", "developer_prompt") if (text := config[key])],
        "user": [] if is_nested else own,
        PARENT: list(_texts_above(strand, tape)),
        **_answers(strand, tape),
    }


def _parent(strand: str, tape: Tape) -> str | None:
    """The agent whose call this one is."""
    above = strand.rpartition("/")[0]
    while above:
        if above in tape and tape[above][0].record().get("loop") == "agent":
            return above
        above = above.rpartition("/")[0]
    return None


def _texts_above(strand: str, tape: Tape) -> Iterator[Any]:
    parent = _parent(strand, tape)
    if parent is not None:
        for texts in _texts(parent, tape).values():
            yield from texts


def _answers(strand: str, tape: Tape) -> dict[str, list[Any]]:
    answers: dict[str, list[Any]] = {}
    asked: dict[str, Any] = {}
    for row in tape[strand]:
        record = row.record()
        if record["kind"] == "asked":
            asked = record
        elif record["kind"] == "answered" and record["reply"] == "did" and record["success"]:
            answers.setdefault(asked["tool"], []).append(record["output"])
    return answers


def _values(texts: Sequence[Any]) -> list[Any]:
    """Values that stand whole in these: short texts and numbers of an answer, and the words of a text."""
    found: dict[str, Any] = {}
    for text in texts:
        for leaf in _leaves(text):
            is_short = not isinstance(leaf, str) or len(leaf) <= LONGEST_LEAF
            words = WORD.findall(f" {leaf} ") if isinstance(leaf, str) else []
            for value in [*([leaf] if is_short else []), *words, *(int(w) for w in words if w.isdigit())]:
                found.setdefault(json.dumps(value), value)
    return list(found.values())


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case bool() | None | "":
            pass
        case _:
            yield value
