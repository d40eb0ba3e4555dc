"""What says what a host does is written by no tool, wherever the tool's root lies."""

import json
import sys
from pathlib import Path

import pytest

from agent_core.journal.sqlite import SqliteJournal
from agent_core.models import ScriptedModel
from utools.builtin.health import health
from utools.context.store_sqlite import SqliteContextStore
from utools.document import read_document
from utools.errors import DefinitionError, SandboxError
from utools.files.protected_paths import MOST_STORES, is_store, protect, protect_glob, protect_store
from utools.files.sandbox import Sandbox
from utools.sources.manifest import manifest_tools
from utools.sources.python_object import load_object
from utools.tool import ToolContext


def _refused(root: Path, path: str, why: str) -> None:
    there = (root / path).read_bytes() if (root / path).is_file() else None
    for append in (False, True):
        with pytest.raises(SandboxError, match=why):
            Sandbox(root).write(path, b"mine", append=append)
    assert ((root / path).read_bytes() if (root / path).exists() else None) == there


def test_a_name_that_no_file_has_needs_no_protection() -> None:
    protect("a\0b")
    with pytest.raises(DefinitionError, match="no file has such a name"):
        ScriptedModel.from_file("a\0b.json")


def test_a_document_that_was_read_is_kept(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("a: 1\n")
    (tmp_path / "link.yaml").symlink_to("flow.yaml")
    Sandbox(tmp_path).write("flow.yaml", b"a: 2\n")  # nobody goes by it yet
    read_document(tmp_path / "flow.yaml", "the definition")
    _refused(tmp_path, "flow.yaml", "says what this host does")
    _refused(tmp_path, "link.yaml", "says what this host does")
    _refused(tmp_path, "FLOW.yaml", "says what this host does")
    _refused(tmp_path, "flow.yaml/in", "says what this host does")


def test_a_name_is_kept_as_file_systems_without_case_compare_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protect(tmp_path / "caf\u00e9.yaml")
    _refused(tmp_path, "Cafe\u0301.yaml", "says what this host does")
    monkeypatch.syspath_prepend(tmp_path / "tools")
    _refused(tmp_path, "Tools/json.py", "would stand beside Python that this host loads")


def test_what_is_not_there_yet_is_kept_and_all_below_a_directory_and_what_fits_a_pattern(tmp_path: Path) -> None:
    for path in ("agent-core.yaml", "manifests"):
        protect(tmp_path / path)
    protect_glob(tmp_path / "more/*.yaml")
    for path in ("agent-core.yaml", "manifests", "manifests/new.yaml", "manifests/deep/new.json", "more/new.yaml"):
        _refused(tmp_path, path, "says what this host does")
    Sandbox(tmp_path).write("more/new.txt", b"mine")
    Sandbox(tmp_path).write("more/below/new.yaml", b"mine")
    Sandbox(tmp_path).write("agent-core.yaml.txt", b"mine")


async def test_journals_and_conversations_are_neither_written_nor_read(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "runs.db")
    await SqliteContextStore(tmp_path / "talks.db").append("s", "t", [])
    SqliteContextStore(tmp_path / "unused" / "talks.db")
    _refused(tmp_path, "unused/talks.db", "is a store of this host")
    (tmp_path / "orders.db").write_bytes(b"of a user")
    with Sandbox(tmp_path).open("orders.db") as file:
        assert file.read() == b"of a user"
    for path in ("runs.db", "runs.db-wal", "runs.db-journal", "talks.db", "talks.db-shm"):
        _refused(tmp_path, path, "is a store of this host")
        with pytest.raises(SandboxError, match="is a store of this host"):
            Sandbox(tmp_path).open(path)
    report = await health(tmp_path).execute({"targets": ["sqlite:talks.db"]}, ToolContext())
    assert report["healthy"]


def test_no_python_is_put_beside_python_that_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.py").write_text("value = 1\n")
    assert load_object("tools/mine.py:value", tmp_path, "here") == 1
    for name in ("mine.py", "json.py", "x.so", "x.pth", "X.PY"):
        _refused(tmp_path, f"tools/{name}", "beside Python that this host loads")
    (tmp_path / "looked").mkdir()
    Sandbox(tmp_path).write("looked/a.py", b"mine")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "looked")])
    _refused(tmp_path, "looked/json.py", "beside Python that this host loads")
    Sandbox(tmp_path).write("tools/notes.txt", b"mine")


@pytest.mark.parametrize("path", ["kit/__init__.py", "sitecustomize/__main__.py", "a-1.dist-info/entry_points.txt"])
def test_no_package_is_put_where_python_is_loaded_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    _refused(tmp_path, path, "beside Python that this host loads")


def test_a_program_is_not_rewritten_and_a_document_that_is_called_executable_is(tmp_path: Path) -> None:
    (tmp_path / "report.sh").write_text("#!/bin/sh\n")
    (tmp_path / "table.csv").write_text("a;b\n")
    for name in ("report.sh", "table.csv"):
        (tmp_path / name).chmod(0o777)
    _refused(tmp_path, "report.sh", "is a program")
    Sandbox(tmp_path).write("table.csv", b"mine")


def test_what_a_manifest_goes_by_is_kept(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    files = {"tool.md": "Does it.", "run": "echo", "script.sh": "echo", "notes.txt": "notes"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told = {
        "code": "tool",
        "docs": "../tool.md",
        "schema": {},
        "command": {"argv": ["../run", "script.sh", "notes.txt"]},
    }
    (tmp_path / "shelf" / "tool.json").write_text(json.dumps(told))
    (tool,) = manifest_tools(tmp_path / "shelf" / "tool.json", root=tmp_path, trusted=True)
    for name in ("tool.md", "run", "script.sh"):
        _refused(tmp_path, name, "says what this host does")
    Sandbox(tmp_path).write("notes.txt", b"mine")
    (tmp_path / "script.sh").write_text("echo other")
    (changed,) = manifest_tools(tmp_path / "shelf" / "tool.json", root=tmp_path, trusted=True)
    assert changed.fingerprint != tool.fingerprint


def test_of_very_many_stores_the_latest_are_kept(tmp_path: Path) -> None:
    for number in range(MOST_STORES + 2):
        protect_store(tmp_path / f"{number}.jsonl")
    assert [is_store(tmp_path / f"{number}.jsonl") for number in (0, 1, 2, MOST_STORES + 1)] == [
        False,
        False,
        True,
        True,
    ]
