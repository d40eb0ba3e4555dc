"""What short commands load: no more than they need, so that they start at once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

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
DEMO = Path(__file__).parents[3] / "engine_shim/cli/host/demo_files"
MESSAGE = "message=What did the trip to Lisbon cost in all, and which item was the dearest?"
REPLY = '[{"type": "final", "answer": "Hello."}]'
SERVERS = {"aiohttp", "fastapi", "httpx2", "httpcore2", "mcp", "openai", "starlette", "uvicorn", "websockets"}
ELSEWHERE = {"anthropic", "boto3", "google", "opentelemetry", "prometheus_client", "psycopg", "redis", "temporalio"}
NEVER = (
    SERVERS | ELSEWHERE | {"cryptography", "jinja2", "numpy", "prompt_toolkit", "trio", "rich.markdown", "rich.syntax"}
)
"""What no command needs that neither serves nor asks anybody."""
ENGINE_NEEDS = {"agent_core.audit.verify", "engine_shim.evals", "engine_shim.service", "engine_shim.testing.load"}
"""What runs without: rooms that other commands are about."""
UNASKED = {
    *("agent_core.models.anthropic", "agent_core.models.gemini", "agent_core.models.openai"),
    *("agent_core.models.endpoint.answer", "agent_core.models.endpoint.client"),
}
"""What a model needs that is behind an endpoint."""
EXPLAINS = {"attrs", "jsonschema", "jsonschema_specifications", "referencing", "regex", "rpds"}
"""What judges and explains what is not plain; the demo's model makes a plain mistake."""
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


def loaded(*words: str, cwd: Path | None = None, stdin: str = "", **environment: str) -> set[str]:
    """The modules in memory after a command."""
    command = [sys.executable, "-c", LOADED, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, cwd=cwd, input=stdin
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The demo's workflow, a store that holds one run of it, and the environment that names the store."""
    home = tmp_path_factory.mktemp("startup")
    copytree(DEMO, home, dirs_exist_ok=True)
    (home / "hello.json").write_text(REPLY, "utf-8")
    own = {"AGENT_CORE_STORE": str(home / "runs.db"), "AGENT_CORE_CONTEXT_DB": str(home / "context.db")}
    loaded("run", "workflow.yaml", "--input", MESSAGE, cwd=home, **own)
    return home, own


OF_REPLAY = EXPLAINS | {"asyncio", "yaml", "agent_core.models", "engine_shim.runs.engine", "utools.builtin"}
OF_VALIDATE = EXPLAINS | UNASKED | {"rich.console", "engine_shim.evals", "engine_shim.runs.engine"}
OF_RUN = EXPLAINS | UNASKED | ENGINE_NEEDS
COMMANDS_OF_RUNS = [
    pytest.param(["runs"], "", 110, OUTSIDE | ENGINE | {"pydantic"}, id="runs"),
    pytest.param(["show", "last"], "", 144, OUTSIDE - {"rich"} | ENGINE | {"pydantic"}, id="show"),
    pytest.param(["replay", "last"], "", 346, OF_REPLAY, id="replay"),
    pytest.param(["report"], "", 370, OF_REPLAY, id="report"),
    pytest.param(
        ["validate", "workflow.yaml"],
        "",
        545,
        OF_VALIDATE,
        id="validate",
    ),
    pytest.param(["run", "workflow.yaml", "--input", MESSAGE], "", 623, OF_RUN, id="run"),
    pytest.param(["chat", "--model", "scripted:hello.json"], "hello\n", 627, OF_RUN, id="chat"),
]
"""Commands, what stdin says, the most modules beside the standard library, and what they need not."""


@pytest.mark.parametrize(("words", "stdin", "most", "needless"), COMMANDS_OF_RUNS)
def test_a_command_loads_no_more_than_it_needs(
    recorded: tuple[Path, dict[str, str]], words: list[str], stdin: str, most: int, needless: set[str]
) -> None:
    home, own = recorded
    modules = loaded(*words, cwd=home, stdin=stdin, **own)
    assert within(modules, NEVER | needless) == set()
    count = sum(each.partition(".")[0] not in sys.stdlib_module_names for each in modules)
    assert 0.95 * most - 1 <= count <= most, f"{count} modules; lower the ceiling when there are fewer"


def test_a_value_that_has_its_type_is_taken_and_any_other_is_read(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    assert "pydantic" not in loaded("runs", AGENT_CORE_STORE=store)
    assert "pydantic" in loaded("runs", "--limit", "3", AGENT_CORE_STORE=store)


def test_command_line_works_with_a_typer_that_has_its_own_names_otherwise(tmp_path: Path) -> None:
    code = (
        "import sys, typer._coercion as own; del own.RuntimeParam\n"
        "from engine_shim.cli.main import main\n"
        "sys.argv[0] = 'agent-core'; main()"
    )
    store = SqliteRunStore(tmp_path / "runs.db")
    store.save(RunEntry("r", "w", "1", "running", "2026-01-01T00:00:00Z", "."))
    store.close()
    command = [sys.executable, "-c", code, "runs", "--limit", "5", "--store", str(tmp_path / "runs.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:1]) == (0, "r"), done.stderr


def test_a_command_hears_ctrl_c_before_it_loads_a_module() -> None:
    code = "import sys; known = set(sys.modules); import engine_shim.cli.main; print(*sorted(set(sys.modules) - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"engine_shim", "engine_shim.cli", "engine_shim.cli.main", "gc"}


@pytest.mark.parametrize("code", ["from engine_shim import Engine", LOADED], ids=["program", "command"])
def test_own_module_that_hides_utools_is_named(tmp_path: Path, code: str) -> None:
    (tmp_path / "utools.py").touch()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path / 'utools.py'} hides the package utools, which agent-core needs: rename it" in done.stderr
