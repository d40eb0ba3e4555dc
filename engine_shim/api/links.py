"""Links: which operations take the id of what a route has answered, for the OpenAPI document."""

from typing import Any, Final

Links = dict[str, dict[str, Any]]


def link(parameter: str, source: str, *operations: str) -> Links:
    """Links to operations whose path parameter is what the answer has at `source`."""
    return {each: {"operationId": each, "parameters": {parameter: f"$response.body#/{source}"}} for each in operations}


RUN_LINKS: Final = link(
    "run_id",
    "run_id",
    *("show_run", "follow_run", "export_journal", "verify_run", "replay_run", "decide_run", "resume_run"),
    *("pause_run", "cancel_run", "fork_run", "add_message", "make_link"),
)
CHAT_LINKS: Final = {
    **link("run_id", "trace_id", "show_run", "follow_run", "export_journal", "verify_run", "decide_run"),
    **link("conversation_id", "conversation_id", "show_conversation", "delete_conversation"),
}
CONVERSATION_LINKS: Final = link("conversation_id", "conversation_id", "show_conversation", "delete_conversation")
