"""A spike: runs driven on Temporal. The recorder walks in the workflow; whatever touches the world is an activity.

Run as a script it is a worker: ADDRESS QUEUE FOLDER [POINT]. The folder holds the journal, a count of what the tools
did, and the points that workers have passed; at the point it is told, e.g. `did write_a#2`, one worker kills itself.
"""

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agent_core.decisions import decode_decision
from agent_core.effects import CallModel, Cancelled, Classify, Failed, InDoubt, Json, ToolCall
from agent_core.errors import AgentCoreError, DecisionError, Lost
from agent_core.journal.chain import check_chains
from agent_core.journal.control import decision_rows
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.operations import Act, Append, Begin, Fork, Operation, Operations, Slot, Spec
from agent_core.journal.record import Record, Row, Tape, by_path
from agent_core.journal.recorder import Ended, record_run
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.store import Journal
from agent_core.journal.strand import Run
from agent_core.models.scripted import ScriptedModel
from agent_core.records import decode_answer, encode_answer
from agent_core.run.clock import now
from agent_core.run.executor import Executor
from agent_core.run.node import CODE, agent_preparer, agent_tool
from agent_core.run.secrets import Secrets
from support.crash.victim import ANY, CHILD, LOOPS, started
from support.crash.victim import REPLIES as CHILD_REPLIES
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor
from utools.tool import Tool

RUN, ROOT = "run-1", "agent"
ATTEMPTS = 10
BEAT_S, SILENCE_S, SHORT_S = 0.3, 2.0, 3.0
"""How often an act tells Temporal that it lives, when it counts as dead, and how long anything else may take."""
FINAL = (Lost.__name__, "Damaged", "DecisionError", "DefinitionError")
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=100), non_retryable_error_types=FINAL)

OUTER = ("utools", "orjson", "jsonschema", "referencing", "rpds", "openai", "regex", "idna")
"""What loops reach beside this package: some of it is compiled, some is imported late, when arguments are checked."""
STRICT = SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*OUTER))
"""Loads agent_core anew for each run, and refuses it the clock, the environment, files and chance."""
SANDBOX = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(*OUTER, "agent_core", "support.crash.victim")
)
"""Shares agent_core among all runs, which is faster, and watches this file alone."""


# ── what travels between workflow and activities ─────────────────────────────────────────────────
#
# As bytes: Temporal's own JSON sorts the keys of objects, and a record with its keys in another order has another hash.


def packed(rows: Sequence[Row]) -> list[list[Any]]:
    return [[row.path, row.n, row.hash.hex(), row.data.decode()] for row in rows]


def unpacked(rows: Sequence[Sequence[Any]]) -> list[Row]:
    return [Row(path, n, bytes.fromhex(hash_), data.encode()) for path, n, hash_, data in rows]


def packed_act(act: Act, rows: Sequence[Row]) -> Json:
    """An act, with those of its rows that are not on disk yet."""
    effect, slot = asdict(act.effect), act.slot
    if isinstance(act.effect, CallModel):
        effect["messages"] = [message.decode() for message in act.effect.messages]
    return {
        "rows": packed(rows),
        "ask": "model" if isinstance(act.effect, CallModel) else "tool",
        "effect": effect,
        "slot": [slot.path, slot.n, slot.head.hex()],
        "key": act.key,
        "doubtful": act.once_only,
    }


def unpacked_act(told: Json) -> Act:
    effect, (path, n, head) = told["effect"], told["slot"]
    if told["ask"] == "model":
        asked: CallModel | ToolCall = CallModel(
            **{**effect, "messages": tuple(message.encode() for message in effect["messages"])}
        )
    else:
        asked = ToolCall(**effect)
    slot = Slot(path, n, bytes.fromhex(head))
    return Act(tuple(unpacked(told["rows"])), asked, slot, told["key"], told["doubtful"])


def reply_from(record: Record) -> Any:
    match record:
        case {"kind": "doubt"}:
            return InDoubt(record["message"], record["at"], record["seconds"])
        case {"kind": "cancelled"}:
            return Cancelled(record["at"])
        case _:
            return decode_answer(record)


