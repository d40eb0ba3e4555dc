"""`set`: gives later nodes the values of its config under names of the author's choice."""

from utools.tool import Args, Tool, ToolContext


def set_values() -> Tool:
    """Return the tool `set`."""

    async def execute(args: Args, context: ToolContext) -> Args:
        return args

    return Tool(
        code="set",
        description="Give later nodes the values of this config, under the same names.",
        config_schema={
            "type": "object",
            "properties": {},
            "additionalProperties": {"description": "A value, or an object or a text with placeholders in it."},
            "minProperties": 1,
        },
        output_schema={"type": "object"},
        execute=execute,
        effect="read",
        inward=True,
        node_only=True,
    )
