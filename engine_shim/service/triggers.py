"""Triggers: starts runs of a tenant without a caller, by the clock and by signed webhooks."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final, NoReturn

from standardwebhooks import Webhook

from agent_core.outputs import Json
from agent_core.run.blocking import run_blocking
from agent_core.statuses import ENDED
from engine_shim.definition.errors import Problem, problems_in, refuse
from engine_shim.definition.inputs import unlisted_inputs
from engine_shim.definition.template import Placeholder, look_up, placeholders, render
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.intervals import TRIGGER_INTERVAL_S
from engine_shim.service.changed_files import FileStamps
from engine_shim.service.driven_runs import ServerEnds
from engine_shim.service.json_bodies import read_json
from engine_shim.service.run_service import RunService, key_to_id
from engine_shim.service.secrets import read_secret
from engine_shim.service.shares import OverShare
from engine_shim.service.trigger_definition import Trigger, file_error, read_trigger
from engine_shim.service.workflows import WorkflowCatalog, WorkflowNotFound
from engine_shim.store.database import Database
from utools.schema.json_value import NotJson, as_json
from utools.words.text import error_words

ON_TIME: Final = timedelta(seconds=60)
"""How late a run may begin before its time counts as missed."""
SET_BACK: Final = timedelta(hours=1)
"""How far in the future what was dealt with may lie, before it shows that the clock was wrong then."""
_NOTE_TIMES: Final = """INSERT INTO trigger_crons (name, cron) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET cron = excluded.cron"""
log = logging.getLogger("engine_shim")


class NotSigned(EngineError):
    """A webhook without the signature of its trigger's secret, or with one that is too old."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the signature is not valid: {reason}")


@dataclass(frozen=True, slots=True)
class _Last:
    """What a trigger did last: the time that it has dealt with, and the run that it began."""

    at: datetime
    run: str | None


@dataclass(frozen=True, slots=True)
class TriggerSecrets:
    """The secrets of the triggers of a host and of its tenants; `note` is told the variables.

    A signed message does not say for which tenant it is: its secret does, so that no two tenants have the same.
    """

    note: Callable[[Iterable[str]], None] = lambda variables: None
    _owners: dict[bytes, tuple[str | None, str]] = field(default_factory=dict, repr=False)

    def claim(self, variable: str, tenant: str | None, path: Path) -> None:
        """Take the secret in a variable for a tenant. DefinitionError for one that is another tenant's."""
        self.note([variable])
        digest = sha256(read_secret(variable, f"{path}: webhook/secret_env")).digest()
        owner, where = self._owners.setdefault(digest, (tenant, str(path)))
        if owner != tenant:
            told = f"{where} of {owner or 'the host'} has the same secret: what is signed for one is valid for both"
            raise file_error(path, told, "webhook/secret_env")


