"""The command show: a run, record by record, in order of time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.errors import Damaged
from agent_core.journal.chain import check_chains
from agent_core.journal.facts import (
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
from agent_core.journal.reader import read_record
from agent_core.journal.record import Tape
from agent_core.records import JudgedCall
from engine_shim.cli import output
from engine_shim.cli.records.recorded import find_recorded
from engine_shim.cli.records.timeline import TimedRecord, in_time
from engine_shim.store.entries import parse_time
from engine_shim.store.run_list import origin_as_text
from utools.databases.store_address import StoreAddress

LONGEST = 160
STYLES = {
    "run_started": "cyan",
    "run_finished": "cyan",
    "asked": "dim",
    "waiting": "yellow",
    "resolved": "yellow",
    "cancelled": "red",
}


def show_run(run: str, store: StoreAddress | None, *, full: bool, as_json: bool) -> int:
    """Write all records of a run, uncut if `full`; of a damaged one, those before the damage, which is raised then."""
    run_id, tape = find_recorded(run, store).load()
    if as_json:
        check_chains(run_id, tape)
        records = [{"strand": path, "n": row.n, **row.record()} for path in sorted(tape) for row in tape[path]]
        output.document({"run_id": run_id, "records": records})
        return output.OK
    sound, damage = _sound_part(run_id, tape)
    _write_records(run_id, in_time(sound), full)
    if damage is not None:
        raise damage
    return output.OK


def show_as_example(run: str, store: StoreAddress | None, *, as_json: bool) -> int:
    """Write what the run's agent did as an entry of `examples`."""
    import yaml

    from engine_shim.evals.example_of_run import example_of_run

    run_id, tape = find_recorded(run, store).load()
    check_chains(run_id, tape)
    example = example_of_run(tape)
    if as_json:
        output.document(example)
    else:
        output.line(yaml.safe_dump([example], allow_unicode=True, sort_keys=False, width=120).rstrip())
    return output.OK


def _sound_part(run_id: str, tape: Tape) -> tuple[Tape, Damaged | None]:
    """Return the rows of each strand up to its first damage, and the first damage of all."""
    sound, damage = {}, None
    for path, rows in tape.items():
        try:
            sound[path] = check_chains(run_id, {path: rows})[path]
        except Damaged as error:
            sound[path], damage = rows[: error.n], damage or error
    return sound, damage


def _write_records(run_id: str, timed: list[TimedRecord], full: bool) -> None:
    """A line for each record: seconds since the run began, its position, its kind, and what it says.

    What a fork took over was before it began: its seconds are negative.
    If `full`, nothing is cut, and the messages stand below the start of each agent.
    """
    start = _own_start(timed)
    output.line(f"{run_id}  {start:%Y-%m-%d %H:%M:%S} UTC" if start else run_id)
    positions = [f"{each.strand}:{each.n}" for each in timed]
    width = max(map(len, positions), default=0)
    passings = [f"{(each.at - start).total_seconds():8.3f}" if start and each.at else "" for each in timed]
    longest = max(map(len, passings), default=0)
    for each, position, passed in zip(timed, positions, passings, strict=True):
        kind, style = each.record["kind"], STYLES.get(each.record["kind"], "")
        fact = read_record(each.record)
        style = "red" if isinstance(fact, Answered) and not fact.succeeded else style
        text = output.flatten(_describe(fact), None if full else LONGEST)
        output.styled_line(
            (f"{passed:>{longest}}", "dim"), f"  {position:<{width}}  ", (f"{kind:<12}", style), f"  {text}".rstrip()
        )
        if full and isinstance(fact, RunStarted):
            _write_messages(fact.begun)


def _own_start(timed: list[TimedRecord]) -> datetime | None:
    """Return when the run began; a fork began when it was forked."""
    forked: Mapping[str, Any] = next((each.record["forked"] for each in timed if "forked" in each.record), {})
    return parse_time(forked.get("at", "")) or next((each.at for each in timed if each.at is not None), None)


def _write_messages(run: RecordedRun) -> None:
    """What an agent's model reads before its first reply."""
    for message in run.messages:
        for line in f"{message['role']}: {message['content'] or output.as_text(message['tool_calls'])}".split("\n"):
            output.line(f"          {line}".rstrip())


def record_as_line(record: dict[str, Any]) -> str:
    """Return one record in a line."""
    return f"{record['kind']:<12}  {output.flatten(_describe(read_record(record)), LONGEST)}".rstrip()


