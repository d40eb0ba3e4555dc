"""Drives one agent's run: checks how it starts, or that it may go on, then performs what its loop asks for."""

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from agent_core.config import AgentConfig, read_config
from agent_core.errors import DecisionError, DefinitionError
from agent_core.inherited import Inherited
from agent_core.journal.chain import is_finished
from agent_core.journal.control import Decisions
from agent_core.journal.intact import check_intact, check_signer
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.operations import Spec
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended
from agent_core.journal.store import Journal
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.loop.outcome import AgentOutcome
from agent_core.models.client import ClientOf, ModelClient, ModelInfoOf
from agent_core.models.providers import Providers
from agent_core.models.targets import locate_refusal
from agent_core.outputs import Json
from agent_core.records import AgentStartedBody
from agent_core.run.agent_output import AgentOutput
from agent_core.run.blocking import finish_blocking, run_blocking
from agent_core.run.clock import now
from agent_core.run.control import StopSignal, append_decisions
from agent_core.run.documents import read_documents
from agent_core.run.driver import drive
from agent_core.run.executor import Executor
from agent_core.run.prepare import Prepare, config_record, prepare_agent, to_journal
from agent_core.run.retries import patience_of_host
from agent_core.run.row_listener import AnswerListener, Observe
from agent_core.run.run_id import check_run_id, new_run_id
from agent_core.run.secrets import Secrets, signing_keys
from agent_core.run.shown_tools import check_decided, codes_let_go
from utools.problems import DefinitionErrors, Problem, problems_in, refuse
from utools.registry import ToolRegistry
from utools.secrets.redaction import Redactor

CODE = "agent_core"
ROOT = "agent"


async def drive_agent(
    config: Mapping[str, Any] | AgentConfig,
    registry: ToolRegistry,
    model: ModelClient | None,
    journal: Journal,
    run_id: str | None,
    decisions: Decisions | None,
    allowed: Secrets,
    by: str,
    *,
    deps: object = None,
    listener: AnswerListener | None = None,
    observe: Observe | None = None,
    stop: StopSignal | None = None,
    on_begin: Callable[[], object] = lambda: None,
) -> AgentOutput:
    """Do what `run_agent` does, in a task of its own, until the run rests or `stop` says so: after `on_begin`, which is
    called as the run begins, or goes on."""
    if not isinstance(allowed, Secrets):
        raise DefinitionError("must be Secrets of agent_core, such as Secrets(['SHOP_TOKEN'])", where="secrets")
    run = _choose_run_id(run_id, journal)
    providers, redactor = Providers(), allowed.redactor()
    models: ClientOf = providers if model is None else lambda *_: model
    info = providers.info if model is None else lambda *_: model.info()
    start = agent_preparer(registry, redactor, info=info)
    keys, patience = signing_keys(), patience_of_host()
    tape, identity = await run_blocking(journal, lambda: (journal.load(run), journal.identity if keys else None))
    if ROOT not in tape:
        if decisions:
            message = f"run {run!r} has no records here, so nothing waits in it: give the journal and the run_id with"
            raise DecisionError(f"{message} which it began")
        config = await read_documents(config_as_dict(config), registry)
    not_needed = codes_let_go(tape, decisions or {})
    prepare = _check_start(run, config, check_intact(run, tape, keys, identity), registry, redactor, start, not_needed)
    check_signer(tape, keys)
    if not is_finished(tape, ROOT):
        _check_models(models, config)
        check_decided(tape, registry)
    observer = observe(run) if observe else None
    prepare = _telling(prepare, on_begin)
    executor = Executor(run, registry, models, {CODE: prepare}, allowed, redactor, listener, observer, deps=deps)
    stop, cancellation = stop or StopSignal(), None
    if decisions:
        record = partial(append_decisions, journal, run, decisions, registry=registry, may_repeat=True)
        decide = partial(record, by=by, redactor=redactor, keys=keys)
        _, cancellation = await finish_blocking(journal, decide)
        if cancellation is not None:
            stop.request("cancel")
    if ROOT in tape:
        on_begin()
    spec = Spec(CODE, config_as_dict(config))
    ended = await drive(
        run,
        ROOT,
        spec,
        journal=journal,
        executor=executor,
        loops=AGENT_LOOPS,
        listener=listener,
        keys=keys,
        stop=stop,
        patience=patience,
    )
    if cancellation is not None:
        raise cancellation
    return _output_of(ended)


