"""The command show: a run, record by record, in order of time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent_core.errors import Damaged
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.cli.recorded import find_recorded
from engine_shim.cli.timeline import TimedRecord, in_time
from engine_shim.evals.example_of_run import example_of_run
from engine_shim.runs.run_entry import parse_time
from engine_shim.runs.run_list import origin_as_text
from utools.store_address import StoreAddress

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

    run_id, tape = find_recorded(run, store).load()
    check_chains(run_id, tape)
    example = example_of_run(tape)
    if as_json:
        output.document(example)
    else:
        output.line(yaml.safe_dump([example], allow_unicode=True, sort_keys=False, width=120).rstrip())
    return output.OK


def _sound_part(run_id: str, tape: Tape) -> tuple[Tape, Damaged | None]:
    """The rows of each strand up to its first damage, and the first damage of all."""
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
        style = "red" if each.record.get("success") is False or each.record.get("reply") == "failed" else style
        text = output.flatten(_content(each.record), None if full else LONGEST)
        output.styled_line(
            (f"{passed:>{longest}}", "dim"), f"  {position:<{width}}  ", (f"{kind:<12}", style), f"  {text}".rstrip()
        )
        if full and kind == "run_started":
            _write_messages(each.record)


def _own_start(timed: list[TimedRecord]) -> datetime | None:
    """When the run began; a fork began when it was forked."""
    forked: Mapping[str, Any] = next((each.record["forked"] for each in timed if "forked" in each.record), {})
    return parse_time(forked.get("at", "")) or next((each.at for each in timed if each.at is not None), None)


def _write_messages(record: dict[str, Any]) -> None:
    """What an agent's model reads before its first reply."""
    for message in record.get("messages", ()):
        for line in f"{message['role']}: {message['content'] or output.as_text(message['tool_calls'])}".split("\n"):
            output.line(f"          {line}".rstrip())


def record_as_line(record: dict[str, Any]) -> str:
    """One record in a line."""
    return f"{record['kind']:<12}  {output.flatten(_content(record), LONGEST)}".rstrip()


def _content(record: dict[str, Any]) -> str:
    match record:
        case {"kind": "run_started", "forked": forked}:
            return f"{_subject(record)}, {origin_as_text(forked)} at {forked['strand']}:{forked['n']}"
        case {"kind": "run_started"}:
            return _subject(record)
        case {"kind": "asked", "ask": "batch", "tools": tools} | {"kind": "waiting", "tools": tools}:
            return " ".join([*([record["reason"]] if "reason" in record else []), ", ".join(tools)])
        case {"kind": "asked", "ask": "model"}:
            return f"step {record['step']}: {output.count(record['messages'], 'message')} to {record['model']}"
        case {"kind": "asked" | "waiting", "tool": tool}:
            return " ".join([*([record["reason"]] if "reason" in record else []), tool, output.as_text(record["args"])])
        case {"kind": "answered", "reply": "said"}:
            calls = [f"{call['name']} {call['arguments']}" for call in record.get("calls", ())]
            return " ".join([record["content"], *calls])
        case {"kind": "answered", "reply": "did"}:
            return output.as_text(record["output"]) if record["success"] else f"failed: {record['error']}"
        case {"kind": "answered", "reply": "failed"}:
            return f"failed: {record['reason']}: {record['message']}"
        case {"kind": "answered", "reply": "batch"}:
            return f"all {output.count(len(record['closes']), 'call')} answered"
        case {"kind": "resolved", "decision": "batch", "closes": closes}:
            return f"all {output.count(len(closes), 'call')} decided"
        case {"kind": "resolved", "decision": decision, "by": by}:
            more = record.get("message") or (output.as_text(record["args"]) if "args" in record else "")
            return f"{decision} by {by}" + (f": {more}" if more else "")
        case {"kind": "message", "by": by, "role": role, "content": content}:
            return f"{role} by {by}: {content}"
        case {"kind": "received", "messages": messages}:
            return " ".join(f"{each['role']} by {each['by']}: {each['content']}" for each in messages)
        case {"kind": "decided"}:
            return _verdicts(record)
        case {"kind": "run_finished"}:
            error = record.get("error")
            reason = str(record.get("finish_reason") or record.get("status"))
            return f"{reason}: {error['message']}" if error else reason
        case _:
            aside = ("kind", "strand", "n", "closes", "ask", "reply")
            return output.as_text({key: value for key, value in record.items() if key not in aside})


def _subject(record: dict[str, Any]) -> str:
    """What a run is, and what it was given: its workflow and inputs, or its agent's model and question."""
    match record:
        case {"definition": {"id": workflow, **more}}:
            inputs = f" {output.as_text(record['external'])}" if record.get("external") else ""
            return f"{record['loop']} {workflow} {more.get('version', '1')}{inputs}"
        case {"config": {"model": model}, "messages": messages}:
            asked = next((each["content"] for each in reversed(messages) if each["role"] == "user"), "")
            return f"{record['loop']}, {model}, {output.count(len(record['tools']), 'tool')}: {asked}"
        case _:
            return str(record["loop"])


def _verdicts(record: dict[str, Any]) -> str:
    """How a reply was judged: each call with its verdict, and the other fields of the record."""
    words = ("verdict", "tool", "reason", "message")
    calls = [
        " ".join([*(call[word] for word in words if call.get(word)), *output.list_origins(call, "({})")])
        for call in record.get("calls", ())
    ]
    planned = [f"plan {each['step']}: {each['description']} ({each['tool']})" for each in record.get("plan", ())]
    if told := record.get("plan_step"):
        planned = [
            " ".join(["plan", f"{told['step']}:", told["status"], *([told["message"]] if "message" in told else [])])
        ]
    aside = ("kind", "strand", "n", "step", "calls", "thought", "plan", "plan_step")
    rest = {key: value for key, value in record.items() if key not in aside}
    return ", ".join([*planned, *calls, *(output.as_text({key: value}) for key, value in rest.items())])
