"""KnownWorkflows: workflows that are given as files again and again; each version is loaded and checked once."""

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

from agent_core.agents.catalog import AgentCatalog
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import INVOKE
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.store.run_store import StrPath
from utools.document import parse_document
from utools.files.protected_paths import protect
from utools.registry import ToolRegistry

MOST: Final = 64
"""Files whose last version is kept."""
NAMING_FILES: Final = ("agent", "prompts")
"""Keys of a config under which other files are named, on which a check depends as well."""


@dataclass(slots=True)
class _Known:
    """A version of a file. `tools` are those of the registry that it was checked against."""

    text: str
    workflow: Workflow
    checked: CheckedWorkflow | None = None
    tools: object = None


class KnownWorkflows:
    """The workflows of one engine. A file that has changed is read anew; the tools may change, too. Threads may share
    it."""

    def __init__(self) -> None:
        self._by_path: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._lock = Lock()

    def load(self, source: StrPath) -> Workflow:
        """Return the workflow in a file, as `load_workflow` does."""
        path = Path(source)
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return load_workflow(source)  # which says what is wrong
        key = os.getcwd(), str(path)
        with self._lock:
            known = self._by_path.get(key)
            if known is None or known.text != text:
                protect(path)
                known = self._by_path[key] = _Known(text, load_workflow(parse_document(text, path)))
            self._by_path.move_to_end(key)
            while len(self._by_path) > MOST:
                self._by_path.popitem(last=False)
        return known.workflow

    def check(self, workflow: Workflow, registry: ToolRegistry, agents: AgentCatalog | None) -> CheckedWorkflow:
        """Return the workflow, checked, as `check` does."""
        with self._lock:
            known = next((each for each in self._by_path.values() if each.workflow is workflow), None)
        if known is None:
            return check(workflow, registry, agents)
        tools = registry._tools
        checked = known.checked
        if checked is None or checked.registry is not registry or known.tools is not tools:
            checked = check(workflow, registry, agents)
            if workflow.document is not None and not _names_files(workflow.document.data):
                known.checked, known.tools = checked, tools
        return checked


def _names_files(value: Any) -> bool:
    """Return whether a definition depends on other files: workflows that it invokes, agents, templates."""
    if isinstance(value, Mapping):
        return any(key in NAMING_FILES or _names_files(each) for key, each in value.items())
    if isinstance(value, list):
        return any(map(_names_files, value))
    return bool(value == INVOKE)
