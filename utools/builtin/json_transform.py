"""`json_transform`: a JMESPath expression over JSON data."""

import json
from time import monotonic
from typing import Any

from utools.errors import DefinitionError, ToolError
from utools.tool import Args, Tool, ToolContext

MAX_EXPRESSION = 2000
MAX_INPUT = 2 * 2**20
MAX_OUTPUT = 2**20
GOODS = [{"name": "lamp", "price": 12}, {"name": "cup", "price": 4}]


def json_transform() -> Tool:
    """Return the tool `json_transform`."""

    def execute(args: Args, context: ToolContext) -> Any:
        return transform(args["data"], args["expression"])

    return Tool(
        code="json_transform",
        description="Query or reshape JSON data with a JMESPath expression, e.g. people[?age > `30`].name.",
        config_schema={
            "type": "object",
            "properties": {
                "data": {"description": "A JSON value, or its text."},
                "expression": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_EXPRESSION,
                    "description": "JMESPath.",
                },
            },
            "required": ["data", "expression"],
        },
        examples=[
            {
                "user": f"Which of these cost more than 10? {json.dumps(GOODS)}",
                "args": {
                    "data": GOODS,
                    "expression": "[?price > `10`].name",
                },
                "output": ["lamp"],
                "answer": "The lamp.",
            }
        ],
        execute=execute,
        effect="read",
        check=_check,
        inward=True,
    )


def _check(args: Args) -> None:
    from utools.query import QueryError, check_query

    try:
        if "expression" in args:
            check_query(args["expression"])
    except QueryError as error:
        raise DefinitionError(f"JMESPath: {error}", where="expression", value=args["expression"]) from None


def transform(data: Any, expression: str) -> Any:
    """Return the result of the expression; ToolError if the expression, the data or the result is wrong or too
    large."""
    from utools.query import QueryError, query

    if isinstance(data, str):
        data = _parse(data)
    try:
        result = query(expression, data, clock=monotonic)
    except QueryError as error:
        raise ToolError("JMESPath: {error}", error=error) from None
    if len(json.dumps(result, ensure_ascii=False)) > MAX_OUTPUT:
        raise ToolError("the result is larger than {mib} MiB; select less", mib=MAX_OUTPUT // 2**20)
    return result


def _parse(text: str) -> Any:
    if len(text) > MAX_INPUT:
        raise ToolError("the data is larger than {mib} MiB", mib=MAX_INPUT // 2**20)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError("'data' is a text that is not JSON: {error}", error=error) from None
