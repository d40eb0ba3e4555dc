"""POWERS: what a definition could do on a host beyond its own steps, who gives each, and where it is held. A table."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Power:
    """One power. `keys` are `definition/KEY`, `agent_core/KEY`, `TOOL/KEY`, or `TOOL/*` for a whole tool.

    `own` and `http` say what the host's own files have of it, and what came over HTTP; a tenant's own files have the
    latter, unless `own` speaks of them. `given_by` are keys of agent-core.yaml; `held_at` is the code that decides when
    the power is used.
    """

    name: str
    keys: tuple[str, ...]
    own: str
    http: str
    given_by: tuple[str, ...]
    held_at: str


def _keys(text: str) -> tuple[str, ...]:
    return tuple(text.split())


POWERS: Final = (
    Power(
        "environment",
        ("definition/env",),
        "every variable but the host's own, with a warning for what is not listed; of a tenant, what is listed",
        "what is listed",
        ("env",),
        "engine_shim.host.variables:Variables.read",
    ),
    Power(
        "secrets",
        (
            "definition/env",
            "http_request/token_env",
            "feishu_bot/webhook_env",
            "feishu_bot/secret_env",
            "email/user_env",
            "email/password_env",
            "redis_context/url_env",
            "health/redis_env",
        ),
        "what is listed, for tools alone",
        "what is listed, for tools alone",
        ("secret_env",),
        "agent_core.run.secrets:Secrets.__call__",
    ),
    Power(
        "models of files",
        ("agent_core/model", "agent_core/fallback_models", "definition/model", "definition/edges"),
        "files below the directory of the configuration; of a tenant, below those of its workflows and agents",
        "what is listed, and the recorded runs of its own store",
        ("model_files",),
        "agent_core.models.reach:ModelReach.find_file",
    ),
    Power(
        "endpoints of models",
        _keys(
            "agent_core/model agent_core/fallback_models agent_core/base_url agent_core/api_key_env "
            "definition/model definition/edges"
        ),
        "every endpoint, once `model_endpoints` is given only those; of a tenant, what is listed",
        "what is listed, and for the host itself the vendors and its `endpoints`",
        ("model_endpoints", "base_urls", "endpoints"),
        "agent_core.models.reach:ModelReach.check_endpoint",
    ),
    Power(
        "parameters of models",
        ("agent_core/extra",),
        "every parameter; of a tenant, what is listed",
        "what is listed",
        ("model_parameters",),
        "agent_core.models.reach:ModelReach.check_extra",
    ),
    Power(
        "workflows",
        ("invoke_workflow/workflow",),
        "files below the directory of the configuration; of a tenant, below those of its workflows and agents",
        "the workflows of the same directory",
        ("workflows",),
        "utools.files.held_path:hold_path",
    ),
    Power(
        "files",
        _keys(
            "read_file/* write_file/* file_search/* log_transform/* read_file/root write_file/root "
            "file_search/root email/attachments agent_core/prompts"
        ),
        "below `root`; nothing that says what a host does is written",
        "the same; a tenant without `root` has none of these tools",
        ("root",),
        "utools.files.sandbox:Sandbox.resolve",
    ),
    Power(
        "network",
        _keys(
            "http_request/* health/* feishu_bot/* email/* redis_context/* http_request/allowed_domains "
            "http_request/allowed_methods http_request/allowed_ports http_request/allow_cidrs "
            "health/allowed_domains health/allow_cidrs health/allowed_ports feishu_bot/allow_cidrs email/host "
            "email/port email/security email/sender email/allowed_recipients redis_context/prefix"
        ),
        "public hosts, and the networks that the definition names",
        "public hosts, and what presets name: no network of the host, no server of e-mail or Redis, no host to check",
        ("presets",),
        "utools.host_policy:HostPolicy.bind",
    ),
    Power(
        "tools",
        ("definition/nodes", "agent_core/allowed_tools", "agent_core/deny_tools", "agent_core/documents"),
        "the tools of the host that `allow_tools` and `deny_tools` leave",
        "the same",
        ("tools", "functions", "manifests", "mcp_servers", "openapi", "remote", "allow_tools", "deny_tools"),
        "utools.registry:ToolRegistry.get",
    ),
    Power(
        "agents",
        ("agent_core/agent",),
        "the agents of the host or tenant",
        "the same",
        ("agents",),
        "agent_core.agents.catalog:AgentCatalog.get",
    ),
    Power(
        "code",
        ("shell_command/*", "shell_command/allow", "shell_command/cwd", "formatter/*"),
        "commands that `presets` allow; templates apart, in bounded time and memory (macOS: time only), without files",
        "the same; a tenant without `root` has no commands",
        ("presets",),
        "utools.host_policy:HostPolicy.refusal",
    ),
    Power(
        "conversations",
        ("context_manager/*",),
        "those of the host or tenant",
        "the same",
        (),
        "utools.defaults:host_context_store",
    ),
)
NO_POWER: Final = frozenset(
    {
        *(
            "calculator/*",
            "echo/*",
            "json_transform/*",
            "set/*",
            "respond/*",
            "wait/*",
            "http_request/max_bytes",
            "http_request/all_headers",
        ),
        *("http_request/fail_on_status", "redis_context/max_bytes", "invoke_workflow/inputs"),
        *("definition/id", "definition/version", "definition/name", "definition/description", "definition/inputs"),
        *("definition/outputs", "definition/entry", "definition/ends", "definition/max_iterations"),
        *("definition/max_visits", "definition/timeout"),
    }
)
"""Keys of definitions, and tools, that reach nothing outside of their run. Of an agent's, see AGENT_ONLY."""
AGENT_ONLY: Final = frozenset(
    {
        *("max_steps", "messages_json", "prompt", "system_prompt", "developer_prompt", "examples", "language", "mode"),
        *("protocol", "parsing", "response_format", "temperature", "top_p", "seed", "stop", "max_output_tokens"),
        *("api", "reasoning", "service_tier", "user_id"),
        *("max_input_tokens", "tool_choice", "timeout", "single_call_timeout", "max_tool_calls", "max_repairs"),
        *("total_token_budget", "cost_budget", "observation_max_len", "trace_max_bytes", "max_history_messages"),
        *("repair_scope", "approval", "after_untrusted", "answer_schema", "primary_output", "plan", "trusted_text"),
    }
)
"""Keys of an agent that bound or shape its own run."""


def write_table() -> Iterator[str]:
    """Yield the table as Markdown, for the operator's page."""
    yield "| power | the host's own files | over HTTP | given by |"
    yield "|---|---|---|---|"
    for each in POWERS:
        given = ", ".join(f"`{key}`" for key in each.given_by) or "the tenant's own store"
        yield f"| {each.name} | {each.own} | {each.http} | {given} |"
