"""agent-core doctor: what it says of a sound host, of what is missing or broken; and that it writes nothing."""

import errno
import os
import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from engine_shim.cli.doctor.extras import FOR_TESTS, GIVES, check_extras
from engine_shim.cli.doctor.services import check_journal_keys, check_redis, check_temporal, judge_tokens
from engine_shim.cli.doctor.sqlite import Probe, probe
from engine_shim.cli.doctor.stores import check_runs, judge_file
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig, TemporalConfig
from engine_shim.service.principal import Principal
from engine_shim.service.tokens import Token, Tokens
from engine_shim.store import content_keys
from engine_shim.store.database_sqlite import LAYOUT, SqliteDatabase
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import final
from support.command import Cli, Ran, Write
from support.homeless import forget_home
from support.optional import needs
from utools.sources.tool_lock_file import Definition, ToolLockFile

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[3]
STORE = "data/agent-core/runs.db"
ECHO = {"id": "hello", "nodes": [{"tool": "echo", "config": {"text": "hello"}}]}
CLERK = {"name": "clerk", "description": "Answers.", "system_prompt": "Answer.", "model": "openai:gpt-4o-mini"}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDIS_URL", "SHOP_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def host(write: Write) -> Path:
    """A sound host that has run once."""
    write("workflows/hello.json", ECHO)
    write("replies.json", [final("Done.")])
    write("agents/clerk.json", {**CLERK, "model": "scripted:replies.json"})
    return write("agent-core.yaml", {}).parent


def findings(ran: Ran, name: str, status: str | None = None) -> list[dict[str, Any]]:
    """What is said of a thing."""
    return [each for each in ran.json["findings"] if each["name"] == name and status in (None, each["status"])]


def said(ran: Ran, name: str, status: str) -> str:
    """The one sentence that is said of a thing with this status."""
    (found,) = findings(ran, name, status)
    return f"{found['message']}: {found['advice']}" if found["advice"] else str(found["message"])


