"""Nodes that wait, at the command line: what is printed, what `signal` does, and how long a command waits itself."""

import json
from typing import Any

import pytest

from support.command import Cli, Write

PAY: dict[str, Any] = {
    "id": "pay",
    "nodes": [
        {"id": "paid", "tool": "wait", "config": {"signal": "paid"}},
        {"id": "thanks", "tool": "echo", "config": {"text": "thanks for {{nodes.paid.data.amount}}"}},
    ],
}


@pytest.fixture
def waiting(cli: Cli, write: Write) -> str:
    """The id of a run that waits for a signal."""
    ran = cli("run", str(write("pay.json", PAY)), "--json")
    assert ran.code == 6
    return str(ran.json["run_id"])


def test_run_says_for_what_it_waits_and_which_command_sends_it(cli: Cli, write: Write) -> None:
    ran = cli("run", str(write("pay.json", PAY)))
    assert ran.code == 6
    assert "waits    for the signal 'paid'" in ran.out
    assert "signal   agent-core signal " in ran.out
    assert "… paid    waits for the signal 'paid'" in ran.err
    assert "✓ paid" not in ran.err, "for what it waits is no result of it"


def test_signal_sends_its_data_and_the_run_goes_on_here(cli: Cli, waiting: str) -> None:
    ran = cli("signal", waiting, "paid", "--data", '{"amount": 5}', "--json")
    assert (ran.code, ran.json["outputs"]["thanks"]) == (0, "thanks for 5")
    shown = cli("show", waiting).out
    assert "signal        paid by " in shown
    assert "waiting       awaiting_event paid" in shown
    assert cli("verify", waiting).code == 0
    assert cli("replay", waiting).code == 0


def test_signal_that_no_node_waits_for_is_kept(cli: Cli, waiting: str) -> None:
    kept = cli("signal", waiting, "other")
    assert (kept.code, kept.out) == (0, f"{waiting}  waiting; the first node that waits for other takes the signal\n")
    assert cli("signal", waiting, "other", "--json").json == {"run_id": waiting, "status": "waiting"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["paid", "--data", "{"], 2, "--data is not JSON"),
        (["a b"], 3, "1 to 128 letters"),
    ],
)
def test_signal_that_cannot_be_is_refused(cli: Cli, waiting: str, words: list[str], code: int, told: str) -> None:
    ran = cli("signal", waiting, *words)
    assert (ran.code, told in ran.err) == (code, True), ran
    assert "control" not in cli("show", waiting).out


def test_signal_to_a_run_that_has_ended_is_refused(cli: Cli, waiting: str) -> None:
    assert cli("cancel", waiting).code == 0
    ran = cli("signal", waiting, "paid")
    assert (ran.code, "has ended as cancelled" in ran.err) == (2, True), ran


def test_decide_says_that_no_call_waits_for_a_decision(cli: Cli, waiting: str) -> None:
    ran = cli("decide", waiting, "approve")
    assert (ran.code, "no call" in ran.err) == (2, True), ran


@pytest.mark.exhaustive
def test_run_waits_itself_for_a_time(cli: Cli, write: Write) -> None:
    flow = {"id": "w", "nodes": [{"id": "w", "tool": "wait", "config": {"seconds": 5.1, "signal": "s"}}]}
    ran = cli("run", str(write("w.json", flow)), "--json")
    assert (ran.code, ran.json["status"], ran.json["outputs"]["w"]["signal"]) == (0, "completed", None)


def test_case_of_a_test_file_sends_signals_and_waits_for_no_time(cli: Cli, write: Write) -> None:
    flow = {
        **PAY,
        "nodes": [*PAY["nodes"], {"id": "late", "tool": "echo", "config": {"text": "late"}}],
        "edges": [{"from": "paid", "to": "thanks", "when": "output.signal"}, {"from": "paid", "to": "late"}],
    }
    flow["nodes"][0] = {"id": "paid", "tool": "wait", "config": {"signal": "paid", "seconds": 86400}}
    write("pay.json", flow)
    mocked = {"signal": "paid", "data": {"amount": 9}}
    cases: list[dict[str, Any]] = [
        {"name": "paid", "signals": [{"name": "paid", "data": {"amount": 7}}], "outputs": {"thanks": "thanks for 7"}},
        {"name": "late", "path": ["paid", "late"]},
        {"name": "another", "signals": ["other"], "path": ["paid", "late"]},
        {"name": "node", "mock": {"paid": {"output": mocked}}, "outputs": {"thanks": "thanks for 9"}},
        {"name": "tool", "mock": {"wait": {"output": mocked}}, "outputs": {"thanks": "thanks for 9"}},
    ]
    write("pay.test.yaml", json.dumps({"cases": cases}))
    ran = cli("test", "pay.json")
    assert (ran.code, ran.out.splitlines()[1:]) == (
        1,
        [
            "✓ late  paid → late",
            "✗ another  paid → late",
            "    expected a node to wait for each of the `signals`, and none waited for other",
            "✓ node  paid → thanks",
            "✓ tool  paid → thanks",
            "5 cases, 1 failed",
        ],
    ), ran
    write("pay.json", PAY)
    write("pay.test.yaml", json.dumps({"cases": [{"name": "open"}]}))
    ran = cli("test", "pay.json")
    assert "it waits for the signal 'paid'" in ran.out, ran
