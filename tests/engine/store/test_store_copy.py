"""store copy: every run arrives with its head, once, and nothing that the other store holds is changed."""

from pathlib import Path

import pytest

from agent_core.audit.verify import verify
from engine_shim import DefinitionError, RunNotFound
from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunEntry
from engine_shim.store.open import open_store
from support.by_hand import action, final
from support.command import Cli, Write


@pytest.fixture
def runs(cli: Cli, write: Write) -> list[str]:
    """Two runs that ended, and one that waits, in runs.db."""
    agent = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["calculator"], "prompt": "Go."}
    write("flow.yaml", {"id": "w", "nodes": [{"tool": "agent_core", "config": agent}]})
    asks = {**agent, "allowed_tools": [{"tool": "calculator", "approval": "always"}]}
    write("asks.yaml", {"id": "a", "nodes": [{"tool": "agent_core", "config": asks}]})
    write("replies.json", [action("calculator", expression="1 + 1"), final()])
    made = []
    for flow in ("flow.yaml", "flow.yaml", "asks.yaml"):
        ran = cli("run", flow, "--json", "--store", "runs.db")
        made.append(ran.json["run_id"])
    return made


def test_runs_arrive_with_their_heads_and_go_on_there(cli: Cli, home: Path, runs: list[str]) -> None:
    copied = cli("store", "copy", "runs.db", "other.db", "--json")
    assert (copied.code, copied.json) == (0, {"copied": runs, "known": [], "driven": [], "ledger": "carried"})
    for run in runs[:2]:
        first, second = (verify(home / name, run_id=run) for name in ("runs.db", "other.db"))
        assert (second.ok, second.head, second.count) == (True, first.head, first.count)
    head = cli("ledger", "--store", "runs.db", "--json").json["head"]
    assert cli("verify", "--all", "--ledger", head, "--store", "other.db").code == 0
    assert cli("decide", runs[2], "approve", "--store", "other.db").code == 0
    assert open_store(home / "runs.db").entry(runs[2]).status == "waiting"  # type: ignore[union-attr]
    again = cli("store", "copy", "runs.db", "third.db", "--run", runs[0])
    assert again.out == "copied: 1 run to third.db, verified\n"


def test_copying_again_takes_what_is_new_and_refuses_what_parted(cli: Cli, home: Path, runs: list[str]) -> None:
    source, target = open_store(home / "runs.db"), open_store(home / "other.db")
    for number, (_, row) in enumerate(source.tail(runs[0])[:2]):  # as a copy leaves it that was interrupted
        assert target.journal.append(runs[0], [row]), number
    assert copy_runs(source, target).new == runs
    assert copy_runs(source, target).known == runs
    assert cli("decide", runs[2], "approve", "--store", "other.db").code == 0
    assert cli("decide", runs[2], "deny", "--store", "runs.db").code == 0
    with pytest.raises(DefinitionError, match="holds other records of this run"):
        copy_runs(source, target, [runs[2]])
    with pytest.raises(RunNotFound):
        copy_runs(source, target, ["none"])


def test_run_that_somebody_drives_is_left_out(cli: Cli, home: Path, runs: list[str]) -> None:
    source = open_store(home / "runs.db")
    source.save(RunEntry("busy", "w", "1", "running", "2026-01-01T00:00:00Z", str(home)))
    assert source.leases.acquire("busy", "elsewhere:1:x") is None
    told = cli("store", "copy", "runs.db", "other.db")
    assert "the ledger goes on there, with each head that it had" in told.out
    assert "left out: busy, which somebody drives" in told.out
    assert open_store(home / "other.db").entry("busy") is None


def test_store_that_is_not_there_is_not_made(cli: Cli, home: Path) -> None:
    refused = cli("store", "copy", "none.db", "other.db")
    assert refused.code != 0
    assert "there is no run store none.db" in refused.err
    assert not (home / "other.db").exists()


@pytest.mark.sampled
@pytest.mark.parametrize("words", [("runs", "--store"), ("store", "copy", "runs.db"), ("verify", "--all", "--store")])
def test_what_looks_like_a_url_and_is_none_of_a_store_makes_no_file(
    cli: Cli, home: Path, runs: list[str], words: tuple[str, ...]
) -> None:
    before = sorted(home.iterdir())
    refused = cli(*words, "postgers://h/x")
    assert refused.code == 2
    assert "did you mean postgres://?" in refused.err
    assert sorted(home.iterdir()) == before


def test_the_environment_and_the_hosts_file_are_held_to_the_same(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agent-core.yaml", {"store": "sqlite:///runs.db"})
    assert (cli("runs").code, "by its path alone: runs.db" in cli("runs").err) == (3, True)
    monkeypatch.setenv("AGENT_CORE_STORE", "mysql://h/x")
    assert "AGENT_CORE_STORE: There are stores" in cli("runs").err
