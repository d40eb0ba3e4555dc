"""The connections of Airflow that name a model, and the store of runs."""

from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from airflow.sdk import BaseHook

from agent_core.errors import DefinitionError
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.models.providers import create_model
from agent_core.run.arguments import journal_at

PORT: Final = 5432
OWN_EXTRAS: Final = ("file", "page")
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
        connection = self.get_connection(self.store_conn_id)
        extra: dict[str, Any] = connection.extra_dejson
        if file := extra.get("file"):
            return cast(str, file)
        if not connection.host:
            told = 'names no store; set a file in the extra, {"file": "/shared/runs.db"}, or the host of a PostgreSQL'
            raise DefinitionError(f"the connection {self.store_conn_id!r} {told}", where="store_conn_id")
        login = ":".join(quote(part, safe="") for part in (connection.login, connection.password) if part)
        place = f"{login}{'@' if login else ''}{connection.host}:{connection.port or PORT}/{connection.schema or ''}"
        more = urlencode({key: value for key, value in extra.items() if key not in OWN_EXTRAS})
        return f"postgresql://{place}{'?' if more else ''}{more}"


@lru_cache(maxsize=MAX_STORES)
def _journal_at(address: str) -> Journal:
    return journal_at(address)