def _describe(fact: Fact) -> str:
    match fact:
        case RunStarted(begun=run) if run.forked is not None:
            return f"{_subject(run)}, {origin_as_text(run.forked)} at {run.forked['strand']}:{run.forked['n']}"
        case RunStarted(begun=run):
            return _subject(run)
        case Question(step=step, messages=messages, model=model):
            return f"step {step}: {output.count(messages, 'message')} to {model}"
        case Call(tool=tool, args=args):
            return f"{tool} {output.as_text(args)}"
        case Batch(tools=tools):
            return ", ".join(tools)
        case Waiting(reason=reason, tool=None, tools=tools):
            return f"{reason} {', '.join(tools)}"
        case Waiting(reason="awaiting_event", until=until, signal=signal):
            return " ".join(filter(None, ("awaiting_event", signal, until)))
        case Waiting(reason=reason, tool=tool, args=args):
            return f"{reason} {tool} {output.as_text(args)}"
        case Answered():
            return _describe_answer(fact)
        case Decided():
            return _describe_decided(fact)
        case Resolved():
            return _describe_resolved(fact)
        case Cancelled():
            return ""
        case Added(by=by, role=role, content=content):
            return f"{role} by {by}: {content}"
        case Sent(name=name, by=by, data=data):
            return f"{name} by {by}: {output.as_text(data)}"
        case Received(messages=received):
            return " ".join(f"{each['role']} by {each['by']}: {each['content']}" for each in received)
        case RunFinished(reason=reason, error=error):
            return f"{reason}: {error['message']}" if error else reason
        case Sealed(kid=kid, count=count, head=head):
            return f"by {kid}: {output.count(count, 'record')}, head {head}"
    assert_never(fact)


def _describe_answer(fact: Answered) -> str:
    match fact.answer:
        case ModelReply(content=content, calls=calls):
            return " ".join([content, *(f"{call['name']} {call['arguments']}" for call in calls)])
        case ToolReply(success=True, output=result):
            return output.as_text(result)
        case ToolReply(error=error):
            return f"failed: {error}"
        case Failed(reason=reason, message=message):
            return f"failed: {reason}: {message}"
        case BatchAnswer():
            return f"all {output.count(len(fact.closes), 'call')} answered"


def _describe_resolved(fact: Resolved) -> str:
    if fact.decision == "batch":
        return f"all {output.count(len(fact.closes), 'call')} decided"
    if fact.decision == "elapsed":
        return f"elapsed at {fact.at}"
    if fact.signal is not None:
        return f"signal {fact.signal} by {fact.by}: {output.as_text(fact.data)}"
    more = fact.message or ("" if fact.args is None else output.as_text(fact.args))
    return f"{fact.decision} by {fact.by}" + (f": {more}" if more else "")


def _subject(run: RecordedRun) -> str:
    """Return what a run is, and what it was given: its workflow and inputs, or its agent's model and question."""
    if run.definition:
        inputs = f" {output.as_text(run.external)}" if run.external else ""
        return f"{run.loop} {run.name} {run.definition.get('version', '1')}{inputs}"
    asked = next((each["content"] for each in reversed(run.messages) if each["role"] == "user"), "")
    return f"{run.loop}, {run.config['model']}, {output.count(len(run.tools), 'tool')}: {asked}"


def _describe_decided(fact: Decided) -> str:
    """Return how a reply was judged: each call with its verdict, and what else was decided."""
    planned = [f"plan {each['step']}: {each['description']} ({each['tool']})" for each in fact.plan or ()]
    if (told := fact.plan_step) is not None:
        planned = [" ".join(["plan", f"{told['step']}:", told["status"], *filter(None, [told.get("message")])])]
    faults = {"unreadable": fact.unreadable, "refused": fact.refused}
    others = [
        *(["final"] if fact.is_final else []),
        *(["edited"] if fact.is_edited else []),
        *([f"not run: {fact.limit}"] if fact.limit else []),
        *([f"stripped {', '.join(fact.stripped)}"] if fact.stripped else []),
        *(f"{name}: {each['kind']}: {each['message']}" for name, each in faults.items() if each),
    ]
    return ", ".join([*planned, *map(_describe_call, fact.calls), *others])


def _describe_call(call: JudgedCall) -> str:
    words = [call["verdict"], call["tool"], call.get("reason"), call.get("message")]
    return " ".join([*filter(None, words), *output.list_origins(call, "({})")])
