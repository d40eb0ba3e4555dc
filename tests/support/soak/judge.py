"""What is wrong with the runs of a soak, by what its clients saw, its tools and model noted, and its journal has."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agent_core.journal.record import Row
from support.soak.depot import PARTS, Act, read_book
from support.soak.model import Question
from support.soak.work import Run, Tally
from support.soak.world import World

DENIED = "failed"
_ROWS = """SELECT run, strand, n, hash, data, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
    FROM rows ORDER BY run, strand, n"""
_MOVES = "SELECT seq, run, status, records, at FROM run_events ORDER BY seq"
_RUNS = "SELECT run, workflow, status FROM workflow_runs"


class Written(NamedTuple):
    """A record, where it is, and when it was committed by the machine's clock."""

    run: str
    strand: str
    n: int
    record: Any
    at: float


@dataclass
class Made:
    """What the journal has of one call or question: how often a person let it be made again, and when it was answered
    first."""

    retries: int = 0
    answered_at: float | None = None
    is_settled: bool = False
    """Whether it was answered, late perhaps, or a person settled it otherwise than by a retry."""


def read_rows(url: str) -> list[Written]:
    import psycopg

    with psycopg.connect(url) as db:
        rows = db.execute(_ROWS).fetchall()
    return [
        Written(run, strand, n, Row(strand, n, digest, data).record(), at) for run, strand, n, digest, data, at in rows
    ]


UNDER_WAY = ("running", "pending")


def read_statuses(url: str) -> dict[str, tuple[str, str]]:
    """The workflow and the status of each run in the store."""
    import psycopg

    with psycopg.connect(url) as db:
        return {run: (workflow, status) for run, workflow, status in db.execute(_RUNS).fetchall()}


def read_moves(url: str) -> list[tuple[Any, ...]]:
    """Each status that a run came to have: its number, the run, the status, and when."""
    import psycopg

    with psycopg.connect(url) as db:
        return db.execute(_MOVES).fetchall()


def find_made(rows: Sequence[Written]) -> Iterator[tuple[tuple[str, str], Made]]:
    """Each call as ("call", its idempotency key), and each question as (its strand, how many came before it there)."""
    strands: dict[tuple[str, str], list[Written]] = defaultdict(list)
    for row in rows:
        strands[row.run, row.strand].append(row)
    for (run, strand), written in strands.items():
        questions, made, is_again = 0, Made(), False
        for row in written:
            match row.record:
                case {"kind": "asked", "ask": "model"}:
                    made = Made()
                    yield (f"{run}/{strand}", str(questions)), made
                    questions += 1
                case {"kind": "asked", "ask": "tool"}:
                    made = made if is_again else Made()
                    yield ("call", f"{run}/{strand}/{row.n}"), made
                case {"kind": "answered"}:
                    made.answered_at, made.is_settled = made.answered_at or row.at, True
                case {"kind": "resolved", "decision": "retry"}:
                    made.retries += 1
                case {"kind": "resolved"}:
                    made.is_settled = True
            is_again = row.record.get("decision") == "retry"


