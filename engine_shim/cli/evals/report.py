"""What eval writes: the table of one measurement, two side by side, and the same as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine_shim.cli import output, terminal
from engine_shim.cli.terminal import visible
from engine_shim.evals.compare import Compared, compare
from engine_shim.evals.score import METRICS, Scored, Scores, Share, total
from utools.databases.store_address import StoreAddress

MOST_REASONS = 3
"""Reasons for having no answer that the table names."""
WIDEST = 100
"""Characters of what was expected, or given."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A model, the keys of the agent's config that were set, each run, and the store that keeps the runs, if any."""

    model: str
    settings: Mapping[str, Any]
    found: Sequence[Scored]
    store: StoreAddress | None = None

    @property
    def scores(self) -> Scores:
        return total(each.scores for each in self.found)

    @property
    def title(self) -> str:
        keys = (f"{key}={output.flatten(output.as_text(value), 60)}" for key, value in self.settings.items())
        return "  ".join([self.model, *keys])


# ── one measurement ──────────────────────────────────────────────────────────────────────────────


def as_data(measured: Measured) -> dict[str, Any]:
    """Return all of it as JSON; a rate is null where there was nothing to measure."""
    found = measured.found
    groups = [
        {"category": category, "language": language, **_scores_as_data(s)} for category, language, s in _groups(found)
    ]
    counts = {"runs": len(found), "unanswered": sum(not each.has_reply for each in found)}
    return {
        "model": measured.model,
        "total": _scores_as_data(measured.scores) | counts,
        "groups": groups,
        "cases": [_case_as_data(each, is_kept=measured.store is not None) for each in found],
    }


def _scores_as_data(scores: Scores) -> dict[str, Any]:
    shares = {name: getattr(scores, name) for name in METRICS}
    rates = {name: {**asdict(share), "rate": share.rate} for name, share in shares.items()}
    return {**rates, "steps": scores.steps, "tokens": scores.tokens, "seconds": round(scores.seconds, 3)}


def _case_as_data(each: Scored, *, is_kept: bool) -> dict[str, Any]:
    """Return a run; its id is null where no store keeps it."""
    case = each.case
    fields = {"name": case.name, "category": case.category, "language": case.language}
    rest = {
        "run_id": each.run if is_kept else None,
        "finish_reason": each.finish_reason,
        "final_answer": each.answer,
        "error": each.error,
    }
    rest |= {"answered": each.has_reply, "expected": list(each.missing)}
    return {**fields, **rest, **_scores_as_data(each.scores)}


def write_report(measured: Measured) -> None:
    """The table, and what went wrong, a line for each case."""
    found, scores = measured.found, measured.scores
    shown = [name for name in METRICS if name == "right" or getattr(scores, name).of]
    table = _table("", "lang", *(name.replace("_", " ") for name in shown), "tokens")
    for category, language, group in _groups(found):
        table.add_row(Text(visible(category)), Text(visible(language)), *_cells(group, shown))
    table.add_section()
    table.add_row("total", "", *_cells(scores, shown))
    output.line(f"{measured.title}: {output.count(len(found), 'run')}")
    _write_silent(found)
    output.line()
    _print(table)
    _write_wrong([measured])


def _write_silent(found: Sequence[Scored], indent: str = "") -> None:
    """How many runs had no answer, and why."""
    silent = [each for each in found if not each.has_reply]
    if not silent:
        return
    output.line(f"{indent}{len(silent)} of {output.count(len(found), 'run')} had no answer and count as not right:")
    reasons = Counter(f"{each.finish_reason}: {each.error}" for each in silent).most_common()
    for reason, number in reasons[:MOST_REASONS]:
        output.line(f"{indent}  {number} {output.flatten(reason, WIDEST)}")
    if more := reasons[MOST_REASONS:]:
        output.line(f"{indent}  {sum(number for _, number in more)} for other reasons")


