"""The operations of an OpenAPI document (3.0, 3.1, 3.2, Swagger 2.0) as tools, named `<name>.<operationId>`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from utools.builtin.http_request import READS
from utools.document import Document, read_document
from utools.error_text import describe
from utools.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.left_out import LeftOut
from utools.net.header_names import is_of_connection
from utools.problems import message_of
from utools.schema.config_schema import ConfigSchema
from utools.schema.linear_pattern import is_linear
from utools.schema.model_faults import Position
from utools.schema.older_drafts import read_arguments_schema
from utools.sources.headers import Headers
from utools.sources.http_call import HttpPolicy, Url, read_origin, read_response, send
from utools.sources.loaded import Loaded
from utools.sources.openapi_operation import VARIABLE, Operation, read_operation
from utools.sources.openapi_schema import follow
from utools.sources.swagger import is_swagger, read_item
from utools.sources.tool_codes import assign_codes
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult
from utools.words.text import Text

REFUSED = (401, 403)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "query")
NOT_IN_CODES = lazy_compile(r"[^A-Za-z0-9_.:\-]+")
AUTHOR_PROPERTIES: dict[str, Any] = {
    "token_env": {"type": "string", "x-author": True, "description": "The secret that is sent as a token."},
    "token_header": {"type": "string", "x-author": True, "description": "The header of the token, if no bearer token."},
}


class OpenApi(HttpPolicy):
    """A document: its `file`; the `server`, if not the document's first; globs of the `operations` that are taken."""

    bounds: ClassVar = ("operations",)

    file: str
    server: Url | None = None
    operations: list[str] = Field(default=["*"])
    headers: Headers = Field(default={})


@dataclass(frozen=True, slots=True)
class _Found:
    """An operation in its document: its path with its method, and what stands there."""

    path: str
    item: dict[str, Any]
    method: str

    @property
    def name(self) -> str:
        return str(self.item[self.method].get("operationId") or "") or f"{self.method}{self.path}"

    @property
    def position(self) -> Position:
        return "paths", self.path, self.method


def load_openapi(name: str, config: OpenApi, base: Path = Path()) -> Loaded:
    """Return a tool for each operation that is taken, without what cannot be used: single operations, or all of the
    document. Each names the document, the line and the operation."""
    try:
        return _load_document(name, config, base)
    except DefinitionError as error:
        return Loaded(left_out=[LeftOut(name, error.where or f"openapi/{name}", message_of(error))])


def _load_document(name: str, config: OpenApi, base: Path) -> Loaded:
    document = read_document(base / config.file, "the OpenAPI document", foreign=True)
    data = document.data
    version = data.get("openapi", data.get("swagger")) if isinstance(data, dict) else None
    if not is_swagger(data) and not str(version).startswith(("3.0", "3.1", "3.2")):  # 3.1 is a number in YAML
        fault = "must be an OpenAPI document of version 3.0, 3.1 or 3.2, or of Swagger 2.0"
        raise document.error(fault, ("openapi",), value=version)
    loaded, found = Loaded(), dict[str, _Found]()
    for each in _find_operations(document, name, loaded):
        if not _is_taken(each.name, config.operations):
            continue
        if each.name in found:
            error = document.error(f"another operation is called {each.name!r}", each.position)
            loaded.left_out.append(_leave_out(f"{name}.{each.name}", error))
        else:
            found[each.name] = each
    if not found and not loaded.left_out:
        raise document.error("no operation fits", ("paths",), value=config.operations)
    codes = assign_codes(f"{name}.", {own: _plain_id(own) for own in found})
    for own, each in found.items():
        try:
            if own not in codes:
                raise document.error("another operation has the same code", each.position)
            loaded.tools.append(_make_tool_of(each, codes[own], config, document))
        except DefinitionError as error:
            loaded.left_out.append(_leave_out(codes.get(own, f"{name}.{own}"), error))
    return loaded


def _is_taken(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(each, glob) for glob in globs for each in (_plain_id(name), name) if each)


def _plain_id(name: str) -> str:
    """Return an operation's name in the characters of a code; empty for one in another script."""
    return NOT_IN_CODES.sub("_", name).strip("_") if name.isascii() else ""


def _leave_out(code: str, error: DefinitionError) -> LeftOut:
    return LeftOut(code, error.where, message_of(error))


def _make_tool_of(found: _Found, code: str, config: OpenApi, document: Document) -> Tool:
    """Return the tool of an operation; DefinitionError with its place for one that none can be made of."""
    try:
        return _make_tool(code, config, document, found.path, found.item, found.method)
    except DefinitionError as error:
        where = f"{document.where(found.position)}: {error.where}".removesuffix(": ")
        raise DefinitionError(f"{error.message}; or leave the operation out by `operations`", where=where) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a list where an object belongs, and the like
        fault = f"this operation is not valid OpenAPI: {describe(error)}"
        raise document.error(fault, found.position) from None


