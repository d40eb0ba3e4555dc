"""What built-in tools import where they run is known before they run."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

import pytest

from utools.builtin import builtin_tools
from utools.builtin.libraries import LIBRARIES

CHEAP = {"asyncio", "sqlite3.dbapi2", "contextlib"}
"""What any process that runs tools has imported already."""
APART = {"utools.builtin.render_template"}
"""Programs that tools start, each a process of its own."""


def lazy_imports(module: str) -> Iterator[str]:
    """The modules that the functions of a module import."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in ast.walk(function):
                if isinstance(each, ast.ImportFrom) and each.module:
                    yield each.module
                elif isinstance(each, ast.Import):
                    yield from (name.name for name in each.names)


CODES = [tool.code for tool in builtin_tools() if tool.execute.__module__.startswith("utools.builtin.")]


@pytest.mark.parametrize("code", CODES)
def test_the_table_has_what_a_tool_imports_where_it_runs(code: str) -> None:
    (module,) = {tool.execute.__module__ for tool in builtin_tools() if tool.code == code}
    listed = LIBRARIES.get(code, ())
    own = [each for each in listed if each.startswith("utools.builtin.")]
    lazy = {each for name in (module, *own) for each in lazy_imports(name)} - CHEAP
    assert lazy <= set(listed)


def test_the_table_names_tools_and_modules_that_there_are() -> None:
    assert set(LIBRARIES) <= {tool.code for tool in builtin_tools()}
    for name in {each for listed in LIBRARIES.values() for each in listed if each.startswith("utools.")}:
        import_module(name)


def test_a_library_that_is_not_installed_is_left_out() -> None:
    code = (
        "import sys\nsys.modules['aiosmtplib'] = None\n"
        "from utools.builtin.libraries import import_libraries\nimport_libraries(['email', 'echo', 'no such tool'])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
