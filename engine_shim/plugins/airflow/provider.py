"""What Airflow is told of this plugin: its operator, decorator, hooks with their connection types, and links."""

from typing import Any

HERE = __name__.rpartition(".")[0]


def get_provider_info() -> dict[str, Any]:
    """Return what Airflow asks of a provider at the entry point `apache_airflow_provider`."""
    name = "agent_core"
    text, optional = {"type": ["string", "null"]}, "Optional"
    return {
        "package-name": "agent-core",
        "name": name,
        "description": "An agent as a task, under limits, with a journal that proves what it did.",
        "integrations": [{"integration-name": name, "external-doc-url": "", "tags": ["ai"]}],
        "operators": [{"integration-name": name, "python-modules": [f"{HERE}.operator"]}],
        "hooks": [{"integration-name": name, "python-modules": [f"{HERE}.hooks"]}],
        "triggers": [{"integration-name": name, "python-modules": [f"{HERE}.trigger"]}],
        "task-decorators": [{"name": name, "class-name": f"{HERE}.decorator.agent_core_task"}],
        "extra-links": [f"{HERE}.link.RunLink"],
        "connection-types": [
            {
                "connection-type": "agent_core_model",
                "hook-class-name": f"{HERE}.hooks.AgentModelHook",
                "hook-name": "Model of agent_core",
                "conn-fields": {"model": {"label": "Model, such as openai:gpt-4o-mini", "schema": text}},
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port", "login"],
                    "relabeling": {"password": "API key", "host": "Base URL"},
                    "placeholders": {"host": optional},
                },
            },
            {
                "connection-type": "agent_core_store",
                "hook-class-name": f"{HERE}.hooks.AgentStoreHook",
                "hook-name": "Store of agent_core",
                "conn-fields": {
                    "file": {"label": "File (.db), in place of a PostgreSQL database", "schema": text},
                    "page": {"label": "URL of an `agent-core serve` with this store", "schema": text},
                },
                "ui-field-behaviour": {"hidden-fields": [], "relabeling": {"schema": "Database"}},
            },
        ],
    }
