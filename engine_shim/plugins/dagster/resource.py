"""AgentResource: where runs are recorded, and which model answers."""

from contextlib import AbstractContextManager
from typing import Any

from dagster import ConfigurableResource

from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.models.providers import create_model
from agent_core.run.arguments import open_journal


class AgentResource(ConfigurableResource[Any]):
    """The store of agents' runs, and their model where it is not that of their config; `EnvVar` keeps what is secret.

    `journal` is a file that all processes reach, or the URL of a PostgreSQL database; `model` is `provider:name`.
    """

    journal: str
    model: str | None = None
    api_key: str | None = None
    base_url: str | None = None

    def open_journal(self) -> AbstractContextManager[Journal]:
        """Return a context with the journal; a subclass may have another one."""
        return open_journal(self.journal)

    def client(self) -> ModelClient | None:
        """Return the client of the model; None where the config of the agent has it."""
        if self.model is None:
            return None
        return create_model(self.model, base_url=self.base_url, api_key=self.api_key)
