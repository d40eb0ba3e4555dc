"""make_foreign(): a Tool of what another library says of its own."""

from typing import Any, Unpack

from typing_extensions import TypedDict

from utools.errors import DefinitionError
from utools.schema.older_drafts import read_arguments_schema
from utools.tool import Effect, Execute, Tool, name_as_words


class ForeignOptions(TypedDict, total=False):
    """What the other library does not know. Without `effect` a call counts as a write, which is never made again by
    itself. `code` is the name that workflows and models call the tool by, else its own."""

    effect: Effect
    idempotent: bool
    code: str | None


def make_foreign(
    name: Any, description: str | None, schema: Any, execute: Execute, **options: Unpack[ForeignOptions]
) -> Tool:
    """Return the Tool, with the schema of its arguments as it is written; DefinitionError for one that describes
    none."""
    code = options.get("code") or name
    try:
        arguments, _ = read_arguments_schema(schema)
    except DefinitionError as error:
        raise DefinitionError(error.message, where=f"tools.{code}") from None
    return Tool(
        code=code,
        description=(description or "").strip() or name_as_words(str(code)),
        config_schema=arguments,
        execute=execute,
        effect=options.get("effect", "write"),
        idempotent=options.get("idempotent", False),
        foreign=True,
    )
