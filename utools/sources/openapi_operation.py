"""One operation of an OpenAPI document: its arguments as one schema, and the request that they make. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from utools.errors import DefinitionError, ToolError
from utools.json_text import to_text
from utools.lazy_pattern import lazy_compile
from utools.sources.multipart import MULTIPART, encode_multipart
from utools.sources.openapi_schema import Standalone, follow
from utools.sources.request import Request, check_path, encode_header, encode_pairs, encode_query, encode_segment

Json = dict[str, Any]

VARIABLE = lazy_compile(r"\{([^{}]+)\}")
IGNORED = frozenset({"accept", "content-type", "authorization"})
"""Headers that a parameter does not describe (OpenAPI 3.1, 4.8.12.1)."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
ANY_OF = {"*/*": JSON, "application/*": JSON, "text/*": "text/plain"}
"""What is sent where a document allows a whole range of types."""


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
    encoding: Mapping[str, Json] = field(default_factory=dict)
    """How the properties of a form are written, where the document says it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The content types of the properties that are files."""

    def request(self, server: str, args: Mapping[str, Any]) -> Request:
        """Return the request with these arguments; ToolError for a value that cannot be a part of it."""
        path, _, _ = self.path.partition("#")  # a fragment tells operations of one path apart, and is never sent
        query, headers = list[str](), dict[str, str]()
        for each in self.parameters:
            value = args.get(each.argument)
            if value is None and (each.part != "path" or each.argument not in args):  # null says that there is none
                continue
            match each.part:
                case "path":
                    path = path.replace(f"{{{each.name}}}", _encode_in_path(each, value))
                case "query":
                    query += _encode_in_query(each, value)
                case "header":
                    headers[each.name.lower()] = encode_header(each.name, ",".join(_write_pieces(each, value)))
                case _:
                    pass
        check_path(path)
        kind, content = self._encode_body(args)
        if content is not None:
            headers["content-type"] = ANY_OF.get(kind, kind)
        joined = ("&" if "?" in path else "?") + "&".join(query) if query else ""
        return Request(self.method, f"{server}{path}{joined}", headers, content)

    def _encode_body(self, args: Mapping[str, Any]) -> tuple[str, bytes | None]:
        """Return the content type and the bytes of the body."""
        if self.body is None or "body" not in args:
            return "", None
        body = args["body"]
        if _is_form(self.body) or _is_multipart(self.body):
            if not isinstance(body, dict):
                raise ToolError("the body must be an object: it is sent as a form")
            if _is_multipart(self.body):
                return encode_multipart(body, self.files, self.encoding)
            fields = (
                _encode_in_form(name, value, self.encoding.get(name))
                for name, value in body.items()
                if value is not None
            )
            return self.body, "&".join(part for each in fields for part in each).encode()
        return self.body, (json.dumps(body, ensure_ascii=False) if _is_json(self.body) else to_text(body)).encode()


def read_operation(document: Json, path: str, item: Json, method: str) -> Operation:
    """Return the operation. DefinitionError for what no tool can be made of."""
    fields = item[method]
    schemas = Standalone(document)
    properties: Json = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for each in _read_parameters(document, path, item, fields):
        name, part = each["name"], each["in"]
        if part not in ("path", "query", "header"):
            if each.get("required"):
                raise DefinitionError(f"a {part} parameter cannot be sent", value=name)
            continue
        argument = name if name not in {*properties, "body"} else f"{part}_{name}"
        parameters.append(_read_parameter(each, argument))
        properties[argument] = _read_property(schemas, each)
        required += [argument] if each.get("required") or part == "path" else []
    in_path = {each.name for each in parameters if each.part == "path"}
    if unknown := [name for name in VARIABLE.findall(path) if name not in in_path]:
        raise DefinitionError("no parameter describes this part of the path", value=unknown[0])
    body = _read_body(document, fields)
    if body is not None:
        content, is_required = body[1:]
        properties["body"] = schemas.convert(content.get("schema", {}))
        required += ["body"] if is_required else []
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    kind, encoding = (body[0], body[1].get("encoding") or {}) if body else (None, {})
    files = _find_files(document, body[1].get("schema")) if body and _is_multipart(body[0]) else {}
    return Operation(method.upper(), path, schema, tuple(parameters), kind, encoding, files)


def _read_parameters(document: Json, path: str, item: Json, fields: Json) -> Iterator[Json]:
    """Yield the parameters of the path and of the operation; those of the operation replace those of the path.

    A part of the path that none describes is a text, as FastAPI leaves out what is not `include_in_schema`; unless
    another place has its name, or the path has not that of another parameter: one of both is a mistake then.
    """
    found: dict[tuple[str, str], Json] = {}
    for each in [*(item.get("parameters") or ()), *(fields.get("parameters") or ())]:
        parameter = follow(document, each)
        named = isinstance(parameter, dict) and isinstance(parameter.get("name"), str) and "in" in parameter
        if not named:
            raise DefinitionError("a parameter needs a name and a place (in)", value=each)
        found[parameter["name"], parameter["in"]] = parameter
    in_path = VARIABLE.findall(path)
    known = {name for name, part in found if part != "path" or name in in_path}
    if all(name in known or part != "path" for name, part in found):
        implied = {"in": "path", "schema": {"type": "string"}}
        found |= {(name, "path"): {"name": name, **implied} for name in in_path if name not in known}
    for (name, part), parameter in found.items():
        if part != "header" or name.lower() not in IGNORED:
            yield parameter


