"""The command eval: measures a model on cases, or two models or settings side by side."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from agent_core.config import read_config
from agent_core.models.client import ModelClient
from agent_core.models.local import LocalModel
from engine_shim.cli import output, terminal
from engine_shim.cli.evals.progress import Progress
from engine_shim.cli.evals.report import Measured, as_data, comparison_as_data, write_comparison, write_report
from engine_shim.cli.settings import read_settings
from engine_shim.evals.load import find_case_file, load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import Scored
from engine_shim.evals.suite import FIXED, Suite
from engine_shim.host.providers import open_providers
from engine_shim.store.open import check_encryption, open_store
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress


@dataclass(frozen=True, slots=True)
class Variant:
    """A model, and keys of the agent's config."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured and compared, how often, where the runs are kept, and which share has to be right."""

    variants: Sequence[Variant]
    only: Sequence[str]
    repeat: int
    concurrency: int
    store: StoreAddress | None
    config: Path | None
    min_right: float = 0.0


def evaluate_model(file: Path, options: Evaluation, *, as_json: bool) -> int:
    """Measure each variant on the cases of a file, and write how well it did. The first decides on the exit code."""
    suite = load_cases(find_case_file(file), options.config, options.only)
    for variant in options.variants:
        probe = {"max_steps": 1, **variant.settings, "model": variant.model, "allowed_tools": [], "prompt": "?"}
        read_config(probe, where="--set")
    ended: list[list[Scored]] = [[] for _ in options.variants]
    try:
        measured = asyncio.run(_measure_all(suite, options, ended))
    except KeyboardInterrupt:
        variants = zip(options.variants, ended, strict=True)
        partly = [Measured(each.model, each.settings, found, options.store) for each, found in variants]
        _write_interrupted(partly, len(suite.cases) * options.repeat, str(file), as_json=as_json)
        terminal.flush()
        os._exit(output.INTERRUPTED)  # a local model that is being loaded cannot be stopped, only left
    _write(measured, as_json=as_json)
    return _judge(measured, options.min_right)


def _write(measured: Sequence[Measured], *, as_json: bool) -> None:
    match measured:
        case [one]:
            output.document(as_data(one)) if as_json else write_report(one)
        case [a, b]:
            output.document(comparison_as_data(a, b)) if as_json else write_comparison(a, b)
        case _:
            pass


def _write_interrupted(measured: Sequence[Measured], runs: int, where: str, *, as_json: bool) -> None:
    """Write what was measured before Ctrl-C, each variant by itself, and how much of it that is."""
    begun = [each for each in measured if each.found]
    done, of = sum(len(each.found) for each in begun), output.count(runs * len(measured), "run")
    message = f"interrupted after {done} of {of}"
    if as_json:
        known = {} if not begun else comparison_as_data(*measured) if len(measured) > 1 else as_data(measured[0])
        output.document({**known, "error": {"kind": "interrupted", "message": message, "where": where}})
        return
    for each in begun:
        write_report(each)
        output.line()
    output.error(message, kind="interrupted", where=where, as_json=False)


def _judge(measured: Sequence[Measured], min_right: float) -> int:
    """Return the exit code; stderr says why it is not 0."""
    for one in measured:
        if not any(each.has_reply for each in one.found):
            sys.stderr.write(f"agent-core: {one.model}: no run had an answer: {one.found[0].error}\n")
            return output.FAILED
    right = measured[0].scores.right
    share = right.right / right.of
    if share < min_right:
        told = f"right {right.right} of {right.of} = {share:.4g}, below --min-right {min_right:g}"
        sys.stderr.write(f"agent-core: {told}\n")
        return output.FAILED
    return output.OK


async def _measure_all(suite: Suite, options: Evaluation, ended: Sequence[list[Scored]]) -> list[Measured]:
    """Return each variant on the same cases, one after the other; `ended` gets the runs of each as they end."""
    providers = open_providers(suite.host, Path())
    store = open_store(options.store) if options.store else None
    if store is not None:
        check_encryption(store, wanted=suite.host.encrypt, where=suite.host.at("encrypt"), temporal=False)
    sides = "AB" if len(options.variants) > 1 else [""]
    try:
        models = [providers(each.model, each.settings) for each in options.variants]
        return [
            await _measure(suite, variant, model, options, store, side, runs)
            for variant, model, side, runs in zip(options.variants, models, sides, ended, strict=True)
        ]
    finally:
        await providers.close()
        if store:
            store.close()


async def _measure(
    suite: Suite,
    variant: Variant,
    model: ModelClient,
    options: Evaluation,
    store: DatabaseRunStore | None,
    side: str,
    ended: list[Scored],
) -> Measured:
    """Return one variant; a local model is loaded before the clock of its first run starts."""
    progress = Progress(len(suite.cases) * options.repeat, side)

    def end_case(scored: Scored) -> None:
        ended.append(scored)
        progress.end_case(scored)

    if isinstance(model, LocalModel):
        progress.start_loading(variant.model)
        await model.load()
    try:
        found = await measure(
            suite,
            model=model,
            name=variant.model,
            settings=variant.settings,
            repeat=options.repeat,
            concurrency=options.concurrency,
            journal=store.journal if store else None,
            secrets=suite.host.secrets(),
            on_started=progress.start_case,
            on_scored=end_case,
        )
    finally:
        progress.close()
    return Measured(variant.model, variant.settings, found, options.store)


def read_variants(
    model: str, settings: Sequence[str], protocol: str | None, other: str | None, changes: Sequence[str]
) -> list[Variant]:
    """Return the variant that is measured, and the other one that it is compared with, if there is one."""
    chosen = {**({"protocol": protocol} if protocol else {}), **_read_keys(settings, "--set")}
    changed = _read_keys(changes, "--compare-set")
    first = Variant(model, chosen)
    return [first] if other is None and not changed else [first, Variant(other or model, {**chosen, **changed})]


def _read_keys(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return the keys of the agent's config that an option gives."""
    settings = read_settings(pairs, option)
    if taken := sorted(FIXED & settings.keys()):
        raise typer.BadParameter(f"{option} {taken[0]}=…: {taken[0]} is decided by the cases and --model")
    return settings
