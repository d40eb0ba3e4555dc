"""The operations of an OpenAPI document (3.0, 3.1) as tools, named `<name>.<operationId>`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import Field

from utools.builtin.http_request import FRAMING_HEADERS, READS
from utools.document import Document, read_document
from utools.error_text import describe
from utools.errors import DefinitionError
from utools.schema.config_schema import ConfigSchema
from utools.sources.http_call import Headers, HttpPolicy, Url, read_origin, read_response, send
from utools.sources.openapi_operation import VARIABLE, Operation, read_operation
from utools.sources.openapi_schema import follow
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
NOT_IN_CODES = re.compile(r"[^A-Za-z0-9_.:\-]+")
AUTHOR_PROPERTIES: dict[str, Any] = {
    "token_env": {"type": "string", "x-author": True, "description": "The secret that is sent as a token."},
    "token_header": {"type": "string", "x-author": True, "description": "The header of the token, if no bearer token."},
}


class OpenApi(HttpPolicy):
    """A document: its `file`; the `server`, if not the document's first; globs of the `operations` that are taken."""

    file: str
    server: Url | None = None
    operations: list[str] = Field(default=["*"])
    headers: Headers = Field(default={})


def openapi_tools(name: str, config: OpenApi, base: Path = Path()) -> list[Tool]:
    """A tool for each operation that is taken. DefinitionError names the document, the line and the operation."""
    document = read_document(base / config.file, "the OpenAPI document")
    data = document.data
    version = data.get("openapi", data.get("swagger")) if isinstance(data, dict) else None
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
        raise document.error("must be an OpenAPI document of version 3.0 or 3.1", ("openapi",), value=version)
    tools: dict[str, Tool] = {}
    for path, item, method in _find_operations(document):
        operation_id = item[method].get("operationId") or f"{method}{path}"
        operation_id = NOT_IN_CODES.sub("_", str(operation_id)).strip("_")
        if not any(fnmatchcase(operation_id, glob) for glob in config.operations):
            continue
        position = ("paths", path, method)
        code = f"{name}.{operation_id}"
        if code in tools:
            raise document.error(f"another operation is called {operation_id!r}", position)
        try:
            tools[code] = _make_tool(code, config, document, path, item, method)
        except DefinitionError as error:
            where = f"{document.where(position)}: {error.where}".removesuffix(": ")
            raise DefinitionError(f"{error.message}; or leave it out by `operations`", where=where) from None
        except (AttributeError, KeyError, TypeError) as error:  # a list where an object belongs, and the like
            fault = f"this operation is not written as OpenAPI has it: {describe(error)}"
            raise document.error(fault, position) from None
    if not tools:
        raise document.error("no operation fits", ("paths",), value=config.operations)
    return list(tools.values())


def _find_operations(document: Document) -> Iterator[tuple[str, dict[str, Any], str]]:
    paths = document.data.get("paths", {})
    if not isinstance(paths, dict):
        raise document.error("must be an object", ("paths",), value=paths)
    for path, value in paths.items():
        if not path.startswith("/"):  # it would continue the host's name
            raise document.error("must begin with a slash", ("paths", path), value=path)
        item = follow(document.data, value, document.where(("paths", path)))
        for method in METHODS:
            if isinstance(item, dict) and isinstance(item.get(method), dict):
                yield path, item, method


def _make_tool(code: str, config: OpenApi, document: Document, path: str, item: dict[str, Any], method: str) -> Tool:
    operation = read_operation(document.data, path, item, method, "")
    for each in operation.parameters:
        if each.part == "header" and each.name.lower() in FRAMING_HEADERS:
            raise DefinitionError(f"the header {each.name} cannot be an argument")
    schema = {**operation.schema, "properties": {**operation.schema["properties"], **AUTHOR_PROPERTIES}}
    ConfigSchema(schema, foreign=True)
    fields = item[method]
    texts = [fields.get("summary", ""), fields.get("description", "")]
    return Tool(
        code=code[:128],
        description="\n\n".join(dict.fromkeys(each.strip() for each in texts if each)) or f"{method.upper()} {path}",
        config_schema=schema,
        execute=_make_execute(operation, config, _find_server(config, document, item, fields)),
        effect="read" if operation.method in READS else "write",
        foreign=True,
    )


def _find_server(config: OpenApi, document: Document, item: dict[str, Any], fields: dict[str, Any]) -> str:
    """The URL before the path, its variables at their defaults."""
    if config.server is not None:
        return config.server.rstrip("/")
    servers = fields.get("servers") or item.get("servers") or document.data.get("servers") or [{}]
    first = servers[0]
    variables = {name: str(each.get("default", "")) for name, each in first.get("variables", {}).items()}
    url = VARIABLE.sub(lambda found: variables.get(found[1], found[0]), str(first.get("url", "")))
    try:
        read_origin(url)
    except ValueError:
        unknown = "the document does not say at which http(s) address its server is; say it by `server`"
        raise DefinitionError(unknown, where="servers", value=url) from None
    return url.rstrip("/")


def _make_execute(operation: Operation, config: OpenApi, server: str) -> Execute:
    async def execute(args: Args, context: ToolContext) -> ToolResult:
        request = operation.request(server, args)
        request = replace(request, headers={**config.headers, **request.headers})
        response = await send(request, _policy(config, args), context)
        return read_response(response, reads=operation.method in READS)

    return execute


def _policy(config: OpenApi, args: Args) -> HttpPolicy:
    """The host's policy, with the token that the workflow's author presets."""
    if "token_env" not in args:
        return config
    header = args.get("token_header")
    if header is None:
        return config.model_copy(update={"token_env": args["token_env"]})
    return config.model_copy(update={"secret_headers": {**config.secret_headers, header: args["token_env"]}})
