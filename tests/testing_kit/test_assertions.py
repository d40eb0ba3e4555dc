"""What a test says of a run holds, or fails with what the run did instead."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import AgentOutput, JsonlJournal, MemoryJournal, run_agent_sync
from agent_core.testing import ScriptedModel, assert_called, assert_finish, assert_not_called, assert_refused
from utools import ToolError, tool


@tool(effect="read")
def stock(article: str) -> int:
    """Count the pieces of an article."""
    if article == "gone":
        raise ToolError("no such article")
    return 12


@tool
def order(article: str, pieces: int = 1) -> str:
    """Order pieces."""
    return "ordered"


@tool
def pay(amount: float) -> str:
    """Pay."""
    return "paid"


def act(code: str, **args: Any) -> dict[str, Any]:
    return {"type": "action", "tool": code, "args": args}


ALLOWED = [
    "stock",
    {"tool": "order", "args": {"properties": {"pieces": {"maximum": 50}}}},
    {"tool": "pay", "approval": "always"},
]
STEPS = [act("stock", article="A-17"), act("stock", article="B-2"), act("order", article="A-17", pieces=80)]
FINAL = {"type": "final", "answer": "There are 12."}


def run(*steps: Any, journal: Any = None) -> AgentOutput:
    config = {"model": "scripted", "max_steps": 9, "max_repairs": 3, "prompt": "How many?", "allowed_tools": ALLOWED}
    return run_agent_sync(config, registry=[stock, order, pay], model=ScriptedModel(steps), journal=journal, run_id="r")


@pytest.fixture(params=["output", "journal", "file", "tape"])
def done(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The same run, in each form that the assertions take."""
    journal = JsonlJournal(tmp_path / "run.jsonl") if request.param == "file" else MemoryJournal()
    output = run(*STEPS, FINAL, journal=journal)
    forms: dict[str, Any] = {"output": output, "file": tmp_path / "run.jsonl", "tape": journal.load("r")}
    return forms.get(request.param, (journal, "r"))


def test_what_a_run_did_is_as_it_is_said(done: Any) -> None:
    assert_called(done, "stock")
    assert_called(done, "stock", times=2)
    assert_called(done, "stock", args={"article": "B-2"}, times=1)
    assert_called(done, "order", times=0)
    assert_not_called(done, "order")
    assert_not_called(done, "stock", args={"article": "C-3"})
    assert_refused(done, "order", args={"pieces": 80})
    assert_finish(done)
    assert_finish(done, "final", answer="There are 12.")


CALLED = r'it called stock \{"article": "A-17"\}; stock \{"article": "B-2"\}, and was refused order \{'


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (lambda run: assert_called(run, "pay"), f"expected the call of pay; {CALLED}"),
        (lambda run: assert_called(run, "stock", times=3), f"stock 3 times, and it was called 2 times; {CALLED}"),
        (
            lambda run: assert_called(run, "stock", args={"article": "C-3"}),
            f'expected the call of stock with {{"article": "C-3"}}; {CALLED}',
        ),
        (lambda run: assert_not_called(run, "stock"), f"expected no call of stock; {CALLED}"),
        (lambda run: assert_refused(run, "stock"), f"expected the refusal of stock; {CALLED}"),
        (lambda run: assert_refused(run, "order", reason="invalid_action"), "refusal of order by invalid_action"),
        (lambda run: assert_finish(run, "max_steps"), f"to end by max_steps, and it ended by final; {CALLED}"),
        (lambda run: assert_finish(run, answer="13"), 'the answer "13", and it is "There are 12."; it called'),
        (lambda run: assert_finish(run, error="no"), 'an error with "no", and it is null'),
    ],
    ids=["called", "times", "args", "not called", "refused", "reason", "finish", "answer", "error"],
)
def test_a_failure_shows_what_came_instead(done: Any, claim: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message.replace("{{", r"\{").replace("}}", r"\}")):
        claim(done)


