"""unpack_page(): the journal in a page that `export` wrote, as a file of its own."""

import atexit
import shutil
import tempfile
from pathlib import Path

import typer


def unpack_page(page: Path) -> Path:
    """Write the journal of a page to a file that is gone when the process ends.

    BadParameter for a page without one, PageDamaged for one whose journal cannot be read any more.
    """
    from engine_shim.web.run_page import read_run_page

    try:
        text = page.read_bytes().decode(errors="backslashreplace")  # bytes that are no text are damage of their line
    except OSError as error:
        raise typer.BadParameter(f"{page} cannot be read: {error}") from None
    journal = read_run_page(text, page.name)
    if journal is None:
        raise typer.BadParameter(f"{page} is no run that `agent-core export` wrote: it holds no journal")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, f"{page.stem}.jsonl")
    path.write_bytes(journal)
    return path