def agent_preparer(
    registry: ToolRegistry,
    redactor: Redactor,
    base: Path | None = None,
    info: ModelInfoOf | None = None,
) -> Callable[[str, str, Any, Inherited], AgentStartedBody]:
    """Return how an agent's run is started on this host. `info` knows the models."""

    def prepare(run: str, path: str, config: Any, inherited: Inherited) -> AgentStartedBody:
        return prepare_agent(
            run, path, config, inherited, registry=registry, at=now(), redactor=redactor, base=base, info=info
        )

    return prepare


def _telling(prepare: Prepare, on_begin: Callable[[], object]) -> Prepare:
    """Return how runs are started that tells when the first of them begins."""

    def begin(run: str, path: str, config: Any, inherited: Inherited) -> Any:
        if path == ROOT:
            on_begin()
        return prepare(run, path, config, inherited)

    return begin


def config_as_dict(config: Mapping[str, Any] | AgentConfig) -> Json:
    if isinstance(config, AgentConfig):
        return config.model_dump(exclude_unset=True)
    if not isinstance(config, Mapping):
        raise DefinitionError("must be an object with model, max_steps, allowed_tools", where="config", value=config)
    return dict(config)


def _output_of(ended: Ended) -> AgentOutput:
    assert isinstance(ended.outcome, AgentOutcome)
    output: AgentOutput = AgentOutput.model_construct(None, **ended.outcome.output, journal=ended.journal)
    return output


def _check_models(models: ClientOf, config: Mapping[str, Any] | AgentConfig) -> None:
    """DefinitionErrors for each model that cannot be asked; fallbacks are not reached by the options of the first."""
    read, problems = read_config(to_journal(config)), list[Problem]()
    named = [("model", read.model, config_as_dict(config))]
    named += [(f"fallback_models/{index}", name, {}) for index, name in enumerate(read.fallback_models)]
    for where, name, options in named:
        try:
            models(name, options)
        except DefinitionError as error:
            problems.append(locate_refusal(error, f"config/{where}", options))
    refuse(problems)


def _choose_run_id(run_id: str | None, journal: Journal) -> str:
    if run_id is None:
        runs = journal.runs() if isinstance(journal, JsonlJournal) else []
        return runs[0] if runs else new_run_id()
    return check_run_id(run_id)


def _start(run: str, config: Any, prepare: Prepare) -> Mapping[str, Any]:
    """Return how the run starts. DefinitionErrors with places in `config`, as of every fault of it."""
    try:
        return prepare(run, ROOT, config, Inherited())
    except DefinitionError as error:
        raise DefinitionErrors([replace(each, where=_in_config(each.where)) for each in problems_in(error)]) from None


def _give_once(body: Mapping[str, Any], prepare: Prepare) -> Prepare:
    """Return how runs are started of which the first begins with `body`, which is not kept while the run goes on."""
    bodies = [body]

    def begin(run: str, path: str, config: Any, inherited: Inherited) -> Mapping[str, Any]:
        return bodies.pop() if path == ROOT and bodies else prepare(run, path, config, inherited)

    return begin


def _in_config(where: str) -> str:
    return where if where.partition("/")[0] in ("", "config") else f"config/{where}"


def _check_start(
    run: str,
    config: Any,
    tape: Tape,
    registry: ToolRegistry,
    redactor: Redactor,
    prepare: Prepare,
    not_needed: Set[str],
) -> Prepare:
    """Return how the runs of this call are started. DefinitionError for a bad config, or another than the run began
    with."""
    if tape and ROOT not in tape:
        raise DefinitionError(f"run {run!r} is not an agent's own; choose another id", where="run_id")
    if ROOT not in tape:
        return _give_once(_start(run, config, prepare), prepare)
    started, read = tape[ROOT][0].record(), read_config(to_journal(config))
    now_given = config_record(read, redactor)
    changed = sorted(key for key in started["config"] if started["config"][key] != now_given.get(key))
    if changed:
        message = f"run {run!r} began with another config; a new run has another run_id, or another .jsonl file"
        raise DefinitionError(message, where=f"config/{changed[0]}")
    missing = sorted(set(started["tools"]) - {tool.code for tool in registry.all()} - not_needed)
    if missing and not is_finished(tape, ROOT):
        raise DefinitionError(f"run {run!r} needs the tool {missing[0]!r}, which is not registered", where="registry")
    return prepare