def _write_wrong(measured: Sequence[Measured]) -> None:
    """What was expected of each run that was not right, and what it did instead; of two models with the side."""
    sides = "AB" if len(measured) > 1 else [""]
    sided = [
        (f"{side} {each.case.name}".lstrip(), each, one.store)
        for side, one in zip(sides, measured, strict=True)
        for each in one.found
        if each.has_reply and not each.scores.right.right
    ]
    if not sided:
        return
    output.line()
    width = max(cell_len(name) for name, _, _ in sided)
    for name, each, store in sided:
        begin = name + " " * (width - cell_len(name))
        for line in _explain(each, is_kept=store is not None):
            output.line(f"{begin}  {line}")
            begin = " " * width
    kept = sided[0][2]
    show = output.Options(store=kept).command("show", "RUN")
    output.line(show if kept else "Run again with --store PATH to look at the runs.")


def _explain(each: Scored, *, is_kept: bool) -> Iterator[str]:
    answer = output.as_text(each.answer if each.finish_reason == "final" else each.error or "")
    yield f"expected {output.flatten('; '.join(each.missing), WIDEST)}"
    yield f"got {each.finish_reason}: {output.flatten(answer, WIDEST)}"
    if is_kept:
        yield f"run {each.run}"


def _groups(found: Sequence[Scored]) -> Iterator[tuple[str, str, Scores]]:
    """Yield the sums by category and language, in the order of the file."""
    for category, language in dict.fromkeys((each.case.category, each.case.language) for each in found):
        inside = [each for each in found if (each.case.category, each.case.language) == (category, language)]
        yield category, language, total(each.scores for each in inside)


# ── two side by side ─────────────────────────────────────────────────────────────────────────────


def comparison_as_data(a: Measured, b: Measured) -> dict[str, Any]:
    """Both measurements, and each case with what it took either."""
    sides = {name: {"settings": dict(each.settings), **as_data(each)} for name, each in (("a", a), ("b", b))}
    return {**sides, "compared": [_compared_as_data(each) for each in compare(a.found, b.found)]}


def _compared_as_data(each: Compared) -> dict[str, Any]:
    sides = {
        name: {"right": asdict(side.right), "tokens": side.tokens, "seconds": round(side.seconds, 3)}
        for name, side in (("a", each.a), ("b", each.b))
    }
    return {"name": each.name, "category": each.category, "language": each.language, **sides, "better": each.better}


def write_comparison(a: Measured, b: Measured) -> None:
    """A line for each case with what it took either, the sums, and the cases in which they differ."""
    cases = compare(a.found, b.found)
    for side, measured in (("A", a), ("B", b)):
        output.line(f"{side}  {measured.title}: {output.count(len(measured.found), 'run')}")
        _write_silent(measured.found, "   ")
    output.line()
    table = _table(
        "", "lang", *(f"{side} {what}" for what in ("right", "tokens", "seconds") for side in "AB"), "better"
    )
    for each in cases:
        table.add_row(Text(visible(each.name)), each.language, *_pairs(each.a, each.b), each.better)
    table.add_section()
    table.add_row("total", "", *_pairs(a.scores, b.scores, rate=True))
    _print(table)
    for side, other in ("AB", "BA"):
        if better := [each.name for each in cases if each.better == side]:
            output.line(f"{side} is better than {other} in {', '.join(better)}")
    if not any(each.better for each in cases):
        output.line("both are right in the same cases")
    _write_wrong([a, b])


def _pairs(a: Scores, b: Scores, *, rate: bool = False) -> list[str]:
    rights = [_cell(each.right) if rate else f"{each.right.right}/{each.right.of}" for each in (a, b)]
    return [*rights, f"{a.tokens:,}", f"{b.tokens:,}", f"{a.seconds:.1f}", f"{b.seconds:.1f}"]


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def _table(*headings: str) -> Table:
    table = Table(*headings, box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    return table


def _print(table: Table) -> None:
    Console(file=terminal.out(), width=max(100, Console().width), highlight=False).print(table)


def _cells(scores: Scores, shown: Sequence[str]) -> list[str]:
    return [*(_cell(getattr(scores, name)) for name in shown), f"{scores.tokens:,}"]


def _cell(share: Share) -> str:
    return "–" if share.rate is None else f"{share.right}/{share.of} {share.rate:.0%}"
