"""append_case(): a case added to a YAML case file, whose comments and order stay as they are."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from agent_core.errors import DefinitionError
from engine_shim.evals.load import open_cases
from utools.document import read_document
from utools.lazy_pattern import lazy_compile

LIKE_A_NUMBER = lazy_compile(r"-?\d+(\.\d+)?[eE][-+]?\d+")
"""What case files take for a number, and YAML's own rules do not."""

OTHER_BREAKS = lazy_compile("[\x85\u2028\u2029\ufeff]")
"""What YAML takes for the end of a line, or drops."""


class _Dumper(yaml.SafeDumper):
    """Writes texts so that they are read as texts, those of several lines line by line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style: str | None
    if "\n" in text[:-1] and text.strip() == text.removesuffix("\n") and not OTHER_BREAKS.search(text):
        style = "|"
    elif "\n" in text or OTHER_BREAKS.search(text):
        style = '"'
    else:
        style = "'" if LIKE_A_NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def append_case(path: Path, case: Mapping[str, Any]) -> None:
    """Write the file with the case at the end of `cases`, or a new one.

    DefinitionError, and nothing is written, where the file cannot take it.
    """
    if path.suffix == ".json":
        raise DefinitionError("cases are added to YAML files", where=str(path))
    text = path.read_bytes().decode("utf-8") if path.exists() else "cases:\n"
    before = (read_document(path, "the case file").data or {}) if path.exists() else {}
    beside, target = path.with_name(f".{path.name}.new.yaml"), Path(os.path.realpath(path))
    staged = target.with_name(beside.name)  # a link stays one; what it names may be on another file system
    try:
        written = insert_case(text, case, path).encode()
        beside.write_bytes(written)
        if _read(beside) != {**before, "cases": [*(before.get("cases") or ()), case]}:
            message = "the case cannot be added to a file of this form; add it by hand"
            raise DefinitionError(message, where=str(path))
        open_cases(beside, shown=path).choose([case["name"]])
        staged.write_bytes(written)
        if path.exists():
            staged.chmod(path.stat().st_mode & 0o777)
        os.replace(staged, target)
    except OSError as error:
        raise DefinitionError(f"cannot be written: {error.strerror}", where=str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
        staged.unlink(missing_ok=True)


def _read(path: Path) -> Any:
    """Return the values of a file; None where it cannot be read any more."""
    try:
        return read_document(path, "the case file").data
    except DefinitionError:
        return None


def insert_case(text: str, case: Mapping[str, Any], path: Path) -> str:
    """Return the text of a case file with one more case, after the last one."""
    written = yaml.dump(
        [dict(case)], Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110, default_flow_style=None
    )
    cases = _find_cases(text)
    if cases is None:
        return f"{text.rstrip()}\n\ncases:\n{indent(written, '  ')}".lstrip()
    if not (isinstance(cases, yaml.SequenceNode) and cases.value):
        return _fill_empty(text, cases, indent(written, "  "))
    if cases.flow_style:
        message = "its cases are in brackets; write each on lines of its own, after a dash"
        raise DefinitionError(message, where=str(path))
    at = _end_of(cases, text)
    newline = "" if text[:at].endswith("\n") else "\n"
    return text[:at] + newline + indent(written, " " * cases.start_mark.column) + text[at:]


def _fill_empty(text: str, cases: yaml.Node, written: str) -> str:
    """Return the text with a list in place of `[]` or of nothing; a comment behind it stays on its line."""
    start, end = cases.start_mark.index, cases.end_mark.index
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    before = text[:start].rstrip(" ") if start < end else text[:start]
    return f"{before}{text[end:line_end]}\n{written}{text[line_end + 1 :]}"


def _find_cases(text: str) -> Any:
    """Return the node of `cases` in a document that was read before; None where there is none."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    return next((value for key, value in root.value if key.value == "cases"), None) if root else None


def _end_of(cases: yaml.SequenceNode, text: str) -> int:
    """Return where the line after the last value of a list begins; comments and empty lines that follow stay behind
    it."""
    start, end = cases.start_mark.index, cases.end_mark.index
    events: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)
    marks = (event.end_mark for event in events if start <= event.start_mark.index < end)
    last = max(marks, key=lambda mark: int(mark.index))
    if last.column == 0:
        return int(last.index)
    return text.find("\n", last.index) + 1 or len(text)
