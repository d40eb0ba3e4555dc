"""Which process a driver's name tells of, and when that one has ended for certain: when in doubt, it has not."""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine_shim.errors import RunBusy
from engine_shim.store.driver_identity import (
    HIDDEN,
    Place,
    Process,
    has_ended,
    new_driver,
    pattern_of,
    read_place,
    read_process,
    read_start,
)
from engine_shim.store.run_store import SqliteRunStore

ROOT = Path(__file__).parents[3]
BOOT, OTHER_BOOT = "0f7b6a52-55a1-4e0c-9c0e-3d1b8a5f2c11", "8a5f2c11-55a1-4e0c-9c0e-3d1b0f7b6a52"
HERE = Place("4026531836", BOOT)
NOBODY = 999_999_999


def make_proc(folder: Path, *, seen_as: int) -> Path:
    """A /proc in which this process has a number."""
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text(f"{BOOT}\n")
    (folder / str(seen_as) / "ns").mkdir(parents=True)
    (folder / str(seen_as) / "ns" / "pid").symlink_to("pid:[4026531836]")
    fields = " ".join(map(str, range(4, 53)))
    (folder / str(seen_as) / "stat").write_bytes(b"%d (a \xff) (b) S %s\n" % (seen_as, fields.encode()))
    (folder / "self").symlink_to(str(seen_as))
    return folder


# ── decisions ────────────────────────────────────────────────────────────────────────────────────

SEEN: dict[str, tuple[Process | None, Place | None, dict[int, str], bool]] = {
    "lives": (Process(7, "100", HERE), HERE, {7: "100"}, False),
    "is gone": (Process(7, "100", HERE), HERE, {8: "100"}, True),
    "its id has another process": (Process(7, "100", HERE), HERE, {7: "200"}, True),
    "lives, and is hidden from this user": (Process(7, "100", HERE), HERE, {7: HIDDEN}, False),
    "another PID namespace": (Process(7, "100", Place("4026532222", BOOT)), HERE, {}, False),
    "another boot": (Process(7, "100", Place(HERE.namespace, OTHER_BOOT)), HERE, {}, False),
    "a name that tells no process": (None, HERE, {}, False),
    "nothing known of this place": (Process(7, "100", HERE), None, {}, False),
    "nothing known at all": (None, None, {}, False),
}


@pytest.mark.parametrize(("process", "here", "starts", "expected"), SEEN.values(), ids=SEEN)
def test_process_has_ended_only_where_that_is_certain(
    process: Process | None, here: Place | None, starts: dict[int, str], expected: bool
) -> None:
    assert has_ended(process, here, starts.get) is expected


NAMES: dict[str, tuple[str, Process | None]] = {
    "whole": (f"web:7:100:4026531836:{BOOT}:0a1b2c3d", Process(7, "100", HERE)),
    "a host with colons": (f"a:b:7:100:4026531836:{BOOT}:0a1b2c3d", Process(7, "100", HERE)),
    "no host": (f":7:100:4026531836:{BOOT}:0a1b2c3d", Process(7, "100", HERE)),
    "older": ("web:7:0a1b2c3d", None),
    "no start": (f"web:7::4026531836:{BOOT}:0a1b2c3d", None),
    "no number": (f"web:seven:100:4026531836:{BOOT}:0a1b2c3d", None),
    "no token": (f"web:7:100:4026531836:{BOOT}:", None),
    "digits of another script": (f"web:٧:100:4026531836:{BOOT}:0a1b2c3d", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("name", "process"), NAMES.values(), ids=NAMES)
def test_name_tells_a_process_if_it_is_whole(name: str, process: Process | None) -> None:
    assert read_process(name) == process


def test_pattern_of_a_place_is_in_the_names_of_its_processes_alone() -> None:
    assert pattern_of(HERE).strip("%") in NAMES["whole"][0]
    assert pattern_of(Place("4026531836", OTHER_BOOT)).strip("%") not in NAMES["whole"][0]
    assert pattern_of(None) == ""


# ── this machine ─────────────────────────────────────────────────────────────────────────────────


def test_own_name_tells_this_process_which_lives() -> None:
    own, here = read_process(new_driver()), read_place()
    assert own is not None
    assert (own.pid, own.place, own.start) == (os.getpid(), here, read_start(os.getpid()))
    assert not has_ended(own, here, read_start)
    assert new_driver() != new_driver()


def test_error_that_a_run_is_busy_names_the_process_and_its_host() -> None:
    assert f"is being driven by process {os.getpid()} on " in str(RunBusy("r", new_driver()))


def test_older_release_takes_no_part_of_a_name_for_a_process_id() -> None:
    """It reads host:pid:token from the end, and would look for the process on any host of that name."""
    assert not new_driver().rsplit(":", 2)[1].isdecimal()


def test_place_and_start_are_read_from_proc(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, seen_as=os.getpid())
    assert read_process(new_driver(proc)) == Process(os.getpid(), "22", HERE)


def test_proc_of_another_namespace_or_none_tells_no_process(tmp_path: Path) -> None:
    foreign = make_proc(tmp_path / "foreign", seen_as=os.getpid() + 1)
    for proc in (foreign, tmp_path / "missing"):
        assert read_place(proc) is None
        assert read_process(new_driver(proc)) is None
        assert new_driver(proc).rsplit(":", 1)[0].endswith(f":{os.getpid()}")


def test_boot_that_is_no_text_tells_no_place(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, seen_as=os.getpid())
    (proc / "sys/kernel/random/boot_id").write_bytes(b"\xff\n")
    assert read_place(proc) is None


def test_process_without_a_start_in_proc_is_hidden_if_it_lives(tmp_path: Path) -> None:
    assert read_start(os.getpid(), tmp_path) == HIDDEN
    assert read_start(NOBODY) is None
    assert read_start(2**70) is None


LOOKER = """
import sys
from pathlib import Path
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.run_store import SqliteRunStore

store, driver = SqliteRunStore(Path(sys.argv[1]), clock=lambda: 0.0), new_driver()
print(store.leases.acquire("theirs", driver), store.leases.acquire("ours", driver), driver)
store.close()
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("mounted", [["--mount-proc"], []], ids=["own proc", "proc of the machine"])
def test_processes_in_two_pid_namespaces_of_one_host_name_leave_each_other_their_runs(
    tmp_path: Path, mounted: list[str]
) -> None:
    """The other one sees no process with our id, and when it has ended, we see none with its own."""
    with closing(SqliteRunStore(tmp_path / "runs.db", clock=lambda: 0.0)) as store:
        driver, unshare = new_driver(), shutil.which("unshare")
        assert unshare is not None
        assert store.leases.acquire("theirs", driver) is None
        apart = [unshare, *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", *mounted]
        words = [*apart, sys.executable, "-c", LOOKER, str(tmp_path / "runs.db")]
        told = subprocess.check_output(words, cwd=ROOT, text=True).split()
        assert told[:2] == [driver, "None"]
        assert store.leases.holder("ours") == told[2]
        other, own = read_process(told[2]), read_process(driver)
        assert own is not None
        assert (other is None) is not mounted
        assert other is None or (other.place.boot == own.place.boot and other.place != own.place)
