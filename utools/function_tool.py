"""A Tool from a typed Python function: its signature becomes the schema, its docstring the description."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from utools.errors import DefinitionError, ToolError
from utools.schema.pointer import pointer_of
from utools.schema.shape import walk
from utools.tool import Args, Tool, ToolContext

ARGS_SECTION = re.compile(r"\n?^(?:Args|Arguments|Parameters):[ \t]*\n((?:[ \t]+.*(?:\n|$)|[ \t]*\n)*)", re.MULTILINE)
PARAMETER = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def from_function(
    function: Callable[..., Any], *, code: str | None = None, description: str | None = None, **options: Any
) -> Tool:
    """The Tool that calls `function`; DefinitionError for a signature that cannot be described."""
    code = str(code or getattr(function, "__name__", ""))
    where = f"tools.{code}"
    text, about = read_docstring(inspect.getdoc(function) or "")
    parameters, context_names = _read_parameters(function, where)
    model = _make_model(parameters, about, where)
    return Tool(
        code=code,
        description=description or text or code.replace("_", " "),
        config_schema=_make_schema(model, where),
        execute=_make_execute(function, model, list(parameters), context_names),
        **options,
    )


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """The text of a Google-style docstring without `Args:`, and the descriptions of the parameters in it."""
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
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DefinitionError(f"an annotation cannot be read: {error}", where=where) from None
    parameters: dict[str, tuple[Any, Any]] = {}
    context_names: list[str] = []
    for name, each in inspect.signature(function).parameters.items():
        if each.kind in UNNAMED:
            raise DefinitionError("every parameter of a tool needs a name", where=where, value=str(each))
        if _is_context(hints.get(name)):
            context_names.append(name)
        elif name not in hints:
            raise DefinitionError("every parameter of a tool needs a type", where=f"{where}.{name}")
        else:
            default = ... if each.default is inspect.Parameter.empty else each.default
            parameters[name] = (hints[name], default)
    return parameters, context_names


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or (get_origin(hint) is not None and ToolContext in get_args(hint))


def _make_model(parameters: dict[str, tuple[Any, Any]], about: dict[str, str], where: str) -> type[BaseModel]:
    """A model that has the names as aliases: as fields they could collide with pydantic's own (`json`, `copy`)."""
    fields: dict[str, Any] = {}
    for index, (name, (hint, default)) in enumerate(parameters.items()):
        description = Field(description=about[name]) if name in about else Field()
        fields[f"p{index}"] = (Annotated[hint, description], Field(default, alias=name))
    config = ConfigDict(extra="forbid", protected_namespaces=())
    try:
        return create_model("Args", __config__=config, **fields)
    except (PydanticUserError, TypeError) as error:
        raise DefinitionError(f"the signature cannot be described: {error}", where=where) from None


def _make_schema(model: type[BaseModel], where: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise DefinitionError(f"the signature has no JSON Schema: {error}", where=where) from None
    for _, each in walk(schema):
        each.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _make_execute(
    function: Callable[..., Any], model: type[BaseModel], names: list[str], context_names: list[str]
) -> Callable[[Args, ToolContext], Any]:
    """`execute(args, context)`, async if the function is."""

    def arguments(args: Args, context: ToolContext) -> dict[str, Any]:
        try:
            typed = model.model_validate(args)
        except ValidationError as error:
            raise ToolError(f"Invalid arguments: {_list_faults(error)}") from None
        values = {name: getattr(typed, f"p{index}") for index, name in enumerate(names)}
        return values | dict.fromkeys(context_names, context)

    if inspect.iscoroutinefunction(function):

        async def execute(args: Args, context: ToolContext) -> Any:
            return await function(**arguments(args, context))

        return execute

    def execute_sync(args: Args, context: ToolContext) -> Any:
        return function(**arguments(args, context))

    return execute_sync


def _list_faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{pointer_of(each['loc'])}: {each['msg']}" for each in faults)