class Triggers:
    """The triggers of one tenant, each in a file of its own, named as the file. Changed files are taken up.

    `secrets` are those of all tenants' triggers; `clock` is that of the store. `outcomes` counts the scheduled times by
    what came of them.
    """

    def __init__(
        self,
        directory: Path,
        database: Database,
        workflows: WorkflowCatalog,
        runs: RunService,
        *,
        tenant: str | None = None,
        secrets: "TriggerSecrets | None" = None,
        clock: Callable[[], datetime],
    ) -> None:
        self._files, self._database, self._workflows, self._runs = FileStamps(directory), database, workflows, runs
        self._clock, self._tenant, self._secrets = clock, tenant, secrets or TriggerSecrets()
        self._by_name: dict[str, Trigger] = {}
        self._anew: set[str] = set()
        """Those whose times have changed: as of a new one, no time before counts as missed."""
        self._unseen: set[str] = set()
        """Those whose times may have changed since a server of before noted them."""
        self.outcomes = Counter({"started": 0, "skipped": 0, "failed": 0})

    def load(self) -> None:
        """Read the directory, if it has changed. DefinitionErrors for all faults of its files, which change nothing."""
        files = self._files.find_changed()
        if files is None:
            return
        problems: list[Problem] = []
        found: dict[str, Trigger] = {}
        for path in files:
            try:
                found[path.stem] = trigger = check_trigger(path, self._workflows)
                if trigger.webhook is not None:
                    self._secrets.claim(trigger.webhook.secret_env, self._tenant, path)
            except WorkflowNotFound as error:
                log.warning("left out: the trigger %s: %s", path.name, error)
            except DefinitionError as error:
                problems += problems_in(error)
        refuse(problems)
        known = self._by_name
        self._anew |= {name for name, each in found.items() if name in known and each.times != known[name].times}
        self._unseen |= found.keys() - known.keys()
        self._by_name = found

    async def describe(self) -> list[Json]:
        """Return the triggers: name, workflow, what starts it, when next, what it did last."""
        found = list(self._by_name.items())
        return await run_blocking(self._database, lambda: [self._describe(name, trigger) for name, trigger in found])

    async def run_forever(self) -> None:
        """Start what is due, until it is cancelled."""
        while True:
            try:
                self.load()
            except DefinitionError as error:
                log.error("the triggers in %s have faults; the old ones stay in use: %s", self._files.directory, error)
            await self.start_due()
            await asyncio.sleep(TRIGGER_INTERVAL_S)

    async def start_due(self) -> None:
        """Start the runs whose time has come."""
        for name, trigger in list(self._by_name.items()):
            if trigger.cron is not None:
                await self._start_if_due(name, trigger)

    async def call(self, name: str, headers: Mapping[str, str], body: bytes) -> str:
        """Start the run of a webhook's trigger; gives its id, the same one for the same webhook-id.

        NotSigned, also for a name that no such trigger has, DefinitionError for a body that is no JSON object or does
        not fit the workflow, and what `RunService.submit` raises.
        """
        trigger = self._by_name.get(name)
        if trigger is None or trigger.webhook is None:
            refuse_caller(headers, body)
        _check_signature(read_secret(trigger.webhook.secret_env, f"triggers/{name}"), headers, body)
        external = _inputs_of(trigger, body)
        is_raw = trigger.inputs is None  # its sender may put more into a body
        key = headers["webhook-id"]
        run = await self._submit(name, self._workflow(trigger), external, key, takes_unlisted=is_raw)
        await self._save(name, trigger, _Last(self._clock(), run))
        return run

    async def _start_if_due(self, name: str, trigger: Trigger) -> None:
        now, last = self._clock(), await run_blocking(self._database, self._last, name)
        if last is None or last.at > now + SET_BACK or await self._has_other_times(name, trigger):
            known = last.run if last else None
            await self._save(name, trigger, _Last(now, known))  # it begins now: nothing before counts as missed
            self._anew.discard(name)
            self._unseen.discard(name)
            return
        self._unseen.discard(name)
        planned = trigger.last_time(now)
        if planned <= last.at:
            return
        reason = await self._reason_to_skip(trigger, planned, now, last)
        if reason is not None:
            self.outcomes["skipped"] += 1
            log.warning("trigger %s skips the run of %s: %s", name, planned.isoformat(), reason)
            await self._save(name, trigger, _Last(planned, last.run))
            return
        run, moment = last.run, planned.astimezone(UTC).isoformat()
        try:
            run = await self._submit(name, self._workflow(trigger), trigger.inputs or {}, moment)
            self.outcomes["started"] += 1
        except (OverShare, ServerEnds):
            return  # it is still due at the next look
        except (DefinitionError, EngineError) as error:
            self.outcomes["failed"] += 1
            log.error("trigger %s cannot start the run of %s: %s", name, planned.isoformat(), error)
        await self._save(name, trigger, _Last(planned, run))

    async def _has_other_times(self, name: str, trigger: Trigger) -> bool:
        """Return whether other times than those of today are noted of a trigger. Where none are, since releases of
        before noted none, note these."""
        if name in self._anew or name not in self._unseen:
            return name in self._anew
        query = "SELECT cron FROM trigger_crons WHERE name = ?"
        noted = await run_blocking(self._database, self._database.rows, "trigger_crons", query, name)
        if not noted:
            await run_blocking(self._database, self._note_times, name, trigger.times)
        return bool(noted) and noted[0][0] != trigger.times

    async def _submit(
        self,
        name: str,
        workflow: CheckedWorkflow,
        external: Mapping[str, Any],
        key: str,
        *,
        takes_unlisted: bool = False,
    ) -> str:
        """Begin the run of a key, which no key of a caller names: no workflow's id has a slash."""
        named = key_to_id(f"trigger/{name}/{workflow.definition.id}", key)
        run, _ = await self._runs.submit(
            workflow, external, by=f"trigger {name}", key=key, run_id=named, takes_unlisted=takes_unlisted
        )
        return run

    async def _reason_to_skip(self, trigger: Trigger, planned: datetime, now: datetime, last: _Last) -> str | None:
        if trigger.missed == "skip" and now - planned > ON_TIME:
            return "no server ran at that time"
        run = last.run
        if run is None or trigger.overlap:
            return None
        entry = await self._runs.store.entry(run)
        return f"run {run} is {entry.status}" if entry is not None and entry.status not in ENDED else None

    def _workflow(self, trigger: Trigger) -> CheckedWorkflow:
        return self._workflows.get(trigger.workflow)

    def _describe(self, name: str, trigger: Trigger) -> Json:
        last = self._last(name)
        next_time = None if trigger.cron is None else trigger.next_time(self._clock()).isoformat()
        return {
            "name": name,
            "workflow": trigger.workflow,
            "cron": trigger.cron,
            "timezone": trigger.timezone,
            "next_at": next_time,
            "last_at": None if last is None or last.run is None else last.at.isoformat(),
            "last_run": None if last is None else last.run,
        }

    def _last(self, name: str) -> _Last | None:
        found = self._database.rows("trigger_times", "SELECT at, run FROM trigger_times WHERE name = ?", name)
        return _Last(datetime.fromisoformat(found[0][0]), found[0][1]) if found else None

    async def _save(self, name: str, trigger: Trigger, last: _Last) -> None:
        await run_blocking(self._database, self._write, name, trigger.times, last)

    def _write(self, name: str, times: str, last: _Last) -> None:
        with self._database.writing() as db:
            query = """INSERT INTO trigger_times (name, at, run) VALUES (?, ?, ?)
                ON CONFLICT (name) DO UPDATE SET at = excluded.at, run = excluded.run"""
            db.execute(query, (name, last.at.isoformat(), last.run))
            db.execute(_NOTE_TIMES, (name, times))

    def _note_times(self, name: str, times: str) -> None:
        with self._database.writing() as db:
            db.execute(_NOTE_TIMES, (name, times))


