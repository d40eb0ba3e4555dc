"""The structure of a JSON Schema: its subschemas, references and keywords, and how it is closed to unknown properties.
Pure."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from utools.errors import DefinitionError
from utools.schema.plainly_sound import KEYWORDS, plain_pointer
from utools.schema.pointer import escape

Schema = dict[str, Any]

# keyword: what it holds, and whether its schemas judge the same value ("in place") or something inside it
APPLICATORS = {
    "$defs": ("map", False),
    "definitions": ("map", False),
    "properties": ("map", False),
    "patternProperties": ("map", False),
    "additionalProperties": ("one", False),
    "unevaluatedProperties": ("one", False),
    "propertyNames": ("one", False),
    "items": ("one", False),
    "prefixItems": ("list", False),
    "unevaluatedItems": ("one", False),
    "contains": ("one", False),
    "allOf": ("list", True),
    "anyOf": ("list", True),
    "oneOf": ("list", True),
    "not": ("one", True),
    "if": ("one", True),
    "then": ("one", True),
    "else": ("one", True),
    "dependentSchemas": ("map", True),
}
KNOWN: Final = frozenset(
    {
        *KEYWORDS,
        *APPLICATORS,
        *("multipleOf", "dependentRequired", "minContains", "maxContains", "dependencies", "additionalItems"),
        *("contentEncoding", "contentMediaType", "contentSchema", "id", "example"),
    }
)
"""The keywords of all drafts, and OpenAPI's `example`, but for those that begin with `$`."""
OWN: Final = ("x-", "$")
"""How the keys begin that are no business of a schema's reader."""
ORDER = {keyword: place for place, keyword in enumerate(APPLICATORS)}
REFERENCES = ("$ref", "$dynamicRef")

# Checked together with their surroundings: closing one would refuse the properties of the others.
TOGETHER = ("allOf", "not", "if", "then", "else", "dependentSchemas")
ALTERNATIVES = ("anyOf", "oneOf")
PATHLESS = ("properties", "patternProperties", "dependentSchemas", "prefixItems", "allOf", "anyOf", "oneOf")


def subschemas(schema: Schema) -> list[tuple[str, Any, bool]]:
    """Return the schemas directly within a schema: pointer, schema, and whether it judges the same value ("in
    place")."""
    keywords = APPLICATORS.keys() & schema.keys()
    if not keywords:  # as in most, each of which is asked for at every walk
        return []
    found: list[tuple[str, Any, bool]] = []
    for keyword in sorted(keywords, key=ORDER.__getitem__):
        (shape, in_place), within = APPLICATORS[keyword], schema[keyword]
        if shape == "one" and isinstance(within, dict):
            found.append((f"/{keyword}", within, in_place))
        elif shape == "list" and isinstance(within, list):
            found += [(f"/{keyword}/{index}", each, in_place) for index, each in enumerate(within)]
        elif shape == "map" and isinstance(within, dict):
            found += [(f"/{keyword}/{escape(name)}", each, in_place) for name, each in within.items()]
    return found


def walk(root: Schema, follow: Callable[[str], Any] | None = None) -> Iterator[tuple[str, Schema]]:
    """`root` and every object schema below it, each once, with its pointer; `follow` resolves references."""
    todo: list[tuple[str, Any]] = [("", root)]
    seen: set[int] = set()
    while todo:
        pointer, schema = todo.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield pointer, schema
        todo += [(pointer + below, inner) for below, inner, _ in reversed(subschemas(schema))]
        if follow:
            todo += [(schema[key][1:], follow(schema[key])) for key in REFERENCES if key in schema]


def find_parts(schema: Any, follow: Callable[[str], Any]) -> Iterator[Schema]:
    """Yield a schema and all that it says as well, behind references and `allOf`: each reference once, and nothing for
    what is no object."""
    followed, left = set[str](), [schema]
    while left:
        part: Any = left.pop()
        if not isinstance(part, dict):
            continue
        yield part
        left += reversed(part.get("allOf", ()))
        if "$ref" in part and part["$ref"] not in followed:
            followed.add(part["$ref"])
            left.append(follow(part["$ref"]))


def find_unknown_keywords(root: Schema) -> Iterator[tuple[str, str]]:
    """Yield the keys that JSON Schema does not know, and that do nothing, each behind the pointer of its schema."""
    for pointer, schema in walk(root):
        for key in schema:
            if key not in KNOWN and not key.startswith(OWN):
                yield pointer, key


def resolver(root: Schema) -> Callable[[str], Any]:
    """Return a function that looks up local references in `root`; nothing is fetched. An unknown target is `None`."""

    @cache
    def local() -> Any:  # imported for the first reference; most schemas have none
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012

        registry: Registry[Any] = Registry()
        return registry.resolver_with_root(DRAFT202012.create_resource(root))

    def look_up(reference: str) -> Any:
        if (names := plain_pointer(reference)) and (found := _walk_down(root, names)) is not None:
            return found
        from referencing.exceptions import Unresolvable

        try:
            return local().lookup(reference).contents if reference.startswith("#") else None
        except (Unresolvable, ValueError, TypeError, AttributeError):
            return None

    return look_up


