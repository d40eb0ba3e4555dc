"""The command demo: a real workflow with real tools on real files, then the proof of what it did."""

import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.run.events import Event
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.host.demo_stories import (
    STORIES,
    Story,
    StoryName,
    begin_and_be_killed,
    count_bookings,
    make_registry,
)
from engine_shim.cli.host.init import read_files, write_files
from engine_shim.cli.output import Options
from engine_shim.cli.records.audit import describe_replay
from engine_shim.cli.runs.live import drive
from engine_shim.cli.runs.other_model import with_model
from engine_shim.cli.runs.summary import exit_code, write_summary
from engine_shim.cli.store import open_store_for_runs
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.drive import RunResult
from engine_shim.runs.engine import Engine
from engine_shim.runs.loops import LOOPS
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

OWN_MACHINE = {"single_call_timeout": 600, "timeout": 1800}


def show_demo(
    name: StoryName,
    model: str | None,
    question: str | None,
    store: StoreAddress | None,
    engine: str | None = None,
    *,
    as_json: bool,
) -> int:
    """Run a story of the demo, verify its journal and replay it. With the engine temporal a development server and a
    worker are started for it."""
    if question is not None and model is None:
        raise typer.BadParameter("--question: recorded replies cannot answer another question; name a model by --model")
    story, on_temporal = STORIES[name], engine == "temporal"
    if story.is_killed and (model or on_temporal):
        raise typer.BadParameter(f"{name} is shown with recorded replies, in processes of its own")
    if question:
        story = replace(story, question=question)
    with closing(open_store_for_runs(store, temporal=on_temporal)) as runs:
        return _show(story, model and _from_here(model), runs, Options(store, as_json=as_json), on_temporal=on_temporal)


def _show(story: Story, chosen: str | None, runs: DatabaseRunStore, options: Options, *, on_temporal: bool) -> int:
    with tempfile.TemporaryDirectory() as copied:
        directory = Path(
            copied
        )  # installed files may be hard links into an installer's cache, which no file tool reads
        write_files(directory, dict(read_files(story.files)))
        workflow = load_workflow(directory / "workflow.yaml")
        if chosen:
            workflow = with_model(workflow, chosen, _limits_for(chosen))
        if not options.as_json:
            output.line(f"question: {story.question}")
            output.line(f"model: {chosen or 'recorded replies (--model asks a real one)'}")
        result = _run(story, workflow, directory, runs, options, on_temporal=on_temporal)
    proof = verify(runs.journal, run_id=result.run_id, head=result.journal["head"], count=result.journal["count"])
    again = replay(runs.journal, run_id=result.run_id, loops=LOOPS)
    if options.as_json:
        proofs = {"verified": proof.ok, "replay_identical": again.identical, "journal_file": runs.database.name}
        output.document({**result.as_json(), **proofs})
    else:
        output.line()
        write_summary(result, workflow, options)
        output.line()
        output.line(f"verified: {'ok' if proof.ok else proof.why}, {proof.count} records in {runs.database.name}")
        output.line(f"replayed: {describe_replay(again)}")
        output.line(f"look closer: {options.command('show', result.run_id)}")
    return exit_code(result) if proof.ok and again.identical else output.AUDIT


def _from_here(model: str) -> str:
    """Return the model's name; a file in it starts from the working directory."""
    provider, colon, name = model.partition(":")
    return f"{provider}:{Path(name).absolute()}" if colon and provider in ("scripted", "local") else model


def _limits_for(model: str) -> dict[str, int]:
    """Longer limits for a model on one's own machine, which may be loaded first and compute on the CPU."""
    return OWN_MACHINE if model.startswith(("local:", "ollama:", "vllm:")) else {}


def _run(
    story: Story, workflow: Workflow, directory: Path, store: DatabaseRunStore, options: Options, *, on_temporal: bool
) -> RunResult:
    run_id = new_run_id()
    with ExitStack() as stack:
        memory = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def open_engine(temporal: TemporalConfig | None = None) -> Engine:
            return Engine(make_registry(story, directory, memory), store=store, temporal=temporal)

        def work(tell: Callable[[Event], None]) -> Coroutine[Any, Any, RunResult]:
            if story.is_killed:
                return engine.resume(run_id, on_event=tell)
            return engine.run(workflow, external={"message": story.question}, run_id=run_id, on_event=tell)

        if story.is_killed:
            begin_and_be_killed(run_id, directory, memory, options.store)
            sys.stderr.write(f"the process was killed after {count_bookings(memory)}; another one goes on\n")
        engine = open_engine(stack.enter_context(_working(open_engine())) if on_temporal else None)
        on_interrupt = partial(output.error, "interrupted", kind="interrupted", where=run_id, as_json=False)
        result = drive(engine, workflow, work, on_interrupt)
        if story.is_killed:
            sys.stderr.write(f"at the end there is {count_bookings(memory)}\n")
        return result


def _working(engine: Engine) -> AbstractContextManager[TemporalConfig]:
    """Return a development server, and a worker. BadParameter where what they need is not installed."""
    if find_spec("temporalio") is None:
        raise typer.BadParameter("--engine temporal needs the extra temporal: pip install 'agent-core[temporal]'")
    from engine_shim.cli.host.demo_temporal import working

    return working(engine)
