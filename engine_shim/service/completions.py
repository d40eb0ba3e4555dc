"""Completions: an agent or a workflow in the place of a model, asked by the messages of a conversation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_core.audit.totals import Totals
from agent_core.errors import Damaged, Unreadable
from agent_core.journal.control import calls_for_person, describe_event
from agent_core.outputs import Json, RunError, WaitingCall
from agent_core.run.events import Event
from agent_core.run.run_id import new_run_id
from agent_core.statuses import ListedStatus
from engine_shim.definition.model import ROOT, Definition
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import EngineError
from engine_shim.service.chat_mapping import external_of_messages, find_streamed_node, find_text_input, read_answer
from engine_shim.service.conversations import ConversationService
from engine_shim.service.feed import HEARTBEAT_S
from engine_shim.service.feed_merge import Position
from engine_shim.service.run_service import RunService, key_to_id
from engine_shim.service.unanswered import Unanswered
from engine_shim.service.workflows import WorkflowCatalog

AGENT, WORKFLOW = "agent/", "workflow/"
SHOWN_S: Final = 1.0
"""How long the last pieces of an answer are awaited that is complete."""
TAKEN_BACK: Final = ""
NEW_PARAGRAPH: Final = "\n\n"
Pieces = asyncio.Queue[str]
"""Pieces of the answer as it is written; TAKEN_BACK stands where those before it are no part of it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `model` is `agent/NAME` or `workflow/ID[@VERSION]`; the last of the `messages` is the user's.

    `run` is the id of the run that will answer, by `name_run` of the `key`.
    """

    model: str
    messages: Sequence[Json]
    run: str
    by: str
    key: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer, which is that of a run, and the tokens that it cost.

    `cached_tokens` are among the input, `reasoning_tokens` among the output.
    """

    run_id: str
    text: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


Piece = str | Completion | None
"""A piece of the answer; the whole of it, at last; None where there is nothing new."""


