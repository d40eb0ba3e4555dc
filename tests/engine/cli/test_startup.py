"""What short commands load: no more than they need, so that they start at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_shim.cli.app import COMMANDS, NAMES
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import SqliteRunStore

pytestmark = pytest.mark.exhaustive

LOADED = """
import json, sys
from engine_shim.cli.main import main
sys.argv[0] = "agent-core"
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""
OUTSIDE = {"aiohttp", "asyncio", "httpx2", "jsonschema", "mcp", "openai", "redis", "rich", "yaml"}
"""What none of them needs."""
ENGINE = {
    "agent_core.audit",
    "agent_core.config",
    "agent_core.loop",
    "agent_core.models",
    "agent_core.prompts",
    "agent_core.run",
    "engine_shim.host.registry",
    "engine_shim.definition",
    "engine_shim.flow",
    "engine_shim.runs.drive",
    "engine_shim.runs.engine",
    "engine_shim.runs.prepare",
    "utools.builtin",
    "utools.net",
    "utools.registry",
    "utools.sources",
}


def loaded(*words: str, **environment: str) -> set[str]:
    """The modules in memory after a command."""
    command = [sys.executable, "-c", LOADED, *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr))


def within(modules: set[str], names: set[str]) -> set[str]:
    """Which of these packages and modules were loaded."""
    return {name for name in names for module in modules if module == name or module.startswith(f"{name}.")}


def test_help_loads_neither_engine_nor_pydantic() -> None:
    modules = loaded("--help")
    assert within(modules, OUTSIDE | ENGINE | {"pydantic", "sqlite3", "agent_core", "engine_shim.runs"}) == set()


@pytest.mark.sampled
@pytest.mark.parametrize("command", [NAMES.get(each) or each.__name__ for each in COMMANDS])
def test_help_of_a_command_does_not_load_what_it_needs_to_run(command: str) -> None:
    modules = loaded(command, "--help")
    assert within(modules, OUTSIDE | ENGINE | {"sqlite3", "agent_core", "engine_shim.runs"}) == set()


def test_list_of_runs_loads_the_store_and_no_engine(tmp_path: Path) -> None:
    store = SqliteRunStore(tmp_path / "runs.db")
    store.save(RunEntry("r", "w", "1", "running", "2026-01-01T00:00:00Z", "."))
    store.close()
    modules = loaded("runs", "--store", str(tmp_path / "runs.db"))
    assert "engine_shim.store.run_store" in modules
    assert within(modules, OUTSIDE | ENGINE | {"orjson", "agent_core.journal.sqlite"}) == set()


@pytest.mark.parametrize(("words", "count"), [("agent-core re", "1"), ("agent-core run --", "2")])
def test_completion_loads_no_engine(words: str, count: str) -> None:
    modules = loaded(_AGENT_CORE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)
    assert within(modules, OUTSIDE | ENGINE | {"sqlite3", "agent_core", "engine_shim.runs"}) == set()


def test_completion_offers_commands_and_options() -> None:
    for words, count, expected in (("agent-core re", "1", "resume"), ("agent-core run --mo", "2", "--model")):
        environment = {"_AGENT_CORE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
        command = [Path(sys.executable).with_name("agent-core")]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        assert expected in done.stdout.split()
