"""Lazy menus: a package that offers names of its modules, and imports each module when a name of it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_menu(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` (PEP 562) of a package that offers the names of modules: `homes` has those of each,
    apart by spaces."""
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        module = sys.modules[package]
        return sorted({*module.__all__, *(name for name in vars(module) if name.startswith("__"))})

    return get, list_names
