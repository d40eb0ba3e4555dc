"""One operation of an OpenAPI document: its arguments as one schema, and the request that they make. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from utools.errors import DefinitionError, ToolError
from utools.lazy_pattern import lazy_compile
from utools.sources.openapi_schema import Standalone, follow
from utools.sources.placeholder import to_text
from utools.sources.request import Request, check_path, encode_header, encode_pairs, encode_query, encode_segment

Json = dict[str, Any]

VARIABLE = lazy_compile(r"\{([^{}]+)\}")
IGNORED = frozenset({"accept", "content-type", "authorization"})
"""Headers that a parameter does not describe (OpenAPI 3.1, 4.8.12.1)."""
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: the argument that it takes, the `part` of the request that it is in, and how it is written there."""

    argument: str
    name: str
    part: str
    style: str
    explode: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """What one operation takes, and how it is requested."""

    method: str
    path: str
    schema: Json
    parameters: tuple[Parameter, ...]
    body: str | None
    """The content type of the argument `body`."""

    def request(self, server: str, args: Mapping[str, Any]) -> Request:
        """Return the request with these arguments; ToolError for a value that cannot be a part of it."""
        path, query, headers = self.path, list[str](), dict[str, str]()
        for each in self.parameters:
            if each.argument not in args:
                continue
            value = args[each.argument]
            match each.part:
                case "path":
                    path = path.replace(f"{{{each.name}}}", ",".join(map(encode_segment, _split(each, value))))
                case "query":
                    query += _encode_in_query(each, value)
                case "header":
                    headers[each.name.lower()] = encode_header(each.name, ",".join(_split(each, value)))
                case _:
                    pass
        check_path(path)
        content = self._encode_body(args)
        if content is not None:
            headers["content-type"] = str(self.body).replace("*/*", "application/json")
        return Request(self.method, f"{server}{path}{'?' if query else ''}{'&'.join(query)}", headers, content)

    def _encode_body(self, args: Mapping[str, Any]) -> bytes | None:
        if self.body is None or "body" not in args:
            return None
        body = args["body"]
        if _is_form(self.body):
            if not isinstance(body, dict):
                raise ToolError("the body must be an object: it is sent as a form")
            return encode_pairs([(name, to_text(value)) for name, value in body.items()]).encode()
        return (json.dumps(body, ensure_ascii=False) if _is_json(self.body) else to_text(body)).encode()


def read_operation(document: Json, path: str, item: Json, method: str, where: str) -> Operation:
    """Return the operation. DefinitionError for what no tool can be made of."""
    fields = item[method]
    schemas = Standalone(document, where)
    properties: Json = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for each in _read_parameters(document, item, fields, where):
        name, part = each["name"], each["in"]
        if part not in ("path", "query", "header"):
            if each.get("required"):
                raise DefinitionError(f"a {part} parameter cannot be sent", where=where, value=name)
            continue
        argument = name if name not in {*properties, "body"} else f"{part}_{name}"
        parameters.append(_read_parameter(each, argument))
        properties[argument] = _read_property(schemas, each)
        required += [argument] if each.get("required") or part == "path" else []
    in_path = {each.name for each in parameters if each.part == "path"}
    if unknown := [name for name in VARIABLE.findall(path) if name not in in_path]:
        raise DefinitionError("no parameter describes this part of the path", where=where, value=unknown[0])
    body = _read_body(document, fields, where)
    if body is not None:
        content, is_required = body[1:]
        properties["body"] = schemas.convert(content.get("schema", {}))
        required += ["body"] if is_required else []
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return Operation(method.upper(), path, schema, tuple(parameters), body[0] if body else None)


def _read_parameters(document: Json, item: Json, fields: Json, where: str) -> Iterator[Json]:
    """Yield the parameters of the path and of the operation; those of the operation replace those of the path."""
    found: dict[tuple[str, str], Json] = {}
    for each in [*item.get("parameters", ()), *fields.get("parameters", ())]:
        parameter = follow(document, each, where)
        named = isinstance(parameter, dict) and isinstance(parameter.get("name"), str) and "in" in parameter
        if not named:
            raise DefinitionError("a parameter needs a name and a place (in)", where=where, value=each)
        found[parameter["name"], parameter["in"]] = parameter
    for (name, part), parameter in found.items():
        if part != "header" or name.lower() not in IGNORED:
            yield parameter


def _read_parameter(fields: Json, argument: str) -> Parameter:
    style = fields.get("style", "form" if fields["in"] == "query" else "simple")
    explode = bool(fields.get("explode", style == "form"))
    return Parameter(argument, fields["name"], fields["in"], style, explode, as_json="content" in fields)


def _read_property(schemas: Standalone, fields: Json) -> Any:
    content: Json = next(iter(fields.get("content", {}).values()), {})
    schema = schemas.convert(fields.get("schema", content.get("schema", {})))
    description = fields.get("description")
    return {**schema, "description": description} if description and isinstance(schema, dict) else schema


def _read_body(document: Json, fields: Json, where: str) -> tuple[str, Json, bool] | None:
    """Return the body's content type, its description, and whether it must be given."""
    body = follow(document, fields.get("requestBody"), where)
    if not isinstance(body, dict):
        return None
    kinds: Json = body.get("content", {})
    for rank in (_is_json, _is_form, _is_text):
        for kind in filter(rank, kinds):
            return kind, kinds[kind], bool(body.get("required"))
    if body.get("required"):
        raise DefinitionError("a body can be JSON, a form or text", where=where, value=", ".join(kinds))
    return None


def _strip_options(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return _strip_options(kind).endswith(("/json", "+json", "*/*"))


def _is_form(kind: str) -> bool:
    return _strip_options(kind) == FORM


def _is_text(kind: str) -> bool:
    return _strip_options(kind).startswith("text/")


def _split(parameter: Parameter, value: Any) -> list[str]:
    """Return a value of a path or a header, as the pieces that commas join (style `simple`)."""
    if parameter.as_json:
        return [to_text(value) if not isinstance(value, str) else json.dumps(value)]
    if isinstance(value, list):
        return [to_text(each) for each in value]
    if isinstance(value, dict):
        pairs = [(name, to_text(each)) for name, each in value.items()]
        return (
            [f"{name}={each}" for name, each in pairs]
            if parameter.explode
            else [part for pair in pairs for part in pair]
        )
    return [to_text(value)]


def _encode_in_query(parameter: Parameter, value: Any) -> list[str]:
    name = encode_query(parameter.name)
    if parameter.as_json:
        return [f"{name}={encode_query(json.dumps(value, ensure_ascii=False))}"]
    if isinstance(value, dict) and parameter.style == "deepObject":
        return [f"{name}%5B{encode_query(key)}%5D={encode_query(to_text(each))}" for key, each in value.items()]
    if isinstance(value, dict) and parameter.explode:
        return [encode_pairs([(key, to_text(each)) for key, each in value.items()])] if value else []
    if isinstance(value, list) and parameter.explode:
        return [f"{name}={encode_query(to_text(each))}" for each in value]
    between = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(parameter.style, ",")
    return [f"{name}={between.join(map(encode_query, _split(parameter, value)))}"]
