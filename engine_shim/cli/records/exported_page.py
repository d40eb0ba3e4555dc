"""unpack_page(): the journal in a page that `export` wrote, as a file of its own; find_excerpt(): the excerpt."""

import atexit
import shutil
import tempfile
from pathlib import Path

import typer

EXCERPT = ".json"
"""How the name of an excerpt's file ends."""
PAGE = ".html"


def find_excerpt(path: Path) -> str | None:
    """Return the excerpt in a file, or in a page of it; None for another file, or none. PageDamaged for a page whose
    excerpt cannot be read any more."""
    if path.suffix not in (EXCERPT, PAGE) or not path.is_file():
        return None
    if path.suffix == EXCERPT:
        return path.read_text("utf-8", "surrogateescape")
    from engine_shim.web.run_page import read_excerpt_page

    return read_excerpt_page(path.read_bytes().decode(errors="backslashreplace"), path.name)


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
