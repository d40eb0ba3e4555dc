"""find_run(): the run that a person names, by its id, the beginning of it, or as the last one."""

from collections.abc import Callable
from contextlib import closing
from typing import Final

import typer

from engine_shim.cli.output import Options
from engine_shim.cli.store import open_named_store
from engine_shim.errors import RunNotFound
from engine_shim.store.entries import RunFilter
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.ledger import describe_gone
from engine_shim.store.run_store import DatabaseRunStore

NEWEST: Final = "last"
SHOWN: Final = 5
"""How many candidates an error names."""


def find_workflow_run(name: str, options: Options) -> str:
    """Return the id of a workflow's run. What `find_run` raises, and BadParameter for an agent's own run."""
    with closing(open_named_store(options.store, options.config)) as store:
        run = find_run(name, store, find_newest=_find_newest_workflow)
        if store.entry(run) is None and store.journal.load(run):
            raise typer.BadParameter(f"run {run!r} is not a workflow's: only the program that began it can continue it")
    return run


def find_run_to_decide(name: str, options: Options) -> tuple[str, bool]:
    """Return the id of a run, and whether it is an agent's own, which the program goes on with that began it. What
    `find_run` raises."""
    with closing(open_named_store(options.store, options.config)) as store:
        run = find_run(name, store)
        return run, store.entry(run) is None


def find_run(
    name: str, store: DatabaseRunStore, *, find_newest: Callable[[DatabaseRunStore], list[str]] | None = None
) -> str:
    """Return the id of the run. RunNotFound where the store holds none; BadParameter where it holds several."""
    found = store.find(name, limit=SHOWN + 1) if name else []
    if name in found[:1]:
        return name
    if name == NEWEST:
        newest = (find_newest or _find_newest)(store)
        if not newest:
            empty = f"{store.database.name} holds no run yet; `agent-core run FLOW` begins one"
            raise typer.BadParameter(f"{empty}, --store names another store")
        return newest[0]
    if len(found) > 1:
        candidates = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        raise typer.BadParameter(f"{name!r} is the beginning of several runs: {candidates}; write more of it")
    if not found:
        raise RunNotFound(name, describe_gone(store.database, name))
    return found[0]


def _find_newest(store: DatabaseRunStore) -> list[str]:
    return [entry.run for entry in list_runs(store, RunFilter(limit=1))]


def _find_newest_workflow(store: DatabaseRunStore) -> list[str]:
    return [entry.run for entry in store.entries(RunFilter(limit=1))]
