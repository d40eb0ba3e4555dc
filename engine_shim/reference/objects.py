"""What the modules define, as griffe reads it, and how that is written."""

from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from utools.lazy_pattern import lazy_compile

if TYPE_CHECKING:
    import griffe

PACKAGES: Final = ("utools", "agent_core", "engine_shim")
POSITIONAL, KEYWORD, VARIADIC = "positional-only", "keyword-only", "variadic positional"
NAME: Final = lazy_compile(r"\b[A-Za-z_]\w*\b")
LITERAL: Final = lazy_compile(r"[\d_.]+|\"[^\"]*\"")
STARS: Final = {VARIADIC: "*", "variadic keyword": "**"}


def load_modules() -> "griffe.ModulesCollection":
    """Return the modules as they are written: nothing of them is executed."""
    try:
        import griffe
    except ImportError:
        raise ImportError("the reference needs the extra docs: pip install 'agent-core[docs]'") from None
    folder = Path(__file__).parents[2]
    loader = griffe.GriffeLoader(search_paths=[folder])
    for package in PACKAGES:
        loader.load(package)
    return loader.modules_collection


def names_of(menu: str) -> list[str]:
    module = import_module(menu)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, each in vars(module).items() if isclass(each) and each.__module__ == menu]


def value_of(menu: str, name: str) -> Any:
    """Return what a menu offers; None where that needs a library that is not installed."""
    try:
        return getattr(import_module(menu), name)
    except ImportError:
        return None


def defined(found: Any) -> Any:
    """Return what a name stands for, where another module has it from its own."""
    return found.final_target if found.is_alias else found


def methods_of(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class."""
    if found.is_class:
        for name, each in found.all_members.items():
            if not name.startswith("_") and (each.is_function or is_property(each)):
                yield name, each


def is_protocol(found: Any) -> bool:
    return bool(found.is_class and "Protocol" in map(str, found.bases))


def is_property(member: Any) -> bool:
    return bool(member.is_attribute and "property" in member.labels)


def write_parameters(found: Any, parameters: list[Any]) -> Iterator[str]:
    """Yield the parameters of a function as they are written, with the marks of those that are given by position or by
    name alone, and the value of a constant in place of its name."""
    before = ""
    for each in parameters:
        kind = each.kind.value
        if before == POSITIONAL != kind:
            yield "/"
        if kind == KEYWORD and before not in (KEYWORD, VARIADIC):
            yield "*"
        default = "" if each.default is None or kind in STARS else f" = {_value_of_constant(found, str(each.default))}"
        yield f"{STARS.get(kind, '')}{each.name}: {each.annotation}{default}"
        before = kind
    if before == POSITIONAL:
        yield "/"


def docstring_of(found: Any) -> str:
    return str(found.docstring.value) if found.docstring else ""


def summary_of(found: Any) -> str:
    return docstring_of(found).split("\n\n", 1)[0]


def is_exception(menu: str, name: str) -> bool:
    value = value_of(menu, name)
    return isclass(value) and issubclass(value, BaseException)


def as_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def find_name(found: Any, name: str) -> Any:
    """Return what a name means where something of ours is defined; None for a name that is not ours."""
    import griffe

    try:
        path = found.resolve(name)
        return defined(found.modules_collection[path]) if path.startswith(PACKAGES) else None
    except (griffe.NameResolutionError, LookupError):
        return None


def write_default(field: Any) -> str:
    """Return the default of a pydantic field as JSON has it."""
    if field.is_required():
        return "required"
    from pydantic_core import to_json

    return f"`{to_json(field.get_default(call_default_factory=True), fallback=repr).decode()}`"


def _value_of_constant(found: Any, written: str) -> str:
    """Return the value of a constant that stands for a number or a text; anything else as it is written."""
    constant = find_name(found, written) if NAME.fullmatch(written) else None
    value = str(constant.value) if constant is not None and constant.is_attribute else ""
    return value if LITERAL.fullmatch(value) else written
