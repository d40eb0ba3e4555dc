"""The inputs of a run: checked against `inputs`, with its defaults, and enough for every placeholder. Pure.

Where a definition gives them to a workflow that it invokes, all but what placeholders give is checked before a run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from engine_shim.definition.errors import Problem, problem_of, refuse
from engine_shim.definition.model import Definition, PlacedPlaceholder
from engine_shim.definition.template import Placeholder, look_up, read_placeholders
from engine_shim.definition.uses import ToolUse
from engine_shim.errors import DefinitionError
from utools.lazy_pattern import lazy_compile
from utools.near_names import near_names
from utools.schema.compiled import compile_schema
from utools.schema.config_schema import ConfigSchema
from utools.schema.faults import hint
from utools.schema.json_value import NotJson, as_json
from utools.schema.shape import KNOWN, find_unknown_keywords

PLAIN = frozenset({"$comment", "$schema", "description", "examples", "properties", "required", "title", "type"})
"""Keys of a schema that leave no other property to the author's will."""
SHORTEST_PART, MISSPELT = 3, 0.77
"""Letters of a part that stands for a keyword, and how near to one a word is that is taken for it."""
_EXTERNAL = lazy_compile(r"""\bexternal\b(?:\.(\w+)|\."([^"]*)")?""")


def external_of(definition: Definition, inputs: Mapping[str, Any], always_run: Set[str]) -> dict[str, Any]:
    """Return the run's `external`: the inputs, and the `default` of each declared one that is missing.

    DefinitionError for what is not JSON, does not fit `inputs`, or lacks a name that a placeholder in a node that is
    `always_run` reads.
    """
    if not isinstance(inputs, Mapping):
        raise DefinitionError('must be an object, such as {"message": …}', where="external", value=inputs)
    try:
        external = as_json(dict(inputs))
    except NotJson as error:
        raise DefinitionError(f"an input is not JSON: {error}", where="external") from None
    external = {**as_json(_defaults(definition)), **external}
    _check_schema(definition, external)
    for placed in _certainly_filled(definition, always_run):
        each = placed.require()
        if each.path[0] == "external":
            _check_given(each, external, placed.where)
    return external


def _check_given(each: Placeholder, external: Mapping[str, Any], where: str) -> None:
    """DefinitionError for a placeholder that the inputs do not fill, with what to do about it."""
    try:
        look_up(each, {"external": external}, where)
    except DefinitionError as error:
        name = each.path[1]
        if name in external:
            raise
        ways = f"give it (--input {name}=…), set its default in inputs{_advice(each, where)}"
        raise DefinitionError(f"{error.message}; {ways}", where=where, value=error.value) from None


def doubtful_inputs(definition: Definition, always_run: Set[str]) -> Iterator[Problem]:
    """Inputs that `inputs` does not ask for, and without which no run starts."""
    if definition.inputs is None:
        return
    for key in sorted(definition.inputs.keys() & (_names_read(definition) or set()) - PLAIN):
        message = f"declares no input: `inputs` is a JSON Schema, and inputs are below properties: {{{key}: …}}"
        yield Problem(f"inputs/{key}", message)
    yield from misspelt_keywords(definition.inputs, "inputs")
    yield from _impossible_inputs(definition)
    yield from _wrong_defaults(definition)
    given = {*_defaults(definition), *(each for each in _required(definition) if isinstance(each, str))}
    for placed in _certainly_filled(definition, always_run):
        each, where = placed.read, placed.where
        if isinstance(each, DefinitionError):  # reported as a problem
            continue
        if each.path[0] == "external" and not each.optional and each.path[1] not in given:
            fault = f"{each}: a run without the input {each.path[1]!r} is refused"
            yield Problem(where, f"{fault}; add it to required, set its default{_advice(each, where)}")


