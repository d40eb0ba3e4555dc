"""The refund desk of one tenant: verdicts, cases that pay, and conversations."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agent_core import (
    AgentConfig,
    AgentOutput,
    Approve,
    DecisionError,
    Decisions,
    Deny,
    Event,
    ModelClient,
    SqliteJournal,
    StreamResult,
    run_agent,
    stream_agent,
)
from agent_core.agents import (
    AgentCatalog,
    AgentDefinition,
    AgentExecutor,
    ChatReply,
    ConversationResult,
    Conversations,
    SkillPolicy,
)
from engine_shim import Engine, RunNotFound, RunResult, SqliteRunStore
from service.shop import Deps, ReturnPolicy, Shop, find_order, pay_refund
from utools import SqliteContextStore, ToolRegistry

LIMIT_CENTS = 50_00
"""A refund above it is paid once a person has approved."""


class Verdict(BaseModel):
    """What is to become of a complaint."""

    decision: Literal["refund", "reject"]
    cents: int = Field(ge=0)
    reason: str


class Reply(TypedDict):
    """An answer in a conversation, and the order that it is about."""

    text: str
    order: str | None


LOOKS = ["find_order", "may_return"]
CLERK = AgentDefinition(
    name="clerk",
    description="Answers customers",
    model="openai:gpt-4o-mini",
    system_prompt="You answer customers of a shop.",
    skill_policy=SkillPolicy(allow=[*LOOKS]),
    runtime_policy={"max_steps": 6},
)
PAYMENT = {"number": "{{external.number}}", "cents": "{{nodes.judge.final_answer.cents}}"}
REFUNDED = "output.final_answer.decision == 'refund' && output.final_answer.cents"


def configure_judge(number: str, complaint: str) -> AgentConfig:
    """Return the agent that judges a complaint about an order."""
    return AgentConfig(
        model=CLERK.model,
        max_steps=6,
        total_token_budget=20_000,
        allowed_tools=[*LOOKS],
        system_prompt="You judge complaints of a shop's customers. Look the order up first.",
        prompt=f"Order {number}: {complaint}",
    )


def define_case() -> dict[str, Any]:
    """Return the workflow of a case: it is judged, and what the verdict grants is paid, if need be once approved."""
    judge = configure_judge("{{external.number}}", "{{external.complaint}}").model_dump(exclude_unset=True)
    inputs = {"number": {"type": "string"}, "complaint": {"type": "string"}}
    return {
        "id": "refund",
        "inputs": {"type": "object", "properties": inputs, "required": list(inputs)},
        "nodes": [
            {"id": "judge", "tool": "agent_core", "config": {**judge, "answer_schema": Verdict.model_json_schema()}},
            {"id": "pay", "tool": "pay_refund", "config": PAYMENT},
            {"id": "pay_large", "tool": "pay_refund", "config": PAYMENT, "approval": "always"},
        ],
        "edges": [
            {"from": "judge", "to": "pay", "when": f"{REFUNDED} <= `{LIMIT_CENTS}`"},
            {"from": "judge", "to": "pay_large", "when": f"{REFUNDED} > `{LIMIT_CENTS}`"},
        ],
        "ends": ["judge", "pay", "pay_large"],
        "outputs": {"verdict": "{{nodes.judge.final_answer}}"},
    }


class Desk:
    """The desk of one tenant, whose data are all below `directory`. It is used in one event loop."""

    def __init__(self, directory: Path, *, model: ModelClient, policy: ReturnPolicy) -> None:
        self.model = model
        self.shop = Shop(directory / "shop.db")
        self.tools = ToolRegistry([find_order, pay_refund, policy.may_return])
        self.journal = SqliteJournal(directory / "agents.db")
        self.engine = Engine(self.tools, store=SqliteRunStore(directory / "cases.db"), model=model)
        catalog = AgentCatalog(self.tools)
        catalog.register(CLERK)
        self.executor = AgentExecutor(catalog, tools_at=lambda root: self.tools, model=model, journal=self.journal)
        self.conversations = Conversations(self.executor, SqliteContextStore(directory / "chats.db"))

    async def judge(self, user: str, number: str, complaint: str) -> Verdict:
        """Return a verdict; AnswerError if the agent gives none."""
        output = await run_agent(
            configure_judge(number, complaint),
            registry=self.tools,
            answer_schema=Verdict,
            model=self.model,
            journal=self.journal,
            deps=Deps(self.shop, user),
        )
        return output.answer

    def stream_verdict(
        self, user: str, number: str, complaint: str
    ) -> AsyncGenerator[Event | StreamResult[AgentOutput[Verdict]], None]:
        """Yield what the judge does, and the output."""
        return stream_agent(
            configure_judge(number, complaint),
            registry=self.tools,
            answer_schema=Verdict,
            model=self.model,
            journal=self.journal,
            deps=Deps(self.shop, user),
        )

    def stream_chat(
        self, user: str, conversation: str, message: str
    ) -> AsyncGenerator[Event | StreamResult[ChatReply[Reply]], None]:
        """Yield what the clerk does in a conversation of the user, and the reply."""
        return self.conversations.stream_chat(
            message, f"{user}/{conversation}", answer_schema=Reply, deps=Deps(self.shop, user)
        )

    def stream_answer(
        self, user: str, question: str
    ) -> AsyncGenerator[Event | StreamResult[ConversationResult[Reply]], None]:
        """Yield what the clerk does about a question that is of no conversation, and the result."""
        return self.executor.stream_conversation("clerk", question, answer_schema=Reply, deps=Deps(self.shop, user))

    def open_case(
        self, user: str, number: str, complaint: str, *, case: str
    ) -> AsyncGenerator[Event | StreamResult[RunResult], None]:
        """Yield what becomes of a case: it is judged, and paid at once, or once a person has approved."""
        self.shop.add_case(case, user)
        return self.engine.stream(
            define_case(),
            external={"number": number, "complaint": complaint},
            run_id=case,
            deps=Deps(self.shop, user),
        )

    def find_case(self, case: str, user: str | None = None) -> str:
        """Return whose case it is; RunNotFound if there is none, or not of this user."""
        customer = self.shop.find_customer(case)
        if customer is None or user not in (None, customer):
            raise RunNotFound(case)
        return customer

    async def decide(self, case: str, decision: Approve | Deny, *, by: str) -> RunResult:
        """Go on with a case by a decision on its payment; DecisionError if it waits for none."""
        deps = Deps(self.shop, self.find_case(case))
        result = self.engine.result(case)
        if result is None or not result.waiting:
            raise DecisionError(f"the case {case} waits for no decision")
        decisions: Decisions = {(call["strand"], call["n"]): decision for call in result.waiting}
        return await self.engine.resume(case, decisions=decisions, by=by, deps=deps)

    async def close(self) -> None:
        await self.engine.close()
        self.journal.close()
