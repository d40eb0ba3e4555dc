"""A Tool from a typed Python function: its signature becomes the schema, its docstring the description."""

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, Optional, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from utools.annotations import find_annotated, read_annotations, read_signature
from utools.callable_tool import ClassTool, FunctionTool, MethodTool
from utools.docstring import read_docstring
from utools.errors import DefinitionError, ToolError
from utools.schema.faults import shown
from utools.schema.pointer import pointer_of
from utools.schema.shape import walk
from utools.tool import Args, Check, Effect, Execute, Tool, ToolContext, is_async, name_as_words
from utools.words.catalogue import Words, words_in
from utools.words.text import error_words

P = ParamSpec("P")
R = TypeVar("R")
WITH_JSON = (
    "a str, int, float, bool, list, dict, TypedDict, dataclass or pydantic model, or give the value "
    "to a function that makes the tool"
)
NO_SCHEMA = (PydanticUserError, TypeError, AttributeError)
"""What pydantic raises for a type that has no JSON Schema, or is no type."""
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
    function: Callable[P, R],
    *,
    code: str | None = None,
    description: str | None = None,
    scope: Mapping[str, Any] | None = None,
    **options: Unpack[ToolOptions],
) -> FunctionTool[P, R]:
    """Return the Tool that calls `function`; DefinitionError for a signature that cannot be described.

    `scope` has the names that its annotations may use beside those of its module.
    """
    of_class, is_static = isinstance(function, classmethod), isinstance(function, staticmethod)
    called: Any = function.__func__ if isinstance(function, classmethod | staticmethod) else function
    code = str(code or _name_of(called))
    is_method = of_class or (not is_static and _is_method(called))
    text, about = read_docstring(_read_doc(called))
    parameters, contexts = _read_parameters(called, f"tools.{code}", scope or {}, is_method=is_method)
    try:
        model = _make_model(parameters, about)
        schema = _make_schema(model)
    except NO_SCHEMA as error:
        raise _explain_type(parameters, f"tools.{code}", error) from None
    make_execute = partial(_make_execute, model=model, names=list(parameters), contexts=contexts)
    of_holder: Any = partial(ClassTool if of_class else MethodTool, make_execute=make_execute)
    kind = of_holder if is_method else FunctionTool
    made: FunctionTool[P, R] = kind(
        code=code,
        description=description or text or name_as_words(code),
        config_schema=schema,
        execute=make_execute(called),
        function=called,
        **options,
    )
    return made


def _name_of(function: Any) -> str:
    """Return the name of a function, of what a partial calls, or of the class of an object that is called."""
    if not callable(function) or isinstance(function, Tool):
        is_tool = f"; {function.code} is a Tool already" if isinstance(function, Tool) else ""
        message = f"@tool goes above a function; give its options by name{is_tool}"
        raise DefinitionError(message, where="tools", value=function)
    named = _without_partials(function)
    name = str(getattr(named, "__name__", type(named).__name__))
    if name == "<lambda>":
        line = f"{named.__module__}, line {named.__code__.co_firstlineno}"
        message = f'a lambda has no name that models could call; give one: tool(code="…")(lambda …), at {line}'
        raise DefinitionError(message, where="tools")
    return name


