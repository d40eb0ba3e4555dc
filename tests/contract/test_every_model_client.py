"""The contract of ModelClient, over every client: of endpoints, scripts, functions, recorded runs, tests."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from agent_core import Final, MemoryJournal, run_agent
from agent_core.models import ModelClient, ScriptedModel
from agent_core.testing import FunctionModel, TestModel, recorded
from agent_core.testing.contracts.model_client import MODEL_RULES, RULES_OF_FAILURES
from agent_core.testing.contracts.rules import Rule
from support.wires.clients import client_of
from support.wires.installed import STAND_INS
from support.wires.serving import Refused, Step, vendor
from support.wires.turn import Turn

Make = Callable[[], ModelClient]
FINAL = {"type": "final", "answer": "A house."}


async def recorded_reply() -> ModelClient:
    journal = MemoryJournal()
    config = {"model": "m1", "max_steps": 1, "allowed_tools": [], "prompt": "What is a casa?"}
    await run_agent(config, registry=[], model=ScriptedModel([FINAL]), journal=journal, run_id="r")
    return recorded(journal, "r")


OF_PROCESS: dict[str, Make] = {
    "script": lambda: ScriptedModel([FINAL]),
    "function": lambda: FunctionModel(lambda messages, tools: Final("A house.")),
    "test": TestModel,
}
FAILING: dict[str, Make] = {
    "script": lambda: ScriptedModel([]),
    "function": lambda: FunctionModel(lambda messages, tools: 7),  # type: ignore[arg-type,return-value]
    "test": lambda: TestModel(args={"unknown": {}}),
    "recorded": lambda: recorded({}),
}
APIS = {stand_in.api: stand_in for stand_in in STAND_INS}


@asynccontextmanager
async def client_for(name: str, step: Step, of_process: Mapping[str, Make]) -> AsyncIterator[ModelClient]:
    if name not in APIS:
        yield of_process[name]() if name in of_process else await recorded_reply()
        return
    async with vendor(APIS[name], step) as endpoint:
        client = client_of(endpoint)
        yield client
        await client.close()


@pytest.mark.parametrize("rule", MODEL_RULES, ids=str)
@pytest.mark.parametrize("name", [*OF_PROCESS, "recorded", *APIS])
async def test_every_client_keeps_to_the_contract(name: str, rule: Rule) -> None:
    async with client_for(name, Turn('{"type":"final","answer":"A house."}'), OF_PROCESS) as client:
        await rule.run(client)


@pytest.mark.parametrize("rule", RULES_OF_FAILURES, ids=str)
@pytest.mark.parametrize("name", [*FAILING, *APIS])
async def test_every_client_fails_as_the_contract_says(name: str, rule: Rule) -> None:
    async with client_for(name, Refused(400, "not today"), FAILING) as client:
        await rule.run(client)
