"""What a process has to itself: a child that it forks has its own, and leaves the parent's alone."""

import subprocess
import sys
from pathlib import Path

import pytest

FILE = """
import os, sys
from pathlib import Path
from utools.databases.sqlite_file import Layout, SqliteFile

LAYOUT = Layout("numbers", (("CREATE TABLE numbers (n INTEGER)",),), frozenset({"numbers"}))
file = SqliteFile(Path(sys.argv[1]), LAYOUT, busy_seconds=20)

def write(n):
    with file.writing() as db:
        db.execute("INSERT INTO numbers VALUES (?)", (n,))

write(1)
heard, told, ended = *os.pipe(), os.pipe()
child = os.fork()
if not child:
    write(2)
    os.write(told, b".")
    os.read(ended[0], 1)
    write(4)
    os._exit(0)
os.read(heard, 1)
write(3)
file.close()
os.write(ended[1], b".")
assert os.waitpid(child, 0)[1] == 0
print(file.select("numbers", "SELECT n FROM numbers ORDER BY n"))
"""
SNAPSHOT = """
import os, sys
from pathlib import Path
from utools.databases.sqlite_file import Layout, SqliteFile

LAYOUT = Layout("numbers", (("CREATE TABLE numbers (n INTEGER)",),), frozenset({"numbers"}))
file = SqliteFile(Path(sys.argv[1]), LAYOUT, busy_seconds=20)
with file.writing() as db:
    db.execute("INSERT INTO numbers VALUES (1)")
with file.snapshot():
    child = os.fork()
    if not child:
        os._exit(0 if file.select("numbers", "SELECT n FROM numbers") == [(1,)] else 1)
    assert os.waitpid(child, 0)[1] == 0
    print(file.select("numbers", "SELECT n FROM numbers"))
"""
LOOP = """
import asyncio, os, sys
from utools.sources.loop_thread import LoopThread

async def answer(n):
    await asyncio.sleep(0)
    return n

thread = LoopThread(seconds=20)
print(thread.submit(answer(1)).result(20), flush=True)
child = os.fork()
if not child:
    print(thread.submit(answer(2)).result(20), flush=True)
    sys.exit()  # as a worker of a server ends
assert os.waitpid(child, 0)[1] == 0
print(thread.submit(answer(3)).result(20), flush=True)
"""


def run(program: str, *arguments: str | Path) -> str:
    forks = ["-W", "ignore:This process"]  # from Python 3.12 on it warns of any thread that is there
    done = subprocess.run(
        [sys.executable, *forks, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("program", "written"), [(FILE, "[(1,), (2,), (3,), (4,)]\n"), (SNAPSHOT, "[(1,)]\n")], ids=["writes", "snapshot"]
)
def test_a_file_loses_nothing_that_parent_or_child_write(program: str, written: str, tmp_path: Path) -> None:
    assert run(program, tmp_path / "numbers.db") == written


def test_a_loop_in_a_thread_works_in_the_child_and_in_the_parent_after_its_end() -> None:
    assert run(LOOP) == "1\n2\n3\n"
