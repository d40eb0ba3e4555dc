"""A process whose agent pays once, after its rate limit has it wait: `python -m support.crash.limited FOLDER SECONDS`.

It says `waiting` when it begins to wait, and at last how the run ended. What the model was asked and what the tool did
is in files that no kill takes back.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from agent_core import SqliteJournal, run_agent
from agent_core.models import ScriptedModel
from utools import Tool, ToolRegistry
from utools.calls.shared import SharedCalls
from utools.calls.store import Reservation
from utools.calls.store_memory import MemoryCallStore

ASK = '{"type": "action", "tool": "pay", "args": {}}'
DONE = '{"type": "final", "answer": "paid"}'


class Slots(MemoryCallStore):
    """A store whose next slot comes up after so many seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self.wait = wait

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        print("waiting", flush=True)
        return Reservation(self.wait, "ticket")


def note(file: Path, text: str) -> None:
    with file.open("a") as ledger:
        ledger.write(f"{text}\n")


async def main(folder: Path, wait: float) -> None:
    def pay(args: dict[str, Any], context: Any) -> str:
        note(folder / "paid", context.idempotency_key)
        return "paid"

    def reply(messages: Any) -> str:
        note(folder / "asked", str(len(messages)))
        return ASK if len(messages) < 4 else DONE

    registry = ToolRegistry([Tool("pay", "Pays.", {"type": "object"}, pay)], calls=SharedCalls(Slots(wait)))
    allowed = [{"tool": "pay", "rate_limit": "1/h"}]
    limits = {"max_steps": 3, "timeout": 0, "single_call_timeout": 0}
    config = {"model": "m", "allowed_tools": allowed, "prompt": "Pay.", **limits}
    journal = SqliteJournal(folder / "run.db")
    output = await run_agent(config, registry=registry, model=ScriptedModel(reply), journal=journal, run_id="r")
    print(output.finish_reason, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
