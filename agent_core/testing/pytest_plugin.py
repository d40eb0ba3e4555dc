"""The plugin for pytest, which its entry point `agent_core` loads: fixtures for tests of agents.

It costs a test run nothing before a fixture is used: only then is anything of the library imported.
"""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agent_core.journal.memory import MemoryJournal
    from agent_core.testing.recorded_runs import RecordedRuns
    from agent_core.testing.schema_model import TestModel

__all__ = ["memory_journal", "no_real_models", "recorded_run", "test_model"]
pytest.register_assert_rewrite("agent_core.testing.contracts", "engine_shim.testing.contracts")
VARIABLE = "AGENT_CORE_RECORD_RUNS"
FOLDER = "recorded_runs"
LONGEST = 150
"""Bytes of the name of a test that stand in the name of its file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = f"Record the runs of the fixture recorded_run anew, by their own models (or {VARIABLE}=1)."
    parser.getgroup("agent_core").addoption("--record-runs", action="store_true", default=False, help=about)


@pytest.fixture
def memory_journal() -> "MemoryJournal":
    """A journal in memory, empty at the start of each test."""
    from agent_core.journal.memory import MemoryJournal

    return MemoryJournal()


@pytest.fixture
def no_real_models() -> Iterator[None]:
    """While the test runs, each question to a real model is refused, with an error that names the model."""
    from agent_core.testing.real_models import no_real_models

    with no_real_models():
        yield


@pytest.fixture
def test_model() -> "TestModel":
    """A model that calls every allowed tool once, with arguments made from its schema, and answers."""
    from agent_core.testing.schema_model import TestModel

    return TestModel()


@pytest.fixture
def recorded_run(request: pytest.FixtureRequest) -> "RecordedRuns":
    """Runs an agent by the replies that were recorded beside the test, and fails where it differs from then.

    `await recorded_run(config, registry=…, model=…)`, or `recorded_run.sync(…)`; `pytest --record-runs` records. The
    runs of `test_x` in `test_desk.py` are files in `recorded_runs/test_desk/` beside it. Annotate it as
    `agent_core.testing.RecordedRuns`.
    """
    from agent_core.testing.recorded_runs import RecordedRuns

    records = bool(request.config.getoption("--record-runs")) or os.environ.get(VARIABLE, "") not in ("", "0")
    name = name_file(re.sub(r"@\w+$", "", request.node.nodeid.partition("::")[2]))
    return RecordedRuns(request.path.parent / FOLDER / request.path.stem / name, records=records)


def name_file(test: str) -> str:
    """Return a name for the file of a test: its own, with a digest where that is too long, or where another test could
    have it: `test[+]` and `test[*]`, or the second run of `test[a]` and the first of `test[a-2]`."""
    plain = re.sub(r"[^\w.-]+", "-", test).strip("-")
    short = plain.encode()[:LONGEST].decode(errors="ignore")
    if short == plain and re.fullmatch(r"[\w:]+(\[\w([\w.-]*\w)?\])?", test) and not re.search(r"-\d+\]$", test):
        return plain
    from hashlib import sha256

    return f"{short}-{sha256(test.encode()).hexdigest()[:8]}"
