"""shell_command under attack: what is not allowed word by word is never started, and nothing outlives its call."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_core.journal.sqlite import SqliteJournal
from support.optional import needs
from support.programs_ahead import put_ahead
from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin.shell_command import fits, shell_command
from utools.command import run_command
from utools.errors import UnknownTool
from utools.host_policy import HostPolicy

PYTHON = sys.executable


async def called(root: Path, *argv: str, allow: list[str] | None = None, **args: Any) -> ToolResult:
    policy = HostPolicy({"shell_command": {"allow": allow}} if allow is not None else {})
    registry = ToolRegistry([shell_command(root)], policy=policy)
    given = {"argv": list(argv), **args}
    return await registry.execute("shell_command", given, ToolContext())


ALLOWED = ["git status", "git log --oneline *", "echo ...", "grep -n * data/*.txt", "tar --file=*"]
FITS = [
    ["git", "status"],
    ["git", "log", "--oneline", "main"],
    ["echo"],
    ["echo", "a", "b; rm -rf .", "$(id)", "`id`"],
    ["grep", "-n", "needle", "data/a.txt"],
    ["tar", "--file=a.tar"],
]
FITS_NOT = [
    ["git"],
    ["git", "push"],
    ["git", "status", "-v"],
    ["git", "-c", "core.pager=id", "status"],
    ["/usr/bin/git", "status"],
    ["./git", "status"],
    ["GIT", "status"],
    ["git status"],
    ["git", "log", "--oneline", "--output=x"],
    ["git", "log", "main"],
    ["echo", "-e"],
    ["echo", "/etc/passwd"],
    ["echo", "../x"],
    ["echo", "a/../../x"],
    ["echo", "~root"],
    ["echo", "a\0b"],
    ["grep", "-n", "-f", "data/a.txt"],
    ["grep", "-n", "x", "data/../../a.txt"],
    ["grep", "-n", "x", "/data/a.txt"],
    ["tar", "--file=/etc/shadow"],
    ["tar", "--file=../x"],
    ["tar", "--file=host://x"],
    ["sh", "-c", "id"],
    ["env", "id"],
    [""],
]


LEADS_OUT = [
    ("dd if=*", ["dd", "if=/etc/hostname"]),
    ("cat ...", ["cat", "x=/etc/passwd"]),
    ("cat ...", ["cat", "file:/etc/passwd"]),
    ("curl -d *", ["curl", "-d", "@/etc/passwd"]),
    ("grep -f* *", ["grep", "-f/etc/passwd", "a"]),
    ("tar -C*", ["tar", "-C/etc"]),
    ("tar -*", ["tar", "-C/etc"]),
    ("tar -*", ["tar", "-C../x"]),
    ("tar --*", ["tar", "--directory=/etc"]),
    ("x --a=*", ["x", "--a=b=/etc"]),
    ("scp *", ["scp", "host:/etc/passwd"]),
    ("cat *", ["cat", "a=../../x"]),
]


@pytest.mark.parametrize(("allowed", "argv"), LEADS_OUT, ids=[" ".join(argv) for _, argv in LEADS_OUT])
def test_no_chosen_word_leads_out_however_it_begins(allowed: str, argv: list[str]) -> None:
    assert not fits(argv, allowed.split())


@pytest.mark.parametrize("argv", FITS, ids=" ".join)
def test_a_command_runs_as_it_is_allowed(argv: list[str]) -> None:
    assert any(fits(argv, each.split()) for each in ALLOWED)


@pytest.mark.parametrize("argv", FITS_NOT, ids=[repr(" ".join(argv)) for argv in FITS_NOT])
async def test_any_other_command_is_never_started(tmp_path: Path, argv: list[str]) -> None:
    result = await called(tmp_path, *argv, allow=ALLOWED)
    assert not result.success
    assert "is not allowed" in str(result.error)


LINKED_OUT = [
    ("cat *", "link"),
    ("cat *", "./link"),
    ("cat *", "below/link"),
    ("cat *", "folder/passwd"),
    ("cat *", "folder/not there"),
    ("cat *", "dangling"),
    ("cat *", "again"),
    ("cat *", "a=b"),
    ("cat ...", "link"),
    ("cat below/*", "below/link"),
    ("cat lin*", "link"),
    ("cat --file=*", "--file=link"),
    ("cat --file=*", "--file=a=b"),
    ("cat --*", "--file=below/link"),
    ("cat -f*", "-flink"),
    ("cat -*", "-flink"),
    ("cat *", "@link"),
    ("cat *", "key=@link"),
    ("cat *", "file:link"),
    ("cat *", "here,link"),
]


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A root with files, and with links to a directory beside it."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "passwd").write_text("sesame")
    for name in ("here", "below/here"):
        (root / name).write_text("mine")
    for name in ("link", "below/link", "a=b"):
        (root / name).symlink_to(outside / "passwd")
    (root / "folder").symlink_to("../outside")
    (root / "dangling").symlink_to(outside / "new")
    (root / "again").symlink_to("link")
    (root / "inside").symlink_to("below/here")
    return root


@pytest.mark.sampled
@pytest.mark.parametrize(("allowed", "word"), LINKED_OUT, ids=[" ".join(each) for each in LINKED_OUT])
async def test_no_chosen_word_leads_out_by_a_link(linked: Path, allowed: str, word: str) -> None:
    error = str((await called(linked, "cat", word, allow=[allowed])).error)
    assert error == f"{word!r} leads out of the root directory of this tool, through a link; name a file inside it"


@pytest.mark.parametrize("word", ["here", "inside", "below/here", "./below/../below/here"])
async def test_a_link_within_the_root_and_what_the_author_wrote_are_followed(linked: Path, word: str) -> None:
    allow = ["cat *", "cat ./below/../below/here"]
    assert (await called(linked, "cat", word, allow=allow)).output["stdout"] == "mine"


@pytest.mark.parametrize("word", [".env", "./.env", "shown", "here,.env", "runs.db"])
async def test_what_is_hidden_and_what_others_have_said_is_not_for_commands(linked: Path, word: str) -> None:
    SqliteJournal(linked / "runs.db")
    for name in (".env", "runs.db"):
        (linked / name).write_text("sesame")
    (linked / "shown").symlink_to(".env")
    assert "hidden, or a store" in str((await called(linked, "cat", word, allow=["cat *"])).error)
    assert (await called(linked, "cat", word, allow=[f"cat {word}"])).output["stdout"] in ("sesame", "")


async def test_git_takes_no_directory_that_a_tool_has_made_for_a_repository(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "refs").mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    settings = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch ran"\n'
    (tmp_path / "config").write_text(settings)
    result = await called(tmp_path, "git", "status", allow=["git status"])
    assert (result.output["exit_code"] != 0, (tmp_path / "ran").exists()) == (True, False)
    assert "safe.bareRepository" in result.output["stderr"]


async def test_words_are_looked_up_from_where_the_command_runs(linked: Path) -> None:
    (linked / "below" / "here").unlink()
    (linked / "here").unlink()
    (linked / "here").symlink_to("/etc/passwd")
    assert "through a link" in str((await called(linked, "echo", "here", allow=["echo *"])).error)
    assert (await called(linked, "echo", "here", allow=["echo *"], cwd="below")).output["stdout"] == "here\n"
    assert "through a link" in str((await called(linked, "echo", "link", allow=["echo *"], cwd="below")).error)


async def test_a_directory_outside_that_the_author_allows_is_not_left_by_a_link(linked: Path) -> None:
    outside = linked.parent / "outside"
    (outside / "same").symlink_to("passwd")
    (outside / "away").symlink_to(linked.parent / "other")
    (linked.parent / "other").write_text("no")
    for allow in (f"cat {outside}/*", "cat ../outside/*"):
        directory = allow.removeprefix("cat ").removesuffix("*")
        assert (await called(linked, "cat", f"{directory}same", allow=[allow])).output["stdout"] == "sesame"
        assert "through a link" in str((await called(linked, "cat", f"{directory}away", allow=[allow])).error)


async def test_what_the_author_wrote_word_by_word_is_followed(linked: Path) -> None:
    for allow in (["cat link"], ["cat *", "cat link"]):
        assert (await called(linked, "cat", "link", allow=allow)).output["stdout"] == "sesame"


@pytest.mark.parametrize("word", ["x" * 8192, "a/" * 4096, "=" * 8192, "x=,:@" * 1600, "here/" * 1600, "\ud800"])
async def test_a_word_that_is_no_path_is_no_link(linked: Path, word: str) -> None:
    (linked / "a").mkdir()
    assert "through a link" not in str((await called(linked, "true", *[word] * 4, allow=["true ..."])).error)


@pytest.mark.parametrize("allow", [None, []])
async def test_without_commands_of_the_host_there_is_no_tool(tmp_path: Path, allow: list[str] | None) -> None:
    with pytest.raises(UnknownTool, match="shell_command is off until the host sets allow, in presets of agent-core"):
        await called(tmp_path, "echo", allow=allow)


@pytest.mark.parametrize("wider", [["bash -c *"], ["echo ..."], ["echo *", "id"]])
async def test_a_definition_may_only_narrow_what_the_host_allows(tmp_path: Path, wider: list[str]) -> None:
    policy = HostPolicy({"shell_command": {"allow": ["echo *", "echo a b"]}})
    registry = ToolRegistry([shell_command(tmp_path)], policy=policy)
    (fault,) = registry.validate("shell_command", {"argv": ["echo", "a"], "allow": wider})
    assert fault.pointer.startswith("/allow/")
    call = {"argv": ["echo", "a"], "allow": ["echo a b"]}
    assert "is not allowed" in str((await registry.execute("shell_command", call)).error)
    assert (await registry.execute("shell_command", {"argv": ["echo", "a"]})).output["stdout"] == "a\n"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("allow", "signs"), [(["ls"], None), (["ls *"], "*"), (["ls ..."], "..."), (["ls *", "cat ..."], "* and ...")]
)
async def test_a_refusal_says_what_a_star_does_not_stand_for(
    tmp_path: Path, allow: list[str], signs: str | None
) -> None:
    told = str((await called(tmp_path, "ls", "-la", allow=allow)).error)
    more = f"; what stands for {signs} is no option, and no path that leads out" if signs else ""
    assert told == f"the command 'ls -la' is not allowed; allowed are: {'; '.join(allow)}{more}"


async def test_no_shell_reads_the_words(tmp_path: Path) -> None:
    result = await called(tmp_path, "echo", "$HOME; id > x", "*", allow=["echo ..."])
    assert (result.output["stdout"], os.listdir(tmp_path)) == ("$HOME; id > x *\n", [])


async def test_the_environment_is_clean_and_the_directory_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_HOST", "sesame")
    (tmp_path / "below").mkdir()
    told = "import os; print(sorted(os.environ), os.getcwd())"
    result = await called(tmp_path, PYTHON, "-c", told, allow=[f"{PYTHON} -c *"], cwd="below")
    assert "SECRET_OF_HOST" not in result.output["stdout"]
    assert str(tmp_path / "below") in result.output["stdout"]
    for cwd in ("..", "/", "nowhere"):
        assert not (await called(tmp_path, "echo", allow=["echo"], cwd=cwd)).success


async def test_an_exit_code_is_told_and_a_command_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    failing = "import sys; print('half'); sys.stderr.write('why'); sys.exit(3)"
    result = await called(tmp_path, PYTHON, "-c", failing, allow=[f"{PYTHON} -c *"])
    assert result.output == {"exit_code": 3, "stdout": "half\n", "stderr": "why"}
    missing = await called(tmp_path, "no-such-command", allow=["no-such-command"])
    assert "cannot be started" in str(missing.error)


async def test_much_output_is_cut_and_does_not_hold_the_command_up(tmp_path: Path) -> None:
    much = "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('y' * 5_000_000)"
    result = await called(tmp_path, PYTHON, "-c", much, allow=[f"{PYTHON} -c *"])
    assert (len(result.output["stdout"]), len(result.output["stderr"]), result.output["truncated"]) == (
        65536,
        65536,
        True,
    )


SPAWNS = "import subprocess, sys; p = subprocess.Popen(['sleep', '300']); print(p.pid, flush=True)"


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    result = await called(tmp_path, PYTHON, "-c", SPAWNS, allow=[f"{PYTHON} -c *"])
    assert _gone(int(result.output["stdout"]))


async def test_a_command_that_is_cancelled_ends_with_all_that_it_started(tmp_path: Path) -> None:
    told = f"{SPAWNS}; open('pid', 'w').write(str(p.pid)); p.wait()"
    running = asyncio.create_task(called(tmp_path, PYTHON, "-c", told, allow=[f"{PYTHON} -c *"]))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert _gone(int((tmp_path / "pid").read_text()))


async def test_a_command_that_is_cancelled_while_it_starts_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it may be far ahead of the event loop, which has not opened its pipes yet."""
    pid, told = tmp_path / "pid", f"{SPAWNS}; open('pid', 'w').write(str(p.pid)); p.wait()"

    put_ahead(monkeypatch, lambda: pid.exists() and pid.read_text(), lambda: running.cancel())
    running = asyncio.create_task(called(tmp_path, PYTHON, "-c", told, allow=[f"{PYTHON} -c *"]))
    done, _ = await asyncio.wait({running}, timeout=20)
    assert done, "it waits for what the command has started"
    assert running.cancelled()
    assert _gone(int(pid.read_text()))


async def test_a_command_that_is_cancelled_before_it_cannot_be_started_is_cancelled(tmp_path: Path) -> None:
    running = asyncio.create_task(run_command(["/no/such/program"], cwd=tmp_path))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def _gone(pid: int) -> bool:
    """Whether a process ends, or is dead and only not yet reaped by its new parent."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


@needs("uvloop")
def test_command_that_ends_before_its_input_is_written_has_its_result_with_uvloop(tmp_path: Path) -> None:
    import uvloop

    async def run() -> list[int]:
        return [(await run_command(["true"], cwd=tmp_path)).exit_code for _ in range(60)]

    assert uvloop.run(run()) == [0] * 60
