"""What the shell offers for runs, workflow files and tools when a person presses Tab: fast, and never an error."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import wraps
from pathlib import Path

import typer

NEWEST_RUNS = 50
DEFINITIONS = (".yaml", ".yml", ".json")
JOURNALS = (".jsonl",)
Offer = tuple[str, str]
"""A word, and what a shell may say about it."""
Complete = Callable[[typer.Context, str], list[Offer]]


def _never_failing(offers: Callable[[typer.Context, str], Iterator[Offer]]) -> Complete:
    """Return what begins as the word that is being typed; nothing at all where anything is wrong."""

    @wraps(offers)
    def complete(context: typer.Context, incomplete: str) -> list[Offer]:
        before = logging.root.manager.disable
        logging.disable()
        try:
            return [offer for offer in offers(context, incomplete) if offer[0].startswith(incomplete)]
        except Exception:  # an error here would be written into the line that the person is typing
            return []
        finally:
            logging.disable(before)

    return complete


@_never_failing
def complete_run(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Yield the newest runs of the store, and `last`."""
    yield from _runs(context)


@_never_failing
def complete_recorded(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Yield the same, and journal files."""
    yield from _runs(context)
    yield from _files(incomplete, JOURNALS)


@_never_failing
def complete_flow(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Files that may be definitions, and directories."""
    yield from (offer for offer in _files(incomplete, DEFINITIONS) if not Path(offer[0]).name.startswith("agent-core."))


@_never_failing
def complete_cases(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Files that may hold cases, those that ship, and `add`."""
    yield "add", "a case of a recorded run"
    yield "seed-scenarios", "ships with the package"
    yield from _files(incomplete, DEFINITIONS)


@_never_failing
def complete_tool(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Yield the codes of the built-in tools, and of those that the host configuration lists, which are not loaded."""
    from engine_shim.host.find import find_host_config
    from utools import builtin
    from utools.document import read_document

    yield from ((code, "built in") for code in builtin.__all__ if code != "builtin_tools")
    if (file := find_host_config(context.params.get("config"))) is not None:
        for reference in read_document(file, "the host configuration").data.get("tools", []):
            yield reference.rpartition(":")[2], reference


@_never_failing
def complete_statuses(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """Yield the last status of a list with commas."""
    from agent_core.statuses import LISTED

    before, comma, _ = incomplete.rpartition(",")
    yield from ((before + comma + status, "") for status in LISTED)


def complete_words(*words: str) -> Complete:
    """These words."""

    @_never_failing
    def complete(context: typer.Context, incomplete: str) -> Iterator[Offer]:
        yield from ((word, "") for word in words)

    return complete


def _runs(context: typer.Context) -> Iterator[Offer]:
    from engine_shim.cli.store import open_named_store
    from engine_shim.store.entries import RunFilter
    from engine_shim.store.journal_runs import list_runs

    with closing(open_named_store(context.params.get("store"), context.params.get("config"), patience=0.1)) as store:
        entries = list_runs(store, RunFilter(limit=NEWEST_RUNS))
    yield "last", "the newest run"
    yield from ((entry.run, f"{entry.workflow} {entry.status}") for entry in entries)


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[Offer]:
    """Yield what lies in the directory that the word names so far, but for names that are no text or no line."""
    typed, _, _ = incomplete.rpartition("/")
    prefix = f"{typed}/" if "/" in incomplete else ""
    for path in sorted(Path(prefix or ".").iterdir()):
        if path.name.startswith(".") or any(each == "\n" or "\ud800" <= each <= "\udfff" for each in path.name):
            continue
        if path.is_dir():
            yield f"{prefix}{path.name}/", "directory"
        elif path.suffix in suffixes:
            yield f"{prefix}{path.name}", "file"
