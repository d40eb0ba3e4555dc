"""join_modules(), read_style(): modules and styles of the page as one, for a page that loads nothing."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from utools.lazy_pattern import lazy_compile

STATIC: Final = files("engine_shim.web") / "static"
_IMPORT: Final = lazy_compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_IMPORT_JSON: Final = lazy_compile(r'^import (\w+) from "([^"]+\.json)" with \{ type: "json" \};\n', re.MULTILINE)
_EXPORTED: Final = lazy_compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_EXPORT_LIST: Final = lazy_compile(r"export\s*\{([^}]*)\};?\s*$", re.MULTILINE)


@cache
def join_modules(entry: str) -> str:
    """Return the module `entry`, by its path below `static`, and all that it imports, as one script.

    Each module is a function that gives what it exports, so that no name of one meets that of another; a JSON file is
    its value. The variable `page` has what the entry exports.
    """
    order: dict[str, str] = {}
    _add(entry, order, ())
    names = {path: f"module{at}" for at, path in enumerate(order)}
    pieces = [f"const {names[path]} = {_as_value(path, text, names)};" for path, text in order.items()]
    return "\n".join([*pieces, f"const page = {names[entry]};"])


@cache
def read_style(*paths: str) -> tuple[str, str]:
    """Return the style sheets at these paths below `static` as one, and the source of it alone in a policy."""
    style = "\n".join((STATIC / path).read_text("utf-8") for path in paths)
    return style, f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


def _add(path: str, order: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module after those that it imports. ValueError for modules that import each other."""
    if path in order:
        return
    if path in above:
        raise ValueError(f"these modules import each other: {' '.join([*above, path])}")
    text = (STATIC / path).read_text("utf-8")
    for _, target in (*_IMPORT.findall(text), *_IMPORT_JSON.findall(text)):
        _add(_resolve(path, target), order, (*above, path))
    order[path] = text


def _as_value(path: str, text: str, names: dict[str, str]) -> str:
    return text.strip() if path.endswith(".json") else f"(() => {{\n{_wrap(path, text, names)}\n}})()"


def _wrap(path: str, text: str, names: dict[str, str]) -> str:
    """Return the text of a module as the body of a function that returns what it exports."""

    def take(found: re.Match[str]) -> str:
        wanted = re.sub(r"\bas\b", ":", found[1]).replace(" :", ":")
        return f"const {{{wanted}}} = {names[_resolve(path, found[2])]};\n"

    def take_value(found: re.Match[str]) -> str:
        return f"const {found[1]} = {names[_resolve(path, found[2])]};\n"

    exported = {name: name for name in _EXPORTED.findall(text)}
    for listed in _EXPORT_LIST.findall(text):
        for each in filter(None, map(str.strip, listed.split(","))):
            own, _, shown = each.partition(" as ")
            exported[shown or own] = own
    body = _EXPORT_LIST.sub("", _EXPORTED.sub("", _IMPORT.sub(take, _IMPORT_JSON.sub(take_value, text))))
    returned = ", ".join(f"{shown}: {own}" for shown, own in exported.items())
    return f"{body}\nreturn {{ {returned} }};"


def _resolve(path: str, target: str) -> str:
    """Return the path below `static` of what a module imports."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
