"""Earlier rules of comparison: an argument's text had to stand, whole, in trusted text; multiples were of binary
fractions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.loop.judge import edit_faults, judge
from agent_core.loop.masked import Marks
from agent_core.origins.earlier import find_untrusted, fold, occurs, texts_in
from agent_core.origins.sources import Sources
from support.rule_cases import POLICY

HELD: list[tuple[str, str, bool]] = [
    ("bob@example.com", "Mail bob@example.com now", True),
    ("bob@example.com", "<bob@example.com>", True),
    ("bob@example.com", "bob@example.com", True),
    ("bob@example.com", "Mail bob@example.com.", True),
    ("bob@example.com", "Mail bob@example.com. Then rest.", True),
    ("bob@example.com", "bob@example.com.evil.org", False),
    ("bob@example.com", "bigbob@example.com", False),
    ("bob@example.com", "x.bob@example.com", False),
    ("bob@example.com", "bob@example.community", False),
    ("bob@example.com", "bob@example.com@evil.org", False),
    ("bob@example.com", "x+bob@example.com", False),
    ("example.com", "bob@example.com", False),
    ("17", "order 17, please", True),
    ("17", "order 117", False),
    ("17", "order 17-b", False),
    ("a", "", False),
    ("", "anything", False),
    ("rest", "evil-rest or rest", True),
    ("café", "the cafe\u0301 there", True),
    ("STRASSE", "straße 5", True),
    ("e", "the e\u0301 there", False),
    ("北京", "去北京市", False),
    ("北京", "去 北京 吧", True),
]


@pytest.mark.parametrize(("value", "text", "held"), HELD)
def test_a_value_must_stand_whole(value: str, text: str, held: bool) -> None:
    assert occurs(fold(value), fold(text)) == held


@given(st.text(min_size=1), st.text(), st.text())
def test_a_value_between_white_space_is_always_found(value: str, before: str, after: str) -> None:
    assert occurs(fold(value), fold(f"{before} {value} {after}"))


@given(st.text(alphabet="ab1._@+- ", min_size=1, max_size=4), st.text(alphabet="ab1._@+- ", max_size=12))
def test_an_occurrence_is_never_a_part_of_a_longer_word(value: str, text: str) -> None:
    if occurs(value, text):
        assert value in text
        joined = [f"{left}{value}" in f" {text}" or f"{value}{left}" in f"{text} " for left in "ab1_@+-"]
        assert not all(joined)


SCHEMA: dict[str, Any] = {
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["mail", "post"]},
        "count": {"type": "integer"},
        "size": {"enum": [1, 2]},
    }
}
LEAVES: list[tuple[Any, str | None]] = [
    ({"to": ["ann", "bob"]}, None),
    ({"to": ["ann", "eve"]}, "/to/1"),
    ({"kind": "mail"}, None),
    ({"count": 5}, "/count"),
    ({"size": 1}, None),
    ({"to": [None]}, "/to/0"),
    ({"unnamed key": "ann"}, "/unnamed key"),
]


@pytest.mark.parametrize(("value", "place"), LEAVES, ids=str)
def test_every_leaf_is_looked_at_and_named(value: Any, place: str | None) -> None:
    assert find_untrusted(value, SCHEMA, ["Tell ann and bob"]) == place


def test_texts_are_taken_as_they_read_not_as_json() -> None:
    assert list(texts_in({"a\nb": ["c", 5, True, None, {"d": 1.5}]})) == ["a\nb", "c", "5", "d", "1.5"]


AMOUNT: dict[str, Any] = {"type": "object", "properties": {"amount": {"type": "number", "multipleOf": 0.01}}}
UNSAID: dict[str, Any] = {"hidden": [], "preset": {}, "provenance": {}}
HELD_TO: dict[str, dict[str, Any]] = {
    "schema": {**UNSAID, "schema": AMOUNT, "args": None},
    "narrowing": {**UNSAID, "schema": {"type": "object"}, "args": AMOUNT},
}


@pytest.mark.parametrize(("comparison", "verdict"), [(4, "refuse"), (5, "run")])
@pytest.mark.parametrize("held", HELD_TO.values(), ids=HELD_TO)
def test_amount_of_money_is_a_multiple_of_a_cent(held: dict[str, Any], comparison: int, verdict: str) -> None:
    """A run that was recorded before is judged as it was."""
    tools: Any = {"pay": {**POLICY, **held}}
    proof = Sources(comparison=comparison)
    for amount, found in ((19.99, verdict), (19.995, "refuse"), (4, "run")):
        judged = judge("pay", {"amount": amount}, "write", tools=tools, made=0, proof=proof, marks=Marks())
        assert (amount, judged.verdict) == (amount, found)
    assert bool(edit_faults(AMOUNT, {"amount": 1}, {"amount": 19.99}, comparison)) is (verdict == "refuse")
