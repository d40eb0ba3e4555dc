"""The path sandbox under attack, for reading and writing: never a byte from outside the root, nor one put there."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.examples import examples
from utools import ToolContext, ToolRegistry
from utools.builtin.file_search import file_search
from utools.builtin.files import read_file, write_file
from utools.errors import SandboxError
from utools.files.sandbox import Sandbox

SECRET = b"a byte from outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_bytes(SECRET)
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "in" / "a.txt").write_text("inside")
    (root / "link").symlink_to("../outside/secret.txt")
    (root / "dir").symlink_to("../outside")
    (root / "chain").symlink_to("dir")
    (root / "loop").symlink_to("loop")
    (root / "proc").symlink_to("/proc/self/root")
    (root / "dangling").symlink_to("../outside/new.txt")
    os.link(tmp_path / "outside" / "secret.txt", root / "hard")
    os.mkfifo(root / "fifo")
    return root


UP = "../outside/secret.txt"
HOSTILE = [
    UP,
    "in/../../outside/secret.txt",
    "./../outside/secret.txt",
    "in/./.././../outside/secret.txt",
    "//../outside/secret.txt",
    "link",
    "dir/secret.txt",
    "chain/secret.txt",
    "loop",
    "loop/x",
    "hard",
    "fifo",
    "proc/etc/passwd",
    "proc",
    "dir",
    "in",
    ".",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/dev/fd/0",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    "..\\outside\\secret.txt",
    "\\\\host\\share",
    "in/a.txt/..",
    "in/a.txt/x",
    quote(UP, safe=""),
    quote(quote(UP, safe=""), safe=""),
    "..%2foutside%2fsecret.txt",
    "%2e%2e/outside/secret.txt",
    "..%c0%afoutside",
    "．．/outside/secret.txt",
    "..∕outside",
    "\u2024\u2024/outside/secret.txt",
    "in/a.txt\0",
    "\0",
    "",
    " ",
    "x" * 300,
    "x/" * 3000,
    "../" * 500 + "etc/passwd",
    "in/a.txt\n",
    "in/\udcffx",
    "$HOME",
    "`id`",
    "in/*",
    "|id",
    "con",
    "nul",
]


@pytest.mark.parametrize("path", HOSTILE, ids=[repr(path)[:50] for path in HOSTILE])
def test_no_path_reads_a_byte_from_outside(root: Path, path: str) -> None:
    with pytest.raises(SandboxError) as caught, Sandbox(root).open(path) as file:
        assert SECRET not in file.read()
    assert str(root) not in str(caught.value)


@pytest.mark.sampled
@pytest.mark.parametrize("path", HOSTILE, ids=[repr(path)[:50] for path in HOSTILE])
@pytest.mark.parametrize("append", [False, True])
def test_no_path_writes_a_byte_outside(root: Path, path: str, append: bool) -> None:
    before = _tree(root.parent / "outside")
    with suppress(SandboxError):  # an odd name inside the root may well be written
        Sandbox(root).write(path, b"written", append=append)
    assert _tree(root.parent / "outside") == before
    assert not Path("/tmp/written").exists()


@examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("./\\~%2ef\0 inadirlk\u2024\udc80"), max_size=24))
def test_any_path_is_read_or_refused_by_the_tools_own_error(root: Path, path: str) -> None:
    try:
        with Sandbox(root).open(path) as file:
            assert file.read() == b"inside"
    except SandboxError:
        pass


def test_a_file_is_there_whole_with_its_directories(root: Path) -> None:
    box = Sandbox(root)
    box.write("new/deep/x.txt", b"one")
    box.write("new/deep/x.txt", b"two", append=True)
    assert (root / "new/deep/x.txt").read_bytes() == b"onetwo"
    box.write("new/deep/x.txt", b"three")
    assert (root / "new/deep/x.txt").read_bytes() == b"three"
    with pytest.raises(SandboxError, match="already"):
        box.write("new/deep/x.txt", b"four", new=True)
    assert sorted(os.listdir(root / "new" / "deep")) == ["x.txt"]


def test_what_has_other_names_is_not_copied_by_adding_to_it(root: Path) -> None:
    with pytest.raises(SandboxError, match="hard links"):
        Sandbox(root).write("hard", b"", append=True)
    with pytest.raises(SandboxError, match="hard links"):
        Sandbox(root).open("hard")


def test_a_hard_link_is_replaced_and_its_other_name_keeps_what_it_has(root: Path) -> None:
    Sandbox(root).write("hard", b"mine")
    assert (root / "hard").read_bytes() == b"mine"
    assert (root.parent / "outside" / "secret.txt").read_bytes() == SECRET


def _swapping(root: Path, stop: threading.Event) -> None:
    """Swap a directory for a link to the outside and back, again and again."""
    here, aside, link = root / "in", root / "aside", root / "lie"
    link.symlink_to("../outside")
    while not stop.is_set():
        for old, new in ((here, aside), (link, here), (here, link), (aside, here)):
            with suppress(OSError):  # a writer may have made a directory in between
                os.rename(old, new)


def _read(root: Path) -> None:
    with Sandbox(root).open("in/secret.txt") as file:
        assert SECRET not in file.read()


def _write(root: Path) -> None:
    Sandbox(root).write("in/secret.txt", b"inside")


def _search(root: Path) -> None:
    for path in Sandbox(root).files("in"):
        with suppress(SandboxError), Sandbox(root).open(path) as file:
            assert SECRET not in file.read()


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("act", [_read, _write, _search])
def test_a_directory_that_is_swapped_meanwhile_never_leads_outside(
    root: Path, act: Callable[[Path], None], count: int
) -> None:
    (root / "in" / "secret.txt").write_bytes(b"inside")
    stop = threading.Event()
    swapping = threading.Thread(target=_swapping, args=(root, stop))
    swapping.start()
    try:
        for _ in range(count):
            with suppress(SandboxError):
                act(root)
    finally:
        stop.set()
        swapping.join()
    assert (root.parent / "outside" / "secret.txt").read_bytes() == SECRET
    assert sorted(os.listdir(root.parent / "outside")) == ["secret.txt"]


async def test_names_that_no_text_can_hold_are_passed_over(root: Path) -> None:
    (root / "in" / os.fsdecode(b"caf\xe9.txt")).write_text("needle")
    (root / "in" / "b.txt").write_text("needle")
    registry = ToolRegistry([file_search(root)])
    result = await registry.execute("file_search", {"query": "needle", "root_dir": "in"}, ToolContext())
    assert [hit["path"] for hit in result.output] == ["in/b.txt"]


async def test_write_file_says_what_it_wrote_and_refuses_the_rest(root: Path) -> None:
    registry = ToolRegistry([write_file(root), read_file(root)])

    async def written(**args: str) -> object:
        result = await registry.execute("write_file", {"root": ".", **args}, ToolContext())
        return result.output or result.error

    assert await written(path="notes/é.txt", text="snö") == {"path": "notes/é.txt", "bytes": 4}
    assert await written(path="notes/é.txt", text="!", mode="append") == {"path": "notes/é.txt", "bytes": 1}
    assert (await registry.execute("read_file", {"path": "notes/é.txt"}, ToolContext())).output["text"] == "snö!"
    assert "already" in str(await written(path="notes/é.txt", text="x", mode="new"))
    assert "does not lie inside" in str(await written(path=UP, text="x"))
    assert "larger than 4 MiB" in str(await written(path="big", text="x" * (4 * 2**20 + 1)))
    assert await written(root="new/drafts", path="a.txt", text="x") == {"path": "a.txt", "bytes": 1}
    assert (root / "new/drafts/a.txt").read_text() == "x"
    assert "does not lie inside" in str(await written(root="new/drafts", path="../a.txt", text="x"))
    assert "/root is required" in str((await registry.execute("write_file", {"path": "a", "text": "x"})).error)


def _tree(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("path", [".git/config", "sub/.git/hooks/post-commit", "sub/.GIT/config", ".hg/hgrc", ".env"])
def test_what_is_hidden_is_neither_written_nor_read(root: Path, path: str) -> None:
    with pytest.raises(SandboxError, match="hidden"):
        Sandbox(root).write(path, b"x")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(SECRET)
    with pytest.raises(SandboxError, match="hidden"):
        Sandbox(root).open(path)
    (root / "shown").symlink_to(path)
    with pytest.raises(SandboxError, match="hidden"):
        Sandbox(root).open("shown")


def test_a_root_may_be_hidden_where_its_author_says_so(root: Path) -> None:
    (root / ".notes").mkdir()
    Sandbox(root).subdirectory(".notes").write("a.txt", b"x")
    assert (root / ".notes" / "a.txt").read_bytes() == b"x"


def test_a_large_file_is_replaced_and_what_is_there_keeps_its_permissions(root: Path) -> None:
    (root / "large").write_bytes(b"x" * (17 * 2**20))
    (root / "large").chmod(0o600)
    Sandbox(root).write("large", b"y", append=True)
    assert (root / "large").stat().st_size == 17 * 2**20 + 1
    Sandbox(root).write("large", b"z")
    assert (root / "large").read_bytes() == b"z"
    assert (root / "large").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_too_large_to_be_added_to_says_so_and_keeps_what_it_has(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    with pytest.raises(SandboxError, match="more than 64 MiB"):
        Sandbox(root).write("huge", b"y", append=True)
    assert (root / "huge").stat().st_size == 64 * 2**20 + 1
    assert [path.name for path in root.glob(".huge*")] == []