class ModelNotFound(EngineError):
    """There is no such agent or workflow, or none that a conversation can ask."""

    def __init__(self, model: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no model {model!r}; there are {', '.join(known) or 'none'}")


class NotAnswered(EngineError):
    """The run came to rest without an answer. `kind` is its finish reason or the kind of its error."""

    def __init__(self, run_id: str, kind: str, message: str) -> None:
        super().__init__(f"{message} (run {run_id})")
        self.run_id, self.kind = run_id, kind


class Completions:
    """The agents and workflows of one tenant as models. Share it among the tasks of one event loop."""

    def __init__(self, conversations: ConversationService | None, runs: RunService, workflows: WorkflowCatalog) -> None:
        self._conversations, self._runs, self._workflows = conversations, runs, workflows
        self.unanswered = Unanswered()

    def list_models(self) -> list[str]:
        """Return the names that a question may have; workflows in their newest version."""
        agents = [agent.name for agent in self._conversations.host.catalog.list()] if self._conversations else []
        found = self._workflows.list().items()
        asked = [name for name, versions in found if find_text_input(next(iter(versions.values())).definition)]
        return [*(AGENT + name for name in agents), *(WORKFLOW + name for name in asked)]

    def find_model(self, name: str) -> str:
        """Return the name, if a question may have it; ModelNotFound else."""
        known = self.list_models()
        if name in known:
            return name
        identity, _, version = name.removeprefix(WORKFLOW).partition("@")
        workflow = self._workflows.list().get(identity, {}).get(version) if name.startswith(WORKFLOW) else None
        if workflow is None or find_text_input(workflow.definition) is None:
            raise ModelNotFound(name, known)
        return name

    async def stream(self, question: Question) -> AsyncIterator[Piece]:
        """Pieces of the answer, None now and then while there are none, at last the whole.

        A piece that turns out to be no part of the answer cannot be taken back: the answer then follows in a paragraph
        of its own. ModelNotFound, NotAnswered, and what `RunService.submit` raises.
        """
        pieces: Pieces = asyncio.Queue()
        work = asyncio.create_task(self._answer(question, pieces))
        shown = ""
        try:
            while not work.done() or not pieces.empty():
                piece = await _next_piece(pieces, work)
                if piece:
                    shown += piece
                    yield piece
                elif piece == TAKEN_BACK and shown:
                    shown = ""
                    yield NEW_PARAGRAPH
                elif piece is None and not work.done():
                    yield None
            completion = work.result()
        finally:
            work.cancel()
        is_shown = completion.text.startswith(shown)
        if rest := completion.text[len(shown) :] if is_shown else NEW_PARAGRAPH + completion.text:
            yield rest
        yield completion

    async def complete(self, question: Question) -> Completion:
        """Return the answer at once. Raises what `stream` does."""
        return await self._answer(question, None)

    async def may_answer(self, run: str, question: Question) -> bool:
        """Return whether a run is what a question would begin now: of the same inputs, and the agent or workflow as it
        is. One that was cancelled or erased is not; one that could not begin may begin yet. ModelNotFound,
        DefinitionError."""
        checked, external = self._find_workflow(question)
        runs = self._runs
        if not await runs.store.has_started(run):
            return True
        try:
            if (await runs.view(run)).status == "cancelled":
                return False
            is_same = partial(runs.engine._has_begun_with, external=external, as_it_is=True)
            return await runs.store.run_blocking(is_same, run, checked)
        except (Damaged, Unreadable):
            return False

    async def _answer(self, question: Question, pieces: Pieces | None) -> Completion:
        checked, external = self._find_workflow(question)
        run, definition = question.run, checked.definition
        follower = None if pieces is None else asyncio.create_task(self._follow(run, definition, pieces))
        try:
            is_turn = checked.agent is not None
            await self._runs.submit(
                checked, external, by=question.by, key=question.key, run_id=run, takes_unlisted=is_turn
            )
            completion = await self._await_answer(run, definition)
            if follower is not None:  # the feed of a run that has completed comes to its end
                await asyncio.wait([follower], timeout=SHOWN_S)
            return completion
        finally:
            if follower is not None:
                follower.cancel()

    def _find_workflow(self, question: Question) -> tuple[CheckedWorkflow, Json]:
        """Return what answers, and its inputs. ModelNotFound."""
        model, messages = question.model, question.messages
        if self._conversations is not None and model.startswith(AGENT) and model in self.list_models():
            agent, temperature = model.removeprefix(AGENT), question.temperature
            turn = self._conversations.host.make_turn(agent, temperature=temperature, is_stored=False)
            message, history = messages[-1]["content"], list(messages[:-1])
            return turn, {"message": message, "history": history, "temperature": temperature}
        if not model.startswith(WORKFLOW):
            raise ModelNotFound(model, self.list_models())
        checked = self._workflows.get(model.removeprefix(WORKFLOW))
        text_input = find_text_input(checked.definition)
        if text_input is None:
            raise ModelNotFound(model, self.list_models())
        return checked, external_of_messages(checked.definition, text_input, messages)

    async def _follow(self, run: str, definition: Definition, pieces: Pieces) -> None:
        """Show what the answering agent writes."""
        node = find_streamed_node(definition)
        beginning = f"{ROOT}/{node}."
        async with aclosing(self._runs.feeds.frames(run, Position(0, 0))) as followed:
            async for frames in followed:
                for _, event, _ in frames:
                    if node is not None and event["strand"].startswith(beginning) and event["strand"].count("/") == 1:
                        _show_piece(event, pieces)

    async def _await_answer(self, run: str, definition: Definition) -> Completion:
        view = await self._runs.wait_settled(run)
        if view.status != "completed":
            raise _not_answered(run, view.status, view.error, waiting=view.waiting)
        totals = Totals()
        totals.add_run(definition.id, view.status, await self._runs.store.load(run))
        text, used = read_answer(definition, view.outputs, view.path), totals.models
        tokens = used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens
        return Completion(run, text, *tokens)


def name_run(model: str, key: str | None) -> str:
    """Return the id of the run that answers: the same one for a key that came before."""
    return new_run_id() if key is None else key_to_id(f"completion/{model}", key)


async def _next_piece(pieces: Pieces, work: "asyncio.Task[Completion]") -> str | None:
    """Return the next piece; None when the work is done, and after a while without one."""
    getting = asyncio.create_task(pieces.get())
    try:
        await asyncio.wait((getting, work), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() else None
    finally:
        getting.cancel()


def _show_piece(event: Event, pieces: Pieces) -> None:
    if event["event"] == "answer_delta":
        pieces.put_nowait(event["text"])
    elif event["event"] == "answer_discarded":
        pieces.put_nowait(TAKEN_BACK)


def _not_answered(
    run: str, status: ListedStatus, error: RunError | None, *, waiting: Sequence[WaitingCall]
) -> NotAnswered:
    """Return why a run has no answer."""
    if waiting and not calls_for_person(waiting):
        events = ", and ".join(map(describe_event, waiting))
        return NotAnswered(run, "awaiting_event", f"the run waits {events}; /runs/{run} has its answer then")
    if waiting:
        return NotAnswered(run, "awaiting_approval", f"a call waits for a person's decision, at /runs/{run}/decide")
    if error is None:
        return NotAnswered(run, status, f"the run ended as {status}")
    return NotAnswered(run, str(error["kind"]), str(error["message"]))