def _impossible_inputs(definition: Definition) -> Iterator[Problem]:
    """Yield what no run can be started with: another type than an object, and inputs that are refused and required."""
    kinds = (definition.inputs or {}).get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        yield Problem("inputs/type", f"{kinds}: the inputs of a run are an object, and any run is refused")
    if lists_inputs(definition):
        required = _required(definition)
        for name in unread_inputs(definition, [each for each in required if isinstance(each, str)]):
            message = f"{name} is none of the properties: servers and commands refuse it, and every run without it"
            yield Problem(f"inputs/required/{required.index(name)}", message)


def misspelt_keywords(schema: dict[str, Any], where: str) -> Iterator[Problem]:
    """Yield the keys of a schema that check nothing, and were meant to."""
    for pointer, key in find_unknown_keywords(schema):
        if meant := _find_meant(key):
            message = f"is no keyword of JSON Schema, and checks nothing; did you mean {meant}?"
            yield Problem(f"{where}{pointer}/{key}", message)


def _find_meant(key: str) -> str | None:
    """Return the keyword that a key is written for: as a part of it (`min`) or misspelt. None for a word of another
    program, such as enumNames."""
    word, known = key.lower(), {each.lower(): each for each in sorted(KNOWN)}
    begun = [each for each in known if each.startswith(word)] if len(word) >= SHORTEST_PART else []
    swaps = (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))
    swapped = [each for each in swaps if each in known]  # tpye: words of four letters are not that near
    near = near_names(word, list(known), cutoff=MISSPELT) or swapped or near_names(word, begun, cutoff=0.0)
    meant = known[near[0]] if near else ""
    is_longer = key.startswith(meant) and key[len(meant) :][:1].isupper()  # minLengthMessage
    return None if is_longer else meant or None


def _wrong_defaults(definition: Definition) -> Iterator[Problem]:
    """Yield each default that its own schema refuses."""
    defaults = _defaults(definition)
    try:
        schema = input_schema(definition) if defaults else None
    except DefinitionError:  # reported as a problem
        return
    for fault in schema.faults(defaults) if schema is not None else ():
        name, slash, inner = fault.pointer[1:].partition("/")
        if name in defaults:
            where = f"inputs/properties/{name}/default{slash}{inner}"
            yield Problem(where, f"{problem_of(fault, where).message}: a run without the input {name!r} is refused")


def unread_inputs(definition: Definition, names: Iterable[str]) -> list[str]:
    """Return the names among these that `inputs` does not declare, and that nothing in the definition reads."""
    read = _names_read(definition)
    return [] if read is None else [name for name in names if name not in read and name not in _declared(definition)]


def lists_inputs(definition: Definition) -> bool:
    """Return whether `inputs` names all inputs that its author thought of: by properties, and by nothing else."""
    return bool(_declared(definition)) and (definition.inputs or {}).keys() <= PLAIN


def unlisted_inputs(definition: Definition, names: Iterable[str]) -> list[Problem]:
    """Return the names among these that are none of the inputs that the author lists, each with what may be meant."""
    if not lists_inputs(definition):
        return []
    return [Problem(f"external/{name}", explain_unread(definition, name)) for name in unread_inputs(definition, names)]


def explain_unread(definition: Definition, name: str) -> str:
    """Return what to do about an input that nothing reads."""
    known = sorted({*_declared(definition), *(_names_read(definition) or ())})
    return f"the workflow {definition.id!r} has no such input; {hint(name, known)}"


def _names_read(definition: Definition) -> set[str] | None:
    """Return the inputs that placeholders and conditions name; None where a condition takes all of them."""
    found = (placed.read for placed in definition.placeholders)
    names = {each.path[1] for each in found if isinstance(each, Placeholder) and each.path[0] == "external"}
    for edge in definition.edges or ():
        for name, quoted in _EXTERNAL.findall(edge.when or ""):
            if not (name or quoted):
                return None
            names.add(name or quoted)
    return names


def _advice(each: Placeholder, where: str) -> str:
    """Return how to do without a value, where null would do."""
    is_list = where.endswith("/foreach")
    return ", such as []" if is_list else f", or write {each._replace(optional=True)} to get null"


