"""The API reference: Markdown pages of all public names, made from their docstrings.

`python -m engine_shim.reference DIR` writes them.
"""

import re
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine_shim.reference.objects import (
    NAME,
    as_cell,
    defined,
    docstring_of,
    find_name,
    is_exception,
    is_property,
    is_protocol,
    load_modules,
    methods_of,
    names_of,
    summary_of,
    value_of,
    write_default,
    write_parameters,
)
from utools.lazy_pattern import lazy_compile

if TYPE_CHECKING:
    import griffe

MENUS: Final = {
    "agent_core": "One agent run: any model, whitelisted tools, hard limits, a journal that proves it",
    "utools": "Tools: define, describe, validate and execute them",
    "engine_shim": "Workflows: definitions, engines, stores of runs, graphs of agents",
    "agent_core.models": "Clients of models",
    "agent_core.evidence": "Proof for strangers: keys that sign runs, and public keys that check them",
    "agent_core.agents": "Agents by name, and conversations with them",
    "agent_core.run.events": "The events that `on_event` is called with",
    "agent_core.testing": "A kit for tests of agents, tools, stores and models",
    "agent_core.testing.pytest_plugin": "The fixtures that pytest has once the library is installed",
    "engine_shim.testing": "The rules that a store of runs keeps",
    "utools.adapters": "Tools of other libraries",
}
"""The pages, in their order; a name that several menus have stands on the first page."""
EXCEPTIONS: Final = "exceptions"
TO_DO: Final = "What to do: "
FENCED: Final = lazy_compile(r"(^[ \t]*```.*?^[ \t]*```$)", re.M | re.S)
CODE: Final = lazy_compile(r"`([A-Za-z_]\w*)(?:\.(\w+))?(?:\([^`]*\))?`")
TITLES: Final = {"parameters": "Args", "raises": "Raises", "attributes": "Attributes"}


def write_reference(directory: Path) -> list[Path]:
    """Write the pages into a directory.

    Args:
        directory: Where they go; it is made if it is missing.

    Returns:
        The files.

    Raises:
        ImportError: The extra `docs` is not installed.
    """
    pages = Reference().pages()
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (directory / f"{name}.md").write_text(text, "utf-8")
    return [directory / f"{name}.md" for name in pages]


class Reference:
    """The public names of each menu, the page that each is on, and what is written of it."""

    def __init__(self) -> None:
        objects = load_modules()
        self.of_menu: dict[str, dict[str, griffe.Object]] = {}
        self._entries: dict[str, str] = {}
        for menu in MENUS:
            imports = objects[menu].imports
            named = {name: defined(objects[imports.get(name, f"{menu}.{name}")]) for name in names_of(menu)}
            self.of_menu[menu] = named
            for name, found in named.items():
                self._entries.setdefault(found.path, f"{menu}.md#{name}")

    def pages(self) -> dict[str, str]:
        """Return the text of each page by its name; `README` has the list of all."""
        pages = {menu: _Page(self, menu).write() for menu in MENUS}
        return {"README": self._contents(), **pages, EXCEPTIONS: self._exceptions()}

    def find(self, name: str, menu: str) -> "griffe.Object | None":
        """Return what a name means on a page: what its menu offers, else the first that does."""
        menus = [self.of_menu[menu], *self.of_menu.values()]
        return next((names[name] for names in menus if name in names), None)

    def is_public(self, found: "griffe.Object") -> bool:
        return found.path in self._entries

    def place(self, found: "griffe.Object") -> str:
        """Return the page and the anchor of an entry."""
        return self._entries[found.path]

    def has_entry(self, found: "griffe.Object", menu: str, name: str) -> bool:
        """Return whether a page has the entry of a name of its menu."""
        return self.place(found) == f"{menu}.md#{name}"

    def _contents(self) -> str:
        lines = ["# API reference", "", "Each name is imported from the package that its page is called after.", ""]
        for menu, about in MENUS.items():
            page = _Page(self, menu)
            lines += [f"## [{menu}]({menu}.md)", "", f"{about}.", "", "| name | is |", "|---|---|"]
            for name, found in self.of_menu[menu].items():
                lines.append(f"| {page.link(name)} | {page.linked(as_cell(summary_of(found)))} |")
            lines.append("")
        return "\n".join([*lines, f"[All exceptions]({EXCEPTIONS}.md): when each is raised, and what to do.", ""])

    def _exceptions(self) -> str:
        lines = ["# Exceptions", "", "[All names](README.md)", ""]
        lines += ["| class | is a | raised | what to do |", "|---|---|---|---|"]
        for menu in MENUS:
            page = _Page(self, menu)
            for name, found in self.of_menu[menu].items():
                if self.has_entry(found, menu, name) and is_exception(menu, name):
                    said = as_cell(docstring_of(found).split("\n\nArgs:")[0])
                    raised, _, to_do = said.partition(f" {TO_DO}")
                    bases = page.linked(", ".join(f"`{each}`" for each in getattr(found, "bases", ())))
                    lines.append(f"| {page.link(name)} | {bases} | {page.linked(raised)} | {page.linked(to_do)} |")
        return "\n".join([*lines, ""])


