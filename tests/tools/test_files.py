"""file_search, read_file and the sandbox under both."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin.file_search import MAX_SEARCHED, file_search, split_words
from utools.builtin.files import MAX_READ, read_file
from utools.errors import SandboxError
from utools.files.sandbox import Sandbox
from utools.secrets.key_formats import NAMES
from utools.secrets.redaction import Redactor


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with files, links that stay inside and links that leave it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("needle outside")
    root = tmp_path / "root"
    (root / "data" / "docs").mkdir(parents=True)
    (root / "data" / ".hidden").mkdir()
    (root / "data" / "b.txt").write_text("one\nA Needle here\nneedle again\n")
    (root / "data" / "docs" / "a.md").write_text("Straße und NEEDLE\n", encoding="utf-8")
    (root / "data" / ".hidden" / "x.txt").write_text("needle hidden")
    (root / "data" / ".dot.txt").write_text("needle hidden")
    (root / "data" / "binary.bin").write_bytes(b"needle\0\x01")
    (root / "data" / "broken.txt").write_bytes(b"caf\xe9 needle\n")
    (root / "data" / "inside.txt").symlink_to(root / "data" / "b.txt")
    (root / "data" / "leak.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "data" / "leak").symlink_to(tmp_path / "outside")
    (root / "data" / "loop").symlink_to(root / "data")
    os.mkfifo(root / "data" / "fifo")
    return root


async def called(code: str, host_root: Path, /, **args: Any) -> ToolResult:
    return await ToolRegistry([file_search(host_root), read_file(host_root)]).execute(code, args, ToolContext())


ESCAPES = [
    pytest.param("../outside/secret.txt", id="parent"),
    pytest.param("data/../../outside/secret.txt", id="parent, further in"),
    pytest.param("data/leak.txt", id="link to a file outside"),
    pytest.param("data/leak/secret.txt", id="link to a directory outside"),
    pytest.param("/etc/passwd", id="absolute"),
    pytest.param("/proc/self/environ", id="environment"),
    pytest.param("data/b.txt\0.md", id="NUL"),
    pytest.param("data/fifo", id="FIFO"),
    pytest.param("data", id="directory"),
    pytest.param("data/nothing", id="nothing"),
    pytest.param("data/b.txt/x", id="below a file"),
    pytest.param("x" * 5000, id="long name"),
]


@pytest.mark.parametrize("path", ESCAPES)
async def test_path_that_is_no_file_inside_is_refused_by_its_name(root: Path, path: str) -> None:
    result = await called("read_file", root, path=path)
    assert not result.success
    assert "outside needle" not in str(result)
    assert (repr(f"…/{Path(path).name}") if path.startswith("/") else repr(path)) in str(result.error)
    assert str(root) not in str(result.error)


def test_device_and_socket_are_refused(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
        with pytest.raises(SandboxError):
            Sandbox(root).open("s")
    with pytest.raises(SandboxError, match="not a regular file"):
        Sandbox("/dev").open("null")


def test_link_that_is_swapped_in_after_the_check_is_not_followed(root: Path) -> None:
    class Swapping(Sandbox):
        def resolve(self, path: str, *, stores: bool = False) -> Any:
            place = super().resolve(path, stores=stores)
            (root / "data" / "docs").rename(root / "data" / "was")
            (root / "data" / "docs").symlink_to(root.parent / "outside")
            return place

    (root / "data" / "docs" / "secret.txt").write_text("harmless")
    with pytest.raises(SandboxError, match="cannot be opened"):
        Swapping(root).open("data/docs/secret.txt")


@pytest.mark.parametrize(
    "path", ["data/b.txt", "./data//b.txt", "data/docs/../b.txt", "data/inside.txt", "data/loop/b.txt"]
)
async def test_path_that_leads_to_a_file_inside_is_read(root: Path, path: str) -> None:
    result = await called("read_file", root, path=path)
    assert result.output["text"] == "one\nA Needle here\nneedle again\n"
    assert result.output["path"] == path


async def test_absolute_path_inside_is_read(root: Path) -> None:
    assert (await called("read_file", root, path=str(root / "data" / "b.txt"))).success


async def test_root_may_itself_be_reached_through_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert (await called("read_file", link, path="data/b.txt")).success


@pytest.mark.parametrize(
    ("part", "text", "truncated"),
    [
        pytest.param({"limit": 3}, "one", True, id="head"),
        pytest.param({"offset": 4, "limit": 8}, "A Needle", True, id="middle"),
        pytest.param({"offset": 1000}, "", True, id="beyond the end"),
        pytest.param({"offset": 0}, "one\nA Needle here\nneedle again\n", False, id="all"),
    ],
)
async def test_part_of_a_file_is_read(root: Path, part: dict[str, int], text: str, truncated: bool) -> None:
    output = (await called("read_file", root, path="data/b.txt", **part)).output
    assert (output["text"], output["truncated"], output["total_chars"]) == (text, truncated, 31)


async def test_bytes_that_are_no_text_are_replaced_and_that_is_said(root: Path) -> None:
    (root / "honest.txt").write_text("already \ufffd", encoding="utf-8")
    broken = (await called("read_file", root, path="data/broken.txt")).output
    honest = (await called("read_file", root, path="honest.txt")).output
    assert (broken["text"], broken["replaced"], honest["replaced"]) == ("caf\ufffd needle\n", True, False)


async def test_file_that_is_too_large_is_refused(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(MAX_READ + 1)
    result = await called("read_file", root, path="large")
    assert "larger than 16 MiB" in str(result.error)


async def test_search_finds_lines_in_a_stable_order_and_leaves_the_rest_alone(root: Path) -> None:
    result = await called("file_search", root, query="nEEdle")
    assert result.output == [
        {"path": "data/b.txt", "line": 2, "snippet": "A Needle here"},
        {"path": "data/b.txt", "line": 3, "snippet": "needle again"},
        {"path": "data/broken.txt", "line": 1, "snippet": "caf\ufffd needle"},
        {"path": "data/inside.txt", "line": 2, "snippet": "A Needle here"},
        {"path": "data/inside.txt", "line": 3, "snippet": "needle again"},
        {"path": "data/docs/a.md", "line": 1, "snippet": "Straße und NEEDLE"},
    ]
    assert result.metadata == {"unread": 2}


async def test_search_is_bounded(root: Path) -> None:
    assert len((await called("file_search", root, query="needle", limit=2)).output) == 2
    (root / "data" / "docs" / "wide.txt").write_text("x" * 5000 + "WIDE" + "x" * 5000)
    (wide,) = (await called("file_search", root, query="wide", root_dir="data/docs")).output
    assert "WIDE" in wide["snippet"]
    assert len(wide["snippet"]) == 200
    (root / "data" / "docs" / "long.txt").write_text("x" * MAX_SEARCHED + "\ntail")
    result = await called("file_search", root, query="tail", root_dir="data/docs")
    assert (result.output, result.metadata) == ([], {"unread": 1})


async def test_words_that_stand_nowhere_together_are_looked_for_in_one_line(root: Path) -> None:
    (root / "data" / "terms.txt").write_text("The warranty for laptops is 36 months.\nlaptops are new\n")
    (hit,) = (await called("file_search", root, query="Laptop warranty")).output
    assert (hit["path"], hit["line"]) == ("data/terms.txt", 1)
    (both,) = (await called("file_search", root, query="needle again", limit=1)).output
    assert both["line"] == 3
    (hit,) = (await called("file_search", root, query="the guarantee of old laptops?")).output
    assert hit["snippet"] == "The warranty for laptops is 36 months."
    assert (await called("file_search", root, query="laptop of no known owner")).output == []


async def test_words_of_a_script_without_blanks_are_found(root: Path) -> None:
    lines = ["人事部：李敏，分机 3310", "财务部：赵强，分机 3325", "蓝湖会议室可容纳 14 人"]
    (root / "data" / "分机.txt").write_text("\n".join(lines))
    for query, numbers in [("财务部的分机", [2]), ("分机号", [1, 2]), ("会议室可容纳多少人", [3]), ("餐厅", [])]:
        assert [hit["line"] for hit in (await called("file_search", root, query=query)).output] == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("port of billing?", ["port", "of", "billing"]),
        ("delta-7 delta-7", ["delta-7"]),
        ("财务部Ann的", ["财务", "务部", "的", "ann"]),
        ("?!", []),
    ],
)
def test_words_of_a_query(text: str, words: list[str]) -> None:
    assert split_words(text.casefold()) == words


async def test_search_ignores_case_beyond_ascii(root: Path) -> None:
    assert len((await called("file_search", root, query="STRASSE")).output) == 1


@pytest.mark.parametrize("directory", ["..", "/", "data/leak", "nowhere", "data/b.txt", "data\0"])
async def test_search_outside_or_nowhere_is_refused(root: Path, directory: str) -> None:
    result = await called("file_search", root, query="needle", root_dir=directory)
    assert repr(directory) in str(result.error)


async def test_search_in_a_place_that_nobody_named_says_how_to_name_one(tmp_path: Path) -> None:
    result = await called("file_search", tmp_path, query="needle")
    assert result.error == "there is no directory './data'; say by root_dir where to search"


async def test_author_may_narrow_the_root_but_never_widen_it(root: Path) -> None:
    narrow = await called("read_file", root, path="a.md", root="data/docs")
    assert narrow.output["text"] == "Straße und NEEDLE\n"
    assert not (await called("read_file", root, path="../b.txt", root="data/docs")).success
    assert not (await called("read_file", root, path="secret.txt", root="../outside")).success
    found = await called("file_search", root, query="needle", root="data", root_dir="docs")
    assert [hit["path"] for hit in found.output] == ["docs/a.md"]


def test_model_does_not_see_the_root(root: Path) -> None:
    for each in ToolRegistry([file_search(root), read_file(root)]).definitions():
        assert "root" not in each["function"]["parameters"]["properties"]


PASSWORD = "hunter2-abcdef-XYZ987"
PEM = (
    "-----BEGIN PRIVATE KEY-----\n" + f"{'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC' * 2}\n" * 3 + "-----END PRIVATE KEY-----\n"
)
CLEAN = Redactor({"DBPW": PASSWORD}, formats=NAMES).text


async def cleaned(code: str, host_root: Path, /, **args: Any) -> Any:
    registry = ToolRegistry([file_search(host_root), read_file(host_root)])
    return (await registry.execute(code, args, ToolContext(clean=CLEAN))).output


@pytest.mark.exhaustive
@pytest.mark.parametrize(("text", "mark"), [(f"db: {PASSWORD}\npin: 1\n", "[redacted:DBPW]"), (PEM, "[redacted:")])
async def test_no_part_of_a_file_shows_a_part_of_a_secret(tmp_path: Path, text: str, mark: str) -> None:
    (tmp_path / "conf").write_text(text)
    shown = CLEAN(text)
    assert mark in shown
    for offset in range(len(text)):
        part = await cleaned("read_file", tmp_path, path="conf", offset=offset, limit=12)
        assert (part["text"], part["total_chars"]) == (shown[offset : offset + 12], len(shown))


async def test_no_snippet_shows_a_part_of_a_secret_and_no_query_finds_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text(f"one\n{PEM}needle {'c' * 75}{PASSWORD} needle\nneedle\n{PEM}needle again")
    hits = await cleaned("file_search", tmp_path, query="needle")
    assert [hit["line"] for hit in hits] == [7, 8, 14]
    assert "hunter2" not in str(hits)
    for query in ("unter2", "MIIEv", PASSWORD):
        assert await cleaned("file_search", tmp_path, query=query) == []


async def test_a_search_ends_with_the_time_of_its_call(root: Path) -> None:
    result = await ToolRegistry([file_search(root)]).execute(
        "file_search", {"query": "needle"}, ToolContext(deadline_s=0.0)
    )
    assert result.error == "not done within 0 seconds; ask for less"


def test_lines_that_are_added_at_once_are_all_there_and_one_alone_makes_a_new_file(tmp_path: Path) -> None:
    """As by the items of a `foreach`, each of which writes in a thread of its own."""
    made: list[str] = []

    def write(writer: int) -> None:
        for n in range(25):
            Sandbox(tmp_path).write("log.txt", f"{writer}.{n}\n".encode(), append=True)
            with suppress(SandboxError):
                Sandbox(tmp_path).write(f"{n}.txt", b"mine", new=True)
                made.append(f"{n}.txt")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sorted((tmp_path / "log.txt").read_text().split()) == sorted(f"{w}.{n}" for w in range(4) for n in range(25))
    assert sorted(made) == sorted(f"{n}.txt" for n in range(25))