def _find_operations(document: Document, name: str, loaded: Loaded) -> Iterator[_Found]:
    """Yield all operations; a path that cannot be read is left out with all of them."""
    paths = document.data.get("paths", {})
    if not isinstance(paths, dict):
        raise document.error("must be an object", ("paths",), value=paths)
    for path, value in paths.items():
        if path.startswith("x-"):  # an extension of the document
            continue
        try:
            if not path.startswith("/"):  # it would continue the host's name
                raise document.error("must begin with a slash", ("paths", path), value=path)
            item = follow(document.data, value, document.where(("paths", path)))
        except DefinitionError as error:
            loaded.left_out.append(_leave_out(f"{name}.{path}", error))
            continue
        for method in METHODS if isinstance(item, dict) else ():
            try:
                operation = follow(document.data, item.get(method), document.where(("paths", path, method)))
            except DefinitionError as error:
                loaded.left_out.append(_leave_out(f"{name}.{method}{path}", error))
                continue
            if isinstance(operation, dict):
                yield _Found(path, {**item, method: operation}, method)


def _make_tool(code: str, config: OpenApi, document: Document, path: str, item: dict[str, Any], method: str) -> Tool:
    item = read_item(document.data, item, method) if is_swagger(document.data) else item
    operation = read_operation(document.data, path, item, method)
    for each in operation.parameters:
        if each.part == "header" and is_of_connection(each.name):
            raise DefinitionError(f"the header {each.name} cannot be an argument")
    own, _ = read_arguments_schema(operation.schema, is_linear)
    schema = {**own, "properties": {**own["properties"], **AUTHOR_PROPERTIES}}
    ConfigSchema(schema, foreign=True)
    fields = item[method]
    texts = [each for name in ("summary", "description") if isinstance(each := fields.get(name), str)]
    return Tool(
        code=code,
        description="\n\n".join(dict.fromkeys(each.strip() for each in texts if each)) or f"{method.upper()} {path}",
        config_schema=schema,
        execute=_make_execute(
            operation, config, _find_server(config, document, item, fields), _find_unsent_key(document.data, fields)
        ),
        effect="read" if operation.method in READS else "write",
        foreign=True,
    )


def _find_server(config: OpenApi, document: Document, item: dict[str, Any], fields: dict[str, Any]) -> str:
    """Return the URL before the path, its variables at their defaults."""
    if config.server is not None:
        return config.server.rstrip("/")
    servers = fields.get("servers") or item.get("servers") or document.data.get("servers") or [{}]
    first = servers[0]
    variables = {name: str(each.get("default", "")) for name, each in (first.get("variables") or {}).items()}
    url = VARIABLE.sub(lambda found: variables.get(found[1], found[0]), str(first.get("url", "")))
    if left := VARIABLE.search(url):
        message = f"nothing says what {left[0]} is in the server's address; give the whole by `server`"
        raise DefinitionError(message, where="servers", value=url)
    if url.startswith("/"):
        message = f"the document's server is only a path; give the whole address by `server`, as in https://…{url}"
        raise DefinitionError(message, where="servers", value=url)
    if "?" in url:
        raise DefinitionError("the server's address has a query; give it without one by `server`", where="servers")
    try:
        read_origin(url)
    except ValueError:
        unknown = "the document names no http(s) address of its server; give one by `server`"
        raise DefinitionError(unknown, where="servers", value=url) from None
    return url.rstrip("/")


def _find_unsent_key(data: Any, fields: dict[str, Any]) -> tuple[str, str] | None:
    """Return the part of the request and the name of the API key that an operation wants, if it takes no call without
    one in a query or a cookie, where no secret is sent. What cannot be read of this is passed over."""
    components, wanted = data.get("components"), fields.get("security", data.get("security"))
    schemes = components.get("securitySchemes") if isinstance(components, dict) else data.get("securityDefinitions")
    if not isinstance(schemes, dict) or not isinstance(wanted, list):
        return None
    unsent = [_find_place(each, schemes) for each in wanted]
    return unsent[0] if unsent and None not in unsent else None


def _find_place(requirement: Any, schemes: dict[str, Any]) -> tuple[str, str] | None:
    for name in requirement if isinstance(requirement, dict) else ():
        scheme = schemes.get(name)
        if isinstance(scheme, dict) and scheme.get("type") == "apiKey" and scheme.get("in") in ("query", "cookie"):
            return scheme["in"], str(scheme.get("name"))
    return None


def _make_execute(operation: Operation, config: OpenApi, server: str, unsent_key: tuple[str, str] | None) -> Execute:
    async def execute(args: Args, context: ToolContext) -> ToolResult:
        request = operation.request(server, args)
        request = replace(request, headers={**config.headers, **request.headers})
        response = await send(request, _policy(config, args), context)
        result = read_response(response, reads=operation.method in READS)
        return result if unsent_key is None or response.status not in REFUSED else _explain_key(result, *unsent_key)

    return execute


def _explain_key(result: ToolResult, part: str, name: str) -> ToolResult:
    error = Text(
        "{error}; the API wants its key as {name!r} in the {part}, and secrets are sent in headers alone (token_env, "
        "secret_headers)",
        error=result.error,
        name=name,
        part=part,
    )
    return replace(result, error=error)


def _policy(config: OpenApi, args: Args) -> HttpPolicy:
    """Return the host's policy, with the token that the workflow's author presets."""
    if "token_env" not in args:
        return config
    header = args.get("token_header")
    if header is None:
        return config.model_copy(update={"token_env": args["token_env"]})
    return config.model_copy(update={"secret_headers": {**config.secret_headers, header: args["token_env"]}})