def _read_parameter(fields: Json, argument: str) -> Parameter:
    style = fields.get("style", "form" if fields["in"] == "query" else "simple")
    explode = bool(fields.get("explode", style == "form"))
    return Parameter(argument, fields["name"], fields["in"], style, explode, as_json="content" in fields)


def _read_property(schemas: Standalone, fields: Json) -> Any:
    content: Json = next(iter((fields.get("content") or {}).values()), {}) or {}
    schema = schemas.convert(fields.get("schema", content.get("schema", {})))
    description = fields.get("description")
    return {**schema, "description": description} if description and isinstance(schema, dict) else schema


def _read_body(document: Json, fields: Json) -> tuple[str, Json, bool] | None:
    """Return the body's content type, its description, and whether it must be given."""
    body = follow(document, fields.get("requestBody"))
    if not isinstance(body, dict):
        return None
    kinds: Json = body.get("content") or {}
    for rank in (_is_json, _is_form, _is_text, _is_multipart):
        for kind in filter(rank, kinds):
            return kind, follow(document, kinds[kind]) or {}, bool(body.get("required"))
    if kinds:  # also where it may be left out: without it, most such operations do nothing
        raise DefinitionError(f"a body can be JSON, a form, text or multipart, not {', '.join(kinds)}")
    return None


def _strip_options(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return _strip_options(kind).endswith(("/json", "+json")) or ANY_OF.get(kind) == JSON


def _is_form(kind: str) -> bool:
    return _strip_options(kind) == FORM


def _is_multipart(kind: str) -> bool:
    return _strip_options(kind) == MULTIPART


def _find_files(document: Json, schema: Any) -> Json:
    """Return the properties of a form that are files, or lists of files, each with its content type."""
    form = follow(document, schema) or {}
    parts = [form, *(follow(document, each) for each in form.get("allOf") or ())]
    properties = [pair for part in parts for pair in (part.get("properties") or {}).items()]
    files: Json = {}
    for name, given in properties:
        whole = follow(document, given)
        one = follow(document, whole.get("items", whole)) if isinstance(whole, dict) else None
        if isinstance(one, dict) and ("contentMediaType" in one or one.get("format") == "binary"):
            files[name] = str(one.get("contentMediaType", "application/octet-stream"))
    return files


def _is_text(kind: str) -> bool:
    return _strip_options(kind).startswith("text/")


def _write_pieces(parameter: Parameter, value: Any, encode: Callable[[str], str] = str) -> list[str]:
    """Return a value as the pieces that are joined: a list its items, an object `name=value` where it is exploded, else
    names and values in turn. Each name and each value is encoded."""
    if parameter.as_json:
        return [encode(json.dumps(value, ensure_ascii=False))]
    if isinstance(value, list):
        return [encode(to_text(each)) for each in value]
    if isinstance(value, dict):
        pairs = [(encode(name), encode(to_text(each))) for name, each in value.items()]
        return [f"{name}={each}" for name, each in pairs] if parameter.explode else [*chain.from_iterable(pairs)]
    return [encode(to_text(value))]


def _encode_in_path(parameter: Parameter, value: Any) -> str:
    """Return a value as its style has it in a path: `a,b`, `.a.b` (label) or `;name=a;name=b` (matrix)."""
    pieces = _write_pieces(parameter, value, encode_segment)
    match parameter.style:
        case "label":
            return "." + ("." if parameter.explode else ",").join(pieces)
        case "matrix" if parameter.explode and isinstance(value, dict):
            return "".join(f";{each}" for each in pieces)
        case "matrix":
            each_apart = pieces if parameter.explode else [",".join(pieces)]
            return "".join(f";{encode_segment(parameter.name)}={each}" for each in each_apart)
        case _:
            return ",".join(pieces)


def _encode_in_query(parameter: Parameter, value: Any) -> list[str]:
    name = encode_query(parameter.name)
    if parameter.style == "deepObject" and isinstance(value, dict | list) and not parameter.as_json:
        return [encode_pairs([pair]) for pair in _in_brackets(parameter.name, value)]
    if isinstance(value, dict | list) and parameter.explode and not parameter.as_json:
        pieces = _write_pieces(parameter, value, encode_query)
        return pieces if isinstance(value, dict) else [f"{name}={each}" for each in pieces]
    between = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}.get(parameter.style, ",")
    return [f"{name}={between.join(_write_pieces(parameter, value, encode_query))}"]


def _in_brackets(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield `name[key]` and what stands there. Of what is deeper, and of lists, OpenAPI says nothing: it is written as
    Stripe, Rails and PHP read it."""
    match value:
        case dict():
            for key, each in value.items():
                yield from _in_brackets(f"{name}[{key}]", each)
        case list():
            for index, each in enumerate(value):
                yield from _in_brackets(f"{name}[{index if isinstance(each, dict | list) else ''}]", each)
        case _:
            yield name, to_text(value)


def _encode_in_form(name: str, value: Any, encoding: Json | None) -> list[str]:
    """Return a property of a form: a list once for each item, an object as JSON, unless the document says
    otherwise."""
    told = encoding if isinstance(encoding, dict) else {}
    is_styled = bool({"style", "explode"} & told.keys())
    as_json = _is_json(str(told.get("contentType", ""))) or (isinstance(value, dict) and not is_styled)
    style = str(told.get("style", "form"))
    explode = bool(told.get("explode", style == "form"))
    return _encode_in_query(Parameter(name, name, "query", style, explode, as_json), value)
