"""shell_command under attack: what is not allowed word by word is never started, and nothing outlives its call."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin.shell_command import fits, shell_command

PYTHON = sys.executable


async def called(root: Path, *argv: str, allow: list[str] | None = None, **args: Any) -> ToolResult:
    registry = ToolRegistry([shell_command(root)])
    given = {"argv": list(argv), **({"allow": allow} if allow is not None else {}), **args}
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


async def test_without_an_author_nothing_is_allowed(tmp_path: Path) -> None:
    assert "allows none" in str((await called(tmp_path, "echo")).error)
    assert not (await called(tmp_path, "echo", allow=[])).success


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
