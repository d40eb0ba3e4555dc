"""Two runs: one asks the endpoint in ENDPOINT, one calls a tool that blocks its thread."""

import os
import time
from typing import Any

from agent_core import MemoryJournal, run_agent_sync, verify
from agent_core.models import ScriptedModel
from utools import tool

KEYS = {"model": "openai:m", "max_steps": 3, "prompt": "How many A-17?"}
REPLIES = ['{"type":"action","tool":"stock","args":{"article":"A-17"}}', '{"type":"final","answer":"12"}']


@tool(effect="read")
def stock(article: str) -> int:
    """Pieces in stock."""
    time.sleep(0.01)
    return 12


def at_endpoint() -> dict[str, Any]:
    return {**KEYS, "base_url": os.environ["ENDPOINT"], "allowed_tools": []}


def with_tool() -> dict[str, Any]:
    return {**KEYS, "allowed_tools": ["stock"]}


def ask() -> str:
    journal = MemoryJournal()
    first = run_agent_sync(at_endpoint(), registry=[])
    second = run_agent_sync(with_tool(), registry=[stock], model=ScriptedModel(REPLIES), journal=journal, run_id="r")
    assert verify(journal, run_id="r").ok
    return f"{first.final_answer} {second.final_answer}"