def _required(definition: Definition) -> Sequence[str]:
    required: Any = (definition.inputs or {}).get("required")
    return required if isinstance(required, list) else ()


def _defaults(definition: Definition) -> dict[str, Any]:
    declared = _declared(definition).items()
    return {name: each["default"] for name, each in declared if isinstance(each, dict) and "default" in each}


def _declared(definition: Definition) -> Mapping[str, Any]:
    declared: Any = (definition.inputs or {}).get("properties")
    return declared if isinstance(declared, dict) else {}


def closed_inputs(definition: Definition) -> Set[str] | None:
    """Return the names of the inputs, where no others may be given; None where others may."""
    return _declared(definition).keys() if _is_closed(definition.inputs or {}) else None


def _is_closed(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def input_schema(definition: Definition) -> ConfigSchema | None:
    """Return the validator of `inputs`; None when there are none. DefinitionError when they are not a JSON Schema."""
    return None if definition.inputs is None else compile_schema(definition.inputs, where="inputs")


def _check_schema(definition: Definition, external: Mapping[str, Any]) -> None:
    schema = input_schema(definition)
    if schema is not None:
        refuse(problem_of(fault, "external", _known_inputs(definition)) for fault in schema.faults(external))


def _known_inputs(definition: Definition) -> str:
    declared = sorted(_declared(definition))
    return f"; the inputs are {', '.join(declared)}" if declared else ""


def _certainly_filled(definition: Definition, always_run: Set[str]) -> list[PlacedPlaceholder]:
    """Return the placeholders that each run fills: no run starts that would fail later for want of an input."""
    return [each for each in definition.placeholders if each.node is None or each.node.id in always_run]


# ── given by another definition ──────────────────────────────────────────────────────────────────


def invoked_input_faults(use: ToolUse, below: Definition, always_run: Set[str]) -> Iterator[Problem]:
    """Yield what is wrong with the inputs that a use of `invoke_workflow` gives, as far as they are known."""
    inputs, where = use.config.get("inputs", {}), f"{use.where}/inputs"
    if not isinstance(inputs, dict):  # filled in as a whole, or reported as another type
        return
    external = {**_defaults(below), **inputs}
    try:
        schema = input_schema(below)
        reads = [each.require() for each in _certainly_filled(below, always_run)]
    except DefinitionError:  # reported as a fault of that workflow
        return
    if schema is not None:
        later = {place for place, _ in read_placeholders(external, where)}
        yield from faults_beside_placeholders(schema, external, where, later, lambda name: _known_inputs(below))
    required = schema.schema.get("required", ()) if schema is not None else ()
    for each in dict.fromkeys(reads):
        if each.path[0] == "external" and not each.optional and each.path[1] not in {*external, *required}:
            message = f"{use.config['workflow']} reads {each}, which is not among them"
            yield Problem(where, f"{message}{_known_inputs(below)}")


def faults_beside_placeholders(
    schema: ConfigSchema, value: Mapping[str, Any], where: str, later: Set[str], describe: Callable[[str], str]
) -> Iterator[Problem]:
    """Yield what a schema refuses, except for the values at `later` places, which placeholders give when the node runs.

    `describe` says what to add to the fault of a key.
    """
    own = schema.schema
    closed = own.get("properties", {}).keys() if _is_closed(own) else None
    for fault in schema.faults(value):
        name, location = fault.pointer[1:].partition("/")[0], f"{where}{fault.pointer}"
        unknown = bool(name) and closed is not None and name not in closed
        if unknown or not _overlaps(location, later):
            yield problem_of(fault, where, "" if unknown else describe(name))


def _overlaps(location: str, later: Set[str]) -> bool:
    """Return whether a place holds, or is inside, a value that a placeholder gives only when the node runs."""
    return any(
        location == other or other.startswith(f"{location}/") or location.startswith(f"{other}/") for other in later
    )
