"""The CPU time of a process and of all below it, those that have ended included, by /proc."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of_tree(root: int) -> float:
    """Seconds of a process, of its children that live, and of those that it has waited for."""
    fields = {pid: stat for path in Path("/proc").iterdir() if path.name.isdecimal() for pid, stat in _read(path)}
    below, found = [root], 0
    for pid in below:
        below += [other for other, stat in fields.items() if int(stat[1]) == pid]
        found += sum(map(int, fields[pid][11:15])) if pid in fields else 0
    return found / TICKS


def _read(path: Path) -> "list[tuple[int, list[str]]]":
    """The fields of a process after its name, which may have blanks; none where it has just ended."""
    try:
        return [(int(path.name), (path / "stat").read_text().rpartition(")")[2].split())]
    except OSError:
        return []
