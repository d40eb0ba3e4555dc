"""Lazy menus: a package that offers names of its modules, and imports each module when a name of it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_menu(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` (PEP 562) of a package that offers each of these names from its module."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        module = sys.modules[package]
        return sorted({*module.__all__, *(name for name in vars(module) if name.startswith("__"))})

    return get, list_names
