"""Reader: from the rows of a run to facts, each with the run that it belongs to and what it answers. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from agent_core.errors import Damaged
from agent_core.journal.facts import (
    Act,
    Added,
    Answered,
    Batch,
    BatchAnswer,
    Call,
    Cancelled,
    Decided,
    Fact,
    Question,
    Received,
    RecordedRun,
    Resolved,
    RunFinished,
    RunStarted,
    Sealed,
    Sent,
    Waiting,
)
from agent_core.journal.path import is_below, name_of, outermost_first, parent_of
from agent_core.journal.record import Record, Row, Tape
from agent_core.journal.started import read_started, run_strand
from agent_core.outputs import Json
from agent_core.records import Kind, TurnNote, decode_answer

BRIEF_CONFIG: Final = ("model", "observation_max_len")
"""Keys of an agent's config that a brief reader keeps."""


class Reader:
    """Reads the rows of one run, those of a strand in order, and a strand after the record that it follows from.

    `runs` are the runs so far by strand. Rows whose facts nobody needs may be left out; an answer without the row of
    its question has no `asked`. A brief reader, which follows a run in flight, keeps nothing of the run's conversation:
    of its config what `BRIEF_CONFIG` names, of a workflow's `tools` which nodes wait, and no `messages`, `texts` and
    `external`.
    """

    def __init__(self, *, is_brief: bool = False) -> None:
        self._is_brief = is_brief
        self.runs: dict[str, RecordedRun] = {}
        self._asked: dict[str, Act] = {}
        self._owners: dict[str, RecordedRun | None] = {}

    def read(self, row: Row) -> Fact:
        """Return what a row says. Damaged for a record of a kind that there is not."""
        path, owners = row.path, self._owners
        record = row.record() if row.n else read_started(row, is_brief=self._is_brief)
        kind = record["kind"]
        if kind == "run_started":
            return self._begin_run(row, record)
        owner = owners[path] if path in owners else self.run_of(path)
        where = (path, row.n, owner)
        if kind == "answered":
            return _read_answered(where, record, self._asked.get(path))
        read_fact = _READERS.get(kind)
        if read_fact is None:
            raise Damaged(path, row.n, f"its kind {kind!r} is unknown")
        fact = read_fact(where, record)
        if isinstance(fact, Act):
            self._asked[path] = fact
            if owner is not None and isinstance(fact, Question):
                owner.step = fact.step
        return fact

    def run_of(self, path: str) -> RecordedRun | None:
        """Return the innermost run that a strand belongs to."""
        if path not in self._owners:
            self._owners[path] = self.runs.get(path) or (self.run_of(parent_of(path)) if path else None)
        return self._owners[path]

    def forget(self, path: str) -> None:
        """Forget a run that has ended, and what lies below it. Reading strand by strand still needs them."""
        below = path + "/"
        for known in (self.runs, self._owners, self._asked):
            for each in [each for each in known if each == path or each.startswith(below)]:
                del known[each]

    def _begin_run(self, row: Row, record: Record) -> RunStarted:
        if self._is_brief:
            record = _shorten(record)
        run = _read_run(row.path, record, self.run_of(parent_of(row.path)))
        self.runs[row.path] = self._owners[row.path] = run
        return RunStarted(row.path, row.n, run, run)


def read_strands(tape: Tape, kinds: Collection[Kind] | None = None) -> dict[str, list[Fact]]:
    """Return what the rows of a tape say, strand by strand, those above others first.

    With `kinds`, the rows of other kinds are not decoded, and a strand may have no facts.
    """
    reader = Reader()
    return {
        path: [reader.read(row) for row in tape[path] if kinds is None or row.kind in kinds]
        for path in outermost_first(tape)
    }


def read_tape(tape: Tape, kinds: Collection[Kind] | None = None) -> list[Fact]:
    """Return what the rows of a tape say, one strand after another."""
    return [fact for facts in read_strands(tape, kinds).values() for fact in facts]


def read_runs(tape: Tape) -> dict[str, RecordedRun]:
    """Return the runs of a tape by their strands."""
    reader = Reader()
    for path in outermost_first(tape):
        if tape[path][0].kind == "run_started":
            reader.read(tape[path][0])
    return reader.runs


def read_run(tape: Tape, strand: str) -> RecordedRun:
    """Return the innermost run that a strand of a tape belongs to."""
    strand = run_strand(tape, strand)
    reader, paths = Reader(), [strand]
    while strand := parent_of(strand):
        paths.append(strand)
    for path in reversed(paths):
        if path in tape and tape[path][0].kind == "run_started":
            reader.read(tape[path][0])
    return reader.runs[paths[0]]


def time_of(fact: Fact) -> str | None:
    """Return when what a fact says happened, as its record has it; None for a record without a time."""
    match fact:
        case RunStarted(begun=run):
            return run.at
        case Answered(answer=answer):
            return answer.at
        case Cancelled(at=at) | RunFinished(at=at) | Added(at=at) | Sent(at=at):
            return at
        case Resolved(at=at):
            return at or None
        case _:
            return None


def read_record(record: Record) -> Fact:
    """Return what a record says by itself, without its place, the run that it belongs to and what it answers."""
    if record["kind"] == "run_started":
        return RunStarted("", 0, None, _read_run("", record, None))
    return _READERS[record["kind"]](("", 0, None), record)


def find_agents(strands: Mapping[str, Sequence[Fact]]) -> list[str]:
    """Return the strands that are runs of agents, in order."""
    return sorted(path for path, facts in strands.items() if facts and _is_agent(facts[0]))


