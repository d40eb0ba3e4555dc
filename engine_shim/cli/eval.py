"""The command eval: measures a model on cases, and writes a table of its scores."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_core.config import read_config
from agent_core.models.providers import Providers
from engine_shim.cli import output, terminal
from engine_shim.cli.terminal import visible
from engine_shim.evals.cases import CaseFile
from engine_shim.evals.load import choose_cases, load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import METRICS, Scored, Scores, Share, total
from engine_shim.host.find import load_host_config
from engine_shim.runs.store import SqliteRunStore

FIXED = ("model", "fallback_models", "prompt", "messages_json", "allowed_tools", "language")
"""Keys of the agent's config that the case decides, or --model."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured, how often, where the runs are kept, and which share has to be right."""

    model: str
    settings: dict[str, Any]
    categories: list[str]
    repeat: int
    concurrency: int
    store: Path | None
    config: Path | None
    min_right: float = 0.0


def evaluate_model(file: Path, options: Evaluation, *, as_json: bool) -> int:
    """Measure a model on the cases of a file, and write how well it did."""
    cases = load_cases(file)
    cases = cases.model_copy(update={"cases": choose_cases(cases.cases, options.categories)})
    probe = {"max_steps": 1, **options.settings, "model": options.model, "allowed_tools": [], "prompt": "?"}
    read_config(probe, where="--set")
    try:
        found = asyncio.run(_measure(cases, options))
    except KeyboardInterrupt:
        output.error("interrupted", kind="interrupted", where=str(file), as_json=as_json)
        return output.INTERRUPTED
    if as_json:
        output.document(_as_data(options.model, found))
    else:
        _write_report(options.model, found)
    if not any(each.has_reply for each in found):
        return output.FAILED
    return output.OK if _share_right(found) >= options.min_right else output.FAILED


def _share_right(found: Sequence[Scored]) -> float:
    """Of all runs: one without a reply is not right either."""
    return sum(each.scores.right.right for each in found) / len(found)


async def _measure(file: CaseFile, options: Evaluation) -> list[Scored]:
    host = load_host_config(options.config)
    providers = Providers(base_urls=host.base_urls, default_provider=host.default_provider)
    store = SqliteRunStore(options.store) if options.store else None
    progress = _Progress(len(file.cases) * options.repeat)
    try:
        return await measure(
            file.cases,
            file.world,
            model=providers(options.model, options.settings),
            name=options.model,
            settings=options.settings,
            repeat=options.repeat,
            concurrency=options.concurrency,
            journal=store.journal if store else None,
            secrets=host.secrets(),
            on_scored=progress.show,
        )
    finally:
        await providers.close()
        if store:
            store.close()


class _Progress:
    """How many runs have ended, on stderr if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def show(self, scored: Scored) -> None:
        self._done += 1
        stderr = terminal.err()
        if stderr.isatty():
            end = "\r\033[K" if self._done == self._total else ""
            stderr.write(f"\r{self._done}/{self._total} {visible(scored.case.id):<40}{end}")
            stderr.flush()


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """The agent's config from `key=value` words; a value that is not JSON is a text."""
    settings: dict[str, Any] = {}
    for entry in pairs:
        key, equals, value = entry.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set {entry!r}: write key=value")
        if key in FIXED:
            raise typer.BadParameter(f"--set {entry!r}: {key} is decided by the cases and --model")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings


def _as_data(model: str, found: Sequence[Scored]) -> dict[str, Any]:
    """All of it as JSON; a rate is null where there was nothing to measure."""
    groups = [
        {"category": category, "language": language, **_scores_as_data(s)} for category, language, s in _groups(found)
    ]
    counts = {"runs": len(found), "unanswered": sum(not each.has_reply for each in found)}
    return {
        "model": model,
        "total": _scores_as_data(total(each.scores for each in found)) | counts,
        "groups": groups,
        "cases": [_case_as_data(each) for each in found],
    }


def _scores_as_data(scores: Scores) -> dict[str, Any]:
    shares = {name: getattr(scores, name) for name in METRICS}
    rates = {name: {**asdict(share), "rate": share.rate} for name, share in shares.items()}
    return {**rates, "steps": scores.steps, "tokens": scores.tokens}


def _case_as_data(each: Scored) -> dict[str, Any]:
    case = each.case
    fields = {"id": case.id, "category": case.category, "language": case.language, "run_id": each.run}
    rest = {"finish_reason": each.finish_reason, "final_answer": each.answer, "error": each.error}
    rest |= {"answered": each.has_reply}
    return {**fields, **rest, **_scores_as_data(each.scores)}


def _write_report(model: str, found: Sequence[Scored]) -> None:
    """The table, and what went wrong, a line for each case."""
    table = Table("", "lang", *(name.replace("_", " ") for name in METRICS), "tokens", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for category, language, scores in _groups(found):
        table.add_row(Text(visible(category)), Text(visible(language)), *_cells(scores))
    table.add_section()
    table.add_row("total", "", *_cells(total(each.scores for each in found)))
    wrong = [each for each in found if each.has_reply and each.scores.right.right == 0]
    width = max((len(each.case.id) for each in wrong), default=0)
    output.line(f"{model}: {output.count(len(found), 'run')}")
    if silent := [each for each in found if not each.has_reply]:
        output.line(f"{len(silent)} of {output.count(len(found), 'run')} had no answer: {silent[0].error}")
    output.line()
    Console(file=terminal.out(), width=max(100, Console().width), highlight=False).print(table)
    for each in wrong:
        answer = output.as_text(each.answer if each.finish_reason == "final" else each.error or "")
        output.line(f"{each.case.id:<{width}}  {each.run}  {each.finish_reason}: {' '.join(answer.split())[:100]}")


def _groups(found: Sequence[Scored]) -> Iterator[tuple[str, str, Scores]]:
    """The sums by category and language, in the order of the file."""
    for category, language in dict.fromkeys((each.case.category, each.case.language) for each in found):
        inside = [each for each in found if (each.case.category, each.case.language) == (category, language)]
        yield category, language, total(each.scores for each in inside)


def _cells(scores: Scores) -> list[str]:
    return [*(_cell(getattr(scores, name)) for name in METRICS), f"{scores.tokens:,}"]


def _cell(share: Share) -> str:
    return "–" if share.rate is None else f"{share.right}/{share.of} {share.rate:.0%}"
