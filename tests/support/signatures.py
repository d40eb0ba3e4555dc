"""What the signatures, the `raise` statements and the docstrings of public names say: the classes of ours in them."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from textwrap import dedent
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

PACKAGES = ("utools", "agent_core", "engine_shim")
CALLED = ("__init__", "__call__")


def is_ours(value: Any) -> bool:
    return inspect.isclass(value) and value.__module__.partition(".")[0] in PACKAGES


def classes_in(hint: Any) -> Iterator[type]:
    """The classes of ours that an annotation names, at any depth."""
    kind = getattr(hint, "__pydantic_generic_metadata__", {}).get("origin") or get_origin(hint) or hint
    if is_ours(kind):
        yield kind
    for given in get_args(hint):
        for each in given if isinstance(given, list | tuple) else [given]:
            yield from classes_in(each)


def named_classes(value: Any) -> Iterator[type]:
    """The classes of ours in the signature of a function, of a class' public methods and attributes, or in an alias."""
    if not inspect.isclass(value):
        yield from _of_signature(value) if inspect.isfunction(value) else classes_in(value)
        return
    for base in filter(is_ours, value.__mro__):
        for name, hint in _hints(base).items():
            yield from () if name.startswith("_") else classes_in(hint)
    for function in public_functions(value).values():
        yield from _of_signature(function)


def public_functions(owner: type) -> dict[str, Any]:
    """The public methods and properties of a class that are ours, and how it is made and called."""
    found: dict[str, Any] = {}
    fields = {name for base in owner.__mro__ for name in vars(base).get("__annotations__", {})}
    for name in sorted({name for base in filter(is_ours, owner.__mro__) for name in vars(base)} - fields):
        if not name.startswith("_") or name in CALLED:
            value = inspect.getattr_static(owner, name)
            value = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            if inspect.isfunction(value) and value.__module__.partition(".")[0] in PACKAGES:
                found[name] = value
    return found


def raised_classes(value: Any) -> Iterator[type]:
    """The exceptions of ours that the functions of a public name raise, or that their docstrings name."""
    functions = [*public_functions(value).values()] if inspect.isclass(value) else [inspect.unwrap(value)]
    for function in functions if inspect.isclass(value) or inspect.isfunction(functions[0]) else []:
        if function.__module__.partition(".")[0] not in PACKAGES or not function.__code__.co_filename.endswith(".py"):
            continue
        try:
            tree = ast.parse(dedent(inspect.getsource(function)))
        except OSError:  # made by dataclass
            continue
        raised = [ast.unparse(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
        words = re.findall(r"\b[A-Z]\w+", " ".join([*raised, inspect.getdoc(function) or ""]))
        yield from (each for each in map(_exceptions().get, words) if each is not None)


@lru_cache
def _exceptions() -> dict[str, type]:
    """All exceptions of ours that are imported by now, by name."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    found = {name: each for module in modules for name, each in vars(module).items() if is_ours(each)}
    return {name: each for name, each in found.items() if issubclass(each, BaseException)}


def _of_signature(function: Any) -> Iterator[type]:
    for hint in _hints(inspect.unwrap(function)).values():
        yield from classes_in(hint)


def _hints(value: Any) -> dict[str, Any]:
    return get_type_hints(value, _names_of(sys.modules[value.__module__]), include_extras=True)


@lru_cache
def _names_of(module: ModuleType) -> dict[str, Any]:
    """The names of a module, and those that it imports for type checkers alone."""
    found: dict[str, Any] = {}
    for block in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    found |= {each.asname or each.name: _get(line.module, each.name) for each in line.names}
                elif isinstance(line, ast.Import):
                    found |= {
                        each.name.partition(".")[0]: import_module(each.name.partition(".")[0]) for each in line.names
                    }
    return {**found, **vars(module)}


def _get(module: str, name: str) -> Any:
    """A name of a module; Any where the module needs an extra that is not installed."""
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in PACKAGES:
            raise
        return Any


# ── the attributes of a class, and what its docstring says of them ───────────────────────────────


def public_attributes(owner: type) -> dict[str, str]:
    """The public attributes of a class that are ours, each with its docstring; empty for one that has none."""
    found: dict[str, str] = {}
    for base in [base for base in reversed(owner.__mro__) if is_ours(base)]:
        tree = ast.parse(dedent(inspect.getsource(base))).body[0]
        assert isinstance(tree, ast.ClassDef)
        found |= {name: "" for name in _names_set(tree) if name not in found} | _of_fields(base)
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                found |= dict.fromkeys(_targets(node), ast.unparse(after.value).strip("'\""))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] = ast.get_docstring(node) or found.get(node.name, "")
        found |= read_section(inspect.getdoc(base) or "", "Attributes")
    return {name: text for name, text in found.items() if not name.startswith("_") and name != "model_config"}


def read_section(docstring: str, section: str) -> dict[str, str]:
    """The names of a section of a docstring in Google's form, each with its text."""
    body = re.search(rf"^{section}:\n((?:    .*\n?|\n)+)", docstring, re.M)
    return dict(re.findall(r"^    (\w+): (.*)", body[1], re.M)) if body else {}


def read_example(value: Any) -> str:
    """The program in the `Example:` of a docstring."""
    body = re.search(r"^Example:\n    ```python\n(.*?)^    ```", inspect.getdoc(value) or "", re.M | re.S)
    assert body, f"{value.__name__} has no Example"
    return dedent(body[1])


def _names_set(tree: ast.ClassDef) -> Iterator[str]:
    """The names that a class body sets, and those that its `__init__` gives an instance."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _targets(node)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for line in ast.walk(node):
                if isinstance(line, ast.Attribute) and isinstance(line.ctx, ast.Store):
                    yield line.attr


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield ast.unparse(target)


def _of_fields(base: type) -> dict[str, str]:
    """The descriptions of a pydantic model's fields."""
    fields = vars(base).get("__pydantic_fields__", {})
    return {name: field.description for name, field in fields.items() if field.description}
