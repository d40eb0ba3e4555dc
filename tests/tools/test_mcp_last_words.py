"""What is told of a server that ended, from its standard error."""

import sys
from pathlib import Path

import pytest

from support.optional import needs
from utools import DefinitionError
from utools.sources.mcp.last_words import SHOWN, last_words
from utools.sources.mcp.servers import McpServer, McpServers

NODE = """node:internal/modules/loader:1143
  throw err;
  ^

\x1b[31mError: Cannot find module '/desk.js'\x1b[39m
    at Module._load (node:internal/modules/loader:1038:27) {
  code: 'MODULE_NOT_FOUND'
}

Node.js v20.20.2
"""
WRITTEN = {
    "node": (NODE, "Error: Cannot find module '/desk.js'"),
    "node_text": ("A key is required\n\nNode.js v20.20.2\n", "A key is required"),
    "npm": (
        "npm warn old\nnpm error code E404\nnpm error 404 Not Found - desk\n"
        "npm error A complete log of this run can be found in: /logs/1.log\n",
        "npm error code E404 npm error 404 Not Found - desk",
    ),
    "usage": (
        "Usage: desk [OPTIONS]\n\nERROR: a key is required.\nOptions:\n  --key\n\nSee the documentation.\n",
        "ERROR: a key is required. Options: --key See the documentation.",
    ),
    "python": (
        'Traceback (most recent call last):\n  File "desk.py", line 1, in <module>\n    raise KeyError("desk")\n'
        "KeyError: 'desk'\n",
        "KeyError: 'desk'",
    ),
    "java": (
        'Exception in thread "main" Bad: x\n\tat a.B(C.java:1)\nCaused by: a.IOException: y\n\tat a.B(C.java:2)\n'
        "\t... 3 more\n",
        "Caused by: a.IOException: y",
    ),
    "go": ("panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n\t/desk.go:5\nexit status 2\n", "panic: no key"),
    "rust": (
        "thread 'main' panicked at src/main.rs:5:5:\nno key\nnote: run with `RUST_BACKTRACE=1` environment variable\n",
        "thread 'main' panicked at src/main.rs:5:5: no key",
    ),
    "plain": ("starting\nout of memory\n", "out of memory"),
    "trace_alone": ("Node.js v20.20.2\n", "Node.js v20.20.2"),
    "nothing": (" \n", ""),
}


@pytest.mark.parametrize(("written", "told"), WRITTEN.values(), ids=WRITTEN)
def test_error_is_told_and_not_what_stands_behind_it(written: str, told: str) -> None:
    assert last_words(written) == told


def test_long_text_is_told_by_its_beginning_and_its_end() -> None:
    told = last_words("ERROR: no answer in time\n" + "still at work\n" * 100 + "out of memory\n")
    assert told.startswith("ERROR: no answer in time still at work")
    assert told.endswith("out of memory")
    assert len(told) <= SHOWN + 3


@needs("mcp")
def test_server_that_does_not_start_is_told_by_its_error(tmp_path: Path) -> None:
    server = McpServer(command=[sys.executable, "-c", f"import sys; sys.exit({NODE!r})"])
    with pytest.raises(DefinitionError, match=r"; its last words: Error: Cannot find module '/desk\.js'$"):
        McpServers({"own": server}, lock=tmp_path / "lock.json", base=tmp_path).tools()


@needs("mcp")
def test_server_that_does_not_start_is_told_with_the_variables_that_it_did_not_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_CITY", "Oslo")
    monkeypatch.delenv("DESK_KEY", raising=False)
    server = McpServer(command=[sys.executable, "-c", "import sys; sys.exit('no key')"], env=["DESK_CITY", "DESK_KEY"])
    with pytest.raises(DefinitionError, match=r"its last words: no key; of its `env` the host has no DESK_KEY$"):
        McpServers({"own": server}, lock=tmp_path / "lock.json", base=tmp_path).tools()
