"""The sync twin inside a running loop, as in a notebook: tools see the caller's context, and Ctrl-C ends the run."""

import asyncio
import gc
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent_sync, verify
from agent_core.errors import NoEventLoop
from agent_core.models import ScriptedModel
from support.by_hand import final
from utools import tool

USER: ContextVar[str] = ContextVar("USER", default="nobody")
MAIN = threading.main_thread().ident
REPLIES = ['{"type":"action","tool":"look","args":{}}', final()]


def config() -> dict[str, Any]:
    return {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}


async def test_tools_see_the_context_variables_of_the_caller() -> None:
    @tool(effect="read")
    def look() -> str:
        """Say who asks."""
        return USER.get()

    USER.set("ada")
    output = run_agent_sync(config(), registry=[look], model=ScriptedModel(REPLIES))
    assert output.trace[0]["observation"] == "ada"


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C as in the kernel of a notebook, whose loop does not handle it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def test_an_interrupt_cancels_the_run(interrupts: None) -> None:
    @tool(effect="read")
    async def look() -> str:
        """Interrupt the caller, and wait."""
        assert MAIN is not None
        signal.pthread_kill(MAIN, signal.SIGINT)
        await asyncio.sleep(60)
        return "seen"

    journal = MemoryJournal()
    with pytest.raises(KeyboardInterrupt):
        run_agent_sync(config(), registry=[look], model=ScriptedModel(REPLIES), journal=journal, run_id="r")
    assert verify(journal, run_id="r").ok
    last = journal.load("r")["agent"][-1].record()
    assert (last["kind"], last["finish_reason"]) == ("run_finished", "cancelled")


def test_an_interrupt_in_the_code_of_a_tool_or_a_model_cancels_the_run_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is raised where the program is: in an async tool that blocks, so that its task ends by it."""

    @tool(effect="read")
    async def look() -> str:
        """Block the event loop."""
        raise KeyboardInterrupt

    def answer(messages: object) -> str:
        raise KeyboardInterrupt

    for model in (ScriptedModel(REPLIES), ScriptedModel(answer)):
        journal = MemoryJournal()
        with pytest.raises(KeyboardInterrupt):
            run_agent_sync(config(), registry=[look], model=model, journal=journal, run_id="r")
        gc.collect()
        last = journal.load("r")["agent"][-1].record()
        assert (last["kind"], last["finish_reason"]) == ("run_finished", "cancelled")
    assert capfd.readouterr().err == "", "no task is left behind"


@pytest.mark.parametrize(
    ("by", "module", "patched"),
    [
        ("gevent", "gevent.monkey", SimpleNamespace(is_module_patched=lambda name: name == "threading")),
        ("eventlet", "eventlet.patcher", SimpleNamespace(is_monkey_patched=lambda name: name == "thread")),
    ],
)
async def test_second_run_among_green_threads_says_where_to_run(
    by: str, module: str, patched: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, patched)  # type: ignore[arg-type]
    with pytest.raises(NoEventLoop, match=f"green threads of {by} share; .* in a process without {by}") as refused:
        run_agent_sync(config(), registry=[], model=ScriptedModel([final()]))
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
