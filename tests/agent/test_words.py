"""The catalogues: every language has each text with the same placeholders, and no text for a model is elsewhere."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.words import en
from agent_core.words.catalogue import ENGLISH, Words, words_in
from agent_core.words.earlier import English1
from support.rule_cases import entries
from support.sentences import english_sentences
from utools.words import en as utools_en

ROOT = Path(__file__).parents[2]
CHINESE = words_in("zh")
FILES = [ROOT / room / "zh.json" for room in ("agent_core/words", "utools/words", "engine_shim/web/static/kit")]
IN_ENGLISH, IN_CHINESE = dict(entries(ENGLISH)), dict(entries(CHINESE))
PYDANTIC = "by_pydantic_type/"
"""Pydantic's own words are English: only other languages have texts for its types of fault."""
SHARED = {"own_arguments", "untrusted", "between_faults", "arguments", "types/null", "kinds/null", "rate"}
"""Texts without words."""
SPEAKING = (
    "agent_core/loop",
    "agent_core/protocol",
    "agent_core/prompts",
    "agent_core/journal/approvals.py",
    "agent_core/run/admission.py",
    "agent_core/run/executor.py",
    "utools/calls/cache.py",
    "utools/calls/rate_limit.py",
    "utools/calls/rate_limiter.py",
    "utools/registry.py",
    "utools/schema/faults.py",
    "utools/schema/json_value.py",
    "utools/schema/validation.py",
)
"""Where code makes what a model reads."""
FOR_PEOPLE = {
    "X is not in trusted text",  # what waits for a person's approval
    "X comes from X; provenance asks for X",
    "X is X, which comes from X; it would be proven by X",
    "X writes, and the run has read untrusted text",
    "X needs a person's approval",
    "there is no X, since X cannot be used: X",  # a definition that needs a source that is left out
    "X is for the nodes of workflows alone, and no model calls it: write a node with it",  # an author's allowed_tools
    "the process ended before the call was answered",  # a write in doubt
    "not run: X",  # the trace
    "X gave no reply within X seconds; X",  # how a run ended
    "single_call_timeout in the node's config gives a reply more of them, timeout the run",
    "X was cut off: X",
    "a person ended the run here: the write is in doubt",
    "cached answers cannot be read: %s",  # the log
    "the answer of %s cannot be cached: %s",
    "the client of the model %s failed: %s",
    "the tool %s was called, and its result could not be kept; the record says why",
    "X is a required property",  # jsonschema's words, which tell what is missing
    "there are X",  # what an author reads of a definition
    "a part of type X cannot be taken: calls are the tool_calls of an assistant, and each result is a message of the "
    "role tool",
    "did you mean X?",
}
"""Sentences of these modules for a person, or for the log."""


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


# ── the same in every language ───────────────────────────────────────────────────────────────────


def test_every_language_has_the_same_texts() -> None:
    assert IN_ENGLISH.keys() == {name for name in IN_CHINESE if not name.startswith(PYDANTIC)}
    own = vars(CHINESE).keys()
    english = vars(en.English).keys() | vars(utools_en.English).keys()
    assert {name for name in english ^ own if not name.startswith("_")} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_each_name_once(path: Path) -> None:
    def take_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    assert json.loads(path.read_text("utf-8"), object_pairs_hook=take_once)


@pytest.mark.sampled
@pytest.mark.parametrize("name", IN_ENGLISH)
def test_a_text_has_the_same_placeholders_in_every_language(name: str) -> None:
    assert placeholders(IN_CHINESE[name]) == placeholders(IN_ENGLISH[name])


@pytest.mark.parametrize("table", ["in_a_plan", "of_arguments", "of_answers"])
@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_text_for_plans_or_calls_has_the_placeholders_of_the_one_that_it_replaces(words: Words, table: str) -> None:
    texts = getattr(words, table)
    assert texts.keys() == getattr(ENGLISH, table).keys()
    assert {name: placeholders(text) for name, text in texts.items()} == {
        name: placeholders(getattr(words, name)) for name in texts
    }


@pytest.mark.sampled
@pytest.mark.parametrize("name", IN_ENGLISH)
def test_a_text_is_written_in_its_language(name: str) -> None:
    assert not re.search(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", IN_ENGLISH[name])
    assert english_sentences(IN_CHINESE[name]) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*IN_ENGLISH, *(name for name in IN_CHINESE if name.startswith(PYDANTIC))])
def test_a_placeholder_is_a_plain_name(name: str) -> None:
    """Attributes and items of a value would be read otherwise."""
    assert all(each.isidentifier() for each in placeholders(IN_CHINESE[name]))


@given(st.text())
def test_no_value_breaks_a_text(value: str) -> None:
    numbers = {name for name in IN_CHINESE if name.startswith("limits/")}
    for texts in (IN_ENGLISH, IN_CHINESE):
        for name, text in texts.items():
            values = dict.fromkeys(placeholders(text), 7 if name in numbers else value)
            literal = "".join(part for part, _, _, _ in Formatter().parse(text))
            filled = text.format(**values)
            assert name in numbers or len(filled) == len(literal) + len(value) * text.count("{")


def test_an_earlier_version_has_only_texts_that_have_changed_since() -> None:
    changed = {name: text for name, text in vars(English1).items() if not name.startswith("_")}
    assert {name: text for name, text in changed.items() if getattr(ENGLISH, name) == text} == {}
    assert all(placeholders(text) <= {"kind", "names", "message", "got"} for text in changed.values())


# ── nowhere else ─────────────────────────────────────────────────────────────────────────────────


def sentences(path: Path) -> Iterator[str]:
    """The texts in a module that read as English: not its docstrings, nor what an exception says. X is any value."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    raised = [each for each in ast.walk(tree) if isinstance(each, ast.Raise)]
    silent |= {id(each) for one in raised for each in ast.walk(one)}
    for node in ast.walk(tree):
        if id(node) in silent or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        silent |= {id(part) for part in parts}
        if any(len(re.findall(r"\b(?!X\b)[A-Za-z]+", each)) > 1 for each in english_sentences(text)):
            yield text


MODULES = [path for name in SPEAKING for path in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_nothing_that_is_not_in_the_catalogue(path: Path) -> None:
    assert set(sentences(path)) - FOR_PEOPLE == set()


def test_a_sentence_outside_of_the_catalogue_is_found(tmp_path: Path) -> None:
    path = tmp_path / "speaking.py"
    path.write_text(
        '"""Some words on it."""\nif x:\n    raise E("for the people alone")\ny = f"the tool {x} is gone"\n'
    )
    assert list(sentences(path)) == ["the tool X is gone"]