# ── the workflow ─────────────────────────────────────────────────────────────────────────────────


@workflow.defn(name="agent_run", failure_exception_types=[AgentCoreError])
class AgentRun:
    """One run, from where its tape ends to its outcome. Returns the finish reason."""

    def __init__(self) -> None:
        self.words: list[Json] = []

    @workflow.signal
    def decide(self, word: bytes) -> None:
        """A person's word on what waits: {strand, n, by, and the decision as a journal holds it}."""
        at = workflow.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.words.append({**orjson.loads(word), "at": at})

    @workflow.run
    async def run(self, run: str, tool: str, config: bytes) -> str:
        for _ in range(ATTEMPTS):
            try:
                return await self._to_its_end(run, Spec(tool, orjson.loads(config)))
            except Lost:
                workflow.logger.info("run %s: another driver wrote first; driving anew from the tape", run)
        raise ApplicationError(f"run {run}: lost {ATTEMPTS} races against other drivers", non_retryable=True)

    async def _to_its_end(self, run: str, spec: Spec) -> str:
        """Drive, and each time that people have decided, drive anew from the tape."""
        while True:
            tape = await load(run)
            if self.words:
                tape = await self._append_words(run, tape)
            ended = await Live(run, tape).walk(record_run(Run(run, tape, LOOPS), ROOT, spec))
            if not isinstance(ended, Ended):
                raise ApplicationError(f"run {run} cannot be started: {ended}", non_retryable=True)
            if not ended.outcome.waiting:
                return ended.outcome.finish_reason
            await workflow.wait_condition(lambda: bool(self.words))

    async def _append_words(self, run: str, tape: Tape) -> Tape:
        """The tape with the `resolved` rows, whose bytes are the same at every attempt to append them."""
        while self.words:
            word = self.words.pop(0)
            place = {(word["strand"], word["n"]): decode_decision(word)}
            try:
                rows = decision_rows(tape, place, by=word["by"], at=word["at"])
            except DecisionError as error:
                workflow.logger.warning("run %s: %s", run, error)
                continue
            await perform(Host.append, run, packed(rows))
            for row in rows:
                tape[row.path].append(row)
        return tape


