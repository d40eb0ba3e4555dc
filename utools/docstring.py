"""What a docstring says of each parameter, in the styles of Google, NumPy and Sphinx, and the text beside it. Pure."""

import re
from collections.abc import Iterator
from textwrap import dedent

from utools.lazy_pattern import lazy_compile

ARGS_SECTION = lazy_compile(r"\n?^(?:Args|Arguments|Parameters):[ \t]*\n((?:[ \t]+.*(?:\n|$)|[ \t]*\n)*)", re.MULTILINE)
PARAMETER = lazy_compile(r"^(?:[-*•]\s+)?`?\*{0,2}(\w+)`?\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:\s*(.*)$")
UNDERLINED = lazy_compile(
    r"\n?^(?:Other )?Parameters[ \t]*\n---+[ \t]*\n((?:(?!\S[^\n]*\n---)[^\n]*\n|[^\n]+\Z)*)", re.MULTILINE
)
"""NumPy's section, until the next title."""
NAMES = lazy_compile(r"^\*{0,2}(\w+(?:, *\w+)*) *(?::.*)?$")
FIELDS = lazy_compile(
    r"\n?^[:@](param(?:eter)?|arg(?:ument)?|key(?:word)?|type)[ \t]+(?:[^:\n]*[ \t])?\*{0,2}(\w+):"
    r"[ \t]*([^\n]*(?:\n[ \t]+\S[^\n]*)*)",
    re.MULTILINE,
)
"""Sphinx's fields, and Epytext's; those of types say what the signature says."""


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring without what it says of its parameters, and that by their names. What stands
    before the first of Google's parameters stays in the text."""
    about: dict[str, str] = {}
    text = FIELDS.sub(lambda field: _take_field(field, about), docstring)
    text = UNDERLINED.sub(lambda section: _take_underlined(section[1], about), text)
    section = ARGS_SECTION.search(text)
    if section is None:
        return text.strip(), about
    unread = list(_take_parameters(section[1], about))
    parts = [text[: section.start()].rstrip(), "\n".join(unread).strip(), text[section.end() :].strip("\n")]
    return "\n\n".join(each for each in parts if each).strip(), about


def _take_field(field: re.Match[str], about: dict[str, str]) -> str:
    if field[1] != "type":
        about[field[2]] = " ".join(field[3].split())
    return ""


def _take_underlined(section: str, about: dict[str, str]) -> str:
    """Return the lines that are of no parameter."""
    names: list[str] = []
    unread: list[str] = []
    for line in dedent(section).splitlines():
        if found := NAMES.match(line):
            names = found[1].replace(" ", "").split(",")
            about.update(dict.fromkeys(names, ""))
        elif line.strip() and not line[0].isspace():
            names = []
            unread.append(line)
        elif line.strip():
            for name in names:
                about[name] = f"{about[name]} {line.strip()}".strip()
    return "\n".join(["", *unread, "", ""]) if unread else "\n"


def _take_parameters(section: str, about: dict[str, str]) -> Iterator[str]:
    """Yield the lines before the first parameter."""
    name = ""
    for line in dedent(section).splitlines():
        found = PARAMETER.match(line)
        if found:
            name = found[1]
            about[name] = found[2].strip()
        elif not name:
            yield line
        elif line.strip():
            about[name] = f"{about[name]} {line.strip()}".strip()
