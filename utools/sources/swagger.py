"""The operations of Swagger 2.0 in the words of OpenAPI 3. Pure.

Its definitions stay where they are, since a reference leads to any place of a document. What an operation takes, and
where it is requested, is said otherwise there:

    {"in": "query", "name": "ids", "type": "array", "items": {…}, "collectionFormat": "multi"}
    {"in": "query", "name": "ids", "schema": {"type": "array", "items": {…}}, "style": "form", "explode": true}
"""

from typing import Any

from utools.errors import DefinitionError
from utools.sources.multipart import MULTIPART
from utools.sources.openapi_schema import follow

Json = dict[str, Any]

FORM = "application/x-www-form-urlencoded"
STYLES: dict[str, tuple[str, bool]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
"""How a list is written: the style, and whether each item has the name before it."""
OWN_KEYS = frozenset({"name", "in", "description", "required", "collectionFormat", "allowEmptyValue"})
"""Keys of a parameter that are none of its schema."""


def is_swagger(document: Any) -> bool:
    """Return whether a document is one of Swagger 2.0."""
    return isinstance(document, dict) and str(document.get("swagger")) == "2.0" and "openapi" not in document


def read_item(document: Json, item: Json, method: str) -> Json:
    """Return a path with this operation in the words of OpenAPI 3; DefinitionError for a parameter that has no name or
    place."""
    operation = item[method]
    parameters = _merge(document, [*(item.get("parameters") or ()), *(operation.get("parameters") or ())])
    fields = [each for each in parameters if each["in"] == "formData"]
    bodies = [each for each in parameters if each["in"] == "body"]
    others = [_read_parameter(each) for each in parameters if each["in"] not in ("body", "formData")]
    if bodies and fields:
        raise DefinitionError(
            "a body (in: body) and a form (in: formData) cannot be sent at once", value=fields[0]["name"]
        )
    consumed = operation.get("consumes", document.get("consumes")) or []
    body = _read_form(fields, consumed) if fields else _read_body(bodies[-1], consumed) if bodies else None
    read = {**operation, "parameters": others, **({"requestBody": body} if body else {})}
    return {**item, "parameters": [], method: read, "servers": _list_servers(document, operation)}


def _merge(document: Json, given: list[Any]) -> list[Json]:
    """Return the parameters, those of an operation in place of those of its path."""
    found: dict[tuple[str, str], Json] = {}
    for each in given:
        parameter = follow(document, each)
        if not isinstance(parameter, dict) or not all(isinstance(parameter.get(key), str) for key in ("name", "in")):
            raise DefinitionError("a parameter needs a name and a place (in)", value=each)
        found[parameter["name"], parameter["in"]] = parameter
    return [*found.values()]


def _read_parameter(given: Json) -> Json:
    kept: Json = {key: given[key] for key in ("name", "in", "description", "required") if key in given}
    style = _read_style(given) if given["in"] == "query" else {}
    if given.get("type") == "file":
        raise DefinitionError("a file can be sent in a form alone (in: formData)", value=given["name"])
    if not style and given.get("type") == "array" and given.get("collectionFormat", "csv") != "csv":
        raise DefinitionError(f"a list in the {given['in']} can be sent as csv alone", value=given["collectionFormat"])
    return {**kept, "schema": _read_schema(given), **style}


def _read_schema(given: Json) -> Json:
    schema = {key: each for key, each in given.items() if key not in OWN_KEYS}
    return {**schema, "type": "string", "format": "binary"} if schema.get("type") == "file" else schema


def _read_style(given: Json) -> Json:
    name = given.get("collectionFormat", "csv")
    if name not in STYLES:
        raise DefinitionError("is no collectionFormat", value=name)
    style, explode = STYLES[name]
    return {"style": style, "explode": explode}


def _read_body(given: Json, consumed: list[str]) -> Json:
    content = {"schema": given.get("schema", {})}
    kinds = consumed or ["application/json"]
    return {"required": bool(given.get("required")), "content": dict.fromkeys(kinds, content)}


def _read_form(fields: list[Json], consumed: list[str]) -> Json:
    """Return the body of a form: with a file, or where nothing else is taken, in the parts of a mail."""
    properties = {each["name"]: {**_read_schema(each), **_describe(each)} for each in fields}
    required = [each["name"] for each in fields if each.get("required")]
    has_file = any(each.get("type") == "file" for each in fields)
    kinds = [each.partition(";")[0].strip().lower() for each in consumed]
    kind = MULTIPART if has_file or (MULTIPART in kinds and FORM not in kinds) else FORM
    schema = {"type": "object", "properties": properties, "required": required}
    encoding = {each["name"]: _read_style(each) for each in fields if each.get("type") == "array"}
    return {"required": bool(required), "content": {kind: {"schema": schema, "encoding": encoding}}}


def _describe(given: Json) -> Json:
    return {"description": given["description"]} if given.get("description") else {}


def _list_servers(document: Json, operation: Json) -> list[Json]:
    """Return the server: https where it may be, else http, and only a path where the document names no host."""
    base = "/" + str(document.get("basePath") or "").strip("/")
    if not (host := str(document.get("host") or "").rstrip("/")):
        return [{"url": base}]
    schemes = operation.get("schemes") or document.get("schemes") or ["https"]
    scheme = next((each for each in ("https", "http") if each in schemes), schemes[0])
    return [{"url": f"{scheme}://{host}{base}"}]
