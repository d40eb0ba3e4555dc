"""The texts that code makes for a model by a template: where each is, and the values that it is given."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAKERS = {"Text", "ToolError", "SandboxError", "NetworkError", "ResultError", "WrongType", "_ForgottenError"}
NOT_VALUES = {"transient"}


class Said(NamedTuple):
    """A call that makes a text. `template` is None where it is no literal."""

    where: str
    template: str | None
    values: frozenset[str]


def said_in(path: Path) -> Iterator[Said]:
    """The texts of a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS and node.args:
            first = node.args[0]
            literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
            values = frozenset(str(each.arg) for each in node.keywords) - NOT_VALUES
            yield Said(f"{path.name}:{node.lineno}", first.value if literal else None, values)
