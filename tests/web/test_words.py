"""Every text of the page is there in Chinese, with the same places to fill in."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from engine_shim.web.bundle import STATIC
from support.optional import NODE, needs_node

CALLS = (
    re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)*)"'),
    re.compile(r'\bcount\([^"\n]*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"'),
)
MODULES = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts and not path.name.startswith("chinese")]


def find_texts() -> Iterator[str]:
    for path in MODULES:
        for call in CALLS:
            for found in call.finditer(path.read_text("utf-8")):
                yield from (json.loads(f'"{text}"') for text in found.groups())


@pytest.fixture(scope="module")
def chinese() -> dict[str, str]:
    script = f'import {{ chinese }} from "{STATIC}/kit/chinese.js"; console.log(JSON.stringify(chinese));'
    assert NODE is not None
    done = subprocess.run([NODE, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@needs_node
def test_every_text_is_there_in_chinese(chinese: dict[str, str]) -> None:
    texts = set(find_texts())
    assert len(texts) > 150
    assert not texts - chinese.keys()


@needs_node
def test_translations_have_the_places_of_their_texts(chinese: dict[str, str]) -> None:
    for text, translated in chinese.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", translated)), text


@needs_node
def test_words_of_a_set_are_there_in_chinese(chinese: dict[str, str]) -> None:
    from agent_core.effects import FinishReason
    from engine_shim.api.models import ReplayedRun
    from engine_shim.statuses import LISTED

    outcomes = ReplayedRun.model_json_schema()["properties"]["outcome"]["enum"]
    decisions = ("approve", "deny", "edit", "retry", "skip", "fail", "pause", "resume", "cancel", "late")
    words = {*FinishReason.__args__, *LISTED, *outcomes, *decisions}  # type: ignore[attr-defined]
    assert not words - chinese.keys()
