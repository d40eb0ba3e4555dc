"""The API reference: each public name has its entry, each link its target, and each example runs."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import agent_core
import agent_core.agents
import agent_core.models
import agent_core.testing
import engine_shim
import engine_shim.testing
import utools
import utools.adapters
from agent_core.testing import pytest_plugin
from support.optional import needs
from support.signatures import public_functions, read_example, read_section

MAIN: list[Any] = [
    *(agent_core.run_agent, agent_core.run_agent_sync, agent_core.stream_agent, agent_core.agent_tool),
    *(agent_core.AgentConfig, agent_core.AgentOutput, agent_core.replay, agent_core.verify, agent_core.parse),
    *(agent_core.MemoryJournal, agent_core.SqliteJournal, agent_core.JsonlJournal, utools.tool, utools.Tool),
    *(utools.ToolContext, utools.ToolResult, utools.ToolRegistry, engine_shim.Engine, engine_shim.AgentBuilder),
    *(engine_shim.load_workflow, engine_shim.RunResult),
]
"""The names that users meet first."""
MENUS = (
    *(agent_core, agent_core.models, agent_core.agents, agent_core.testing, pytest_plugin),
    *(utools, utools.adapters, engine_shim, engine_shim.testing),
)
LINK = re.compile(r"\]\(([\w.]+\.md)(?:#([\w.]+))?\)")
ANCHOR = re.compile(r'^<a id="([\w.]+)"></a>$', re.M)
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, "-m", "engine_shim.reference", folder], cwd=ROOT, check=True, capture_output=True)
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


def entries(page: str) -> dict[str, str]:
    """What a page says below each anchor."""
    _, *parts = ANCHOR.split(page)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def is_explained(entry: str) -> bool:
    """Whether an entry says more than how its name is called."""
    return bool(re.search(r"^(?!Types: )[\w`\[]", FENCED.sub("", entry), re.M))


@pytest.mark.exhaustive
@needs("griffe")
def test_each_public_name_has_an_entry_that_explains_it(pages: dict[str, str]) -> None:
    for module in MENUS:
        listed = dict(
            re.findall(r"^\| \[`(\w+)`\]\(([\w.]+)#", pages["README.md"].split(f"[{module.__name__}]")[1], re.M)
        )
        for name in module.__all__:
            entry = entries(pages[listed[name]])[name]
            assert is_explained(entry), f"{module.__name__}.{name} has no docstring"


@needs("griffe")
def test_each_method_of_a_public_class_is_explained(pages: dict[str, str]) -> None:
    methods = {f"{page} {name}": text for page in pages for name, text in entries(pages[page]).items() if "." in name}
    assert len(methods) > 200
    assert [name for name, text in methods.items() if not is_explained(text)] == []


@needs("griffe")
def test_each_link_has_its_target(pages: dict[str, str]) -> None:
    links = {(page, *link) for page, text in pages.items() for link in LINK.findall(text)}
    assert len(links) > 300
    assert {link for link in links if link[1] not in pages} == set()
    assert {link for link in links if link[2] and f'<a id="{link[2]}"></a>' not in pages[link[1]]} == set()


@needs("griffe")
def test_what_no_menu_has_is_explained_where_it_is_written(pages: dict[str, str]) -> None:
    """A type's short name, a constant, and the keys and the defaults of what is written as JSON."""
    assert "Types: [`Decision`](agent_core.md#Decision)" in entries(pages["agent_core.md"])["Decisions"]
    assert "`Decision` | `Approve \\| Deny \\| Edit" in pages["agent_core.md"]
    assert "    max_tokens: int | None = 10000," in entries(pages["agent_core.agents.md"])["Conversations.chat"]
    assert "| `from` | `str` | required |" in entries(pages["engine_shim.md"])["Edge"]
    assert "| `timeout` | `Seconds` | `120` |" in entries(pages["agent_core.md"])["AgentConfig"]


@needs("griffe")
def test_page_of_exceptions_says_of_each_when_it_is_raised_and_what_to_do(pages: dict[str, str]) -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\(\S+\) \| .+? \| (.*) \| (.*) \|$", pages["exceptions.md"], re.M)
    modules = (agent_core, agent_core.agents, utools, engine_shim)
    public = {name for module in modules for name in module.__all__ if is_exception(getattr(module, name))}
    assert {name for name, *_ in rows} == public
    assert [name for name, raised, to_do in rows if not (raised and to_do)] == []


def is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


# ── docstrings in Google's form ──────────────────────────────────────────────────────────────────


def called() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """What a main name offers to be called, with its docstring: that of a class says what it is made with."""
    for value in MAIN:
        if not inspect.isclass(value):
            yield value.__name__, value, inspect.getdoc(value) or ""
            continue
        made_of_fields = is_dataclass(value) or issubclass(value, BaseModel)
        for name, function in public_functions(value).items():
            if name == "__init__" and not made_of_fields:
                yield f"{value.__name__}()", function, inspect.getdoc(value) or ""
            elif not name.startswith("__"):
                yield f"{value.__name__}.{name}", function, inspect.getdoc(function) or ""


@pytest.mark.parametrize(("function", "docstring"), [each[1:] for each in called()], ids=[each[0] for each in called()])
def test_docstring_of_a_main_name_explains_each_argument(function: Callable[..., Any], docstring: str) -> None:
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    assert list(read_section(docstring, "Args")) == parameters


@pytest.mark.parametrize("value", MAIN, ids=lambda value: value.__name__)
def test_example_of_a_main_name_runs(value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(read_example(value), value.__name__, "exec"), {"__name__": "example"})