def check_trigger(path: Path, workflows: WorkflowCatalog) -> Trigger:
    """Return the trigger of a file. DefinitionError for any fault in it, for a workflow that is not there or does not
    take its inputs, and for a secret that is not set; WorkflowNotFound for a workflow that is left out."""
    trigger = read_trigger(path)
    try:
        workflow = workflows.get(trigger.workflow)
    except WorkflowNotFound as error:
        if error.why:
            raise
        raise file_error(path, str(error), "workflow") from None
    for problem in unlisted_inputs(workflow.definition, trigger.inputs or {}):
        raise file_error(path, problem.message, "inputs")
    if trigger.cron is not None:
        try:
            workflow.external_of(trigger.inputs or {})
        except DefinitionError as error:
            raise file_error(path, f"{error.where}: {error.message}", "inputs") from None
    if trigger.webhook is not None:
        read_secret(trigger.webhook.secret_env, f"{path}: webhook/secret_env")
    return trigger


def _inputs_of(trigger: Trigger, body: bytes) -> dict[str, Any]:
    """Return the inputs of a run that a webhook starts. DefinitionError for a body that does not give them."""
    try:
        data = read_json(body)
    except ValueError as error:
        raise DefinitionError(str(error), where="body") from None
    if trigger.inputs is not None:
        roots = {"external": data}
        for where, each in placeholders(trigger.inputs, "inputs"):
            _check_value(look_up(each, roots, where), each)
        filled: dict[str, Any] = render(trigger.inputs, roots, where="inputs")
        return filled
    if not isinstance(data, dict):
        raise DefinitionError("must be a JSON object: the inputs of the workflow", where="body")
    return data


def _check_value(value: Any, each: Placeholder) -> None:
    """DefinitionError for what a run cannot be given as it is, such as an integer beyond 64 bits."""
    try:
        as_json(value)
    except NotJson as error:
        raise DefinitionError(f"a value of the body is not JSON: {error}", where="inputs", value=str(each)) from None


def refuse_caller(headers: Mapping[str, str], body: bytes) -> NoReturn:
    """NotSigned, as for a wrong signature: who cannot sign does not learn which triggers and tenants there are."""
    _check_signature(token_bytes(32), headers, body)
    raise NotSigned("no matching signature found")


def _check_signature(secret: bytes, headers: Mapping[str, str], body: bytes) -> None:
    """NotSigned for a body without a signature by the secret within the last minutes."""
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except Exception as error:  # of headers that are none, the library gives whatever error they cause
        raise NotSigned(error_words(error)) from None
