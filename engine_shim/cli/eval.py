"""The command eval: a model is measured on cases, and a table tells where it is good."""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from agent_core.config import read_config
from agent_core.models.providers import Providers
from engine_shim.cli import output
from engine_shim.cli.host import host_config, secrets_of
from engine_shim.cli.run import AsJson, Config
from engine_shim.evals.cases import CaseFile
from engine_shim.evals.load import chosen, load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import METRICS, Scored, Scores, Share, total
from engine_shim.runs.store import SqliteRunStore

DECIDED = ("model", "fallback_models", "prompt", "messages_json", "allowed_tools", "language")
"""Keys of the agent's config that the case decides, or --model."""
Kept = Annotated[Path | None, typer.Option(help="Keep every run in this store, to look at with show.")]


def evaluate(
    file: Annotated[Path, typer.Argument(metavar="CASES", help="A case file, JSON or YAML.")],
    model: Annotated[str, typer.Option(help="The model to measure, e.g. openai:gpt-4o-mini.")],
    only: Annotated[list[str] | None, typer.Option(help="Only cases of this category.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often each case is run, with another seed.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases run at once.")] = 1,
    protocol: Annotated[Literal["json", "tools"], typer.Option(help="The dialect.")] = "json",
    given: Annotated[list[str] | None, typer.Option("--set", help="A key of the agent's config, key=value.")] = None,
    store: Kept = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Measure a model: tool choice, arguments, tasks of several steps, recovery from errors, answers, tokens."""
    cases = load_cases(file)
    cases = cases.model_copy(update={"cases": chosen(cases.cases, only or [])})
    settings = {"protocol": protocol, **read_settings(given or [])}
    read_config({"max_steps": 1, **settings, "model": model, "allowed_tools": [], "prompt": "?"}, where="--set")
    try:
        found = asyncio.run(_measured(cases, model, settings, repeat, concurrency, store, config))
    except KeyboardInterrupt:
        output.error("interrupted", kind="interrupted", where=str(file), as_json=as_json)
        return output.INTERRUPTED
    if as_json:
        output.document(document(model, found))
    else:
        report(model, found)
    return output.OK if any(each.heard for each in found) else output.FAILED


async def _measured(
    file: CaseFile,
    name: str,
    settings: dict[str, Any],
    repeat: int,
    concurrency: int,
    store: Path | None,
    config: Path | None,
) -> list[Scored]:
    host, _ = host_config(config)
    providers = Providers(base_urls=host.base_urls, default_provider=host.default_provider)
    kept = SqliteRunStore(store) if store else None
    of, done = len(file.cases) * repeat, 0

    def tell(scored: Scored) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done}/{of} {scored.case.id:<40}" + ("\r\033[K" if done == of else ""))
            sys.stderr.flush()

    try:
        return await measure(
            file.cases,
            file.world,
            model=providers(name, settings),
            name=name,
            settings=settings,
            repeat=repeat,
            concurrency=concurrency,
            journal=kept.journal if kept else None,
            secrets=secrets_of(host),
            heard=tell,
        )
    finally:
        await providers.close()
        if kept:
            kept.close()


def read_settings(given: Sequence[str]) -> dict[str, Any]:
    """The agent's config from `key=value` words; a value that is not JSON is a text."""
    settings: dict[str, Any] = {}
    for entry in given:
        key, equals, value = entry.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set {entry!r}: write key=value")
        if key in DECIDED:
            raise typer.BadParameter(f"--set {entry!r}: {key} is decided by the cases and --model")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings


def document(model: str, found: Sequence[Scored]) -> dict[str, Any]:
    """All of it as JSON; a rate is null where nothing was to be measured."""
    groups = [{"category": category, "language": language, **_told(s)} for category, language, s in _groups(found)]
    counts = {"runs": len(found), "unanswered": sum(not each.heard for each in found)}
    return {
        "model": model,
        "total": _told(total(each.scores for each in found)) | counts,
        "groups": groups,
        "cases": [_case(each) for each in found],
    }


def _told(scores: Scores) -> dict[str, Any]:
    shares = {name: getattr(scores, name) for name in METRICS}
    rates = {name: {**asdict(share), "rate": share.rate} for name, share in shares.items()}
    return {**rates, "steps": scores.steps, "tokens": scores.tokens}


def _case(each: Scored) -> dict[str, Any]:
    case = each.case
    told = {"id": case.id, "category": case.category, "language": case.language, "run_id": each.run}
    rest = {"finish_reason": each.finish_reason, "final_answer": each.said, "error": each.error}
    rest |= {"answered": each.heard}
    return {**told, **rest, **_told(each.scores)}


def report(model: str, found: Sequence[Scored]) -> None:
    """The table, and what went wrong, a line for each case."""
    table = Table("", "lang", *(name.replace("_", " ") for name in METRICS), "tokens", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for category, language, scores in _groups(found):
        table.add_row(category, language, *_cells(scores))
    table.add_section()
    table.add_row("total", "", *_cells(total(each.scores for each in found)))
    wrong = [each for each in found if each.heard and each.scores.right.right == 0]
    width = max((len(each.case.id) for each in wrong), default=0)
    output.line(f"{model}: {output.counted(len(found), 'run')}")
    if silent := [each for each in found if not each.heard]:
        output.line(f"{len(silent)} of {output.counted(len(found), 'run')} had no answer: {silent[0].error}")
    output.line()
    Console(width=max(100, Console().width), highlight=False).print(table)
    for each in wrong:
        said = output.as_text(each.said if each.finish_reason == "final" else each.error or "")
        output.line(f"{each.case.id:<{width}}  {each.run}  {each.finish_reason}: {' '.join(said.split())[:100]}")


def _groups(found: Sequence[Scored]) -> Iterator[tuple[str, str, Scores]]:
    """The sums by category and language, in the order of the file."""
    for category, language in dict.fromkeys((each.case.category, each.case.language) for each in found):
        inside = [each for each in found if (each.case.category, each.case.language) == (category, language)]
        yield category, language, total(each.scores for each in inside)


def _cells(scores: Scores) -> list[str]:
    return [*(_cell(getattr(scores, name)) for name in METRICS), f"{scores.tokens:,}"]


def _cell(share: Share) -> str:
    return "–" if share.rate is None else f"{share.right}/{share.of} {share.rate:.0%}"
