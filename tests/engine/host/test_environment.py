"""`.env` beside the host configuration: its keys reach models and tools, and nobody else."""

import logging
import os
from pathlib import Path

import pytest

from engine_shim import DefinitionError, Engine
from engine_shim.host.environment import load_environment
from engine_shim.host.variables import Variables
from support.by_hand import action, final
from support.command import Cli, Write

TELLING = """
import os
from utools import ToolContext, tool

@tool(effect="read")
def tells(context: ToolContext) -> str:
    "Tells."
    return "{} {}".format(len(context.secret("DESK_TOKEN")), os.environ["DESK_PLACE"])
"""
SECRET = "s3cret-0123456789"


@pytest.fixture
def place(write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with an environment of its own, and a workflow that uses it."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    write("telling.py", TELLING)
    write("agent-core.yaml", "tools: [telling.py:tells]\nsecret_env: [DESK_TOKEN]")
    write("w.json", {"id": "w", "nodes": [{"tool": "tells"}]})
    file = write(".env", f"# keys\nexport DESK_TOKEN='{SECRET}'\nDESK_PLACE=\"Lisbon\"\nDESK_EMPTY\n")
    file.chmod(0o600)
    return file


def test_variables_of_the_file_reach_tools(cli: Cli, place: Path) -> None:
    ran = cli("run", "w.json", "--json")
    assert ran.json["outputs"] == {"tells": f"{len(SECRET)} Lisbon"}
    assert "DESK_EMPTY" not in os.environ


def test_the_environment_wins(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PLACE", "Porto")
    assert cli("run", "w.json", "--json").json["outputs"]["tells"].endswith(" Porto")


def test_variable_that_a_definition_may_not_read_is_not_read_though_it_is_set() -> None:
    for variables, why in ((Variables(others=False), "the operator lists"), (Variables(), "is the host's own")):
        with pytest.raises(DefinitionError, match=why):
            variables.read("AGENT_CORE_JOURNAL_KEYS", {"AGENT_CORE_JOURNAL_KEYS": "k1:x"})


@pytest.mark.usefixtures("place")
def test_a_program_has_the_same_environment() -> None:
    Engine.from_config("agent-core.yaml")
    assert os.environ["DESK_PLACE"] == "Lisbon"


def test_a_run_elsewhere_has_the_environment_of_its_host(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", "w.json")
    del os.environ["DESK_TOKEN"]
    (place.parent / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert cli("resume", "last").code == 0
    assert os.environ["DESK_TOKEN"] == SECRET


def test_keys_of_the_file_sign_runs_and_verify_them(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_text(place.read_text() + "AGENT_CORE_JOURNAL_KEYS=desk:0123456789abcdef0123\n")
    assert cli("run", "w.json").code == 0
    for _ in range(2):
        assert cli("verify", "last").code == 0
        monkeypatch.delitem(os.environ, "AGENT_CORE_JOURNAL_KEYS")
    (place.parent / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert cli("verify", "last").code == 0
    monkeypatch.delitem(os.environ, "AGENT_CORE_JOURNAL_KEYS")
    place.write_text("AGENT_CORE_JOURNAL_KEYS=desk:another-0123456789abc\n")
    assert cli("verify", "last").code == 5


def test_no_value_is_logged_or_read_by_a_tool(
    cli: Cli, place: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    write("replies.json", [action("read_file", path=".env"), final()])
    config = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["read_file"], "prompt": "Go."}
    write("reads.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    ran = cli("run", "reads.json", "--verbose", "--json")
    assert ran.json["outputs"]["agent_core"]["trace"][0]["error"] is not None
    assert not any(SECRET in text for text in (ran.out, ran.err, caplog.text))


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_can_read_is_warned_of(cli: Cli, place: Path, mode: int, warned: bool) -> None:
    place.chmod(mode)
    assert (".env can be read by other users; `chmod 600`" in cli("tools").err) is warned


def test_what_is_read_before_the_file_has_no_effect_there(cli: Cli, place: Path) -> None:
    place.write_text(f"AGENT_CORE_STORE=elsewhere.db\nDESK_TOKEN={SECRET}\nDESK_PLACE=x\n")
    ran = cli("run", "w.json")
    assert ran.code == 0
    assert "AGENT_CORE_STORE has no effect here; set it in the environment" in ran.err
    assert not Path("elsewhere.db").exists()


def test_a_file_that_cannot_be_read_is_told(cli: Cli, place: Path) -> None:
    place.write_bytes(b"A=\xff\n")
    ran = cli("tools")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert ".env: cannot be read: it is not UTF-8" in ran.err


def test_a_file_without_a_configuration_beside_it_is_left_alone(home: Path, write: Write, cli: Cli) -> None:
    write(".env", "DESK_LONELY=1")
    assert cli("tools").code == 0
    load_environment(None)
    assert "DESK_LONELY" not in os.environ


READS = """
import os
from utools import tool

@tool(effect="read")
def tells() -> str:
    "Tells."
    return "; ".join(os.environ[name] for name in ("SHOP_PASSWORD", "SHOP_DB", "SHOP_PLACE"))
"""


def test_what_looks_secret_in_the_file_is_masked_though_it_is_not_listed(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHOP_PASSWORD", "SHOP_DB", "SHOP_PLACE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    write("reads.py", READS)
    write("agent-core.yaml", "tools: [reads.py:tells]")
    write("w.json", {"id": "w", "nodes": [{"tool": "tells"}]})
    keys = "SHOP_PASSWORD=correct-horse-battery\nSHOP_DB=postgres://shop:hunter2hunter@db/shop\n"
    write(".env", f"{keys}SHOP_PLACE=in the old harbour\n").chmod(0o600)
    told = cli("run", "w.json", "--json").json["outputs"]["tells"]
    assert told == "[redacted:SHOP_PASSWORD]; [redacted:SHOP_DB]; in the old harbour"
