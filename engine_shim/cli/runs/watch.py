"""The option run --watch: runs again whenever a file changes that the run was made of."""

import importlib
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

import watchfiles

from engine_shim.cli import output, terminal
from engine_shim.cli.failures import report
from utools.files.protected_paths import protected_files

PACKAGES = {Path(__file__).resolve().parents[3] / name for name in ("agent_core", "engine_shim", "utools")}
LOOK_AGAIN_MS = 1000
"""How often it looks without having been told of a change: one may come before the watch begins."""


def run_and_watch(run: Callable[[], int]) -> int:
    """Run, and run again after each change of a file, until Ctrl-C."""
    libraries, sys.dont_write_bytecode = set(sys.modules), True  # else a change within the same second may be missed
    try:
        while True:
            began = time.time_ns()
            try:
                run()
            except Exception as error:  # the edge of each run: whatever is wrong may be mended while we watch
                report(error, as_json=False)
            terminal.flush()
            modules = _own_modules(libraries)
            files = {*map(Path, protected_files()), *modules.values()}
            sys.stderr.write(f"watching {output.count(len(files), 'file')}; Ctrl-C ends it\n")
            _wait_for_change(files, began)
            for name in modules:
                sys.modules.pop(name, None)
            importlib.invalidate_caches()
    except KeyboardInterrupt:
        return output.OK


def _own_modules(libraries: Collection[str]) -> dict[str, Path]:
    """Return the modules that the run has loaded from files of the host, which are loaded anew the next time."""
    loaded = {name: getattr(module, "__file__", None) for name, module in sys.modules.items() if name not in libraries}
    files = {name: Path(file).resolve() for name, file in loaded.items() if isinstance(file, str)}
    directories = {Path.cwd(), *(Path(file).parent for file in protected_files())}
    return {name: file for name, file in files.items() if not directories.isdisjoint(file.parents) and _is_source(file)}


def _is_source(file: Path) -> bool:
    """Return whether it is no library, even where its environment lies beside the workflow."""
    is_own = {"site-packages", "dist-packages"}.isdisjoint(file.parts)
    return file.suffix == ".py" and is_own and PACKAGES.isdisjoint(file.parents)


def _wait_for_change(files: Collection[Path], began: int) -> None:
    """Return once one of the files has been written since that time, or has changed since now."""
    before = {file: _stamp(file) for file in files}
    if any(stamp is not None and stamp[0] >= began for stamp in before.values()):
        return
    directories = {file.parent for file in files if file.parent.is_dir()}
    wakeups = watchfiles.watch(
        *directories, watch_filter=None, recursive=False, rust_timeout=LOOK_AGAIN_MS, yield_on_timeout=True
    )
    for _ in wakeups:
        if any((now := _stamp(file)) is not None and now != before[file] for file in files):
            return


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes with a file; None while there is none, as between two steps of an editor."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