def leave_nested(paths: Iterable[str]) -> list[str]:
    """Return the strands without those that lie below another one of them."""
    listed = list(paths)
    return [path for path in listed if not any(is_below(path, other) for other in listed)]


def _is_agent(fact: Fact) -> bool:
    return isinstance(fact, RunStarted) and fact.begun.is_agent


def _read_run(path: str, record: Record, above: RecordedRun | None) -> RecordedRun:
    definition, note, forked = record.get("definition", {}), record.get("agent"), record.get("forked")
    turn: TurnNote | None = record.get("turn")
    about: Json = {**(note or turn or {})}
    conversation = above.conversation if above else None
    if not definition:
        name = about.get("name") or name_of(path)
        workflow, agent = above.workflow if above else "", name
        conversation = about.get("conversation", conversation)
    else:
        name = workflow = str(definition["id"])
        agent = about.get("name", "")
        conversation = about.get("conversation", conversation)
    return RecordedRun(
        path=path,
        above=above,
        loop=record["loop"],
        name=name,
        workflow=workflow,
        agent=agent,
        conversation=conversation,
        at=record["at"],
        began=max(forked["at"] if forked and "at" in forked else "", record["at"], above.began if above else ""),
        definition=definition,
        external=record.get("external", {}),
        config=record.get("config", {}),
        tools=record.get("tools", {}),
        messages=record.get("messages", ()),
        texts=record.get("texts", {}),
        note=note,
        turn=turn,
        forked=forked,
        from_http=record.get("from") == "http",
        max_steps=record["limits"].get("steps"),
        earlier_steps=record.get("spent", {}).get("steps", 0),
    )


def _shorten(record: Record) -> Record:
    """Return what a brief reader keeps of how a run begins."""
    config = record.get("config", {})
    brief = {key: config[key] for key in BRIEF_CONFIG if key in config}
    tools: Mapping[str, Json] = {} if record["loop"] == "agent" else record.get("tools", {})
    awaited = {code: {"awaits": True} for code, each in tools.items() if each.get("awaits")}
    return {**record, "config": brief, "messages": (), "texts": {}, "tools": awaited, "external": {}}


_Where = tuple[str, int, RecordedRun | None]


def _read_asked(where: _Where, record: Record) -> Fact:
    match record["ask"]:
        case "model":
            return Question(*where, record["step"], record["model"], record["messages"], record["digest"])
        case "tool":
            return Call(*where, record["id"], record["tool"], record["args"], record["effect"])
        case _:
            return Batch(*where, record["tools"])


def _read_answered(where: _Where, record: Record, asked: Act | None = None) -> Answered:
    closes = record.get("closes", ())
    if record["reply"] == "batch":
        return Answered(*where, asked, BatchAnswer(record["at"], record["seconds"]), closes)
    return Answered(*where, asked, decode_answer(record), closes)


def _read_decided(where: _Where, record: Record) -> Fact:
    read = record.get
    return Decided(
        *where,
        step=record["step"],
        thought=read("thought"),
        stripped=read("stripped", ()),
        calls=read("calls", ()),
        limit=read("limit"),
        unreadable=read("unreadable"),
        is_final=read("final", False),
        is_edited=read("edited", False),
        plan=read("plan"),
        refused=read("refused"),
        plan_step=read("plan_step"),
    )


def _read_waiting(where: _Where, record: Record) -> Fact:
    read = record.get
    return Waiting(
        *where,
        reason=record["reason"],
        tool=read("tool"),
        args=read("args", {}),
        origins=read("origins"),
        tools=read("tools", ()),
        message=read("message", ""),
        seconds=read("seconds"),
        until=read("until"),
        signal=read("signal"),
    )


def _read_resolved(where: _Where, record: Record) -> Fact:
    who = (record["decision"], record.get("by", ""), record.get("at", ""))
    said = (record.get("message", ""), record.get("args"), record.get("closes", ()))
    return Resolved(*where, *who, *said, record.get("signal"), record.get("data"), record.get("n"))


def _read_cancelled(where: _Where, record: Record) -> Fact:
    return Cancelled(*where, record["at"], record.get("closes", ()))


def _read_message(where: _Where, record: Record) -> Fact:
    return Added(*where, record["role"], record["content"], record["by"], record["at"])


def _read_signal(where: _Where, record: Record) -> Fact:
    return Sent(*where, record["name"], record["data"], record["by"], record["at"])


def _read_received(where: _Where, record: Record) -> Fact:
    return Received(*where, record["messages"])


def _read_finished(where: _Where, record: Record) -> Fact:
    read = record.get
    return RunFinished(
        *where,
        reason=read("finish_reason") or record["status"],
        error=read("error"),
        at=record["at"],
        answer=read("final_answer"),
        usage=read("usage"),
    )


def _read_sealed(where: _Where, record: Record) -> Fact:
    return Sealed(*where, record["head"], record["count"], record["kid"])


_READERS: Final[Mapping[str, Callable[[_Where, Record], Fact]]] = {
    "asked": _read_asked,
    "answered": _read_answered,
    "decided": _read_decided,
    "waiting": _read_waiting,
    "resolved": _read_resolved,
    "cancelled": _read_cancelled,
    "message": _read_message,
    "signal": _read_signal,
    "received": _read_received,
    "run_finished": _read_finished,
    "sealed": _read_sealed,
}
