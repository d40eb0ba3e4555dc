"""RunLink: from a task to the page of its run."""

from typing import Any

from airflow.sdk import BaseOperatorLink

from engine_shim.plugins.airflow.hooks import AgentStoreHook


class RunLink(BaseOperatorLink):  # type: ignore[misc,unused-ignore]
    """The run on the page of an `agent-core serve`, where the connection of the store names one."""

    name = "Run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link; empty where there is no page, or no run."""
        run_id = getattr(operator, "agent_run_id", None)
        return AgentStoreHook(operator.store_conn_id).page_of(run_id) if run_id and operator.journal is None else ""
