"""The desk of one tenant, with models that stand in for real ones, and its records."""

import pytest

from agent_core import AnswerError, create_model, replay
from agent_core.testing import RecordedRuns, ScriptedModel, TestModel, assert_called, assert_finish, recorded
from service.desk import Verdict, configure_judge
from service.serving import LOOK_UP, OpenDesk
from service.shop import Deps

REFUND = Verdict(decision="refund", cents=15_00, reason="it is new")


def scripted() -> ScriptedModel:
    return ScriptedModel([LOOK_UP, {"type": "final", "answer": REFUND.model_dump()}])


async def test_a_recorded_verdict_replays(open_desk: OpenDesk) -> None:
    desk = open_desk(scripted())
    assert await desk.judge("ada", "17", "it came broken") == REFUND
    assert replay(desk.journal).identical
    assert not replay(desk.journal, policy={"deny_tools": ["find_order"]}).identical


async def test_recorded_replies_drive_the_code_of_today(open_desk: OpenDesk) -> None:
    desk = open_desk(scripted())
    await desk.judge("ada", "17", "it came broken")
    today = open_desk(recorded(desk.journal), "evil")
    assert await today.judge("ada", "17", "it came broken") == REFUND
    assert_called(today.journal, "find_order", args={"number": "17"}, times=1)


async def test_the_judge_does_what_was_recorded(open_desk: OpenDesk, recorded_run: RecordedRuns) -> None:
    desk = open_desk(scripted())
    config, deps = configure_judge("17", "it came broken"), Deps(desk.shop, "ada")
    output = await recorded_run(config, registry=desk.tools, answer_schema=Verdict, model=desk.model, deps=deps)
    assert output.answer == REFUND


async def test_the_judge_may_call_what_looks_and_nothing_that_pays(open_desk: OpenDesk) -> None:
    desk = open_desk(TestModel(args={"find_order": {"number": "17"}}, answer=REFUND.model_dump()))
    await desk.judge("ada", "17", "it came broken")
    for tool in ("find_order", "may_return"):
        assert_called(desk.journal, tool, times=1)
    assert desk.shop.refunded("17") == 0


async def test_any_model_gives_a_verdict_of_its_type(open_desk: OpenDesk, test_model: TestModel) -> None:
    verdict = await open_desk(test_model).judge("ada", "17", "it came broken")
    assert verdict.decision in ("refund", "reject")
    assert isinstance(verdict, Verdict)


@pytest.mark.usefixtures("no_real_models")
async def test_no_test_asks_a_real_model(open_desk: OpenDesk) -> None:
    desk = open_desk(create_model("openai:gpt-4o-mini", api_key="sk-none"))
    with pytest.raises(AnswerError, match="gpt-4o-mini") as caught:
        await desk.judge("ada", "17", "it came broken")
    assert_finish(caught.value.output, "model_error")