def _without_partials(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _is_method(function: Any) -> bool:
    """Return whether a function is written in a class, and its first parameter is the instance."""
    within = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    if not within or within.endswith("<locals>") or inspect.ismethod(function) or not hasattr(function, "__get__"):
        return False
    first = next(iter(read_signature(function).parameters.values()), None)
    return first is not None and (first.name in ("self", "cls") or first.annotation is inspect.Parameter.empty)


def _read_doc(function: Any) -> str:
    named = _without_partials(function)
    if hasattr(named, "__name__"):
        return inspect.getdoc(named) or ""
    return inspect.getdoc(type(named).__call__) or inspect.getdoc(type(named)) or ""


def _read_parameters(
    function: Callable[..., Any], where: str, scope: Mapping[str, Any], *, is_method: bool
) -> tuple[dict[str, tuple[Any, Any]], dict[str, Any]]:
    """Annotation and default of each argument, and the annotation of each parameter that takes the context."""
    described = [*read_signature(function).parameters.values()][1 if is_method else 0 :]
    if isinstance(function, partial):
        described = [each for each in described if each.name not in function.keywords]
    hints = _read_hints(function, where, scope, {each.name for each in described})
    parameters: dict[str, tuple[Any, Any]] = {}
    contexts: dict[str, Any] = {}
    for each in described:
        name = each.name
        if each.kind in UNNAMED:
            raise DefinitionError(f"the parameter {_explain_unnamed(each)}", where=f"{where}.{name}")
        if _is_context(hints.get(name)):
            contexts[name] = hints[name]
        elif name not in hints:
            kind = "ToolContext" if name in ("context", "ctx") else "str"
            message = f"the parameter {name!r} needs a type, such as {name}: {kind}"
            raise DefinitionError(message, where=f"{where}.{name}")
        else:
            default = ... if each.default is inspect.Parameter.empty else each.default
            parameters[name] = (hints[name], default)
    return parameters, contexts


def _takes_none(hint: Any) -> bool:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return inner in (Any, object, NoneType) or any(each in (None, NoneType) for each in get_args(inner))


def _read_hints(function: Callable[..., Any], where: str, scope: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    """Return the types of these parameters. DefinitionError names the first that cannot be read."""
    written = find_annotated(_without_partials(function))
    if inspect.isclass(written):
        return get_type_hints(written, include_extras=True)
    known, hints = _names_for(written, scope), dict[str, Any]()
    for name, annotation in read_annotations(written).items():
        if name not in names and name != "return":
            continue
        try:
            hints |= get_type_hints(SimpleNamespace(__annotations__={name: annotation}), known, include_extras=True)
        except (NameError, AttributeError, TypeError, SyntaxError) as fault:
            of = "result" if name == "return" else f"parameter {name!r}"
            message = f"the type of the {of} cannot be read: {error_words(fault)}; import it, or correct it"
            raise DefinitionError(message, where=f"{where}.{name}") from None
    return hints


def _names_for(function: Any, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a function's module; of one that is written in another, or in a class, those there first."""
    own: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    return {**own, **scope} if "." in getattr(function, "__qualname__", "") else {**scope, **own}


def _explain_unnamed(parameter: inspect.Parameter) -> str:
    """Return what a parameter is that no name reaches, and what to write in its place."""
    name, given = parameter.name, parameter.annotation
    kind = "str" if given is inspect.Parameter.empty else inspect.formatannotation(given)
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return f"'*{name}' stands for any number of arguments; write {name}: list[{kind}]"
        case inspect.Parameter.VAR_KEYWORD:
            written = f"dict[str, {kind}]"
            if get_origin(given) is Unpack:  # **kw: Unpack[Named]
                of_all = get_args(given)[0]
                written = getattr(of_all, "__forward_arg__", None) or inspect.formatannotation(of_all)
            return f"'**{name}' stands for any number of arguments; write {name}: {written}"
        case _:
            return f"{name!r} is positional-only, and calls give arguments by name; remove the / after it"


def _is_context(hint: Any) -> bool:
    """Return whether a parameter takes the context: ToolContext, ToolContext[Deps], or one of these among others."""
    origin = get_origin(hint)
    return ToolContext in (hint, origin) or (origin is not None and any(map(_is_context, get_args(hint))))


def _needs_deps(hint: Any) -> bool:
    """Return whether a context's annotation names a class that None is none of."""
    if get_origin(hint) is ToolContext:
        kind = get_args(hint)[0]
        may_be_none = kind in (Any, object, NoneType) or NoneType in get_args(kind)
        return inspect.isclass(get_origin(kind) or kind) and not may_be_none
    return any(map(_needs_deps, get_args(hint)))


def _make_model(parameters: dict[str, tuple[Any, Any]], about: dict[str, str]) -> type[BaseModel]:
    """Return a model that has the names as aliases: as fields they could collide with pydantic's own (`json`,
    `copy`)."""
    fields: dict[str, Any] = {}
    for index, (name, (hint, default)) in enumerate(parameters.items()):
        said = about.get(name) or _text_of(hint)
        described = Field(description=said) if said else Field()
        given: Any = Field(default, alias=name)
        if isinstance(default, FieldInfo):  # `city: str = Field(description="…")`
            hint, given = Annotated[hint, default], _default_of(default, name)
        elif default is None and not _takes_none(hint):  # `days: int = None` says that it may be None
            hint = Optional[hint]  # noqa: UP045 - a value, which may be no type
        fields[f"p{index}"] = (Annotated[hint, described], given)
    return create_model("Args", __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)


def _default_of(field: FieldInfo, name: str) -> Any:
    if field.default_factory is not None:
        return Field(default_factory=field.default_factory, alias=name)
    return Field(... if field.is_required() else field.default, alias=name)


def _text_of(hint: Any) -> str | None:
    """Return the text that an annotation carries, as `Annotated[str, "The city."]` or by `Doc("The city.")`."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    texts = (getattr(each, "documentation", each) for each in marks)
    return next((each for each in texts if isinstance(each, str)), None)


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
        except NO_SCHEMA as fault:
            kind = inspect.formatannotation(hint)
            if getattr(fault, "code", None) == "typed-dict-version":
                message = f"the parameter {name!r} has {kind}; before Python 3.12 its TypedDict is of typing_extensions"
                return DefinitionError(message, where=f"{where}.{name}")
            message = f"the parameter {name!r} has a type without a JSON form, {kind}; take {WITH_JSON}"
            return DefinitionError(message, where=f"{where}.{name}")
    return DefinitionError(f"the signature cannot be described: {error_words(error)}", where=where)


def _make_execute(
    function: Callable[..., Any], *, model: type[BaseModel], names: list[str], contexts: dict[str, Any]
) -> Execute:
    """`execute(args, context)`, async if the function is."""
    needs_deps = any(map(_needs_deps, contexts.values()))

    def arguments(args: Args, context: ToolContext) -> dict[str, Any]:
        try:
            typed = model.model_validate(args)
        except ValidationError as error:
            words = words_in(context.language)
            raise ToolError(words.invalid_arguments.format(faults=list_model_faults(error, words))) from None
        if needs_deps and context.deps is None:
            raise ToolError("the tool takes what the program gives its run as deps=, and this run was given nothing")
        values = {name: getattr(typed, f"p{index}") for index, name in enumerate(names)}
        return values | dict.fromkeys(contexts, context)

    if is_async(function):

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
