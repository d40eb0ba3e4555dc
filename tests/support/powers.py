"""POWERS: the keys of each power in the table of SECURITY.md, and the code that decides when the power is used."""

from typing import Final, NamedTuple


class Power(NamedTuple):
    """`keys` are `definition/KEY`, `agent_core/KEY`, `TOOL/KEY`, or `TOOL/*` for a whole tool, apart by spaces."""

    keys: str
    held_at: str


POWERS: Final = {
    "environment": Power("definition/env", "engine_shim.host.variables:Variables.read"),
    "secrets": Power(
        "definition/env http_request/token_env feishu_bot/webhook_env feishu_bot/secret_env email/user_env "
        "email/password_env redis_context/url_env health/redis_env",
        "agent_core.run.secrets:Secrets.__call__",
    ),
    "models of files": Power(
        "agent_core/model agent_core/fallback_models definition/model definition/edges",
        "agent_core.models.reach:ModelReach.find_file",
    ),
    "endpoints of models": Power(
        "agent_core/model agent_core/fallback_models agent_core/base_url agent_core/api_key_env definition/model "
        "definition/edges",
        "agent_core.models.reach:ModelReach.check_endpoint",
    ),
    "parameters of models": Power("agent_core/extra", "agent_core.models.reach:ModelReach.check_extra"),
    "workflows": Power("invoke_workflow/workflow", "utools.files.held_path:hold_path"),
    "files": Power(
        "read_file/* write_file/* file_search/* log_transform/* read_file/root write_file/root file_search/root "
        "email/attachments agent_core/prompts",
        "utools.files.sandbox:Sandbox.resolve",
    ),
    "network": Power(
        "http_request/* health/* feishu_bot/* email/* redis_context/* http_request/allowed_domains "
        "http_request/allowed_methods http_request/allowed_ports http_request/allow_cidrs health/allowed_domains "
        "health/allow_cidrs health/allowed_ports feishu_bot/allow_cidrs email/host email/port email/security "
        "email/sender email/allowed_recipients redis_context/prefix",
        "utools.host_policy:HostPolicy.bind",
    ),
    "tools": Power(
        "definition/nodes agent_core/allowed_tools agent_core/deny_tools agent_core/documents",
        "utools.registry:ToolRegistry.get",
    ),
    "agents": Power("agent_core/agent", "agent_core.agents.catalog:AgentCatalog.get"),
    "code": Power(
        "shell_command/* shell_command/allow shell_command/cwd formatter/*", "utools.host_policy:HostPolicy.refusal"
    ),
    "conversations": Power("context_manager/*", "utools.defaults:host_context_store"),
}

NO_POWER: Final = (
    "calculator/* echo/* json_transform/* set/* respond/* wait/* http_request/max_bytes http_request/all_headers "
    "http_request/fail_on_status redis_context/max_bytes invoke_workflow/inputs definition/id definition/version "
    "definition/name definition/description definition/inputs definition/outputs definition/entry definition/ends "
    "definition/max_iterations definition/max_visits definition/timeout"
)
"""Keys of definitions, and tools, that reach nothing outside of their run. Of an agent's, see AGENT_ONLY."""
AGENT_ONLY: Final = (
    "max_steps messages_json prompt system_prompt developer_prompt examples language mode protocol parsing "
    "response_format temperature top_p seed stop max_output_tokens api reasoning service_tier user_id "
    "max_input_tokens tool_choice timeout single_call_timeout max_tool_calls max_repairs total_token_budget "
    "cost_budget observation_max_len trace_max_bytes max_history_messages repair_scope approval after_untrusted "
    "answer_schema primary_output plan trusted_text"
)
"""Keys of an agent that bound or shape its own run."""
