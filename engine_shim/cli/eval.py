"""The command eval: measures a model on cases, or two models or settings side by side."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from agent_core.config import read_config
from agent_core.models.providers import Providers
from engine_shim.cli import output, terminal
from engine_shim.cli.eval_report import Measured, as_data, comparison_as_data, write_comparison, write_report
from engine_shim.cli.settings import read_settings
from engine_shim.cli.terminal import visible
from engine_shim.evals.load import choose_cases, find_case_file, load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import Scored
from engine_shim.evals.suite import FIXED, Suite
from engine_shim.runs.store import SqliteRunStore


@dataclass(frozen=True, slots=True)
class Variant:
    """A model, and keys of the agent's config."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured and compared, how often, where the runs are kept, and which share has to be right."""

    variants: Sequence[Variant]
    categories: list[str]
    repeat: int
    concurrency: int
    store: Path | None
    config: Path | None
    min_right: float = 0.0


def evaluate_model(file: Path, options: Evaluation, *, as_json: bool) -> int:
    """Measure each variant on the cases of a file, and write how well it did. The first decides on the exit code."""
    suite = load_cases(find_case_file(file), options.config)
    suite = replace(suite, cases=choose_cases(suite.cases, options.categories))
    for variant in options.variants:
        probe = {"max_steps": 1, **variant.settings, "model": variant.model, "allowed_tools": [], "prompt": "?"}
        read_config(probe, where="--set")
    try:
        measured = asyncio.run(_measure_all(suite, options))
    except KeyboardInterrupt:
        output.error("interrupted", kind="interrupted", where=str(file), as_json=as_json)
        terminal.flush()
        os._exit(output.INTERRUPTED)  # a local model that is being loaded cannot be stopped, only left
    _write(measured, as_json=as_json)
    if not all(any(each.has_reply for each in one.found) for one in measured):
        return output.FAILED
    return output.OK if _share_right(measured[0].found) >= options.min_right else output.FAILED


def _write(measured: Sequence[Measured], *, as_json: bool) -> None:
    match measured:
        case [one]:
            output.document(as_data(one)) if as_json else write_report(one)
        case [a, b]:
            output.document(comparison_as_data(a, b)) if as_json else write_comparison(a, b)


def _share_right(found: Sequence[Scored]) -> float:
    """Of all runs: one without a reply is not right either."""
    return sum(each.scores.right.right for each in found) / len(found)


async def _measure_all(suite: Suite, options: Evaluation) -> list[Measured]:
    providers = Providers(base_urls=suite.host.base_urls, default_provider=suite.host.default_provider)
    store = SqliteRunStore(options.store) if options.store else None
    progress = _Progress(len(suite.cases) * options.repeat * len(options.variants))
    try:
        models = [providers(each.model, each.settings) for each in options.variants]
        return [
            Measured(
                variant.model,
                variant.settings,
                await measure(
                    suite,
                    model=model,
                    name=variant.model,
                    settings=variant.settings,
                    repeat=options.repeat,
                    concurrency=options.concurrency,
                    journal=store.journal if store else None,
                    secrets=suite.host.secrets(),
                    on_scored=progress.show,
                ),
            )
            for variant, model in zip(options.variants, models, strict=True)
        ]
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
            stderr.write(f"\r{self._done}/{self._total} {visible(scored.case.name):<40}{end}")
            stderr.flush()


def read_variant(pairs: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """The keys of the agent's config that an option gives."""
    settings = read_settings(pairs, option)
    if taken := sorted(FIXED & settings.keys()):
        raise typer.BadParameter(f"{option} {taken[0]}=…: {taken[0]} is decided by the cases and --model")
    return settings


def variants_of(
    model: str, settings: Mapping[str, Any], other: str | None, changes: Mapping[str, Any]
) -> list[Variant]:
    """The variant that is measured, and the other one that it is compared with, if there is one."""
    first = Variant(model, settings)
    return [first] if other is None and not changes else [first, Variant(other or model, {**settings, **changes})]
