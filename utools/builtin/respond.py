"""`respond`: says what a caller gets who waits for the run over HTTP, while the run continues."""

from typing import Any

from utools.tool import Args, Tool, ToolContext

RESPONSE: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"type": "integer"}, "body": {}},
    "required": ["status", "body"],
    "additionalProperties": False,
}


def respond() -> Tool:
    """Return the tool `respond`. The server that began the run reads its output."""

    async def execute(args: Args, context: ToolContext) -> Args:
        return {"status": args.get("status", 200), "body": args["body"]}

    return Tool(
        code="respond",
        description="Answer the caller who waits for this run over HTTP; the run goes on.",
        config_schema={
            "type": "object",
            "properties": {
                "body": {"description": "What the caller gets, as JSON."},
                "status": {"type": "integer", "minimum": 200, "maximum": 599, "description": "The HTTP status: 200."},
            },
            "required": ["body"],
        },
        output_schema=RESPONSE,
        execute=execute,
        effect="read",
        node_only=True,
    )
