"""`echo`: returns its text unchanged."""

from utools.tool import Args, Tool, ToolContext


def echo() -> Tool:
    """Return the tool `echo`."""

    async def execute(args: Args, context: ToolContext) -> str:
        return str(args["text"])

    return Tool(
        code="echo",
        description="Return the given text unchanged.",
        config_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text to return."}},
            "required": ["text"],
        },
        output_schema={"type": "string"},
        examples=[
            {
                "user": "Echo: the lift works.",
                "args": {"text": "the lift works."},
                "output": "the lift works.",
                "answer": "the lift works.",
            }
        ],
        execute=execute,
        effect="read",
        inward=True,
    )
