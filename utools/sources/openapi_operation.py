"""One operation of an OpenAPI document: its arguments as one schema, and the request that they make. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from utools.builtin.http_request import FRAMING_HEADERS
from utools.errors import DefinitionError, ToolError
from utools.sources.http_call import Request, check_path, header_value, in_path, in_query, joined
from utools.sources.openapi_schema import Standalone, followed
from utools.sources.placeholder import as_text

Json = dict[str, Any]

VARIABLE = re.compile(r"\{([^{}]+)\}")
IGNORED = frozenset({"accept", "content-type", "authorization"})
"""Headers that a parameter does not describe (OpenAPI 3.1, 4.8.12.1)."""
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: the argument that it takes, and how it is written."""

    argument: str
    name: str
    place: str
    style: str
    explode: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """What one operation takes, and how it is asked for."""

    method: str
    path: str
    schema: Json
    parameters: tuple[Parameter, ...]
    body: str | None
    """The content type of the argument `body`."""

    def request(self, server: str, args: Mapping[str, Any]) -> Request:
        """The request with these arguments in it; ToolError for a value that has no place in it."""
        path, query, headers = self.path, list[str](), dict[str, str]()
        for each in self.parameters:
            if each.argument not in args:
                continue
            value = args[each.argument]
            match each.place:
                case "path":
                    path = path.replace(f"{{{each.name}}}", ",".join(map(in_path, _parts(each, value))))
                case "query":
                    query += _in_query(each, value)
                case "header":
                    headers[each.name.lower()] = header_value(each.name, ",".join(_parts(each, value)))
        check_path(path)
        content = self._content(args)
        if content is not None:
            headers["content-type"] = str(self.body).replace("*/*", "application/json")
        return Request(self.method, f"{server}{path}{'?' if query else ''}{'&'.join(query)}", headers, content)

    def _content(self, args: Mapping[str, Any]) -> bytes | None:
        if self.body is None or "body" not in args:
            return None
        body = args["body"]
        if _is_form(self.body):
            if not isinstance(body, dict):
                raise ToolError("the body must be an object: it is sent as a form")
            return joined([(name, as_text(value)) for name, value in body.items()]).encode()
        return (json.dumps(body, ensure_ascii=False) if _is_json(self.body) else as_text(body)).encode()


def operation_of(document: Json, path: str, item: Json, method: str, where: str) -> Operation:
    """The operation. DefinitionError for what no tool can be made of."""
    described = item[method]
    schemas = Standalone(document, where)
    properties: Json = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for told in _parameters(document, item, described, where):
        if told["in"] not in ("path", "query", "header"):
            if told.get("required"):
                raise DefinitionError(f"a {told['in']} parameter cannot be sent", where=where, value=told["name"])
            continue
        argument = told["name"] if told["name"] not in {*properties, "body"} else f"{told['in']}_{told['name']}"
        parameters.append(_parameter(told, argument))
        properties[argument] = _property(schemas, told)
        required += [argument] if told.get("required") or told["in"] == "path" else []
    named = {each.name for each in parameters if each.place == "path"}
    if lost := [name for name in VARIABLE.findall(path) if name not in named]:
        raise DefinitionError("no parameter describes this part of the path", where=where, value=lost[0])
    body = _body(document, described, where)
    if body is not None:
        content, needed = body[1:]
        properties["body"] = schemas.schema(content.get("schema", {}))
        required += ["body"] if needed else []
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return Operation(method.upper(), path, schema, tuple(parameters), body[0] if body else None)


def _parameters(document: Json, item: Json, described: Json, where: str) -> Iterator[Json]:
    """The parameters of the path and of the operation, of which the latter's own count more."""
    found: dict[tuple[str, str], Json] = {}
    for each in [*item.get("parameters", ()), *described.get("parameters", ())]:
        told = followed(document, each, where)
        if not isinstance(told, dict) or not {"name", "in"} <= told.keys():
            raise DefinitionError("a parameter needs a name and a place (in)", where=where, value=each)
        found[told["name"], told["in"]] = told
    for (name, place), told in found.items():
        if place == "header" and name.lower() in IGNORED:
            continue
        if place == "header" and name.lower() in FRAMING_HEADERS:
            raise DefinitionError(f"the header {name} cannot be an argument", where=where)
        yield told


def _parameter(told: Json, argument: str) -> Parameter:
    style = told.get("style", "form" if told["in"] == "query" else "simple")
    return Parameter(
        argument, told["name"], told["in"], style, bool(told.get("explode", style == "form")), "content" in told
    )


def _property(schemas: Standalone, told: Json) -> Any:
    content: Json = next(iter(told.get("content", {}).values()), {})
    schema = schemas.schema(told.get("schema", content.get("schema", {})))
    description = told.get("description")
    return {**schema, "description": description} if description and isinstance(schema, dict) else schema


def _body(document: Json, described: Json, where: str) -> tuple[str, Json, bool] | None:
    """The body's content type, what it holds, and whether it must be given."""
    body = followed(document, described.get("requestBody"), where)
    if not isinstance(body, dict):
        return None
    kinds: Json = body.get("content", {})
    for rank in (_is_json, _is_form, _is_text):
        for kind in filter(rank, kinds):
            return kind, kinds[kind], bool(body.get("required"))
    if body.get("required"):
        raise DefinitionError("a body can be JSON, a form or text", where=where, value=", ".join(kinds))
    return None


def _bare(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return _bare(kind).endswith(("/json", "+json", "*/*"))


def _is_form(kind: str) -> bool:
    return _bare(kind) == FORM


def _is_text(kind: str) -> bool:
    return _bare(kind).startswith("text/")


def _parts(parameter: Parameter, value: Any) -> list[str]:
    """A value of a path or a header, as the pieces that commas join (style `simple`)."""
    if parameter.as_json:
        return [as_text(value) if not isinstance(value, str) else json.dumps(value)]
    if isinstance(value, list):
        return [as_text(each) for each in value]
    if isinstance(value, dict):
        pairs = [(name, as_text(each)) for name, each in value.items()]
        return (
            [f"{name}={each}" for name, each in pairs]
            if parameter.explode
            else [part for pair in pairs for part in pair]
        )
    return [as_text(value)]


def _in_query(parameter: Parameter, value: Any) -> list[str]:
    name = in_query(parameter.name)
    if parameter.as_json:
        return [f"{name}={in_query(json.dumps(value, ensure_ascii=False))}"]
    if isinstance(value, dict) and parameter.style == "deepObject":
        return [f"{name}%5B{in_query(key)}%5D={in_query(as_text(each))}" for key, each in value.items()]
    if isinstance(value, dict) and parameter.explode:
        return [joined([(key, as_text(each)) for key, each in value.items()])] if value else []
    if isinstance(value, list) and parameter.explode:
        return [f"{name}={in_query(as_text(each))}" for each in value]
    between = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(parameter.style, ",")
    return [f"{name}={between.join(map(in_query, _parts(parameter, value)))}"]
