"""Where a store is: a file's path, or the URL of a PostgreSQL database, and nothing that only looks like one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core import JsonlJournal, SqliteJournal, run_agent_sync
from agent_core.models import ScriptedModel
from engine_shim import Engine
from support.by_hand import final
from support.homeless import forget_home
from utools.context.open_store import open_context_store
from utools.databases.sqlite_file import data_file
from utools.databases.store_address import describe_address, read_address
from utools.errors import DefinitionError

FILES = ["runs.db", "./runs.db", "/var/lib/runs.db", "runs:2026.db", "a/b:c.db", "C:/runs.db", "C:\\runs.db", "~/x.db"]
URLS = [
    ("postgresql://h/x", "postgresql://h/x"),
    ("postgres://u:pw@h:5433/x?sslmode=require", "postgres://u:pw@h:5433/x?sslmode=require"),
    ("postgresql+psycopg://u:pw@h/x", "postgresql://u:pw@h/x"),
    ("postgresql+psycopg2://h/x", "postgresql://h/x"),
    ("postgres+asyncpg://h/x", "postgres://h/x"),
    ("PostgreSQL://h/x", "postgresql://h/x"),
    ("postgresql:///x?host=/tmp", "postgresql:///x?host=/tmp"),
]
NONE = [
    ("postgers://h/x", "did you mean postgres://?"),
    ("postgressql://h/x", "did you mean postgresql://?"),
    ("mysql://h/x", "postgresql://HOST/NAME"),
    ("redis://h/0", "postgresql://HOST/NAME"),
    ("https://h/x", "postgresql://HOST/NAME"),
    ("postgresql:/h/x", "postgresql://HOST/NAME"),
    ("sqlite:///x.db", "by its path alone: x.db"),
    ("sqlite:////var/x.db", "by its path alone: /var/x.db"),
    ("sqlite+aiosqlite:///x.db", "by its path alone: "),
    ("file:///var/x.db", "by its path alone: /var/x.db"),
]


@pytest.mark.parametrize("text", FILES)
def test_a_path_is_a_file(text: str) -> None:
    assert read_address(text) == Path(text)
    assert read_address("x.db", Path("/base")) == Path("/base/x.db")


@pytest.mark.parametrize(("text", "address"), URLS)
def test_a_url_of_postgresql_is_one_with_the_name_of_a_driver_too(text: str, address: str) -> None:
    assert read_address(text, Path("/base")) == address


@pytest.mark.parametrize(("text", "told"), NONE)
def test_what_only_looks_like_a_url_of_ours_is_refused_with_what_may_be_meant(text: str, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        read_address(text, where="--store")
    assert refused.value.where == "--store"
    assert told in str(refused.value)


@pytest.mark.parametrize("text", ["mysql://ada:hunter22@h/x", "mysql:/ada:hunter22@h/x"])
def test_a_refusal_shows_no_password(text: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        read_address(text)
    assert "hunter22" not in str(refused.value)
    assert "h/x" in str(refused.value)


@pytest.mark.parametrize("text", ["postgers://h/x", "sqlite:///runs.db", "postgresql://h/x"])
def test_no_file_of_that_name_is_made(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (JsonlJournal, SqliteJournal, lambda path: SqliteJournal(Path(path))):
        with pytest.raises(DefinitionError, match="is a URL, and a file is wanted here"):
            make(text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["postgers://h/x", "sqlite:///runs.db"])
def test_no_run_is_recorded_in_a_file_of_that_name(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match=r"^journal: .* (named by its path alone|did you mean)"):
        run_agent_sync(
            {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "x"},
            model=ScriptedModel([final()]),
            registry=[],
            journal=f"{text}.jsonl",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["postgers://h/x", "sqlite:///runs.db"])
def test_neither_an_engine_nor_its_conversations_take_it(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match=r"There are stores|A store in a file"):
        Engine(store=text)
    monkeypatch.setenv("AGENT_CORE_STORE", text)
    with pytest.raises(DefinitionError, match="AGENT_CORE_STORE"):
        Engine()
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", text)
    with pytest.raises(DefinitionError, match="AGENT_CORE_CONTEXT_DB"):
        open_context_store()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://a%40b:pw@h:5433/x?sslmode=require", "postgresql://a%40b@h:5433/x"),
        ("postgresql://:pw@h/x", "postgresql://h/x"),
        ("postgresql://a@h/x?password=pw", "postgresql://a@h/x"),
        ("postgresql://a@h/x?sslmode=require", "postgresql://a@h/x?sslmode=require"),
    ],
)
def test_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert describe_address(read_address(address)) == shown


def test_user_without_a_home_directory_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "AGENT_CORE_CONTEXT_DB"):
        monkeypatch.delenv(name, raising=False)
    forget_home(monkeypatch)
    uses: dict[str, Callable[[], object]] = {
        "AGENT_CORE_STORE": lambda: data_file("runs.db", "AGENT_CORE_STORE"),
        "AGENT_CORE_CONTEXT_DB": lambda: open_context_store(tenant="acme"),
    }
    for variable, use in uses.items():
        message = f"^{variable}: this user has no home directory, .*; name a file, or set HOME"
        with pytest.raises(DefinitionError, match=message):
            use()
    open_context_store()  # which is opened at its first use
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert data_file("runs.db", "AGENT_CORE_STORE") == Path("/data/agent-core/runs.db")