class Live:
    """One walk through the recorder's operations. `written` counts the rows of each strand that are on disk."""

    def __init__(self, run: str, tape: Tape) -> None:
        self.run, self.written = run, {path: len(rows) for path, rows in tape.items()}

    async def walk(self, operations: Operations) -> Any:
        reply: Any = None
        while True:
            try:
                operation = operations.send(reply)
            except StopIteration as stop:
                return stop.value
            reply = await self._perform(operation)

    async def _perform(self, operation: Operation) -> Any:
        match operation:
            case Append(rows):
                if new := self._new(rows):
                    await perform(Host.append, self.run, packed(new))
                    self._passed(new)
                return None
            case Act():
                return await self._act(operation)
            case Begin(path, spec):
                body = await perform(Host.begin, self.run, [path, asdict(spec)])
                return Failed(**body["failed"]) if "failed" in body else body
            case Classify(_, tool, args):
                return await perform(Host.classify, self.run, [tool, args])
            case Fork():
                return await self._fork(operation)

    async def _act(self, act: Act) -> Any:
        new = self._new(act.rows)
        within = None if act.effect.within is None else act.effect.within + SHORT_S
        reply = reply_from(await perform(Host.act, self.run, packed_act(act, new), within=within))
        self._passed(new)
        if not isinstance(reply, InDoubt):
            self.written[act.slot.path] = act.slot.n + 1
        return reply

    async def _fork(self, fork: Fork) -> list[Any]:
        """Drive branches side by side, with those that the ended ones let start. All end before an error goes on."""
        tasks: list[asyncio.Task[Any]] = []

        def start(branches: Sequence[Operations]) -> None:
            tasks.extend(asyncio.create_task(to_its_end(branch)) for branch in branches)

        async def to_its_end(branch: Operations) -> Any:
            ended = await self.walk(branch)
            start(fork.more(ended) if fork.more else ())
            return ended

        start(fork.branches)
        for task in tasks:  # grows while branches end
            await asyncio.gather(task, return_exceptions=True)
        return [task.result() for task in tasks]

    def _new(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.n >= self.written.get(row.path, 0)]

    def _passed(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.written[row.path] = row.n + 1


async def load(run: str) -> Tape:
    return check_chains(run, by_path(unpacked(await perform(Host.load, run))))


async def perform(name: Any, run: str, told: Any = None, *, within: float | None = SHORT_S) -> Any:
    """What an activity gives. Raises Lost when another driver was first, ActivityError for what retries cannot mend.

    Only an act's life is watched by heartbeats; anything else is short.
    """
    try:
        answer: bytes = await workflow.execute_activity_method(
            name,
            args=[run, orjson.dumps(told)],
            start_to_close_timeout=timedelta(days=1) if within is None else timedelta(seconds=within),
            heartbeat_timeout=timedelta(seconds=SILENCE_S) if name is Host.act else None,
            retry_policy=RETRY,
        )
    except ActivityError as error:
        if isinstance(error.cause, ApplicationError) and error.cause.type == Lost.__name__:
            raise Lost(*error.cause.details) from error
        raise
    return orjson.loads(answer)


# ── the activities ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Points:
    """Where a worker may die: each is noted as it is passed; the one that is named kills the first to reach it."""

    folder: Path
    deadly: str = ""

    def __call__(self, name: str) -> None:
        with self.folder.joinpath("points").open("a") as file:
            file.write(f"{time.monotonic()} {name}\n")
        if self.deadly == f"{name}#{sum(point.name == name for point in points(self.folder))}":
            with suppress(FileExistsError), self.folder.joinpath("died").open("x") as file:
                print(time.monotonic(), file=file, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)


class Point(NamedTuple):
    """A point that a worker passed, and when."""

    at: float
    name: str


def points(folder: Path) -> list[Point]:
    lines = [line.split(maxsplit=1) for line in (folder / "points").read_text().splitlines()]
    return [Point(float(at), name) for at, name in lines]


@dataclass(frozen=True, slots=True)
class Host:
    """What one machine does for a run. Activities come at least once, so each may come again."""

    folder: Path
    journal: Journal
    executor: Executor
    point: Points

    @activity.defn
    async def load(self, run: str, _: bytes) -> bytes:
        return orjson.dumps(packed([row for rows in self.journal.load(run).values() for row in rows]))

    @activity.defn
    async def begin(self, run: str, told: bytes) -> bytes:
        self.point("begin")
        path, spec = orjson.loads(told)
        body = await self.executor.begin(Begin(path, Spec(**spec)))
        return orjson.dumps({"failed": asdict(body)} if isinstance(body, Failed) else body)

    @activity.defn
    async def classify(self, run: str, told: bytes) -> bytes:
        tool, args = orjson.loads(told)
        return orjson.dumps(self.executor.classify(Classify(0, tool, args)))

    @activity.defn
    async def append(self, run: str, told: bytes) -> bytes:
        self.point("append")
        self._append(run, unpacked(orjson.loads(told)))
        self.point("appended")
        return b"null"

    @activity.defn
    async def act(self, run: str, told: bytes) -> bytes:
        """Append what is pending, act, append the answer; of an attempt that comes again only what is missing."""
        act = unpacked_act(orjson.loads(told))
        what = act.effect.tool if isinstance(act.effect, ToolCall) else "model"
        async with beating():
            if (earlier := self._claim(run, act)) is not None:
                return orjson.dumps(earlier)
            self.point(f"asked {what}")
            reply = await self.executor.act(act)
            if isinstance(reply, InDoubt):
                return orjson.dumps({"kind": "doubt", **asdict(reply)})
            self.point(f"did {what}")
            row = act.slot.row(encode_answer(reply))
            self._append(run, [row])
            self.point(f"answered {what}")
            return row.data

    def _claim(self, run: str, act: Act) -> Record | None:
        """The answer that is there, or the doubt; None when nobody has begun, or when it may be done again.

        `append` takes the same bytes twice, so that two drivers with the same `asked` both think it theirs. Which of
        them wrote it has to be known for a write: here under a lock of all workers.
        """
        path, n = act.slot.path, act.slot.n
        with locked(self.folder / "claim"):
            known = self.journal.load(run).get(path, [])
            self._append(run, act.rows)
        if len(known) > n:
            record = known[n].record()
            if record["kind"] not in ("answered", "cancelled"):
                raise lost(path, n)
            return record
        if len(known) == n and act.once_only:
            return {"kind": "doubt", **asdict(InDoubt("the process ended before the call was answered", now(), 0.0))}
        return None

    def _append(self, run: str, rows: Sequence[Row]) -> None:
        try:
            self.journal.append(run, rows)
        except Lost as error:
            raise lost(error.path, error.n) from error


def lost(path: str, n: int) -> ApplicationError:
    return ApplicationError("another driver was first", path, n, type=Lost.__name__, non_retryable=True)


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Tells Temporal that the activity lives, until it ends."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_S)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


@contextmanager
def locked(path: Path) -> Any:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ── the world that the runs live in ──────────────────────────────────────────────────────────────

AGENT: Json = {
    "model": "root",
    "max_steps": 8,
    "prompt": "Read, let another read and write, write yourself, and tell.",
    "allowed_tools": [
        "read_a",
        {"tool": "write_a", "approval": "always"},
        {"tool": CODE, "preset": {key: value for key, value in CHILD.items() if key != "prompt"}},
    ],
}
CONFIGS: dict[str, tuple[str, Json]] = {"agent": (CODE, AGENT), "spike": ("spike", {})}
REPLIES = [
    '{"type":"action","tool":"read_a","args":{"by":"root"}}',
    "not a step at all",
    '{"type":"action","tool":"agent_core","args":{"prompt":"Read and write."}}',
    '{"type":"action","tool":"write_a","args":{"by":"root"}}',
    '{"type":"action","tool":"read_a","args":{"by":"root again"}}',
    '{"type":"final","answer":"all done"}',
]


def journal_in(folder: Path) -> Journal:
    """The journal of a folder, of the kind that its name says."""
    return JsonlJournal(folder / "run.jsonl") if folder.suffix == ".jsonl" else SqliteJournal(folder / "run.db")


def door_in(folder: Path, point: Points) -> Executor:
    """A read and a write that count themselves, agents, and a model that follows its script."""
    registry = ToolRegistry()
    models = {"root": ScriptedModel(REPLIES), CHILD["model"]: ScriptedModel(CHILD_REPLIES)}
    for effect in ("read", "write"):
        registry.register(counting(effect, folder / "counter", point))
    registry.register(agent_tool(registry))
    prepare = {CODE: agent_preparer(registry, Redactor({})), "spike": lambda run, *_: started(run)}
    return Executor(RUN, registry, lambda model, _: models[model], prepare, Secrets(env={}))


def counting(effect: Any, counter: Path, point: Points) -> Tool:
    async def act(args: Json, context: Any) -> Json:
        point(f"inside {effect}_a")
        with counter.open("a") as file:
            file.write(f"{effect} {context.idempotency_key}\n")
        return {"did": args}

    return Tool(f"{effect}_a", effect, ANY, act, effect=effect)


def host_in(folder: Path, deadly: str = "") -> Host:
    point = Points(folder, deadly)
    return Host(folder, journal_in(folder), door_in(folder, point), point)


# ── the worker ───────────────────────────────────────────────────────────────────────────────────


async def work(address: str, queue: str, folder: Path, deadly: str) -> None:
    """Work until killed."""
    host = host_in(folder, deadly)
    worker = Worker(
        await Client.connect(address),
        task_queue=queue,
        workflows=[AgentRun],
        workflow_runner=SANDBOX,
        activities=[host.load, host.begin, host.append, host.classify, host.act],
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        max_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), "".join(sys.argv[4:])))
