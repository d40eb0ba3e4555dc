"""A Tool from a typed Python function: its signature becomes the schema, its docstring the description."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, Unpack, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from utools.errors import DefinitionError, ToolError
from utools.schema.faults import shown
from utools.schema.pointer import pointer_of
from utools.schema.shape import walk
from utools.tool import Args, Check, Effect, Tool, ToolContext, name_as_words
from utools.words.catalogue import Words, words_in
from utools.words.text import error_words

ARGS_SECTION = re.compile(r"\n?^(?:Args|Arguments|Parameters):[ \t]*\n((?:[ \t]+.*(?:\n|$)|[ \t]*\n)*)", re.MULTILINE)
PARAMETER = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
WITH_JSON = (
    "a str, int, float, bool, list, dict, TypedDict, dataclass or pydantic model, or give the value "
    "to a function that makes the tool"
)
UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class ToolOptions(TypedDict, total=False):
    """What a Tool has beside its function, as `@tool` describes it."""

    effect: Effect | Callable[[Args], Effect] | Mapping[str, Any]
    idempotent: bool
    output_schema: dict[str, Any] | None
    cache: Mapping[str, Any] | None
    check: Check | None
    examples: Sequence[Mapping[str, Any]]
    node_only: bool


def from_function(
    function: Callable[..., Any],
    *,
    code: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool:
    """Return the Tool that calls `function`; DefinitionError for a signature that cannot be described."""
    if not callable(function):
        raise DefinitionError("@tool goes above a function; give its options by name", where="tools", value=function)
    code = str(code or getattr(function, "__name__", ""))
    where = f"tools.{code}"
    text, about = read_docstring(inspect.getdoc(function) or "")
    parameters, context_names = _read_parameters(function, where)
    try:
        model = _make_model(parameters, about)
        schema = _make_schema(model)
    except (PydanticUserError, TypeError) as error:
        raise _explain_type(parameters, where, error) from None
    return Tool(
        code=code,
        description=description or text or name_as_words(code),
        config_schema=schema,
        execute=_make_execute(function, model, list(parameters), context_names),
        **options,
    )


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a Google-style docstring without `Args:`, and the descriptions of the parameters in it."""
    section = ARGS_SECTION.search(docstring)
    if section is None:
        return docstring.strip(), {}
    text = docstring[: section.start()].rstrip() + "\n\n" + docstring[section.end() :].lstrip("\n")
    about: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(section[1]).splitlines():
        found = PARAMETER.match(line)
        if found:
            name = found[1]
            about[name] = found[2].strip()
        elif name and line.strip():
            about[name] = f"{about[name]} {line.strip()}".strip()
    return text.strip(), about


def _read_parameters(function: Callable[..., Any], where: str) -> tuple[dict[str, tuple[Any, Any]], list[str]]:
    """Annotation and default of each argument, and the names of the parameters that take the context."""
    hints = _read_hints(function, where)
    parameters: dict[str, tuple[Any, Any]] = {}
    context_names: list[str] = []
    for name, each in inspect.signature(function).parameters.items():
        if each.kind in UNNAMED:
            raise DefinitionError(f"the parameter {_explain_unnamed(each)}", where=f"{where}.{name}")
        if _is_context(hints.get(name)):
            context_names.append(name)
        elif name not in hints:
            message = f"the parameter {name!r} needs a type, such as {name}: str"
            raise DefinitionError(message, where=f"{where}.{name}")
        else:
            default = ... if each.default is inspect.Parameter.empty else each.default
            parameters[name] = (hints[name], default)
    return parameters, context_names


