"""The records' types, the page that shows them to auditors, and the rules that a run names."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

from agent_core import replay
from agent_core.errors import JournalError
from agent_core.journal.chain import check_chains
from agent_core.journal.record import by_path, chain_row, genesis
from agent_core.records import AnyRecord, Kind
from agent_core.rules import CURRENT, EARLIEST, rules_of
from agent_core.words.catalogue import ENGLISH_1, words_of
from support import rule_cases
from support.by_hand import Hand, final

README = Path(__file__).parents[2] / "agent_core" / "journal" / "README.md"
RULES = Path(__file__).parents[2] / "fixtures" / "rules"
TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
EXAMPLES = dict(re.findall(r"^```json ([^\n]+)\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S))


def type_of(record: dict[str, Any]) -> type | None:
    """The one record type that a record fits, with no field to spare."""
    fitting = []
    for record_type, adapter in adapters().items():
        try:
            adapter.validate_python(record)
        except ValidationError:
            continue
        fitting.append(record_type)
    return fitting[0] if len(fitting) == 1 else None


@cache
def adapters() -> dict[type, TypeAdapter[Any]]:
    for record_type in get_args(AnyRecord):
        record_type.__pydantic_config__ = ConfigDict(extra="forbid")
    return {record_type: TypeAdapter(record_type) for record_type in get_args(AnyRecord)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_page_is_a_record_of_one_type(name: str) -> None:
    assert type_of(orjson.loads(EXAMPLES[name])) is not None


def test_the_page_shows_an_example_of_each_type() -> None:
    shown = {type_of(orjson.loads(text)) for text in EXAMPLES.values()}
    assert shown == set(get_args(AnyRecord))
    assert {orjson.loads(text)["kind"] for text in EXAMPLES.values()} == set(get_args(Kind))


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_a_recorded_run_holds_records_of_these_types_alone(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        record = orjson.loads(line)["record"]
        assert type_of(record) is not None, record


# ── rules ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "cases"),
    [("texts", rule_cases.texts), ("comparison", rule_cases.comparisons), ("prompts", rule_cases.prompts)],
    ids=["texts", "comparison", "prompts"],
)
def test_rules_change_only_under_a_new_version(rule: str, cases: Callable[[], Iterator[tuple[str, Any]]]) -> None:
    recorded = orjson.loads((RULES / f"{rule}-{CURRENT[rule]}.json").read_bytes())  # type: ignore[literal-required]
    now = orjson.loads(orjson.dumps(dict(cases())))
    assert {name: (recorded.get(name), now[name]) for name in now if recorded.get(name) != now[name]} == {}
    assert recorded.keys() == now.keys()


def test_the_texts_of_version_1_are_those_that_were_recorded_under_it() -> None:
    now = orjson.loads(orjson.dumps(dict(rule_cases.texts_in(ENGLISH_1))))
    assert now == orjson.loads((RULES / "texts-1.json").read_bytes())


def test_the_comparison_of_version_1_is_that_which_was_recorded_under_it() -> None:
    now = orjson.loads(orjson.dumps(dict(rule_cases.earlier_comparisons())))
    assert now == orjson.loads((RULES / "comparison-1.json").read_bytes())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_has_the_texts_of_its_rules_and_its_language(language: str) -> None:
    started = Hand([final()], language=language).started
    assert words_of(started).language == language
    assert words_of({**started, "rules": {"texts": 1}}) is ENGLISH_1


def test_a_new_run_names_the_rules_it_follows() -> None:
    assert rules_of(Hand([final()]).started) == CURRENT


@pytest.mark.parametrize(
    ("named", "rules"),
    [({}, EARLIEST), ({"cuts": 2}, {**EARLIEST, "cuts": 2}), ({"rules": {"texts": 1}}, EARLIEST)],
    ids=["none", "cuts alone", "some"],
)
def test_a_run_that_names_no_version_follows_the_earliest(named: dict[str, Any], rules: dict[str, int]) -> None:
    assert rules_of(named) == rules


@pytest.mark.parametrize(
    "rules",
    [{"texts": 99}, {"manners": 1}, {"texts": "2"}, ["texts"]],
    ids=["newer", "unknown", "odd", "list"],
)
def test_a_run_under_rules_that_are_not_known_is_refused(rules: Any) -> None:
    record = {"kind": "run_started", "loop": "agent", "format": 1, "rules": rules}
    rows = [chain_row("agent", 0, genesis("r", "agent"), record)]
    with pytest.raises(JournalError, match="use a newer version"):
        check_chains("r", by_path(rows))
    with pytest.raises(JournalError, match="use a newer version"):
        replay(rows, run_id="r")
