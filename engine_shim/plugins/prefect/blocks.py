"""AgentStore and AgentModel: blocks that say where runs are recorded, and which model answers."""

from typing import Any

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from agent_core.models.client import ModelClient
from agent_core.models.providers import create_model


class AgentStore(Block):
    """Where the runs of agents are recorded: a file that all workers reach, or a PostgreSQL database."""

    _block_type_name = "Agent Store"
    _block_type_slug = "agent-store"

    address: SecretStr = Field(description="/shared/runs.db, or postgresql://USER:PASSWORD@HOST/NAME")

    def opened(self) -> str:
        return self.address.get_secret_value()


class AgentModel(Block):
    """The model that an agent asks, in place of that of its config."""

    _block_type_name = "Agent Model"
    _block_type_slug = "agent-model"

    name: str = Field(description="provider:name, such as openai:gpt-4o-mini")
    api_key: SecretStr | None = Field(default=None, description="Without one, that of the environment")
    base_url: SecretStr | None = Field(default=None, description="Where it is not the provider's own")

    def opened(self) -> ModelClient:
        key, url = (None if each is None else each.get_secret_value() for each in (self.api_key, self.base_url))
        return create_model(self.name, base_url=url, api_key=key)


def open_block(given: Any) -> Any:
    """Return what a block stands for, given as a block or as `agent-store/NAME`; anything else as it is."""
    if isinstance(given, str) and given.startswith(("agent-store/", "agent-model/")):
        load: Any = Block.load
        given = load(given, _sync=True)
    return given.opened() if isinstance(given, AgentStore | AgentModel) else given