def files_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder, but what Python compiles: when it was written, and its bytes."""
    found = (each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in found}


@pytest.mark.usefixtures("host")
def test_sound_host_is_told_line_by_line(cli: Cli) -> None:
    cli("run", "workflows/hello.json")
    ran = cli("doctor")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[-1] == "0 problems, 0 warnings"
    starts = {line[: lines[0].index("0.")] for line in lines[:-1]}
    assert all(start.endswith("  ") for start in starts)  # the columns are aligned
    told = "\n".join(" ".join(line.split()) for line in lines)
    for words in ("ok configuration agent-core.yaml", "ok agents clerk", "ok workflows hello@1", "ok runs 1 completed"):
        assert words in told
    assert "ok verify 1 of 1 run as written" in told
    assert "ok model scripted:replies.json: it needs no key" in told


def test_nothing_is_written(cli: Cli, host: Path) -> None:
    cli("run", "workflows/hello.json")
    cli("demo")
    before = files_below(host)
    assert cli("doctor").code == 0
    assert files_below(host) == before


def test_empty_place_is_sound_and_stays_empty(cli: Cli, home: Path) -> None:
    ran = cli("doctor", "--json")
    assert (ran.code, ran.json["ok"], ran.json["problems"]) == (0, True, 0)
    assert "no agent-core.yaml here or above" in said(ran, "configuration", "ok")
    assert said(ran, "store", "ok").endswith("runs.db: made when it is first needed")
    assert files_below(home) == {}


# ── extras ──────────────────────────────────────────────────────────────────────────────────────────


def test_user_without_a_home_directory_is_a_finding(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    forget_home(monkeypatch)
    ran = cli("doctor", "--store", "runs.db", "--json")
    advice = "where context.db would be; name a file, or set HOME: AGENT_CORE_CONTEXT_DB names a file"
    assert said(ran, "conversations", "problem") == f"this user has no home directory, {advice}"
    assert findings(ran, "journal keys", "ok")  # it goes on


def test_missing_extra_is_told_with_what_it_gives_and_how_to_install_it() -> None:
    wanted = ['jinja2<4,>=3.1.6; extra == "templates"', 'fastapi<1; extra == "web"', 'uvicorn<1; extra == "web"']
    versions = {"fastapi": "0.165.0"}
    web, templates = check_extras([*wanted, "pydantic>=2", 'pytest; extra == "test"'], versions.get)
    assert (web.name, web.status, web.advice) == ("extra web", "warning", "pip install 'agent-core[web]'")
    assert web.message.startswith("uvicorn is missing; it gives `agent-core serve`")
    assert (templates.status, templates.message) == ("ok", f"not installed; it gives {GIVES['templates']}")
    assert templates.advice == "pip install 'agent-core[templates]'"
    assert templates.facts == {"installed": False, "versions": {"jinja2": None}}


def test_package_that_others_bring_too_is_no_half_of_an_extra() -> None:
    wanted = ['opentelemetry-api<2; extra == "telemetry"', 'opentelemetry-sdk<2; extra == "telemetry"']
    (telemetry,) = check_extras(wanted, {"opentelemetry-api": "1.40"}.get)
    assert (telemetry.status, telemetry.message) == ("ok", f"not installed; it gives {GIVES['telemetry']}")


def test_all_extras_are_told_and_what_each_gives() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(GIVES) == project["optional-dependencies"].keys() - set(FOR_TESTS)
    assert {each.name for each in check_extras()} == {f"extra {name}" for name in GIVES}


# ── host and definitions ────────────────────────────────────────────────────────────────────────────


def test_fault_of_the_configuration_is_told_with_its_line(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", "root: .\nallow_tool: [echo]\n")
    ran = cli("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert said(ran, "configuration", "problem").startswith("agent-core.yaml:2: allow_tool")


@pytest.mark.usefixtures("host")
def test_fault_of_a_workflow_and_of_an_agent_is_told_with_its_file(cli: Cli, write: Write) -> None:
    write("workflows/hello.json", '{"id": "hello",\n "nodes": [{"tool": "ech", "config": {}}]}')
    write("agents/clerk.json", {**CLERK, "skill_policy": {"allow": ["nothing"]}})
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert "workflows/hello.json:2: nodes/0 (ech)/tool" in said(ran, "workflows", "problem")
    assert "agents/clerk.json" in said(ran, "agents", "problem")
    assert findings(ran, "store", "ok")  # what else there is, is told all the same


@pytest.mark.usefixtures("host")
def test_key_of_a_model_is_told_as_set_or_not_and_never_shown(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agents/clerk.json", CLERK)
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert said(ran, "model", "problem").startswith("openai:gpt-4o-mini: the model needs a key: set OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-somebody")
    ran = cli("doctor", "--json")
    told = said(ran, "model", "ok").split("; ")
    assert (ran.code, told[0]) == (0, "openai:gpt-4o-mini: OPENAI_API_KEY is set")
    api, window = "asked by its vendor's own API, responses", "a window of 128,000 tokens"
    assert told[1:] == [api, window, "sees pictures, is cached"]
    facts = findings(ran, "model", "ok")[0]["facts"]
    assert (facts["api"], facts["context_window"], facts["reasoning"]) == ("responses", 128_000, False)
    assert "somebody" not in ran.out


def test_secret_that_is_allowed_and_not_set_is_told(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"secret_env": ["SHOP_TOKEN"]})
    ran = cli("doctor", "--json")
    assert (ran.code, ran.json["warnings"]) == (0, 1)
    assert said(ran, "secret", "warning").startswith("SHOP_TOKEN is allowed to tools, and not set")


@needs("mcp")
def test_address_of_no_store_and_a_key_that_is_away_are_findings(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_CORE_STORE", raising=False)
    write("agent-core.yaml", {"store": "mysql://h/x", "secret_env": ["AGENT_CORE_STORE"]})
    ran = cli("doctor", "--quick", "--json")
    assert said(ran, "store", "problem").startswith("agent-core.yaml: store: There are stores in a SQLite file")
    own = "AGENT_CORE_STORE is the host's own, and no tool gets it: take it out of secret_env"
    assert said(ran, "secret", "warning").startswith(own)
    write("agent-core.yaml", {"store": "."})
    monkeypatch.setenv("AGENT_CORE_SIGNING_KEY", "nope.key")
    ran = cli("doctor", "--quick", "--json")
    assert said(ran, "store", "problem").startswith(". cannot be used: it is a directory")
    why = "AGENT_CORE_SIGNING_KEY: nope.key: cannot be read: No such file or directory"
    assert said(ran, "journal keys", "problem") == why


@pytest.mark.usefixtures("host")
def test_variable_with_a_bad_value_is_told_by_its_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_STORE_PATIENCE", "soon")
    monkeypatch.setenv("AGENT_CORE_SECRET_ENV", "SHOP_TOKEN")
    monkeypatch.setenv("AGENT_CORE_ENGINE", "cloud")
    monkeypatch.setenv("AGENT_CORE_PUBLIC_KEYS", "nope.pub")
    ran = cli("doctor", "--quick", "--json")
    assert said(ran, "patience", "problem").startswith("AGENT_CORE_STORE_PATIENCE: must be a number of seconds")
    assert said(ran, "secret", "warning").startswith("SHOP_TOKEN is allowed to tools, and not set")
    assert said(ran, "Temporal", "problem").startswith("AGENT_CORE_ENGINE is 'cloud'")
    monkeypatch.setenv("AGENT_CORE_ENGINE", "temporal")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "here")
    assert check_temporal(HostConfig()).message == "TEMPORAL_ADDRESS is 'here'"
    assert "in the clear" in check_temporal(HostConfig(encrypt=True)).message
    with pytest.raises(DefinitionError, match=r"AGENT_CORE_PUBLIC_KEYS: nope\.pub: cannot be read"):
        list(check_journal_keys())


@needs("cryptography")
def test_store_that_is_to_be_encrypted_and_cannot_be_is_told(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("workflows/hello.json", ECHO)
    write("agent-core.yaml", {"encrypt": True})
    missing = "AGENT_CORE_ENCRYPTION_KEY: .* needs the operator's key"
    assert re.match(missing, said(cli("doctor", "--quick", "--json"), "encryption", "problem"))
    cli("key", "new", "one.key", "--encryption")
    cli("key", "new", "two.key", "--encryption")
    monkeypatch.setenv("AGENT_CORE_ENCRYPTION_KEY", "one.key")
    cli("run", "workflows/hello.json")
    assert said(cli("doctor", "--quick", "--json"), "encryption", "ok").startswith("runs are encrypted")
    monkeypatch.setenv("AGENT_CORE_ENCRYPTION_KEY", "two.key")
    ran = cli("doctor", "--quick", "--json")
    assert "which two.key (AGENT_CORE_ENCRYPTION_KEY) does not have" in said(ran, "encryption", "problem")
    assert said(ran, "verify", "warning").startswith("not verified")
    content_keys._OPENED.clear()  # as in a process of its own
    assert "does not have" in cli("run", "workflows/hello.json").err
    assert len(cli("runs", "--json").json) == 1  # nothing is left of a run that could not begin


def test_plain_runs_of_a_store_that_is_to_be_encrypted_are_told(cli: Cli, write: Write) -> None:
    write("workflows/hello.json", ECHO)
    cli("run", "workflows/hello.json")
    write("agent-core.yaml", {"encrypt": True})
    ran = cli("doctor", "--quick", "--json")
    assert "has runs that are not encrypted" in said(ran, "encryption", "problem")
    assert said(ran, "verify", "ok") == "1 of 1 run as written"


@pytest.mark.usefixtures("host")
def test_directory_that_cannot_be_read_is_told_and_the_rest_is_checked(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("triggers/each.json", {})
    shut = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "triggers")
    monkeypatch.setattr("engine_shim.service.changed_files.os.scandir", Mock(side_effect=shut))
    ran = cli("doctor", "--quick", "--json")
    assert said(ran, "workflows", "problem").endswith("workflows: cannot be read: Permission denied")
    assert (ran.code, findings(ran, "journal keys", "ok") != []) == (1, True)


def test_tools_of_an_mcp_server_are_approved_or_not_and_it_is_not_started(cli: Cli, write: Write, home: Path) -> None:
    write("agent-core.yaml", {"mcp_servers": {"desk": {"command": ["touch", str(home / "started")]}}})
    ran = cli("doctor", "--json")
    assert said(ran, "mcp_servers/desk", "warning").endswith("`agent-core tools approve mcp_servers/desk`")
    assert findings(ran, "definitions", "warning")
    definition = Definition(name="look", description="Looks.", input_schema={"type": "object"})
    ToolLockFile(home / "agent-core.lock.json").write({"mcp_servers/desk": [definition]})
    ran = cli("doctor", "--json")
    assert (ran.code, said(ran, "mcp_servers/desk", "ok")) == (0, "tools approved: 1")
    lock = home / "agent-core.lock.json"
    lock.write_text(lock.read_text().replace("Looks.", "Deletes."))
    ran = cli("doctor", "--json")
    assert (ran.code, "changed by hand" in said(ran, "mcp_servers/desk", "problem")) == (1, True)
    assert not (home / "started").exists()


def test_variables_that_an_mcp_server_does_not_get_are_named(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agent-core.yaml", {"mcp_servers": {"desk": {"command": ["touch"], "env": ["DESK_CITY", "DESK_KEY"]}}})
    monkeypatch.setenv("DESK_CITY", "Oslo")
    ToolLockFile(home / "agent-core.lock.json").write({"mcp_servers/desk": []})
    ran = cli("doctor", "--json")
    assert said(ran, "mcp_servers/desk", "ok") == "tools approved: 0"
    assert said(ran, "mcp_servers/desk", "warning").startswith("not set of its `env`: DESK_KEY: in the environment")
    assert not findings(ran, "definitions", "warning")
    monkeypatch.setenv("DESK_KEY", "k")
    assert not findings(cli("doctor", "--json"), "mcp_servers/desk", "warning")


@pytest.mark.usefixtures("host")
def test_triggers_and_webhooks_are_told(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("triggers/night.json", {"workflow": "hello", "cron": "0 3 * * *"})
    hook = {"url": "https://example.com/a-secret-path", "secret_env": "SHOP_TOKEN"}
    write("agent-core.yaml", {"webhooks": [hook]})
    ran = cli("doctor", "--json")
    assert (ran.code, said(ran, "triggers", "ok")) == (1, "night")
    assert "webhooks/0/secret_env: SHOP_TOKEN is not set" in said(ran, "webhooks", "problem")
    monkeypatch.setenv("SHOP_TOKEN", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")
    write("triggers/other.json", {"workflow": "goodbye", "cron": "0 3 * * *"})
    ran = cli("doctor", "--json")
    assert (ran.code, said(ran, "webhooks", "ok")) == (1, "webhooks/0: SHOP_TOKEN is set")
    assert "there is no workflow 'goodbye'" in said(ran, "triggers", "problem")
    assert "a-secret-path" not in ran.out


@pytest.mark.usefixtures("host")
def test_callbacks_and_links_are_told(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    callbacks = {"allowed_domains": ["n8n.example.com"], "secret_env": "SHOP_TOKEN", "decision_links": True}
    links = {"public_url": "https://agents.example.com", "secret_env": "LINK_KEY"}
    write("agent-core.yaml", {"callbacks": callbacks, "decision_links": links})
    monkeypatch.setenv("LINK_KEY", "too short")
    ran = cli("doctor", "--json")
    assert "callbacks/secret_env: SHOP_TOKEN is not set" in said(ran, "webhooks", "problem")
    assert "decision_links/secret_env: its secret must have at least 16 bytes" in said(ran, "decision links", "problem")
    monkeypatch.setenv("SHOP_TOKEN", "any text")
    monkeypatch.setenv("LINK_KEY", "the key of the links")
    ran = cli("doctor", "--json")
    assert said(ran, "webhooks", "ok") == "callbacks: SHOP_TOKEN is set"
    assert said(ran, "decision links", "ok") == "https://agents.example.com/decide/…, for 259,200 seconds at most"


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("words", [("doctor", "--json"), ("validate", "workflows/hello.json")])
def test_links_of_a_host_that_makes_none_are_a_fault_of_its_configuration(
    cli: Cli, write: Write, words: tuple[str, ...]
) -> None:
    callbacks = {"allowed_domains": ["n8n.example.com"], "secret_env": "SHOP_TOKEN", "decision_links": True}
    write("agent-core.yaml", {"callbacks": callbacks})
    ran = cli(*words)
    assert ran.code != 0
    assert "callbacks/decision_links: needs `decision_links` in the file" in ran.out + ran.err


def test_tenants_have_their_own_lines(cli: Cli, write: Write) -> None:
    write("acme/workflows/bad.json", {"id": "bad", "nodes": []})
    write("agent-core.yaml", {"tenants": {"acme": {"workflows": "acme/workflows"}}})
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert "bad.json" in said(ran, "workflows of acme", "problem")
    assert said(ran, "store of acme", "ok").endswith("runs.acme.db: made when it is first needed")


# ── stores ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("host")
def test_damaged_run_is_named(cli: Cli) -> None:
    first, second = (cli("run", "workflows/hello.json", "--json").json["run_id"] for _ in range(2))
    with closing(sqlite3.connect(STORE)) as db, db:
        change = "UPDATE rows SET data = replace(data, 'hello', 'hullo') WHERE run = ? AND n = 0"
        db.execute(change.replace("data = replace(data", "data = replace(CAST(data AS TEXT)"), (first,))
    ran = cli("doctor", "--json")
    assert ran.code == 1
    assert said(ran, "verify", "ok") == "1 of 2 runs as written"
    assert said(ran, "verify", "problem").startswith(f"run {first}: ")
    assert second not in said(ran, "verify", "problem")
    assert f"`agent-core verify {first}`" in cli("doctor").out


@pytest.mark.usefixtures("host")
def test_run_whose_end_is_missing_is_named_and_one_that_waits_is_not(cli: Cli) -> None:
    waiting = cli("run", str(ROOT / "fixtures/workflows/approval.yaml"), "--json").json["run_id"]
    cut = cli("run", "workflows/hello.json", "--json").json["run_id"]
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("DELETE FROM rows WHERE run = ? AND strand = 'flow' AND n > 0", (cut,))
    ran = cli("doctor", "--json")
    (found,) = findings(ran, "verify", "problem")
    assert found["facts"] == {"run": cut}
    assert waiting not in found["message"]
    assert findings(ran, "runs")[0]["facts"] == {"runs": {"waiting": 1, "completed": 1}}


@pytest.mark.usefixtures("host")
def test_quick_look_verifies_the_newest_runs_alone(cli: Cli, home: Path) -> None:
    old = cli("run", "workflows/hello.json", "--json").json["run_id"]
    cli("run", "workflows/hello.json")
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("DELETE FROM rows WHERE run = ?", (old,))
    assert cli("doctor").code == 1
    told = check_runs(SqliteRunStore(home / STORE), "store", newest=1)
    verified = [each for each in told if each.name == "verify"]
    assert [(each.status, each.message) for each in verified] == [("ok", "1 of 1 run as written")]
    assert cli("doctor", "--quick").code == 1  # it is among the newest 100


def test_store_of_a_newer_version_and_a_file_that_is_none_are_told(cli: Cli, home: Path) -> None:
    newer, other = home / "newer.db", home / "other.db"
    with closing(sqlite3.connect(newer)) as db:
        db.execute("PRAGMA user_version = 99")
    other.write_text("This is a text, and long enough that nobody takes it for an empty file. " * 20)
    ran = cli("doctor", "--store", str(newer), "--json")
    assert (ran.code, "has layout 99" in said(ran, "store", "problem")) == (1, True)
    ran = cli("doctor", "--store", str(other), "--json")
    assert (ran.code, "file is not a database" in said(ran, "store", "problem")) == (1, True)


@pytest.mark.usefixtures("host")
def test_store_that_another_one_writes_is_waited_for_only_so_long(cli: Cli, home: Path) -> None:
    cli("run", "workflows/hello.json")
    with closing(sqlite3.connect(STORE, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        found = probe(home / STORE, LAYOUT, patience=0.05)
    assert (found.locked, found.can_write, found.fault) == ("database is locked", False, None)


def test_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    found = Probe(tmp_path / "runs.db", size=4096, version=LAYOUT.version, can_write=False)
    told = judge_file("store", found, LAYOUT, "--store names another")
    assert (told.status, "it cannot be written" in told.message) == ("problem", True)
    told = judge_file("store", Probe(tmp_path / "none.db"), LAYOUT, "--store names another")
    assert (told.status, "its directory is read-only" in told.message) == ("problem", True)
    full = Probe(tmp_path / "runs.db", size=4096, version=LAYOUT.version, can_write=True, is_full=True)
    told = judge_file("store", full, LAYOUT, "--store names another")
    assert (told.status, "its disk is full" in told.message) == ("problem", True)


def test_conversations_are_counted(cli: Cli, write: Write) -> None:
    step = {"op": "persist", "session_id": "desk", "user_message": "Hello.", "final_answer": "Hello."}
    write("flow.json", {"id": "talk", "nodes": [{"tool": "context_manager", "config": step}]})
    assert cli("run", "flow.json").code == 0
    told = [each["message"] for each in findings(cli("doctor", "--json"), "conversations", "ok")]
    assert told[1] == "1 conversation"


# ── services ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where somebody listens, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_redis_that_never_answers_is_told_within_its_time(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis://:a-password@127.0.0.1:{silent_port}/0")
    began = time.monotonic()
    found = check_redis(Path("runs.db"), seconds=0.2)
    assert time.monotonic() - began < 10
    assert (found.status, found.message) == ("problem", "no answer within 0.2 seconds")


def test_redis_that_is_away_is_told_without_its_password(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:a-password@127.0.0.1:1/0")
    ran = cli("doctor", "--json")
    assert (ran.code, "REDIS_URL" in said(ran, "Redis", "problem")) == (1, True)
    assert "a-password" not in ran.out


def test_temporal_is_looked_for_where_the_host_uses_it(cli: Cli, write: Write, silent_port: int) -> None:
    assert said(cli("doctor", "--json"), "Temporal", "ok").startswith("not used")
    write("agent-core.yaml", {"engine": "temporal", "temporal": {"address": "127.0.0.1:1"}})
    away = cli("doctor", "--json")
    assert (away.code, "no server answers at 127.0.0.1:1" in said(away, "Temporal", "problem")) == (1, True)
    there = HostConfig(temporal=TemporalConfig(address=f"127.0.0.1:{silent_port}"))
    assert check_temporal(there).status == "ok"


@pytest.mark.parametrize(
    ("keys", "status", "told"),
    [
        ("k2:0123456789abcdef,k1:old", "ok", "k2 signs, k1 only verify"),
        ("k1:short", "problem", "needs at least 16"),
        ("nonsense", "problem", "must be kid:key"),
        ("k1:0123456789abcdef,k1:fedcba9876543210", "problem", "two keys have one id"),
    ],
)
def test_journal_keys_are_named_and_not_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, keys: str, status: str, told: str
) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", keys)
    ran = cli("doctor", "--json")
    assert (ran.code, told in said(ran, "journal keys", status)) == (int(status == "problem"), True)
    assert "0123456789abcdef" not in ran.out


def test_expired_token_and_one_of_no_tenant_are_told() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def token(name: str, tenant: str | None = None, *, days: int | None = None) -> Token:
        return Token(
            Principal(name, name, tenant, frozenset({"run"})), now, None if days is None else now + timedelta(days)
        )

    found = list(judge_tokens([token("ci"), token("old", days=-1), token("far", "acme")], ["shop"], now))
    assert [(each.status, each.message) for each in found] == [
        ("ok", "3 tokens"),
        ("warning", "the token of old expired on 2025-12-31"),
        ("warning", "the token of far is for the tenant acme, which the configuration lacks"),
    ]
    assert found[1].advice == "`agent-core token revoke old`"


def test_tokens_of_the_store_are_counted(cli: Cli, home: Path) -> None:
    with closing(SqliteDatabase(home / STORE)) as database:
        Tokens(database).issue("ci", ["run"])
    assert said(cli("doctor", "--json"), "tokens", "ok") == "1 token"
