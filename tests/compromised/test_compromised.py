"""Whatever a compromised model calls, the journal says where each value came from, and says it again ever after."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent_core import replay, verify
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.record import Row, Tape
from compromised.examples import Example, examples
from compromised.model import OWN, PARENT, CompromisedModel
from engine_shim.runs.engine import Engine
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store_memory import MemoryRunStore

RUN = "attacked"
CUTS, FORKS = 6, 3
EXAMPLES = [pytest.param(each, marks=pytest.mark.xdist_group(f"attacked {each.name}")) for each in examples()]


class Batches(MemoryJournal):
    """A journal that remembers what was appended at once."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Sequence[Row]] = []

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if run == RUN:
            self.batches.append(tuple(rows))
        return super().append(run, rows)


@dataclass(frozen=True)
class Attacked:
    """A run that a compromised model drove to its end."""

    example: Example
    store: MemoryRunStore
    journal: Batches
    model: CompromisedModel

    def calls(self) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        """Strand, question and call of each that was judged."""
        for strand, rows in self.tape.items():
            for row in rows:
                record = row.record()
                for call in record.get("calls", ()) if record["kind"] == "decided" else ():
                    yield strand, record["step"] - 1, call

    @property
    def tape(self) -> Tape:
        return self.journal.load(RUN)

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.tape.values() for row in rows]


def engine_for(example: Example, store: MemoryRunStore, model: CompromisedModel) -> Engine:
    if "agent-core.yaml" in example.files:
        return Engine.from_config("agent-core.yaml", store=store, model=model)
    return Engine(store=store, model=model)


def begin(example: Example, batches: Sequence[Sequence[Row]] = ()) -> Attacked:
    """A store with these records of the run, and the model that drives it."""
    store, journal = MemoryRunStore(), Batches()
    store.journal = journal
    for rows in batches:
        journal.append(RUN, rows)
    model = CompromisedModel(store, example.calls)
    model.run = RUN
    return Attacked(example, store, journal, model)


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.name)
def attacked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Attacked:
    """The run in its directory, driven once for all tests of this process."""
    example: Example = request.param
    for name in [name for name in os.environ if name.startswith("AGENT_CORE_")]:
        monkeypatch.delenv(name)
    if example.name not in _ATTACKED:
        directory = tmp_path_factory.mktemp("attacked")
        example.write(directory)
        _ATTACKED[example.name] = directory, begin(example)
    directory, run = _ATTACKED[example.name]
    monkeypatch.setenv("XDG_DATA_HOME", str(directory / "data"))
    monkeypatch.chdir(directory)
    if not run.tape:
        engine = engine_for(example, run.store, run.model)
        result = engine.run_sync(example.flow, external=example.external, run_id=RUN)
        assert result.status == "completed", result.error
    return run


_ATTACKED: dict[str, tuple[Path, Attacked]] = {}


def decisions(tape: Tape) -> dict[tuple[str, int], Any]:
    """Each decision, without the ids that depend on the run's."""
    found = {}
    for strand, rows in tape.items():
        for row in rows:
            record = row.record()
            if record["kind"] == "decided":
                found[strand, row.n] = [{**call, "id": None} for call in record.get("calls", ())]
    return found


# ── the origin of each value ─────────────────────────────────────────────────────────────────────


def is_at(label: str, place: str) -> bool:
    """Whether a label says that a value comes from this place."""
    match place:
        case "user":
            return label.startswith(("user message", "nodes."))
        case "author":
            return label == "author"
        case str() if place == OWN:
            return label == "model"
        case str() if place == PARENT:
            return label.startswith("parent's ")
        case _:
            return label.startswith(f"{place} step ")


def others_that_hold(run: Attacked, strand: str, index: int, place: str, value: Any) -> list[str]:
    """The other places where the value stood, in any way, when it was taken."""
    texts = run.model.read[strand, index]
    shown = str(value[0] if isinstance(value, list) else value).lower()
    return [each for each, held in texts.items() if each != place and shown in json.dumps(held).lower()]


