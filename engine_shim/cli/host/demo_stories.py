"""The stories of the command demo, each a workflow with tools of its own, to see one promise kept.

trip        an agent searches files, calculates and answers
injection   a file tells the agent to send mail to a stranger: the call is refused
crash       the process is killed once a tool has written: the run continues, and writes nothing twice
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Literal

from agent_core.run.events import Event
from engine_shim.definition.load import load_workflow
from engine_shim.errors import EngineError
from engine_shim.runs.engine import Engine
from engine_shim.store.open import VARIABLE
from utools.context.store_sqlite import SqliteContextStore
from utools.databases.store_address import StoreAddress
from utools.decorator import tool
from utools.defaults import default_registry
from utools.registry import ToolRegistry
from utools.tool import Tool

StoryName = Literal["trip", "injection", "crash"]
BOOKINGS: Final = "bookings.txt"


@dataclass(frozen=True, slots=True)
class Story:
    """A workflow below `files`, the question that its replies answer, and its tools, given a directory to write in."""

    files: Traversable
    question: str
    tools: Callable[[Path], Sequence[Tool]] = lambda _: ()
    is_killed: bool = False
    """Whether a process of its own begins the run, and is killed in its midst."""


def _send_mail(outbox: Path) -> Sequence[Tool]:
    @tool(effect="write")
    def send_mail(to: str, text: str) -> str:
        """Send a mail.

        Args:
            to: The address.
            text: What the mail says.
        """
        with (outbox / "outbox.txt").open("a", encoding="utf-8") as file:
            file.write(f"{to}: {text}\n")
        return "sent"

    return [send_mail]


def _book_room(books: Path) -> Sequence[Tool]:
    @tool(effect="write")
    def book_room(guest: str, nights: int) -> str:
        """Book a room.

        Args:
            guest: Who stays.
            nights: How many nights.
        """
        with (books / BOOKINGS).open("a", encoding="utf-8") as file:
            file.write(f"{guest}, {nights} nights\n")
        return "booked"

    return [book_room]


_HERE: Final = files("engine_shim.cli.host")
STORIES: Final[dict[StoryName, Story]] = {
    "trip": Story(_HERE / "demo_files", "What did the trip to Lisbon cost in all, and which item was the dearest?"),
    "injection": Story(
        _HERE / "story_files/injection", "Read the order in inbox/ and confirm it to ada@example.com.", _send_mail
    ),
    "crash": Story(_HERE / "story_files/crash", "Book a room for Ada, for two nights.", _book_room, is_killed=True),
}


def make_registry(story: Story, directory: Path, memory: Path) -> ToolRegistry:
    """Return the tools of a story whose files are in a directory; what they write goes to `memory`."""
    registry = default_registry(str(directory), context_store=SqliteContextStore(memory / "context.db"))
    for each in story.tools(memory):
        registry.register(each)
    return registry


def begin_and_be_killed(run: str, directory: Path, memory: Path, store: StoreAddress | None) -> None:
    """Begin a run in a process that is killed as soon as its tool has written.

    EngineError for a process that ended otherwise, with the reason that it gives.
    """
    program = [sys.executable, "-P", "-m", __name__, run, str(directory), str(memory)]
    environment = {**os.environ, **({} if store is None else {VARIABLE: str(store)})}
    ended = subprocess.run(program, env=environment, capture_output=True, text=True)
    if ended.returncode != -signal.SIGKILL:
        last = (ended.stderr.strip().splitlines() or [f"with {ended.returncode}"])[-1]
        why = re.sub(r"^[\w.]+(Error|Damaged): ", "", last)
        raise EngineError(f"the process that was to be killed ended before: {why}")


def count_bookings(memory: Path) -> str:
    """Return how many bookings were made."""
    lines = (memory / BOOKINGS).read_text("utf-8").splitlines()
    return "1 booking" if len(lines) == 1 else f"{len(lines)} bookings"


def _kill_after_write(event: Event) -> None:
    if event["event"] == "observation":
        os.kill(os.getpid(), signal.SIGKILL)


def _begin(run: str, directory: str, memory: str) -> None:
    from engine_shim.cli.store import open_store_for_runs

    story = STORIES["crash"]
    registry = make_registry(story, Path(directory), Path(memory))
    engine = Engine(registry, store=open_store_for_runs(None))
    workflow = load_workflow(Path(directory) / "workflow.yaml")
    engine.run_sync(workflow, external={"message": story.question}, run_id=run, on_event=_kill_after_write)


if __name__ == "__main__":
    _begin(*sys.argv[1:])
