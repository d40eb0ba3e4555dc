"""What holds for every reply: parse answers with a value, and never reads something that was not said."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_core.protocol import strict_json
from agent_core.protocol.parse import Action, Final, Plan, ProtocolError, parse, render
from support.examples import examples

relaxed = examples(2.5)

FRAGMENTS = [
    *"{}[]:,\"'\\ \n`1-+.eE/#",
    *("\ufeff", "\ud800", "\\ud83d", "\\ude00", "\\u", "\x00", "雨"),
    *("NaN", "Infinity", "null", "true", "0", "1e999", "9" * 400, "[" * 70, "]" * 70, '{"a":' * 70),
    *("<think>", "</think>", "```", "```json\n", "Action: "),
    *('"type":', '"action"', '"final"', '"plan"', '"tool":"t"', '"args":{}', '"answer":"x"', '"thought":'),
    *('{"type":"action","tool":"t","args":{}}', '{"type":"final","answer":"x"}', '{"type":"observation"}'),
]
strings = st.text() | st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join)

clean = strings.filter(lambda text: not re.search("[\ud800-\udfff]", text))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | clean,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean, inner, max_size=4),
    max_leaves=12,
)
thoughts = st.none() | clean
actions = st.builds(Action, clean, st.dictionaries(clean, values, max_size=4), thoughts)
steps = actions | st.builds(Final, values, thoughts)
sound = values.map(json.dumps) | steps.map(render)
mangled = st.builds(
    lambda text, at, extra: text[: at % len(text)] + extra + text[at % len(text) :],
    sound,
    st.integers(0, 999),
    st.sampled_from(FRAGMENTS),
)
replies = strings | mangled | st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
modes = st.sampled_from(["strict", "tolerant"])
white_space = st.text(" \t\n\r", max_size=3)

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def same(left: object, right: object) -> bool:
    """Equal and of equal types all the way down: 1 is not 1.0, nor is 0.0 -0.0."""
    return repr(left) == repr(right)


def outside_strings(text: str) -> list[int]:
    """The positions that lie in no string; an insertion there stands outside of strings."""
    inside = {n for string in STRING.finditer(text) for n in range(string.start() + 1, string.end())}
    return [n for n in range(len(text) + 1) if n not in inside]


@relaxed
@given(text=replies, mode=modes, finish_reason=st.sampled_from(["stop", "length", ""]), any_answer=st.booleans())
def test_any_text_gives_a_value(text: str, mode: Any, finish_reason: str, any_answer: bool) -> None:
    step = parse(text, mode=mode, finish_reason=finish_reason, any_answer=any_answer)
    if isinstance(step, ProtocolError):
        assert step.message.encode()
        assert "{" not in step.message
    else:
        assert isinstance(step, Action | Final | Plan)
        assert finish_reason != "length"


@relaxed
@given(step=steps, mode=modes, before=white_space, after=white_space)
def test_rendered_step_parses_back(step: Any, mode: Any, before: str, after: str) -> None:
    assert same(parse(before + render(step) + after, mode=mode, any_answer=True), step)


@relaxed
@given(text=replies)
def test_what_strict_reads_tolerant_reads_alike(text: str) -> None:
    step = parse(text)
    if not isinstance(step, ProtocolError):
        assert same(parse(text, mode="tolerant"), step)


@relaxed
@given(step=steps, mode=modes, data=st.data())
def test_cut_off_reply_is_never_another_step(step: Any, mode: Any, data: st.DataObject) -> None:
    text = render(step)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert isinstance(parse(text[:cut], mode=mode, any_answer=True), ProtocolError)


@relaxed
@given(step=steps, mode=modes, mark=st.sampled_from("{}[]:"), data=st.data())
def test_one_mark_too_many_is_never_another_step(step: Any, mode: Any, mark: str, data: st.DataObject) -> None:
    text = render(step)
    at = data.draw(st.sampled_from(outside_strings(text)))
    assert isinstance(parse(text[:at] + mark + text[at:], mode=mode, any_answer=True), ProtocolError)


@relaxed
@given(step=steps, mode=modes, data=st.data())
def test_one_mark_too_few_is_never_another_step(step: Any, mode: Any, data: st.DataObject) -> None:
    text = render(step)
    marks = [n for n in outside_strings(text) if text[n : n + 1] in tuple("{}[]:")]
    at = data.draw(st.sampled_from(marks))
    assert isinstance(parse(text[:at] + text[at + 1 :], mode=mode, any_answer=True), ProtocolError)


@relaxed
@given(first=steps, rest=st.lists(st.dictionaries(clean, values, max_size=2), min_size=1, max_size=3), gap=white_space)
def test_of_several_objects_only_a_leading_action_is_taken(first: Any, rest: list[Any], gap: str) -> None:
    text = gap.join([render(first), *(json.dumps(item, ensure_ascii=False) for item in rest)])
    strict, tolerant = parse(text, any_answer=True), parse(text, mode="tolerant", any_answer=True)
    assert isinstance(strict, ProtocolError)
    assert strict.kind == "multiple_values"
    if isinstance(first, Action):
        assert same(tolerant, Action(first.tool, first.args, first.thought, ("trailing",)))
    else:
        assert tolerant == strict


@relaxed
@given(text=replies | sound)
def test_decode_and_scan_accept_the_same_texts(text: str) -> None:
    one_value = len(strict_json.find_values(text) or []) == 1
    shallow = text.count("[") + text.count("{") <= strict_json.MAX_DEPTH
    try:
        strict_json.decode(text)
    except ValueError:
        assert not (one_value and shallow)
    else:
        assert one_value