def test_the_reason_of_a_refusal_is_in_the_journal() -> None:
    journal = MemoryJournal()
    output = run(*STEPS, FINAL, journal=journal)
    assert_refused((journal, "r"), "order", reason="policy_denied")
    with pytest.raises(AssertionError, match="the output does not say why it was refused: give"):
        assert_refused(output, "order", reason="policy_denied")


def test_a_call_that_waits_counts_as_refused_and_not_as_made() -> None:
    journal = MemoryJournal()
    output = run(act("pay", amount=3.5), journal=journal)
    for each in (output, (journal, "r")):
        assert_refused(each, "pay", args={"amount": 3.5}, reason="awaiting_approval")
        assert_not_called(each, "pay")
        assert_finish(each, "awaiting_approval")
        with pytest.raises(AssertionError, match="by final, and it has not ended: it is awaiting_approval"):
            assert_finish(each)


@pytest.mark.parametrize("reason", ["max_step", "running", "Final"])
def test_a_reason_that_there_is_not_is_no_failure_of_the_run(done: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f'the end "{reason}"; there are final, max_steps, .*waiting'):
        assert_finish(done, reason)
    with pytest.raises(ValueError, match=f'the refusal "{reason}"; there are final, .*policy_denied'):
        assert_refused(done, "order", reason=reason)


def test_a_call_that_failed_was_made_where_the_output_tells() -> None:
    output = run(act("stock", article="gone"), FINAL)
    assert_called(output, "stock", args={"article": "gone"})
    output = run(act("stock", article="gone"), act("stock", articl="x"), FINAL)
    with pytest.raises(ValueError, match=r"some calls of stock failed and others were refused.*give the journal"):
        assert_called(output, "stock")
    assert_finish(output)


def test_output_whose_trace_was_shortened_does_not_pass_for_one_without_calls() -> None:
    config = {"model": "scripted", "max_steps": 4, "prompt": "Go.", "allowed_tools": ["stock"], "trace_max_bytes": 200}
    model = ScriptedModel([act("stock", article="x" * 200), act("stock", article="y"), FINAL])
    output = run_agent_sync(config, registry=[stock, order], model=model)
    assert_finish(output, answer="There are 12.")
    assert_not_called(output, "order")
    with pytest.raises(ValueError, match=r"calls of stock are not in the output.*trace_max_bytes.*give the journal"):
        assert_not_called(output, "stock")


def run_shortened(trace_max_bytes: int, *replies: str) -> Any:
    config = {"model": "scripted", "max_steps": 4, "prompt": "Go.", "allowed_tools": ["stock", "order"]}
    model = ScriptedModel([*replies, FINAL])
    return run_agent_sync({**config, "trace_max_bytes": trace_max_bytes}, registry=[stock, order], model=model)


def test_call_that_a_shortened_output_shows_was_made() -> None:
    output = run_shortened(450, act("stock", article="lamp"), act("stock", article="y"))
    assert len(output.trace) == 2
    assert_called(output, "stock")
    with pytest.raises(ValueError, match="calls of stock are not in the output"):
        assert_called(output, "stock", times=1)


def test_arguments_that_an_output_lacks_do_not_pass_for_others() -> None:
    whole, cut = (run_shortened(size, act("order", article="lamp" * 50)) for size in (1000, 500))
    assert [len(each.trace) for each in (whole, cut)] == [2, 2]
    assert_not_called(whole, "order", args={"article": "desk"})
    assert_called(cut, "order")
    with pytest.raises(ValueError, match="arguments of order are not in the output"):
        assert_not_called(cut, "order", args={"article": "lamp" * 50})


def test_tool_itself_is_no_code(done: Any) -> None:
    for check in (assert_called, assert_not_called, assert_refused):
        with pytest.raises(TypeError, match="give its code, 'stock'"):
            check(done, stock)  # type: ignore[operator]
