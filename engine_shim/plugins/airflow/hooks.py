"""The connections of Airflow that name a model, and the store of runs."""

from functools import lru_cache
from typing import Final, cast
from urllib.parse import quote

from airflow.sdk import BaseHook

from agent_core.errors import DefinitionError
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.models.providers import create_model
from agent_core.run.arguments import journal_at
from engine_shim.plugins.airflow.store_address import read_address

MAX_STORES: Final = 8


class AgentModelHook(BaseHook):  # type: ignore[misc,unused-ignore]  # without Airflow, its classes are Any
    """A model by a connection of type `agent_core_model`: `model` in the extra, the key as the password, the base URL
    as the host."""

    conn_name_attr = "model_conn_id"
    default_conn_name = "agent_core_model_default"
    conn_type = "agent_core_model"
    hook_name = "Model of agent_core"

    def __init__(self, model_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.model_conn_id = model_conn_id

    def get_conn(self) -> ModelClient:
        """Return the client. DefinitionError for a connection without `model`."""
        connection = self.get_connection(self.model_conn_id)
        if not (model := connection.extra_dejson.get("model")):
            told = (
                f'the connection {self.model_conn_id!r} has no model; set it in the extra: {{"model": "openai:NAME"}}'
            )
            raise DefinitionError(told, where="model_conn_id")
        return create_model(model, base_url=connection.host or None, api_key=connection.password or None)


class AgentStoreHook(BaseHook):  # type: ignore[misc,unused-ignore]
    """The store of runs by a connection of type `agent_core_store`: a file that the extra names, or a PostgreSQL
    database by host, port, schema (its name), login and password; other keys of the extra are parameters of its URL."""

    conn_name_attr = "store_conn_id"
    default_conn_name = "agent_core_default"
    conn_type = "agent_core_store"
    hook_name = "Store of agent_core"

    def __init__(self, store_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.store_conn_id = store_conn_id

    def get_conn(self) -> Journal:
        """Return the journal, which all users of this process share. DefinitionError for a connection that names no
        store."""
        return _journal_at(self._address())

    def page_of(self, run_id: str) -> str:
        """Return where the page shows a run; empty where the connection names no page."""
        page = cast(str, self.get_connection(self.store_conn_id).extra_dejson.get("page") or "")
        return page and f"{page.rstrip('/')}/ui/runs/{quote(run_id)}"

    def _address(self) -> str:
        return read_address(self.store_conn_id, self.get_connection(self.store_conn_id))


@lru_cache(maxsize=MAX_STORES)
def _journal_at(address: str) -> Journal:
    return journal_at(address)
