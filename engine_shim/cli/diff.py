"""The command diff: two runs side by side, and where they part."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from agent_core.audit.diff import Diff, Parting
from agent_core.audit.diff import diff as diff_runs
from agent_core.audit.stats import RunStats
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from agent_core.journal.source import load_run
from engine_shim.cli import output
from engine_shim.cli.audit import source_of, told
from engine_shim.cli.run import AsJson, Store

FIRST = Annotated[str, typer.Argument(metavar="A", help="A run's id in the store, or a journal file.")]
SECOND = Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")]
SHOWN = 12
"""How many differences of two records are shown."""
LONGEST = 160


def diff(a: FIRST, b: SECOND, store: Store = None, as_json: AsJson = False) -> int:
    """Compare two runs, times and ids aside, and say where they part."""
    found = diff_runs(_loaded(a, store), _loaded(b, store))
    if as_json:
        output.document(document(found))
    else:
        for line in lines(found):
            output.line(line)
    return output.OK if found.equal else output.AUDIT


def _loaded(run: str, store: Store) -> tuple[str, Tape]:
    run_id, tape = load_run(*source_of(run, store))
    return run_id, check_chains(run_id, tape)


def document(found: Diff) -> dict[str, Any]:
    """All of it; records are told in a line each, their changes in full."""
    partings = [
        {
            "strand": each.strand,
            "n": each.n,
            "only_in": each.only_in,
            "a": each.a and told(each.a),
            "b": each.b and told(each.b),
            "changes": list(each.changes),
        }
        for each in found.partings
    ]
    return {"equal": found.equal, "a": asdict(found.a), "b": asdict(found.b), "partings": partings, "same": found.same}


def lines(found: Diff) -> list[str]:
    """What a person reads: what each run came to, then where they part, the first parting first."""
    lines = [*_sides(found.a, found.b), ""]
    for each in found.partings:
        lines += _parting(each)
    if found.equal:
        lines.append(f"equal: {output.counted(len(found.same), 'strand')}, times and ids aside")
    elif found.same:
        lines.append(f"equal: {', '.join(found.same)}")
    return lines


def _sides(a: RunStats, b: RunStats) -> list[str]:
    width = max(len(a.run), len(b.run))
    lines = []
    for name, side in (("A", a), ("B", b)):
        counts = [(side.steps, "step"), (side.tool_calls, "tool call"), (side.tokens, "token")]
        told = ", ".join(output.counted(number, noun) for number, noun in counts)
        lines.append(f"{name}  {side.run:<{width}}  {side.finish_reason}: {told}")
        lines += [f"   {strand}: {_short(answer)}" for strand, answer in side.answers.items()]
    return lines


def _parting(found: Parting) -> list[str]:
    if found.only_in:
        return [f"{found.strand}  only in {found.only_in.upper()}"]
    if found.a is None or found.b is None or found.a["kind"] != found.b["kind"]:
        sides = [(name, told(record) if record else "ends before") for name, record in (("A", found.a), ("B", found.b))]
        return [f"{found.strand}:{found.n}", *(f"  {name}  {text}" for name, text in sides)]
    more = len(found.changes) - SHOWN
    lines = [line for change in found.changes[:SHOWN] for line in _change(change)]
    rest = [f"  … and {output.counted(more, 'more difference')}"] if more > 0 else []
    return [f"{found.strand}:{found.n}  {found.a['kind']}", *lines, *rest]


def _change(change: dict[str, Any]) -> list[str]:
    sides = [f"    {name.upper()}  {_short(change[name]) if name in change else 'nothing'}" for name in ("a", "b")]
    return [f"  {change['at']}", *sides]


def _short(value: Any) -> str:
    flat = " ".join(output.as_text(value).split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