def _read_hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    """Return the types of the parameters. DefinitionError names the first that cannot be read."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        for name, annotation in inspect.get_annotations(function).items():
            try:
                get_type_hints(SimpleNamespace(__annotations__={name: annotation}), vars(inspect.getmodule(function)))
            except (NameError, AttributeError, TypeError, SyntaxError) as fault:
                of = "result" if name == "return" else f"parameter {name!r}"
                message = f"the type of the {of} cannot be read: {fault}; import it, or correct it"
                raise DefinitionError(message, where=f"{where}.{name}") from None
        raise DefinitionError(f"an annotation cannot be read: {error_words(error)}", where=where) from None


def _explain_unnamed(parameter: inspect.Parameter) -> str:
    """Return what a parameter is that no name reaches, and what to write in its place."""
    name, given = parameter.name, parameter.annotation
    kind = "str" if given is inspect.Parameter.empty else inspect.formatannotation(given)
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return f"'*{name}' stands for any number of arguments; write {name}: list[{kind}]"
        case inspect.Parameter.VAR_KEYWORD:
            return f"'**{name}' stands for any number of arguments; write {name}: dict[str, {kind}]"
        case _:
            return f"{name!r} is positional-only, and calls give arguments by name; remove the / after it"


def _is_context(hint: Any) -> bool:
    """Return whether a parameter takes the context: ToolContext, ToolContext[Deps], or one of these among others."""
    origin = get_origin(hint)
    return ToolContext in (hint, origin) or (origin is not None and any(map(_is_context, get_args(hint))))


def _make_model(parameters: dict[str, tuple[Any, Any]], about: dict[str, str]) -> type[BaseModel]:
    """Return a model that has the names as aliases: as fields they could collide with pydantic's own (`json`,
    `copy`)."""
    fields: dict[str, Any] = {}
    for index, (name, (hint, default)) in enumerate(parameters.items()):
        description = Field(description=about[name]) if name in about else Field()
        fields[f"p{index}"] = (Annotated[hint, description], Field(default, alias=name))
    return create_model("Args", __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)


def _make_schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    for _, each in walk(schema):
        each.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _explain_type(parameters: dict[str, tuple[Any, Any]], where: str, error: Exception) -> DefinitionError:
    """Return which parameter has a type that JSON cannot hold, and what it may be."""
    for name, (hint, _) in parameters.items():
        try:
            TypeAdapter(hint).json_schema()
        except (PydanticUserError, TypeError):
            kind = inspect.formatannotation(hint)
            message = f"the parameter {name!r} has a type without a JSON form, {kind}; take {WITH_JSON}"
            return DefinitionError(message, where=f"{where}.{name}")
    return DefinitionError(f"the signature cannot be described: {error_words(error)}", where=where)


def _make_execute(
    function: Callable[..., Any], model: type[BaseModel], names: list[str], context_names: list[str]
) -> Callable[[Args, ToolContext], Any]:
    """`execute(args, context)`, async if the function is."""

    def arguments(args: Args, context: ToolContext) -> dict[str, Any]:
        try:
            typed = model.model_validate(args)
        except ValidationError as error:
            words = words_in(context.language)
            raise ToolError(words.invalid_arguments.format(faults=list_model_faults(error, words))) from None
        values = {name: getattr(typed, f"p{index}") for index, name in enumerate(names)}
        return values | dict.fromkeys(context_names, context)

    if inspect.iscoroutinefunction(function):

        async def execute(args: Args, context: ToolContext) -> Any:
            return await function(**arguments(args, context))

        return execute

    def execute_sync(args: Args, context: ToolContext) -> Any:
        return function(**arguments(args, context))

    return execute_sync


def list_model_faults(error: ValidationError, words: Words) -> str:
    """Return what is wrong with arguments by their types, in words for a model."""
    return " ".join([explain_fault(each, words) for each in error.errors(include_url=False)])


def explain_fault(fault: Any, words: Words) -> str:
    """Return what pydantic finds wrong, in our words where the language is not its own."""
    texts, kind = words.by_pydantic_type, fault["type"]
    problem = texts.get(kind, texts.get("", "")).format(type=kind, **fault.get("ctx", {})) or fault["msg"]
    at = pointer_of(fault["loc"]) or words.the_value
    if kind == "missing":
        return words.python_fault_without_value.format(at=at, problem=problem)
    return words.python_fault.format(at=at, problem=problem, got=shown(fault["input"]))
