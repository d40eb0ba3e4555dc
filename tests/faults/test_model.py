"""An agent whose model is reached over a network that fails and comes back."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core import replay, verify
from engine_shim import Engine, MemoryRunStore
from engine_shim.runs.loops import LOOPS
from support.bad_link import BadLink, bad_link
from support.loopback import Loopback, chat, serving
from utools import Tool

pytestmark = pytest.mark.exhaustive
PAY = '{"type": "action", "tool": "pay", "args": {}}'
DONE = '{"type": "final", "answer": "paid"}'
CALL_S = 5
"""How long one question may take here."""


class Host:
    """An engine whose model is behind a link; its tool brings the fault, so that it comes in the middle of a run."""

    def __init__(self, endpoint: Loopback, link: BadLink, fault: Callable[[BadLink], None]) -> None:
        self.endpoint, self.link, self.fault, self.paid = endpoint, link, fault, 0
        self.store = MemoryRunStore()
        url = f"http://127.0.0.1:{link.port}/v1"
        self.engine = Engine(
            [Tool("pay", "Pays.", {"type": "object"}, self._pay)], store=self.store, base_urls={url: ""}
        )
        self.config: dict[str, Any] = {
            "model": "openai:m1",
            "base_url": url,
            "max_steps": 4,
            "prompt": "Pay.",
            "allowed_tools": ["pay"],
            "single_call_timeout": CALL_S,
            "response_format": "text",
        }

    async def _pay(self, args: dict[str, Any], context: Any) -> str:
        self.paid += 1
        self.fault(self.link)
        return "paid"

    async def run(self, **node: Any) -> Any:
        nodes = [{"id": "agent", "tool": "agent_core", "config": self.config, **node}]
        return await self.engine.run({"id": "w", "nodes": nodes}, run_id="r")

    def is_sound(self, run: str) -> bool:
        whole = verify(self.store.journal, run_id=run).ok
        return whole and replay(self.store.journal, run_id=run, loops=LOOPS).identical


@asynccontextmanager
async def host(fault: Callable[[BadLink], None]) -> AsyncIterator[Host]:
    async with serving(chat(PAY), chat(DONE)) as endpoint:
        with bad_link(endpoint.port) as link:
            made = Host(endpoint, link, fault)
            yield made
            await made.engine.close()


def slow(link: BadLink) -> None:
    link.latency = 0.2


def drip(link: BadLink) -> None:
    link.become("drip")


def cut(link: BadLink) -> None:
    link.cut_answer(b"POST")


def reset(link: BadLink) -> None:
    link.reset_all()


def brief_outage(link: BadLink) -> None:
    link.become("refuse")
    link.later(0.3, lambda: link.become("pass"))


def outage(link: BadLink) -> None:
    link.become("refuse")


def half_open(link: BadLink) -> None:
    link.become("silent")


@pytest.mark.parametrize("fault", [slow, drip, cut, reset, brief_outage])
async def test_run_goes_on_by_itself(fault: Callable[[BadLink], None]) -> None:
    async with host(fault) as at:
        done = await at.run()
        assert (done.status, done.outputs["agent"]["final_answer"], at.paid) == ("completed", "paid", 1)
        assert at.is_sound("r")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (outage, "127.0.0.1:{port} gave no answer: Connection refused"),
        (half_open, "openai:m1 gave no reply within 5 seconds; single_call_timeout in the node's config"),
    ],
)
async def test_run_that_failed_over_its_model_goes_on_where_it_was(
    fault: Callable[[BadLink], None], error: str
) -> None:
    async with host(fault) as at:
        failed = await at.run()
        assert failed.status == "failed"
        assert error.format(port=at.link.port) in failed.error["message"], failed.error
        assert at.is_sound("r")
        asked = len(at.endpoint.requests)
        at.link.become("pass")
        done = await at.engine.retry_failed("r")
        assert (done.status, done.outputs["agent"]["final_answer"], at.paid) == ("completed", "paid", 1)
        assert len(at.endpoint.requests) == asked + 1, "what was answered is not asked again"
        assert at.is_sound(done.run_id)


@pytest.mark.timeout(120)
@pytest.mark.long
async def test_run_outlasts_half_a_minute_without_its_model_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    def begin(link: BadLink) -> None:
        link.become("refuse")
        link.later(30, lambda: link.become("pass"))

    async with host(begin) as at:
        at.config["single_call_timeout"] = 60
        done = await at.run()
        assert (done.status, done.outputs["agent"]["final_answer"], at.paid) == ("completed", "paid", 1)
        assert len(at.endpoint.requests) == 2
        assert f"model m1 at 127.0.0.1:{at.link.port} is unavailable" in caplog.text
        assert at.is_sound("r")
