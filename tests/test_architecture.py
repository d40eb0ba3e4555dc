"""The rooms stay apart: layers (pyproject.toml), no circle, and no way to the outside from what calls itself pure."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("utools", "agent_core", "engine_shim")
LINES_OF_MODULE, LINES_OF_CLASS = 330, 250
HEAVY = ("openai", "anthropic", "google.genai", "aiohttp", "httpx2", "jsonschema", "engine_shim", "typer")
LIGHT = f"import sys, {{package}}; print([m for m in {HEAVY} if m in sys.modules])"
OUTSIDE = {
    *(
        "asyncio",
        "concurrent",
        "datetime",
        "io",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "requests",
        "secrets",
        "shutil",
    ),
    *("signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "uuid"),
    *("aiohttp", "httpx2", "openai", "redis", "typer"),
}
"""Modules that act, or read a clock or a random source."""


@lru_cache
def graph() -> grimp.ImportGraph:
    """All imports, those in functions and under TYPE_CHECKING included.

    One is left out: a thread that is joined at once is nothing but an empty stack for a validation that runs out of its
    own, so that no verdict depends on the depth of the caller's stack.
    """
    imports = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    assert imports.direct_import_exists(importer="utools.schema.validation", imported="concurrent")
    imports.remove_import(importer="utools.schema.validation", imported="concurrent")
    return imports


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def first_paragraph(path: Path) -> str:
    """Of the docstring that a file starts with, which is read quickly, as this is done where tests are collected."""
    return re.split('\n\n|"""', path.read_text("utf-8").removeprefix('"""'), maxsplit=1)[0]


PURE = [module for module, path in modules() if re.search(r"\bPure\b", first_paragraph(path))]


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "4 kept, 0 broken" in done.stdout


def test_most_of_what_decides_is_pure() -> None:
    """The test below means something only for what says so."""
    rooms = ("agent_core.loop.", "agent_core.protocol.", "engine_shim.flow.", "engine_shim.definition.")
    acting = ("check_agents", "check_tool_calls", "invoke", "load", "named_agents", "validate")
    impure = {f"engine_shim.definition.{name}" for name in acting}
    deciding = {module for module, _ in modules() if module.startswith(rooms)}
    assert deciding - impure <= set(PURE)


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_reaches_nothing_that_acts(module: str) -> None:
    reached = graph().find_upstream_modules(module) & OUTSIDE
    chains = [" -> ".join(graph().find_shortest_chain(module, outside) or ()) for outside in sorted(reached)]
    assert not chains, "\n".join(chains)


def test_the_outside_is_seen_in_the_graph() -> None:
    """An impure module is found out, also by way of another one."""
    assert "asyncio" in graph().find_upstream_modules("agent_core.run.node")
    assert "sqlite3" in graph().find_upstream_modules("engine_shim.runs.engine")


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Also not in a function, or for type checkers alone."""
    own = {module for module, _ in modules()}
    circles = [
        chain
        for module in sorted(own)
        for imported in graph().find_modules_directly_imported_by(module) & own
        if (chain := graph().find_shortest_chain(imported, module))
    ]
    assert not circles, min(circles, key=len)


def rooms() -> list[Path]:
    folders = {path.parent for _, path in modules()}
    return sorted(folder for folder in folders if len(contents(folder)) > 5)


def contents(folder: Path) -> set[str]:
    """The modules and the sub-rooms of a folder."""
    files = {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}
    return files | {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("folder", rooms(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_the_page_of_a_room_names_exactly_what_is_in_it(folder: Path) -> None:
    rows = re.findall(r"^\| (`[^|]*`) +\|", (folder / "README.md").read_text("utf-8"), re.M)
    named = [name for row in rows for name in re.findall(r"`([\w.]+\.py|\w+/)`", row)]
    assert sorted(named) == sorted(contents(folder))


@pytest.mark.parametrize("package", ["utools", "agent_core"])
def test_importing_the_agent_loads_neither_vendor_nor_validator_nor_engine(package: str) -> None:
    code = LIGHT.format(package=package)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.exhaustive
def test_every_file_starts_by_saying_what_it_contains() -> None:
    assert [str(path) for _, path in modules() if not ast.get_docstring(tree(path))] == []


def test_no_pattern_is_compiled_that_a_command_may_not_use() -> None:
    """Each is compiled when it is first used: `utools/lazy_pattern.py`."""
    compiled = {
        module
        for module, path in modules()
        for statement in tree(path).body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    }
    assert compiled == {"agent_core.evidence.verify_evidence"}  # which has nothing of ours, and is a program of its own


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_and_a_class_are_one_thought(package: str) -> None:
    """What is long is split by what it is about; the table of records and the state of a run are read as a whole."""
    for path in sorted((ROOT / package).rglob("*.py")):
        assert path.read_text("utf-8").count("\n") <= LINES_OF_MODULE or path.name == "records.py", path
        classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        long = {node.name for node in classes if (node.end_lineno or 0) - node.lineno >= LINES_OF_CLASS}
        assert long <= {"RunState"}, path
