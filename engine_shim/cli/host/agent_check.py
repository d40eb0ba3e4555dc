"""The command agents check: recorded runs of an agent, or of a workflow, judged under what is defined today."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from agent_core.agents.catalog import SUFFIXES, AgentCatalog
from agent_core.audit.whatif import VARIABLE_KEYS
from agent_core.config import AgentConfig
from agent_core.errors import JournalError
from agent_core.journal.path import name_of, nesting_depth
from agent_core.journal.record import Row, Tape
from engine_shim.cli import output
from engine_shim.cli.records.many_replays import Named, replay_many
from engine_shim.cli.records.replays import Replayed, try_run, write_table
from engine_shim.cli.store import find_address
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT, ROOT
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.named_agents import fill_workflow
from engine_shim.host.find import load_host_config
from engine_shim.runs.agents import build_catalog
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

Started = Mapping[str, Any]


class Subject(Protocol):
    """Whose policy is tried. Another process may have it."""

    def policy(self, strand: str, started: Started, workflow: Started) -> dict[str, Any] | None:
        """Return the policy of a strand that begins so, in a run that begins so; None if it is another's."""


@dataclass(frozen=True, slots=True)
class CatalogueAgent:
    """An agent of the host, with its config of today."""

    name: str
    config: Mapping[str, Any]

    def policy(self, strand: str, started: Started, workflow: Started) -> dict[str, Any] | None:
        note = started.get("agent", {})
        if note.get("name") != self.name:
            return None
        own = {key: value for key, value in self.config.items() if key not in note["overrides"]}
        return _policy(own, list(started["tools"]))


@dataclass(frozen=True, slots=True)
class AgentNodes:
    """The agents of a workflow, by node, as far as their configs are known before a run."""

    workflow: str
    configs: Mapping[str, Mapping[str, Any]]

    def policy(self, strand: str, started: Started, workflow: Started) -> dict[str, Any] | None:
        is_own = workflow.get("definition", {}).get("id") == self.workflow and nesting_depth(strand) == 1
        config = self.configs.get(name_of(strand)) if is_own and started.get("loop") == "agent" else None
        return None if config is None else _policy(config, list(started["tools"]))


def check_agent(
    name: str, config: Path | None, store_path: StoreAddress | None, since: datetime | None, *, as_json: bool
) -> int:
    """Judge every recorded run of an agent, or of the workflow in a file, anew; the exit code.

    Written is which past decisions would change.
    """
    catalog = build_catalog(load_host_config(config, Path(name) if _is_file(name) else None))
    subject = _nodes_of(Path(name), catalog) if _is_file(name) else CatalogueAgent(name, catalog.config_of(name)[0])
    tried = replay_many(find_address(store_path, config), since, partial(_try_run, subject))
    code = write_table(tried, as_json=as_json)
    for each in tried if not as_json else ():
        if each.changed:
            output.line(output.in_line(f"{each.run_id} at {each.at}: {each.why}"))
    return code


def _is_file(name: str) -> bool:
    return name.endswith(SUFFIXES)


def _nodes_of(file: Path, catalog: AgentCatalog) -> AgentNodes:
    workflow, problems = fill_workflow(load_workflow(file), catalog)
    refuse(map(workflow.locate, problems))
    nodes = [node for node in workflow.definition.nodes if node.tool == AGENT]
    return AgentNodes(workflow.definition.id, {node.id: _known(node.config) for node in nodes})


def _known(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with its defaults, without what only a run fills in."""
    known = known_config(config)
    later = {key for key in config if known.get(key) != config[key]}
    read = AgentConfig.model_validate({**known, "prompt": "any"}).model_dump()
    return {key: value for key, value in read.items() if key not in later}


def _try_run(subject: Subject, store: DatabaseRunStore, named: Named) -> list[Replayed]:
    """Return the replay of each strand of a run that is the subject's."""
    run, workflow = named
    try:
        tape = store.journal.load(run)
    except JournalError as error:
        return [Replayed(run, workflow, "damaged", why=str(error))]
    starts = {strand: _read_start(rows[0]) for strand, rows in tape.items()}
    found = {strand: subject.policy(strand, each, starts.get(ROOT, {})) for strand, each in starts.items()}
    return [_replay(run, workflow, tape, policy, strand) for strand, policy in found.items() if policy is not None]


def _replay(run: str, workflow: str, tape: Tape, policy: Mapping[str, Any], strand: str) -> Replayed:
    return try_run(run, workflow, lambda _: tape, policy, strand)


def _read_start(first: Row) -> Started:
    """Return how a strand begins; nothing for a damaged one, whose owner is unknown."""
    try:
        return first.record()
    except ValueError:
        return {}


def _policy(config: Mapping[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """Return what of a config a policy may vary, for a run that had these tools."""
    policy = {key: value for key, value in config.items() if key in VARIABLE_KEYS}
    if "allowed_tools" not in policy:
        return policy
    allowed = [(each if isinstance(each, str) else each["tool"], each) for each in policy["allowed_tools"]]
    fitting = [each for tool, each in allowed if any(fnmatchcase(code, tool) for code in codes)]
    return {**policy, "allowed_tools": fitting}