def _walk_down(root: Schema, names: list[str]) -> dict[str, Any] | None:
    """Return the object that names lead to, through objects alone; None if there is another way to read them, since
    an object on it has an identity of its own."""
    found: Any = root
    for name in names:
        if not isinstance(found, dict) or name not in found or (found is not root and "$id" in found):
            return None
        found = found[name]
    return found if isinstance(found, dict) else None


def check_references(root: Schema, *, where: str) -> None:
    """Refuse references that leave the schema or have no target, and identities that change what "#" means."""
    follow = resolver(root)
    for pointer, schema in walk(root, follow):
        at = where + pointer
        if pointer and "$id" in schema:
            raise DefinitionError("a nested $id is not allowed", where=f"{at}/$id", value=schema["$id"])
        for key in REFERENCES:
            target = schema.get(key)
            if isinstance(target, str) and not target.startswith("#"):
                raise DefinitionError("only local references (#/…) are allowed", where=f"{at}/{key}", value=target)
            if key in schema and not isinstance(follow(schema[key]), dict | bool):
                raise DefinitionError("this reference has no target", where=f"{at}/{key}", value=target)


def check_author_marks(root: Schema, *, where: str) -> None:
    """Refuse `"x-author": true` where it would hide nothing: it takes effect on top-level properties only."""
    follow = resolver(root)
    effective = {id(each) for each in root.get("properties", {}).values() if is_marked(each)}
    for pointer, schema in walk(root, follow):
        if id(schema) in effective:
            continue
        if is_marked(schema):
            message = "x-author works only on properties at the top level of the schema; move the hidden property there"
            raise DefinitionError(message, where=f"{where}{pointer}/x-author")
        for key in REFERENCES:
            if key in schema and is_marked(follow(schema[key])):
                message = (
                    "this refers to an x-author property; write out the schema here, with its own x-author if needed"
                )
                raise DefinitionError(message, where=f"{where}{pointer}/{key}", value=schema[key])


def is_marked(schema: Any) -> bool:
    """Return whether only the workflow's author or the host may set what this schema describes."""
    return isinstance(schema, dict) and schema.get("x-author") is True


def close(root: Schema) -> None:
    """Make every object that names properties refuse all others, in place.

    An object schema that stands alone gets `additionalProperties: false`. Where several schemas judge one value
    together (`allOf`, `if`, …, or properties beside alternatives), the outermost gets
    `unevaluatedProperties: false`, which sees through all of them, and the branches stay open.
    """
    follow = resolver(root)
    branches = _open_branches(root, follow)
    for _, schema in walk(root, follow):
        if id(schema) in branches or {"additionalProperties", "unevaluatedProperties"} & schema.keys():
            continue
        if _judged_together(schema, branches, follow):
            schema["unevaluatedProperties"] = False
        elif "properties" in schema:
            schema["additionalProperties"] = False


def spell_out(root: Schema, follow: Callable[[str], Any]) -> None:
    """Write `false` as `{"not": {}}`, in place, where jsonschema would report the fault without its path; and leave
    each `$schema` out, which would bring jsonschema's own keywords back, whose time has no bound."""
    for _, schema in walk(root, follow):
        schema.pop("$schema", None)
        for keyword in PATHLESS:
            within = schema.get(keyword, {})
            for name in within if isinstance(within, dict) else range(len(within)):
                if within[name] is False:
                    within[name] = {"not": {}}
        if schema.get("propertyNames") is False:
            schema["propertyNames"] = {"not": {}}


def named_properties(schema: Schema, follow: Callable[[str], Any]) -> frozenset[str]:
    """Return the properties that `schema` names, or a branch of it that judges the same value, through references
    too."""
    todo: list[Any] = [schema]
    seen: set[int] = set()
    names: set[str] = set()
    while todo:
        current = todo.pop()
        if not isinstance(current, dict) or id(current) in seen:
            continue
        seen.add(id(current))
        names |= current.get("properties", {}).keys()
        todo += _branches(current, follow)
    return frozenset(names)


def _branches(schema: Schema, follow: Callable[[str], Any]) -> list[Any]:
    """Return the schemas that judge the same value as `schema`, one step away."""
    inner = [each for _, each, in_place in subschemas(schema) if in_place]
    return inner + [follow(schema[key]) for key in REFERENCES if key in schema]


def _open_branches(root: Schema, follow: Callable[[str], Any]) -> set[int]:
    """Return the identities of all schemas that must stay open, because an enclosing one judges the same value."""
    found: set[int] = set()
    todo: list[Any] = []
    for _, schema in walk(root, follow):
        joint = any(key in schema for key in TOGETHER)
        if joint or ("properties" in schema and (set(ALTERNATIVES) | set(REFERENCES)) & schema.keys()):
            todo += _branches(schema, follow)
    while todo:
        schema = todo.pop()
        if isinstance(schema, dict) and id(schema) not in found:
            found.add(id(schema))
            todo += _branches(schema, follow)
    return found


def _judged_together(schema: Schema, branches: set[int], follow: Callable[[str], Any]) -> bool:
    open_below = any(id(each) in branches for each in _branches(schema, follow))
    return open_below and bool(named_properties(schema, follow))
