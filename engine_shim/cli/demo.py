"""`agent-core demo`: a real workflow with real tools on real files, then the proof of what it did."""

import asyncio
import os
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from agent_core.journal.replay import replay
from agent_core.journal.verify import verify
from engine_shim.cli import output
from engine_shim.cli.audit import replayed
from engine_shim.cli.run import AsJson, Store, with_model
from engine_shim.cli.view import View
from engine_shim.graph.definition import load_workflow
from engine_shim.runs.runner import LOOPS, Engine, RunResult, default_store
from engine_shim.runs.store import SqliteRunStore
from utools.context.store_sqlite import SqliteContextStore
from utools.defaults import default_registry

QUESTION = "What did the trip to Lisbon cost in all, and which item was the dearest?"


def demo(
    model: Annotated[str | None, typer.Option(help="A real model, e.g. openai:gpt-4o-mini.")] = None,
    question: Annotated[str, typer.Option(help="Ask something else; needs a real model.")] = QUESTION,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """See an agent think, answer and prove itself."""
    has_model = any(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
    chosen = model or ("openai:gpt-4o-mini" if has_model else None)
    path = store or default_store()
    with as_file(files("engine_shim.cli").joinpath("demo_files")) as directory:
        result = _run(directory, chosen, question, path, quiet=as_json)
    proof = verify(path, run_id=result.run_id, head=result.journal["head"], count=result.journal["count"])
    again = replay(path, run_id=result.run_id, loops=LOOPS)
    if as_json:
        told = {"verified": proof.ok, "replay_identical": again.identical, "journal_file": str(path)}
        output.document({**result.as_json(), **told})
    else:
        output.summary(result)
        output.line(f"verified: {'ok' if proof.ok else proof.why}, {proof.count} records in {path}")
        output.line(f"replayed: {replayed(again)}")
        output.line(f"look closer: agent-core show {result.run_id}")
    return output.exit_code(result) if proof.ok and again.identical else output.AUDIT


def _run(directory: Path, model: str | None, question: str, store: Path, *, quiet: bool) -> RunResult:
    workflow = load_workflow(directory / "workflow.yaml")
    if model is not None:
        workflow = with_model(workflow, model)
    if not quiet:
        output.line(f"question: {question}")
        told = f"model: {model}" if model else "model: recorded replies (set OPENAI_API_KEY or --model for a real one)"
        output.line(told)
    with tempfile.TemporaryDirectory() as memory:
        registry = default_registry(str(directory), context_store=SqliteContextStore(Path(memory, "context.db")))
        engine = Engine(registry, store=SqliteRunStore(store))
        with View() as tell:
            return asyncio.run(engine.run(workflow, external={"message": question}, on_event=tell))
