"""The menu of utools, its default registry, and the example of its README."""

import re
from pathlib import Path

import pytest

import utools
from utools import default_registry
from utools.context.store_memory import MemoryContextStore

README = Path(utools.__file__).parent / "README.md"
DATA = Path(__file__).parents[2] / "fixtures"


def test_tool_is_the_decorator_and_not_its_module() -> None:
    assert callable(utools.tool)


def test_default_registry_has_the_built_in_tools_with_a_word_on_each() -> None:
    registry = default_registry(context_store=MemoryContextStore())
    codes = [
        "calculator",
        "context_manager",
        "echo",
        "email",
        "feishu_bot",
        "file_search",
        "formatter",
        "health",
        "http_request",
        "json_transform",
        "log_transform",
        "read_file",
        "redis_context",
        "respond",
        "set",
        "wait",
        "write_file",
    ]
    assert [each.code for each in registry.all()] == codes
    assert all(each.description.endswith((".", "}")) for each in registry.all())


async def test_built_in_tools_work_on_the_shipped_data() -> None:
    registry = default_registry(DATA, context_store=MemoryContextStore())
    (hit,) = (await registry.execute("file_search", {"query": "calculator"})).output
    text = (await registry.execute("read_file", {"path": hit["path"]})).output["text"]
    assert hit["snippet"] in text
    assert (await registry.execute("echo", {"text": "hello"})).output == "hello"
    numbers = {"operation": "sum", "numbers": [19.99, 5.01, 100]}
    assert (await registry.execute("calculator", numbers)).output == 125


def test_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {})
    assert capsys.readouterr().out == "{'city': 'Oslo', 'sky': 'clear', 'days': 1}\n"
