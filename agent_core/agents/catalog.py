"""AgentCatalog: the agents of a host by name, as its YAML files define them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from agent_core.agents.definition import AgentDefinition, McpPolicy, config_of, read_agent
from agent_core.agents.errors import AgentNotFound
from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from agent_core.records import AgentNote
from utools.document import read_document
from utools.problems import Problem, gathering, problems_in, refuse
from utools.registry import ToolRegistry
from utools.schema.faults import hint

SUFFIXES = (".yaml", ".yml", ".json")


class AgentCatalog:
    """Agents whose policies fit the tools of one host: its registry, or their codes alone.

    With a registry, a tool that needs a preset of its author is none of the default tools. `left_out` says of agents in
    files why they cannot be used: they need a tool of a source that the host has to do without.
    """

    def __init__(self, tools: ToolRegistry | Sequence[str]) -> None:
        registry = tools if isinstance(tools, ToolRegistry) else None
        codes = tools if not isinstance(tools, ToolRegistry) else [tool.code for tool in tools.for_models()]
        if not isinstance(codes, list | tuple) or not all(isinstance(each, str) for each in codes):
            raise DefinitionError("must be a ToolRegistry, or the codes of its tools", where="tools", value=tools)
        self.codes = tuple(codes)
        self.left_out: dict[str, tuple[Problem, ...]] = {}
        self._registry = registry
        self._readers = None if registry is None else frozenset(registry._readers)
        self._servers = _servers_of(codes) | (self._readers or frozenset())
        self._bound = {code for code in codes if registry is not None and _needs_author(registry, code)}
        self._agents: dict[str, AgentDefinition] = {}
        self._configs: dict[str, tuple[Json, AgentNote]] = {}

    @classmethod
    def from_directory(cls, directory: str | os.PathLike[str], tools: ToolRegistry | Sequence[str]) -> "AgentCatalog":
        """Return the agents of all files there, in the order of their names. JSON files that are no agents, such as
        recorded replies, are passed over.

        DefinitionErrors with file and line of each fault; one that a source is to blame for leaves the agent out.
        """
        catalog, problems, folder = cls(tools), list[Problem](), Path(directory)
        if not folder.is_dir():
            raise DefinitionError("there is no such directory", where="directory", value=str(folder))
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
        except OSError as error:
            raise DefinitionError(f"cannot be read: {error.strerror}", where=str(folder)) from None
        for path in paths:
            problems += catalog._register_file(path)
        refuse(problems)
        return catalog

    def register(self, agent: AgentDefinition | Mapping[str, Any]) -> AgentDefinition:
        """Add an agent. DefinitionErrors for a name that is taken, and for all that no run of it could have."""
        agent = agent if isinstance(agent, AgentDefinition) else read_agent(agent)
        if agent.name in self._agents:
            raise DefinitionError("another agent already has this name", where="name", value=agent.name)
        problems = [*_unknown_servers(agent.mcp_policy, self._servers, self._readers), *self._servers_away(agent)]
        with gathering(problems):
            self._configs[agent.name] = config_of(self._without_absent(agent), self.codes, self._bound)
        refuse(self._explain(problems, agent))
        self._agents[agent.name] = agent
        return agent

    def get(self, name: str) -> AgentDefinition:
        """Return the agent of this name; AgentNotFound when there is none."""
        try:
            return self._agents[name]
        except KeyError:
            why = "; ".join(f"{each.where}: {each.message}" for each in self.left_out.get(name, ()))
            raise AgentNotFound(name, list(self._agents), why=why) from None

    def config_of(self, name: str) -> tuple[Json, AgentNote]:
        """Return the config of an agent's runs, without its task, and what their records say of the agent;
        AgentNotFound."""
        return self._configs[self.get(name).name]

    def list(self) -> list[AgentDefinition]:
        """Return all agents, in the order in which they were added."""
        return [*self._agents.values()]

    def _register_file(self, path: Path) -> Iterator[Problem]:
        try:
            document = read_document(path, "the agent")
        except DefinitionError as error:
            yield from problems_in(error)
            return
        if not is_agent(path, document.data):
            return
        try:
            self.register(document.data)
        except DefinitionError as error:
            problems = tuple(map(document.locate, problems_in(error)))
            if self._registry is None or not all(map(self._registry._is_due_to_left_out, map(_message, problems))):
                yield from problems
            else:
                self.left_out[str(document.data["name"])] = problems

    def _servers_away(self, agent: AgentDefinition) -> Iterator[Problem]:
        """Yield the servers that a policy names and this host has to do without."""
        for each in self._registry._left_out if self._registry is not None else ():
            yield from (
                Problem(f"mcp_policy/{where}", f"{each.name} cannot be used: {each.why}")
                for where, name, _ in _named_servers(agent.mcp_policy)
                if each.name == f"mcp.{name}"
            )

    def _explain(self, problems: Iterable[Problem], agent: AgentDefinition) -> Iterator[Problem]:
        """Yield the problems; those with tools that no agent can have in the words of the registry."""
        allowed = {f"skill_policy/allow/{at}": _code_of(each) for at, each in enumerate(agent.skill_policy.allow)}
        for each in problems:
            refusal = self._refusal(allowed.get(each.where))
            yield each if refusal is None else Problem(each.where, refusal)

    def _without_absent(self, agent: AgentDefinition) -> AgentDefinition:
        """Return the agent without denials of tools that are left out: they deny what is not there."""
        kept = [each for each in agent.skill_policy.deny if self._refusal(each) is None]
        if len(kept) == len(agent.skill_policy.deny):
            return agent
        return agent.model_copy(update={"skill_policy": agent.skill_policy.model_copy(update={"deny": kept})})

    def _refusal(self, code: str | None) -> str | None:
        """Return why no agent of this host can have a tool: it is left out, or for nodes alone."""
        registry = self._registry
        if registry is None or code is None:
            return None
        refusal = registry._refusal_for_models(code)
        is_told = refusal is not None and (code in registry or registry._is_due_to_left_out(refusal))
        return refusal if is_told else None


def _code_of(allowed: Any) -> str:
    return allowed if isinstance(allowed, str) else str(allowed.tool)


def _message(problem: Problem) -> str:
    return problem.message


def is_agent(path: Path, data: Any) -> bool:
    """Return whether a file among agents, with this content, is meant as one: any in YAML, and in JSON, as replies are,
    an object with one of its keys."""
    is_object = isinstance(data, Mapping)
    return path.suffix != ".json" or (is_object and bool(data.keys() & AgentDefinition.model_fields.keys()))


def _servers_of(codes: Sequence[str]) -> frozenset[str]:
    """Return the MCP servers that these tools are of."""
    return frozenset(code.split(".")[1] for code in codes if code.startswith("mcp."))


def _unknown_servers(policy: McpPolicy, servers: Set[str], readers: Set[str] | None) -> Iterator[Problem]:
    """Yield the servers of a policy that the host does not have; without `readers` it is unknown which can be read
    from."""
    for where, name, is_read in _named_servers(policy):
        known = readers if is_read else servers
        if known is not None and name not in known:
            what = f"this host has no such MCP server; {hint(name, sorted(known))}"
            yield Problem(f"mcp_policy/{where}", str(DefinitionError(what, value=name)))


def _named_servers(policy: McpPolicy) -> Iterator[tuple[str, str, bool]]:
    """Yield the servers that a policy names, each with its place, and whether something is read from it."""
    yield from ((f"servers/{index}", name, False) for index, name in enumerate(policy.servers or ()))
    yield from ((f"resources/{index}/server", each.server, True) for index, each in enumerate(policy.resources))
    yield from ((f"prompts/{index}/server", each.server, True) for index, each in enumerate(policy.prompts))


def _needs_author(registry: ToolRegistry, code: str) -> bool:
    """Return whether a tool has a required argument that no model can set."""
    schema = registry._schema(code)
    return any(name in schema.author_keys for name in schema.schema.get("required", ()))