@dataclass
class Judge:
    """Judges what came of a soak."""

    world: World
    tally: Tally
    faults: list[str] = field(default_factory=list)

    @cached_property
    def rows(self) -> list[Written]:
        return read_rows(self.world.store)

    @cached_property
    def statuses(self) -> dict[str, tuple[str, str]]:
        return read_statuses(self.world.store)

    @cached_property
    def made(self) -> dict[tuple[str, str], Made]:
        return dict(find_made(self.rows))

    @cached_property
    def acts(self) -> list[Act]:
        return read_book(self.world.folder)

    def find_faults(self) -> list[str]:
        """All that is wrong."""
        return [
            *self.tally.faults,
            *self._wrong_ends(),
            *self._wrong_acts(),
            *self._wrong_questions(),
            *self._wrong_steps(),
            *self._unverified(),
            *(f"ended by itself: {each}" for each in self.world.ended),
        ]

    def _wrong_ends(self) -> Iterator[str]:
        for run in self.tally.runs.values():
            workflow, status = self.statuses.get(run.run, ("", "lost"))
            allowed = {"completed"}
            if run.cancel_after_s is not None:
                allowed.add("cancelled")
            if run.denied and run.kind == "order":
                allowed.add(DENIED)
            if status not in allowed or workflow != run.kind or status != run.status:
                yield f"{describe(run)}: {workflow} is {status} in the store"
        for run, (workflow, status) in self.statuses.items():
            if run not in self.tally.runs and status in (*UNDER_WAY, "failed"):
                yield f"{run} of {workflow}, which nobody was told of, is {status}"

    def _wrong_acts(self) -> Iterator[str]:
        by_key: dict[str, list[Act]] = defaultdict(list)
        by_name: dict[tuple[str, str], set[str]] = defaultdict(set)
        for act in self.acts:
            by_key[act.key].append(act)
            by_name[act.tool, act.name].add(act.key)
        for key, acts in by_key.items():
            made = self.made.get(("call", key))
            if made is None:
                yield f"{acts} are not in the journal"
            elif acts[0].tool == "ship" and len(acts) > 1 + made.retries:
                yield f"written {len(acts)} times, by {made.retries} decisions: {acts}"
            elif made.answered_at is not None and (late := [each for each in acts[1:] if each.at > made.answered_at]):
                yield f"done again after its answer at {made.answered_at}: {late} of {acts}"
        for (tool, name), keys in by_name.items():
            if name != "tick" and len(keys) > 1:
                yield f"{tool} of {name} was done by more than one key: {keys}"

    @cached_property
    def asked(self) -> dict[tuple[str, str], list[Question]]:
        """The questions to the model as the journal names them."""
        names = {run.name: run.run for run in self.tally.runs.values()}
        found: dict[tuple[str, str], list[Question]] = defaultdict(list)
        for question in self.world.endpoints.asked:
            name, _, node = question.prompt.partition(" ")
            if name in names:
                found[f"{names[name]}/flow/{node}.1", str(question.step)].append(question)
        return found

    def _wrong_questions(self) -> Iterator[str]:
        for place, questions in self.asked.items():
            made = self.made.get(place)
            if made is None:
                yield f"the question {place} is not in the journal"
            elif made.answered_at is not None and any(each.at > made.answered_at for each in questions):
                yield f"the question {place}, answered at {made.answered_at}, was asked again: {questions}"

    def _wrong_steps(self) -> Iterator[str]:
        """Of each run that is completed, what it has to have done."""
        settled = {key for (what, key), made in self.made.items() if what == "call" and made.is_settled}
        done: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for row in self.rows:
            if f"{row.run}/{row.strand}/{row.n}" in settled and "name" in row.record["args"]:
                done[row.run].add((row.record["tool"], row.record["args"]["name"]))
        for run in self.tally.runs.values():
            if run.status == "completed" and done[run.run] != (wanted := set(expected_calls(run))):
                yield f"{describe(run)} is completed, and has done {done[run.run]} in place of {wanted}"

    def keep(self, folder: Path) -> None:
        """Write the journal and the moves of the runs' statuses to files, a JSON line for each record and for each."""
        moves = read_moves(self.world.store)
        for name, lines in {"journal": [row._asdict() for row in self.rows], "moves": moves}.items():
            data = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
            (folder / f"{name}.jsonl").write_bytes(data)

    def _unverified(self) -> Iterator[str]:
        verified = self.world.run_command("verify", "--all")
        if verified.returncode:
            yield f"verify --all: {verified.stdout[-3000:]}{verified.stderr[-1000:]}"

    def figures(self) -> str:
        """What there was, in a line."""
        ends = Counter(status for _, status in self.statuses.values())
        doubts = sum(row.record["kind"] == "waiting" and row.record["reason"] == "in_doubt" for row in self.rows)
        again = sum(len(each) > 1 for each in self.asked.values())
        return (
            f"{len(self.tally.runs)} runs taken, {len(self.tally.unsure)} of unknown fate, {dict(ends)}; "
            f"{len(self.acts)} acts, {doubts} doubts, {again} of {len(self.asked)} questions asked more than once; "
            f"background errors {dict(Counter(self.world.read_errors()))}; "
            f"{self.world.unstarted} processes found nothing to start on; {self.tally.unreached} requests unanswered"
        )


def expected_calls(run: Run) -> Iterator[tuple[str, str]]:
    if run.kind == "parcel":
        for part in ("in", *PARTS):
            yield "look", f"{run.name}-{part}"
            yield "ship", f"{run.name}-{part}"
    elif not (run.denied and run.kind == "order"):
        yield "ship", run.name


def describe(run: Run) -> str:
    wish = "" if run.cancel_after_s is None else f", cancelled after {run.cancel_after_s:.1f} s"
    return f"{run.run} ({run.kind} {run.name}{wish}, {dict(run.decided)}, seen {run.status})"