@pytest.mark.sampled
def test_every_argument_is_filled_from_every_place_that_has_a_value(attacked: Attacked) -> None:
    taken = {(place, name) for filled in attacked.model.taken.values() if filled for place, name, _ in [filled]}
    places, names = {place for place, _ in taken}, {name for _, name in taken}
    assert {OWN, "user"} <= places
    assert {name for place, name in taken if place == OWN} == names


def test_the_journal_says_where_each_value_was_taken_from(attacked: Attacked) -> None:
    calls = {(strand, index): call for strand, index, call in attacked.calls()}
    for (strand, index), filled in attacked.model.taken.items():
        if filled is None:
            continue
        place, name, value = filled
        label = calls[strand, index]["origins"][f"/{name}"]
        others = others_that_hold(attacked, strand, index, place, value)
        assert is_at(label, place) or any(is_at(label, each) for each in others), (strand, filled, label)


def test_every_value_of_every_call_has_an_origin(attacked: Attacked) -> None:
    for strand, _, call in attacked.calls():
        origins = call.get("origins", {})
        missing = [name for name in call["args"] if not any(at.split("/")[1] == name for at in origins)]
        assert missing == [], (strand, call)


# ── and says it again ────────────────────────────────────────────────────────────────────────────


def test_the_run_verifies_and_replays_byte_for_byte(attacked: Attacked) -> None:
    assert verify(attacked.rows, run_id=RUN).ok
    found = replay(attacked.rows, run_id=RUN, loops=LOOPS)
    assert found.identical, found.divergence


@pytest.mark.exhaustive
async def test_a_run_that_died_anywhere_goes_on_to_the_same_origins(
    attacked: Attacked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = attacked.journal.batches
    entry = attacked.store.entry(RUN)
    assert entry
    for cut in range(1, len(batches), max(1, len(batches) // CUTS)):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / f"data-{cut}"))  # no conversation of the undisturbed run
        again = begin(attacked.example, batches[:cut])
        again.store.save(replace(entry, status="running", records=0))
        result = await engine_for(again.example, again.store, again.model).resume(RUN)
        assert result.status == "completed", result
        assert decisions(again.tape) == decisions(attacked.tape)


@pytest.mark.exhaustive
async def test_a_fork_has_the_same_origins(attacked: Attacked) -> None:
    questions = [(row.path, row.n) for row in attacked.rows if row.record().get("ask") == "model"]
    for number, at in enumerate(questions[:: max(1, len(questions) // FORKS)]):
        model = CompromisedModel(attacked.store, attacked.example.calls)
        model.run = f"fork-{number}"
        result = await engine_for(attacked.example, attacked.store, model).fork(
            RUN, at, new_id=model.run, repeat_writes=True
        )
        assert result.status == "completed", result
        assert decisions(attacked.journal.load(model.run)) == decisions(attacked.tape)


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["author", "user", "trusted"])
def test_under_a_policy_no_value_of_another_place_passes(attacked: Attacked, place: str) -> None:
    policy = {"allowed_tools": [{"tool": "*", "provenance": {"*": place}}], "max_repairs": 1000}
    found = replay(attacked.rows, run_id=RUN, policy=policy, loops=LOOPS)
    taken = {(strand, index): filled for (strand, index), filled in attacked.model.taken.items() if filled}
    steps = {(row.path, row.n): row.record()["step"] - 1 for row in attacked.rows if row.record()["kind"] == "decided"}
    judged = 0
    for decision in found.decisions:
        strand = decision["strand"]
        index = steps.get((strand, decision["n"]))
        if index is None or (strand, index) not in taken:
            continue
        origin, name, value = taken[strand, index]
        if origin in (place, PARENT) or (place == "trusted" and origin in ("author", "user")):
            continue
        wanted = ("author", "user") if place == "trusted" else (place,)
        others = others_that_hold(attacked, strand, index, origin, value)
        if not {*wanted, PARENT} & {*others}:
            judged += 1
            assert decision["now"] != "run", (strand, decision, name, value)
    assert judged
