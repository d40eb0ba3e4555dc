"""Each contract finds the faults of an implementation that has some, and names the rules that these break."""

from collections.abc import Sequence
from typing import Any

import pytest

from agent_core.errors import Lost
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import Row, Tape
from agent_core.models import Completion, Question, ScriptedModel
from agent_core.testing import check_context_store, check_journal, check_model_client
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.testing import check_run_store
from engine_shim.testing.contracts.samples import ManualClock
from utools.context.store_memory import MemoryContextStore
from utools.context.turns import Turn


def rules_in(error: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    """The rules that an error names."""
    return [line[2:].split(": ")[0] for line in str(error.value).split("\n") if line.startswith("- ")]


# ── journals ─────────────────────────────────────────────────────────────────────────────────────


class Overwriting(MemoryJournal):
    """Whoever comes late writes nothing, and is told that all is well."""

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        try:
            return super().append(run, rows)
        except Lost:
            return True


class Leaking(MemoryJournal):
    """Gives its own lists to its readers, and keeps what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Tape] = {}

    def load(self, run: str) -> Tape:
        return self.given.setdefault(run, super().load(run))


def test_a_journal_without_faults_passes() -> None:
    check_journal(MemoryJournal)


def test_a_journal_that_hides_who_was_late_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"^the journal breaks \d+ rules:\n- a lost append writes none") as error:
        check_journal(Overwriting)
    broken = rules_in(error)
    assert "a row that breaks its strands chain is lost" in broken
    assert "of eight threads at one place exactly one wins" in broken
    assert "an unknown run is empty" not in broken


def test_a_journal_that_gives_away_its_own_lists_is_found_out() -> None:
    with pytest.raises(AssertionError) as error:
        check_journal(Leaking)
    assert "changing what was loaded leaves the journal alone" in rules_in(error)


# ── conversations ────────────────────────────────────────────────────────────────────────────────


class Forgetful(MemoryContextStore):
    """Stores a turn again that it has, and never expires."""

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        return await super().append(session, f"{turn_id}-{len(await self.turns(session))}", turn)


async def test_faults_of_a_context_store_are_found() -> None:
    clock = ManualClock()

    def pass_time(store: Any, seconds: float) -> None:
        clock.now += seconds

    await check_context_store(lambda: MemoryContextStore(clock=clock), pass_time=pass_time)
    with pytest.raises(AssertionError, match=r"^the context store breaks") as error:
        await check_context_store(lambda: Forgetful(clock=clock), pass_time=pass_time)
    assert {"a turn is stored once", "a session expires as a whole"} <= {*rules_in(error)}
    with pytest.raises(AssertionError) as error:
        await check_context_store(lambda: Forgetful(clock=clock))
    assert "a session expires as a whole" not in rules_in(error)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


class Reviving(MemoryRunStore):
    """Lets an entry that comes late replace that of a run which has ended."""

    def save(self, entry: RunEntry) -> None:
        self.forget(entry.run)
        super().save(entry)


def test_faults_of_a_run_store_are_found() -> None:
    check_run_store(lambda clock: MemoryRunStore(clock=clock), is_shared=False)
    with pytest.raises(AssertionError, match=r"^the run store breaks") as error:
        check_run_store(lambda clock: Reviving(clock=clock))
    broken = rules_in(error)
    assert "status that comes late leaves a run that has ended" in broken
    assert "news names runs with rows behind a position" in broken
    with pytest.raises(AssertionError) as error:
        check_run_store(lambda clock: MemoryRunStore(clock=lambda: 0.0), is_shared=False)
    assert "a lease that is not renewed goes over after a while" in rules_in(error)


# ── models ───────────────────────────────────────────────────────────────────────────────────────


class Raw(ScriptedModel):
    """Gives arguments as objects, and raises what its library raises."""

    async def complete(self, question: Question) -> Completion:
        if question.options.get("tools"):
            return Completion("", calls=({"name": "lookup", "arguments": {}},))
        return await super().complete(question)


class Crashing(ScriptedModel):
    async def complete(self, question: Question) -> Completion:
        raise ConnectionError("no server")


async def test_faults_of_a_model_client_are_found() -> None:
    await check_model_client(lambda: ScriptedModel(["A house."]), make_failing=lambda: ScriptedModel([]))
    with pytest.raises(AssertionError, match=r"^the model client breaks 2 rules:") as error:
        await check_model_client(lambda: Raw(["A house."]), make_failing=lambda: Crashing(["x"]))
    assert rules_in(error) == [
        "a question with functions is answered by a completion",
        "a failure is a model error",
    ]
    assert "ConnectionError: no server" in str(error.value)
