"""Replies as small models write them: each entry of fixtures/replies says what strict and tolerant make of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_core.protocol.parse import Action, Final, Kind, Plan, ProtocolError, parse

CORPUS = Path(__file__).parents[2] / "fixtures" / "replies"
ENTRIES = [
    entry | {"id": f"{file.stem}/{entry['id']}"}
    for file in sorted(CORPUS.glob("*.json"))
    for entry in json.loads(file.read_text(encoding="utf-8"))
]
each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=[entry["id"] for entry in ENTRIES])


def described(step: Action | Final | Plan | ProtocolError) -> dict[str, Any]:
    """The step in the words of the corpus."""
    if isinstance(step, ProtocolError):
        return {"kind": step.kind}
    fields = {name: value for name, value in asdict(step).items() if value is not None}
    stripped = fields.pop("stripped")
    match step:
        case Action():
            said: dict[str, Any] = {"action": fields}
        case Final():
            said = {"final": step.answer}
        case Plan():
            said = {"plan": fields | {"steps": list(fields["steps"])}}
    return said | ({"stripped": list(stripped)} if stripped else {})


@each_entry
@pytest.mark.parametrize("mode", ["strict", "tolerant"])
def test_reply_is_read_as_the_corpus_says(entry: dict[str, Any], mode: Any) -> None:
    step = parse(entry["raw"], mode=mode, finish_reason=entry["finish_reason"])
    assert described(step) == entry[mode], entry["why"]


@pytest.mark.sampled
@each_entry
def test_message_is_never_a_reply_that_a_model_could_echo(entry: dict[str, Any]) -> None:
    step = parse(entry["raw"], finish_reason=entry["finish_reason"])
    if isinstance(step, ProtocolError):
        assert "{" not in step.message
        assert 20 < len(step.message.encode()) < 600


def test_every_kind_that_fits_in_a_file_occurs_in_the_corpus() -> None:
    seen = {entry[mode].get("kind") for entry in ENTRIES for mode in ("strict", "tolerant")}
    assert set(get_args(Kind)) - seen == {"too_large"}
