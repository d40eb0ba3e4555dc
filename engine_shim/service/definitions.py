"""HostDefinitions: the workflows and agents of a host by name, for who begins runs of them without a server."""

from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.agents.errors import AgentNotFound
from agent_core.outputs import Json
from engine_shim.definition.errors import problem_of, refuse
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.host.config import HostConfig
from engine_shim.runs.conversations import HostConversations
from engine_shim.runs.engine import Engine
from engine_shim.service.workflow_check import read_checked
from engine_shim.service.workflows import WorkflowCatalog
from engine_shim.store.run_store import DatabaseRunStore
from utools.schema.compiled import compile_schema

if TYPE_CHECKING:
    from engine_shim.runs.temporal.begin_run import RunRequest

QUESTION: Final = {
    "type": "object",
    "properties": {"message": {"type": "string"}, "history": {"type": "array", "items": {"type": "object"}}},
    "required": ["message"],
    "additionalProperties": False,
}
"""The inputs of an agent's run; who asks keeps the conversation, if there is one."""


class HostDefinitions:
    """The definitions of one host or tenant. Without agents it has no `conversations`."""

    def __init__(self, workflows: WorkflowCatalog, conversations: HostConversations | None) -> None:
        self._workflows, self._conversations = workflows, conversations

    def find(self, request: "RunRequest") -> tuple[CheckedWorkflow, Json]:
        """Return what runs, and its inputs. WorkflowNotFound, AgentNotFound; DefinitionErrors for inputs that an agent
        does not take, and for the files of a directory in which no workflow can be used."""
        if request.workflow is not None:
            if not self._workflows.list():
                self._workflows.load()
            return self._workflows.get(request.workflow), request.inputs
        if self._conversations is None:
            raise AgentNotFound(str(request.agent), [])
        refuse(problem_of(fault, "inputs") for fault in compile_schema(QUESTION).faults(request.inputs))
        turn = self._conversations.make_turn(self._conversations.choose_agent(request.agent), is_stored=False)
        return turn, {"history": [], **request.inputs}


def open_definitions(config: HostConfig, engine: Engine, model: str | None) -> HostDefinitions:
    """Return the definitions of a host, whose engine has a store in a database."""
    return HostDefinitions(open_catalog(config, engine), open_conversations(config, engine, model))


def open_conversations(config: HostConfig, engine: Engine, model: str | None) -> HostConversations | None:
    """Return the conversations of a host or tenant, whose engine has a store in a database; None without agents."""
    assert isinstance(engine.store, DatabaseRunStore)
    has_agents = model is not None or bool(engine._agents and engine._agents.list())
    return HostConversations(engine, config, engine.store, model) if has_agents else None


def open_catalog(config: HostConfig, engine: Engine) -> WorkflowCatalog:
    """Return the workflows of a host or tenant, which are read when one is asked for."""
    check_file = partial(read_checked, grants=engine._grants, agents=engine._agents)
    return WorkflowCatalog(config.base / config.workflows, check_file, engine.registry._is_due_to_left_out)
