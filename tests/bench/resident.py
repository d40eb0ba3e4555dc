"""The resident memory of this process, by /proc."""

import os
from pathlib import Path


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
