"""The command diff: two runs side by side, and where they part."""

from dataclasses import asdict
from typing import Any

from agent_core.audit.diff import Diff, Parting, diff
from agent_core.audit.stats import RunStats
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.cli.records.recorded import find_recorded
from engine_shim.cli.records.show import record_as_line
from utools.databases.store_address import StoreAddress

SHOWN = 12
"""How many differences of two records are shown."""
LONGEST = 160


def compare_runs(a: str, b: str, store: StoreAddress | None, *, as_json: bool) -> int:
    """Compare two runs and write where they part."""
    found = diff(_load(a, store), _load(b, store))
    if as_json:
        output.document(_as_data(found))
    else:
        for line in _lines(found):
            output.line(line)
    return output.OK if found.equal else output.AUDIT


def _load(run: str, store: StoreAddress | None) -> tuple[str, Tape]:
    run_id, tape = find_recorded(run, store).load()
    return run_id, check_chains(run_id, tape)


def _as_data(found: Diff) -> dict[str, Any]:
    """Return all of it: records in a line each, their changes in full."""
    partings = [
        {
            "strand": each.strand,
            "n": each.n,
            "only_in": each.only_in,
            "a": each.a and record_as_line(each.a),
            "b": each.b and record_as_line(each.b),
            "changes": list(each.changes),
        }
        for each in found.partings
    ]
    return {"equal": found.equal, "a": _stats(found.a), "b": _stats(found.b), "partings": partings, "same": found.same}


def _stats(stats: RunStats) -> dict[str, Any]:
    fields = asdict(stats)
    return {"run_id": fields.pop("run"), **fields}


def _lines(found: Diff) -> list[str]:
    """Return the figures and answers of each run, then where they part, first things first."""
    lines = [*_sides(found.a, found.b), ""]
    for each in found.partings:
        lines += _parting(each)
    if found.equal:
        lines.append(f"equal: {output.count(len(found.same), 'strand')}, times and ids aside")
    elif found.same:
        lines.append(f"equal: {', '.join(found.same)}")
    return lines


def _sides(a: RunStats, b: RunStats) -> list[str]:
    width = max(len(a.run), len(b.run))
    lines = []
    for name, side in (("A", a), ("B", b)):
        counts = [(side.steps, "step"), (side.tool_calls, "tool call"), (side.tokens, "token")]
        figures = ", ".join(output.count(number, noun) for number, noun in counts)
        lines.append(f"{name}  {side.run:<{width}}  {side.finish_reason}: {figures}")
        lines += [f"   {strand}: {_short(answer)}" for strand, answer in side.answers.items()]
    return lines


def _parting(found: Parting) -> list[str]:
    if found.only_in:
        return [f"{found.strand}  only in {found.only_in.upper()}"]
    if found.a is None or found.b is None or found.a["kind"] != found.b["kind"]:
        texts = [record_as_line(record) if record else "ends before" for record in (found.a, found.b)]
        return [f"{found.strand}:{found.n}", *(f"  {name}  {text}" for name, text in zip("AB", texts, strict=True))]
    more = len(found.changes) - SHOWN
    lines = [line for change in found.changes[:SHOWN] for line in _change(change)]
    rest = [f"  … and {output.count(more, 'more difference')}"] if more > 0 else []
    return [f"{found.strand}:{found.n}  {found.a['kind']}", *lines, *rest]


def _change(change: dict[str, Any]) -> list[str]:
    sides = [f"    {name.upper()}  {_short(change[name]) if name in change else 'nothing'}" for name in ("a", "b")]
    return [f"  {change['at']}", *sides]


def _short(value: Any) -> str:
    return output.flatten(output.as_text(value), LONGEST)