class _Page:
    """The page of one menu, in whose texts a name in code is a link to its entry."""

    def __init__(self, reference: Reference, menu: str) -> None:
        self._reference, self._menu, self._names = reference, menu, reference.of_menu[menu]
        self._short_names: dict[str, str] = {}

    def write(self) -> str:
        own = [name for name, found in self._names.items() if self._reference.has_entry(found, self._menu, name)]
        others = [name for name in self._names if name not in own]
        text = f"# {self._menu}\n\n{MENUS[self._menu]}. [All names](README.md)\n\n"
        if others:
            text += f"Also here: {', '.join(map(self.link, others))}.\n\n"
        return text + "\n".join(map(self._entry, own)) + self._write_short_names()

    def _entry(self, name: str) -> str:
        """Return what the page says of a public name, and of the methods of a class."""
        found, value = self._names[name], value_of(self._menu, name)
        text = f'<a id="{name}"></a>\n\n## {name}\n\n{self._signature(name, found)}{self._sections(found)}'
        if not isclass(value):
            return text
        text += self._fields(found, value)
        for method, member in sorted(methods_of(found)):
            shown = self._signature(method, member) if member.is_function else ""
            said = self._sections(member) or self._inherited(found, method)
            text += f'<a id="{name}.{method}"></a>\n\n### {name}.{method}\n\n{shown}{said}'
        return text

    def _signature(self, name: str, found: Any) -> str:
        """Return how a name is called, as code, and the public types in it, as links."""
        if found.is_attribute:
            types = self._link_types(found, str(found.value))
            return f"```python\n{name} = {found.value}\n```\n\n" + (f"Types: {', '.join(types)}\n\n" if types else "")
        shown = [each for each in found.parameters if each.name not in ("self", "cls")]
        if not shown and found.is_class:
            return ""
        arguments = "".join(f"\n    {each}," for each in write_parameters(found, shown))
        result = f" -> {found.returns}" if found.is_function and found.returns else ""
        types = self._link_types(found, " ".join([*(str(each.annotation) for each in shown), result]))
        word = "async " if "async" in found.labels else ""
        called = f"{word}{name}({arguments}{chr(10) if arguments else ''}){result}"
        return f"```python\n{called}\n```\n\n" + (f"Types: {', '.join(types)}\n\n" if types else "")

    def _link_types(self, found: Any, written: str) -> list[str]:
        """Return links to the types of ours that are written there: to their entries, or to what a short name means."""
        links = {}
        for word in dict.fromkeys(NAME.findall(written)):
            meant = find_name(found, word)
            if meant is not None and self._reference.is_public(meant):
                links[word] = f"[`{word}`]({self._reference.place(meant)})"
            elif meant is not None and word[0].isupper():
                if word not in self._short_names:
                    self._short_names[word] = ""  # one that is written with itself is asked about once
                    self._short_names[word] = self._explain(meant)
                links[word] = f"[`{word}`]({self._menu}.md#{word})"
        return list(links.values())

    def _explain(self, meant: Any) -> str:
        """Return what a short name means that no menu has."""
        if not meant.is_attribute:
            return self.linked(as_cell(summary_of(meant)))
        self._link_types(meant, str(meant.value))
        return " ".join(filter(None, (f"`{as_cell(str(meant.value))}`", self.linked(as_cell(docstring_of(meant))))))

    def _write_short_names(self) -> str:
        rows = [f'| <a id="{name}"></a>`{name}` | {said} |\n' for name, said in sorted(self._short_names.items())]
        return f"\n## Short names\n\n| name | is |\n|---|---|\n{''.join(rows)}" if rows else ""

    def _sections(self, found: Any) -> str:
        """Return the sections of a docstring as Markdown."""
        return "".join(map(self._section, found.docstring.parse("google") if found.docstring else []))

    def _inherited(self, found: Any, method: str) -> str:
        """Return where the protocol is explained whose method this is."""
        own = dict(methods_of(found))
        seams = {name: each for names in self._reference.of_menu.values() for name, each in names.items()}
        for name, seam in {**self._names, **seams}.items():
            verbs = [verb for verb, each in methods_of(seam) if each.is_function] if is_protocol(seam) else []
            if method in verbs and all(verb in own for verb in verbs):
                return f"As {self.linked(f'`{name}.{method}`')} says.\n\n"
        return ""

    def _section(self, section: Any) -> str:
        match section.kind.value:
            case "text":
                return f"{self.linked(section.value)}\n\n"
            case "admonition":
                return f"**{section.title}**\n\n{section.value.description}\n\n"
            case "returns":
                return f"**Returns:** {self.linked(' '.join(each.description for each in section.value))}\n\n"
            case kind:
                return f"**{TITLES[kind]}**\n\n{''.join(map(self._item, section.value))}\n"

    def _item(self, item: Any) -> str:
        name = getattr(item, "name", None) or item.annotation
        return f"- {self.linked(f'`{name}`')}: {self.linked(as_cell(item.description))}\n"

    def _fields(self, found: Any, value: type) -> str:
        """Return the fields of a model or of a typed dict, as they are given in JSON, with their types."""
        described, rows = getattr(value, "__pydantic_fields__", {}), ""
        for name, each in found.all_members.items():
            if each.is_attribute and not name.startswith("_") and each.annotation and not is_property(each):
                self._link_types(each, str(each.annotation))
                field = described.get(name)
                about = field.description if field else docstring_of(each)
                default = f" {write_default(field)} |" if field else ""
                key = field.alias if field and field.alias else name
                rows += (
                    f"| `{key}` | `{as_cell(str(each.annotation))}` |{default} {self.linked(as_cell(about or ''))} |\n"
                )
        head = "| field | type | default | |\n|---|---|---|---|" if described else "| field | type | |\n|---|---|---|"
        return f"{head}\n{rows}\n" if rows else ""

    def link(self, name: str) -> str:
        """Return a link to the entry of a public name."""
        found = self._reference.find(name, self._menu)
        return f"[`{name}`]({self._reference.place(found)})" if found else f"`{name}`"

    def linked(self, text: str) -> str:
        """Return a text in which public names in code are links; what is fenced stays as it is."""
        parts = FENCED.split(text)
        return "".join(part if index % 2 else CODE.sub(self._link_code, part) for index, part in enumerate(parts))

    def _link_code(self, code: re.Match[str]) -> str:
        name, attribute = code[1], code[2]
        found = self._reference.find(name, self._menu)
        if found is None:
            return code[0]
        own = f".{attribute}" if attribute in dict(methods_of(found)) else ""
        return f"[{code[0]}]({self._reference.place(found)}{own})"
