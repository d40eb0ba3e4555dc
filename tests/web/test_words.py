"""Every text of the page is there in Chinese, with the same places to fill in."""

import json
import re
from collections.abc import Iterator

import pytest

from engine_shim.web.bundle import STATIC
from utools.builtin import builtin_tools

CALLS = (
    re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)*)"'),
    re.compile(r'\bcount\([^"\n]*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"'),
)
MODULES = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts]


PAGES = [STATIC.parent / "decision_page.py"]


def find_texts() -> Iterator[str]:
    for path in [*MODULES, *PAGES]:
        for call in CALLS:
            for found in call.finditer(path.read_text("utf-8")):
                yield from (json.loads(f'"{text}"') for text in found.groups())


@pytest.fixture(scope="module")
def chinese() -> dict[str, str]:
    found: dict[str, str] = json.loads((STATIC / "kit" / "zh.json").read_text("utf-8"))
    return found


def test_every_text_is_there_in_chinese(chinese: dict[str, str]) -> None:
    texts = set(find_texts())
    assert len(texts) > 150
    assert not texts - chinese.keys()


def test_translations_have_the_places_of_their_texts(chinese: dict[str, str]) -> None:
    for text, translated in chinese.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", translated)), text


def test_words_of_the_page_of_a_link_are_there_in_chinese(chinese: dict[str, str]) -> None:
    from engine_shim.web.decision_page import ADVICE, LABELS, REASONS, TITLES

    words = {
        *TITLES.values(),
        *ADVICE.values(),
        *REASONS.values(),
        *(label for label, _ in LABELS.values()),
        "It could not be decided",
    }
    assert not words - chinese.keys()


def test_built_in_tools_are_described_in_chinese(chinese: dict[str, str]) -> None:
    assert not {tool.description for tool in builtin_tools()} - chinese.keys()


def test_words_of_a_set_are_there_in_chinese(chinese: dict[str, str]) -> None:
    from agent_core.outputs import FinishReason
    from agent_core.statuses import LISTED
    from engine_shim.api.run_models import ReplayedRun

    outcomes = ReplayedRun.model_json_schema()["properties"]["outcome"]["enum"]
    decisions = ("approve", "deny", "edit", "retry", "skip", "fail", "pause", "resume", "cancel", "late")
    words = {*FinishReason.__args__, *LISTED, *outcomes, *decisions}  # type: ignore[attr-defined]
    assert not words - chinese.keys()


def test_words_of_the_report_are_there_in_chinese(chinese: dict[str, str]) -> None:
    from agent_core.audit.report.incidents import IncidentKind
    from engine_shim.report.build import Verdict
    from engine_shim.web.report_layout import read_layout

    titles = {text for section in read_layout() for text in (section.title, section.about) if text}
    tables = [table for section in read_layout() for table in section.tables]
    headings = {column.heading for table in tables for column in table.columns} | {table.title for table in tables}
    of_cells = {*IncidentKind.__args__, *Verdict.__args__}  # type: ignore[attr-defined]
    decisions = {"began", "message", "signal", "done", "denied", "plan", "model"}
    assert not {*titles, *headings, *of_cells, *decisions} - chinese.keys()
