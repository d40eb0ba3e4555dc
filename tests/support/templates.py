"""The texts that code makes for a model from a template: where each is, and the values that it is given."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOOL_ERRORS = {"ToolError", "SandboxError", "NetworkError", "ResultError", "WrongType", "_ForgottenError"}
MAKERS = {"Text", *TOOL_ERRORS}
READ_BY_MODELS = {
    *TOOL_ERRORS,
    "ConnectionResetError",
    "ConnectionRefusedError",
    "TimeoutError",
    "QueryError",
    "Damaged",
}
"""Errors whose words a model reads."""
NOT_VALUES = {"transient"}


class Made(NamedTuple):
    """A call that makes a text. `template` is None where it is no literal."""

    where: str
    template: str | None
    values: frozenset[str]


def texts_in(path: Path) -> Iterator[Made]:
    """The texts that a module makes."""
    for node in _calls(path, MAKERS):
        values = frozenset(str(each.arg) for each in node.keywords) - NOT_VALUES
        first = node.args[0]
        literal = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
        yield Made(f"{path.name}:{node.lineno}", literal, values)


def fixed_in(path: Path) -> Iterator[str]:
    """Where a module gives an error for a model words that no template makes: `raise TimeoutError(f"…")`."""
    for node in _calls(path, READ_BY_MODELS):
        no_template = READ_BY_MODELS - MAKERS
        kinds = (ast.JoinedStr, ast.Constant) if _name(node) in no_template else ast.JoinedStr
        if isinstance(node.args[0], kinds):
            yield f"{path.name}:{node.lineno}"
    for node in _calls(path, {"ToolResult"}, bare=True):
        given = [*node.args[2:3], *(each.value for each in node.keywords if each.arg == "error")]
        if any(isinstance(each, ast.JoinedStr) or _is_sentence(each) for each in given):
            yield f"{path.name}:{node.lineno}"


def _calls(path: Path, names: set[str], *, bare: bool = False) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and _name(node) in names and (node.args or bare):
            yield node


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_sentence(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
