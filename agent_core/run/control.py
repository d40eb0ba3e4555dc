"""Controlling a run from outside its loop: decisions, pause, resume, cancel, and the signature at its end."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, Literal, Protocol, cast

from agent_core.errors import DecisionError, DecisionTaken, Lost
from agent_core.evidence.excerpts import SALT_BYTES
from agent_core.journal.control import (
    Control,
    Decisions,
    cancel_rows,
    check_mapping,
    control_row,
    decision_rows,
    message_row,
    read_waiting,
    signal_row,
    start_of,
    unrecorded_decisions,
)
from agent_core.journal.facts import Waiting
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Row, Tape
from agent_core.journal.signature import Keys, sign
from agent_core.journal.store import Journal, find_encrypter, find_salt
from agent_core.loop.judge import edit_faults, judge, refuse_arguments, with_schema
from agent_core.loop.masked import marks_of
from agent_core.loop.plan_check import PLAN, judge_plan, read_steps
from agent_core.loop.references import GRAMMARS
from agent_core.origins.sources import Sources
from agent_core.outputs import Json
from agent_core.protocol.errors import ProtocolError
from agent_core.records import AgentStarted, FlowStarted, Started
from agent_core.records import Resolved as ResolvedRecord
from agent_core.rules import rules_of
from agent_core.run.clock import now
from agent_core.run.shown_tools import compare_with_shown
from agent_core.words.catalogue import words_of
from utools.call_arguments import settle_integers
from utools.registry import ToolRegistry
from utools.schema.compiled import compile_schema
from utools.schema.json_value import NotJson, as_json
from utools.secrets.redaction import Redactor

Stopping = Literal["pause", "cancel"]


class Hold(Protocol):
    """What keeps other drivers off a run while it is driven, such as a lease. Any thread may ask it."""

    def is_certain(self) -> bool:
        """Return whether it is known without asking who has the run: this driver, or another one, to which it is
        lost."""
        ...

    def confirm(self) -> None:
        """Make it certain: prolong it, or mark the run as lost. JournalError while neither is possible."""
        ...


@dataclass(slots=True, eq=False)
class StopSignal:
    """Stops a run that is being driven, from the event loop that drives it.

    A pause lets acts in progress answer, and begins nothing more; a cancellation aborts them. `has_messages` says that
    messages or signals may have been added to the run since it was last looked for them; any thread may set it, and
    `note_messages` tells the driver. Of a run that `is_abandoned` the driver writes no more. While its `hold` is not
    certain, nothing is appended and no act begins; in one that `is_lost` to another driver, nothing begins, and only
    what a write has answered is appended.
    """

    requested: Stopping | None = None
    has_messages: bool = False
    is_abandoned: bool = False
    is_lost: bool = False
    hold: Hold | None = None
    listeners: list[Callable[[], None]] = field(default_factory=list, repr=False)
    on_messages: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def note_messages(self) -> None:
        """Let the driver look for messages and signals."""
        self.has_messages = True
        for notify in self.on_messages:
            notify()

    def request(self, how: Stopping) -> None:
        """Stop the run. A cancellation outweighs a pause; neither can be taken back."""
        if self.requested != "cancel":
            self.requested = how
            for notify in self.listeners:
                notify()


def append_decisions(
    journal: Journal,
    run: str,
    decisions: Decisions,
    *,
    registry: ToolRegistry | None,
    by: str,
    redactor: Redactor,
    keys: Keys | None,
    may_repeat: bool = False,
) -> None:
    """Append a person's decisions. `registry` has the tools of this host, if this host makes the calls.

    All are appended or none; with `may_repeat`, those that the same person has recorded already are left out.
    DecisionError for a decision on nothing that waits; for edited arguments that the call's policy refuses; for a
    result that the tool cannot give; for a tool that is now another one than was shown; and if somebody else decided
    first.
    """
    check_mapping(decisions)
    tape = journal.load(run)
    if may_repeat:
        decisions = unrecorded_decisions(tape, decisions, by=by, redactor=redactor)
        if not decisions:
            return
    if registry is not None:
        decisions = compare_with_shown(tape, decisions, registry)
    encrypt = find_encrypter(journal, run)
    rows = decision_rows(tape, decisions, by=by, at=now(), redactor=redactor, encrypt=encrypt)
    for row in rows:
        _check_edit(tape, row)
        _check_done(tape, row, registry or ToolRegistry())
    try:
        append_signed(journal, run, rows, keys)
    except Lost as lost:
        if may_repeat and not unrecorded_decisions(journal.load(run), decisions, by=by, redactor=redactor):
            return
        raise DecisionTaken(f"{lost.path}:{lost.n - 1} was decided by somebody else just now", where="at") from None


def _check_edit(tape: Tape, row: Row) -> None:
    """Judge the arguments that a person wrote: their author is told what is wrong, and the call keeps waiting."""
    decision, waiting = cast(ResolvedRecord, row.record()), read_waiting(tape[row.path][row.n - 1])
    args = decision.get("args")
    if decision["decision"] != "edit" or args is None or waiting is None:
        return
    started, schema = start_of(tape, row.path), decision.get("schema")
    if refusal := _refuse_edit(started, waiting, args, schema):
        raise DecisionError(f"nothing was decided. {refusal}", where="args")
    if (tool := started["tools"].get(str(waiting.tool))) is not None:
        try:  # 1e40 is an integer to a schema, and to no tool
            as_json(settle_integers(args, schema or tool["schema"]))
        except NotJson as error:
            raise DecisionError(f"nothing was decided. In the edited arguments, {error}", where="args") from None


def _check_done(tape: Tape, row: Row, registry: ToolRegistry) -> None:
    """Judge the result that a person told of a write, by what the tool gives, where this host has the tool."""
    decision, waiting = cast(ResolvedRecord, row.record()), read_waiting(tape[row.path][row.n - 1])
    if decision["decision"] != "done" or waiting is None or str(waiting.tool) not in registry:
        return
    schema = registry.get(str(waiting.tool)).output_schema
    if schema is not None and (faults := compile_schema(schema).faults(decision.get("output"))):
        told = f"nothing was decided. {waiting.tool} gives no such result: {faults[0].message}"
        raise DecisionError(told, where="output")


def _refuse_edit(started: Started, waiting: Waiting, args: Json, now: Json | None) -> str | None:
    """Return why edited arguments are refused: by the whitelist of an agent's run, by the schema of a workflow's tool,
    or by its schema as it is `now`, if that has changed."""
    tool, marks = str(waiting.tool), marks_of(started)
    if started["loop"] == "agent":
        return _refuse_agents_edit(cast(AgentStarted, started), tool, args, now)
    node_tool = cast(FlowStarted, started)["tools"][tool]
    masked = [] if node_tool.get("inward") else marks.faults(args)
    faults = masked or edit_faults(node_tool["schema"], waiting.args, args, rules_of(started)["comparison"], now)
    return refuse_arguments(tool, faults) if faults else None


def _refuse_agents_edit(started: AgentStarted, tool: str, args: Json, now: Json | None) -> str | None:
    if tool == PLAN and tool not in started["tools"]:
        return _refuse_plan(started, args)
    tools = started["tools"] if now is None else with_schema(started["tools"], tool, now)
    proof, marks = Sources(comparison=rules_of(started)["comparison"]), marks_of(started)
    verdict = judge(tool, args, "write", tools=tools, made=0, proof=proof, edited=True, marks=marks)
    return verdict.message if verdict.verdict == "refuse" else None


def _refuse_plan(started: AgentStarted, args: Json) -> str | None:
    """Return why a plan that a person wrote is refused."""
    words = words_of(started)
    steps = read_steps(args, words)
    if isinstance(steps, ProtocolError):
        return steps.message
    grammar = GRAMMARS[rules_of(started)["plans"]]
    verdict = judge_plan(
        steps,
        started["tools"],
        Sources(comparison=rules_of(started)["comparison"]),
        words,
        grammar=grammar,
        marks=marks_of(started),
        calls_left=None,
        edited=True,
    )
    return verdict.message if verdict else None


def append_control(journal: Journal, run: str, word: Control, *, by: str, keys: Keys | None) -> None:
    """Append who stops a run, or lets it continue."""
    _append_next(journal, run, lambda tape, **how: control_row(run, tape, word, by=by, **how), keys)


def append_message(journal: Journal, run: str, message: Record, *, by: str, keys: Keys | None) -> None:
    """Append a message, {role, content}, for the next question of an agent in the run."""
    _append_next(journal, run, lambda tape, **how: message_row(run, tape, message, by=by, **how), keys)


def append_signal(journal: Journal, run: str, name: str, data: Any, *, by: str, keys: Keys | None) -> None:
    """Append a signal, which the first node of the run takes that waits for one of this name."""
    _append_next(journal, run, lambda tape, **how: signal_row(run, tape, name, data, by=by, **how), keys)


def _append_next(journal: Journal, run: str, make: Callable[..., Row], keys: Keys | None) -> None:
    """Append a row to the strand `control`, which anybody may write."""
    while True:
        try:
            row = make(journal.load(run), at=now(), encrypt=find_encrypter(journal, run))
            append_signed(journal, run, [row], keys)
            return
        except Lost:  # somebody else appended a row just now
            continue


def cancel_pending(journal: Journal, run: str, keys: Keys | None) -> None:
    """Cancel everything that waits; a call that is decided at the same moment stays decided."""
    while rows := cancel_rows(journal.load(run), at=now(), encrypt=find_encrypter(journal, run)):
        with suppress(Lost):
            append_signed(journal, run, rows, keys)


def withdraw_pending(journal: Journal, run: str, *, by: str, keys: Keys | None) -> None:
    """Cancel everything that waits for a person, and note who withdrew it."""
    append_control(journal, run, "cancel", by=by, keys=keys)
    cancel_pending(journal, run, keys)


def append_signed(journal: Journal, run: str, rows: Sequence[Row], keys: Keys | None) -> bool:
    """Append rows and, with `keys`, the run's signature in the same step, so that no death leaves it unsigned.

    Returns whether the last row is new. The signature comes first, so that of a torn write it is not what is missing.
    Raises Lost for the rows alone: where somebody else signed just now, the run is signed anew.
    """
    while keys is not None:
        seal = _sign(journal, run, _with_rows(journal.load(run), rows), keys)
        try:
            return journal.append(run, [*([seal] if seal else []), *rows])
        except Lost as lost:
            if lost.path != SEAL:
                raise
    return journal.append(run, rows)


def _sign(journal: Journal, run: str, tape: Tape, keys: Keys) -> Row | None:
    salt = find_salt(journal, run)
    return sign(
        run,
        tape,
        keys,
        journal.identity,
        at=now(),
        salt=token_bytes(SALT_BYTES) if salt is None else salt,
        keeps_salt=salt is None,
    )


def _with_rows(tape: Tape, rows: Sequence[Row]) -> Tape:
    for row in rows:
        strand = tape.setdefault(row.path, [])
        strand.extend([row] if row.n == len(strand) else [])
    return tape


def sign_run(journal: Journal, run: str, keys: Keys) -> None:
    """Sign the run as it is. A driver that does so at the same time writes the same, or has gone further."""
    row = _sign(journal, run, journal.load(run), keys)
    if row is not None:
        with suppress(Lost):
            journal.append(run, [row])
