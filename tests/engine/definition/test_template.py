"""Placeholders: what they become, and what is said when they cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.definition.template import Placeholder, placeholders, render
from engine_shim.errors import DefinitionError

NAMES: dict[str, Any] = {
    "external": {"name": "Zoë", "n": 7, "flag": True, "none": None, "list": [1, {"x": "y"}], "fünf": 5},
    "env": {"STAGE": "test"},
    "nodes": {"a": {"text": "hi", "items": [{"id": 1}, {"id": 2}], "7": "seven"}, "plain": "just text"},
    "run": {"id": "run-1"},
}
ODD: dict[str, Any] = {
    "external": {"Exchange Rate": {"a.b": 1.5, "why?": "so", 'say "hi"': [{"it's": 7}], "": 8}},
    "nodes": {"a": {"Exchange Rate": 1.2, "x[0]": "zero", "Kurs (€)": 9}},
    "env": {},
    "run": {"id": "run-1"},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

FILLED = {
    "text in a text": ("Dear {{external.name}}!", "Dear Zoë!"),
    "several in a text": ("{{external.name}}{{external.n}}{{run.id}}", "Zoë7run-1"),
    "white space inside": ("{{ external.name }}", "Zoë"),
    "a number keeps its type": ("{{external.n}}", 7),
    "a boolean keeps its type": ("{{external.flag}}", True),
    "null keeps its type": ("{{external.none}}", None),
    "a list keeps its type": ("{{external.list}}", [1, {"x": "y"}]),
    "a whole node": ("{{nodes.plain}}", "just text"),
    "a number in a text": ("n={{external.n}}", "n=7"),
    "a boolean in a text is JSON": ("{{external.flag}}!", "true!"),
    "a list in a text is JSON": ("got {{external.list}}", 'got [1,{"x":"y"}]'),
    "white space around makes a text": (" {{external.n}}", " 7"),
    "an index of a list": ("{{nodes.a.items.1.id}}", 2),
    "a key made of digits": ("{{nodes.a.7}}", "seven"),
    "a name that is not ASCII": ("{{external.fünf}}", 5),
    "an environment variable": ("{{env.STAGE}}", "test"),
    "inside of lists and objects": ({"a": ["{{external.n}}", {"b": "{{run.id}}"}]}, {"a": [7, {"b": "run-1"}]}),
    "never in a key": ({"{{external.n}}": 1}, {"{{external.n}}": 1}),
    "braces of JSON around one": ('{"n":{"m":{{external.n}}}}', '{"n":{"m":7}}'),
    "a brace on each side": ("{{{external.n}}}", "{7}"),
    "two braces alone": ("a {{ b", "a {{ b"),
    "closing braces alone": ('{"a":{"b":1}}', '{"a":{"b":1}}'),
    "no text at all": (3.5, 3.5),
    "braces that are meant": ("Write {{'{{'}} name }} for {{external.name}}", "Write {{ name }} for Zoë"),
    "braces in other quotes": ('{{ "{{" }}', "{{"),
    "braces before what would be one": ("{{'{{'}}external.n}}", "{{external.n}}"),
    "a template of another language": ({"template": "Hi {{ name|title }}{{external}}"},) * 2,
    "a template that is one variable": ({"a": [{"template": "{{ name }}"}]},) * 2,
    "a template with a name of ours": ({"template": "Hi {{external.name}}"}, {"template": "Hi Zoë"}),
    "a template that is given": ({"template": "{{external.name}}"}, {"template": "Zoë"}),
    "what only lies below a template": ({"template": {"a": "{{external.n}}"}}, {"template": {"a": 7}}),
}

REFUSED = {
    "missing input": ("{{external.nam}}", "there is no 'nam' in external; there are flag, fünf, list, n, name, none"),
    "missing node": ("{{nodes.b.x}}", "there is no 'b' in nodes; there are a, plain"),
    "missing key below": ("{{nodes.a.items.0.x}}", "there is no 'x' in nodes.a.items.0; there are id"),
    "index past the end": ("{{nodes.a.items.2}}", "there is no '2' in nodes.a.items; it has 2 items, counted from 0"),
    "negative index": ("{{nodes.a.items.-1}}", "it has 2 items"),
    "index that is no number": ("{{nodes.a.items.x}}", "it has 2 items"),
    "absurd index": ("{{nodes.a.items." + "9" * 5000 + "}}", "it has 2 items"),
    "below a plain value": ("{{nodes.plain.x}}", "there is no 'x' in nodes.plain; it is a plain value"),
    "unknown root": ("{{inputs.x}}", "starts with one of external, env, nodes, run"),
    "root alone": ("{{external}}", "write {{external.NAME}}"),
    "empty": ("{{}}", "write {{external.NAME}}"),
    "a space inside": ("{{external.a b}}", "write {{external.NAME}}"),
    "a filter": ("{{external.n|upper}}", "there is no 'n|upper' in external"),
    "two dots": ("{{external..n}}", "write {{external.NAME}}"),
    "not closed": ("Dear {{external.name}!", "is not closed by }}"),
    "not closed before another": ("{{external.n and {{external.n}}", "is not closed by }}"),
}


@pytest.mark.parametrize(("value", "expected"), FILLED.values(), ids=FILLED)
def test_placeholder_becomes(value: Any, expected: Any) -> None:
    assert render(value, NAMES) == expected
    assert type(render(value, NAMES)) is type(expected)


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED)
def test_placeholder_that_cannot_be_filled_says_where_what_and_which_names_there_are(text: str, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        render({"a": ["fine", text]}, NAMES, where="nodes/0/config")
    assert refused.value.where == "nodes/0/config/a/1"
    assert told in str(refused.value)
    assert len(str(refused.value)) < 6000


QUOTED = {
    "a space": ('{{nodes.a["Exchange Rate"]}}', 1.2),
    "a space, in single quotes": ("{{nodes.a['Exchange Rate']}}", 1.2),
    "in a text": ('1 EUR = {{ nodes.a["Exchange Rate"] }} USD', "1 EUR = 1.2 USD"),
    "at the root": ("{{external['Exchange Rate']}}", ODD["external"]["Exchange Rate"]),
    "one after another": ('{{external["Exchange Rate"]["a.b"]}}', 1.5),
    "a question mark": ('{{external["Exchange Rate"]["why?"]}}', "so"),
    "quotes": ("""{{external["Exchange Rate"]['say "hi"'].0["it's"]}}""", 7),
    "nothing": ('{{external["Exchange Rate"][""]}}', 8),
    "other letters": ('{{nodes["a"]["Kurs (€)"]}}', 9),
    "a bracket without quotes is a part of the name": ("{{nodes.a.x[0]}}", "zero"),
    "that may be missing": ('{{nodes.a["no such"]["key"]?}}', None),
    "a subscript of another language": ({"template": '{{ env["HOME DIR"] }} {{ run["x"] }}'},) * 2,
}
BADLY_QUOTED = {
    "missing": ('{{nodes.a["Exchange rate"]}}', """there is no 'Exchange rate' in nodes.a; there are Exchange Rate,"""),
    "below it": ('{{external["Exchange Rate"].x}}', """there is no 'x' in external["Exchange Rate"]; there are"""),
    "shown as it was written": ('{{external["Exchange Rate"]["b c"]}}', '{{external["Exchange Rate"]["b c"]}}'),
    "without quotes": ("{{nodes.a.Exchange Rate}}", """a key with spaces or dots is written nodes.ID["a key"]"""),
    "not closed": ('{{nodes.a["Exchange Rate"}}', "no placeholder"),
    "a brace missing": ('{{nodes["Exchange Rate"]}', "is not closed by }}"),
    "text after it": ('{{nodes.a["x"]y}}', "no placeholder"),
}


@pytest.mark.parametrize(("value", "expected"), QUOTED.values(), ids=QUOTED)
def test_a_quoted_key_may_hold_what_a_name_may_not(value: Any, expected: Any) -> None:
    assert render(value, ODD) == expected


@pytest.mark.parametrize(("text", "told"), BADLY_QUOTED.values(), ids=BADLY_QUOTED)
def test_a_quoted_key_that_cannot_be_filled_says_why(text: str, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        render(text, ODD)
    assert told in str(refused.value)


@given(st.lists(st.text(st.characters(exclude_characters="{}'")), min_size=1, max_size=3))
def test_a_path_that_is_shown_can_be_read_again(keys: list[str]) -> None:
    shown = str(Placeholder(("nodes", *keys)))
    assert [each.path for _, each in placeholders(shown)] == [("nodes", *keys)]


@given(st.text().filter(lambda text: "{{" not in text))
def test_text_without_placeholders_stays_as_it_is(text: str) -> None:
    assert render(text, NAMES) == text
    assert list(placeholders(text)) == []


@given(JSON)
def test_whole_placeholder_keeps_its_value_whatever_it_is(value: Any) -> None:
    assert render("{{external.x}}", {"external": {"x": value}}) == value


@given(st.sampled_from(["{{run.id}}", "{{external.x}}", "{{", "}}", "{{nodes.a"]), st.text(), st.text())
def test_what_is_filled_in_is_never_evaluated_again(inner: str, before: str, after: str) -> None:
    value = f"{before}{inner}{after}"
    assert render("{{external.x}}", {"external": {"x": value}}) == value
    assert render("<{{external.x}}>", {"external": {"x": value}}) == f"<{value}>"
    assert render("{{external.x}}{{external.x}}", {"external": {"x": value}}) == value + value


def test_two_values_that_make_a_placeholder_together_are_not_evaluated() -> None:
    assert render("{{external.a}}{{external.b}}", {"external": {"a": "{{run", "b": ".id}}"}}) == "{{run.id}}"


def test_all_placeholders_are_found_with_their_places() -> None:
    found = placeholders({"a": ["{{run.id}} {{env.X}}"], "b": {"c": "{{nodes.n.0}}"}}, "config")
    assert [(where, each.path) for where, each in found] == [
        ("config/a/0", ("run", "id")),
        ("config/a/0", ("env", "X")),
        ("config/b/c", ("nodes", "n", "0")),
    ]
