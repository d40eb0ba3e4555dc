"""write_run_page(): a run as one HTML file that shows it and proves it, without a server and without a network."""

import html
from typing import Final

import orjson

from engine_shim.web.bundle import STATIC, join_modules

ENTRY: Final = "run/exported.js"
STYLES: Final = ("css/base.css", "css/run.css")
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing and sends nothing, whatever stands in the run."""
_BEFORE: Final = '<script type="application/json" id="journal">'
PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
<body>
<div id="run"><noscript>This page computes what it shows; allow it to run its script.</noscript></div>
{before}{journal}</script>
<script type="module">
{script}
page.showRun(document.getElementById("run"), JSON.parse(document.getElementById("journal").textContent));
</script>
</body>
</html>
"""


def write_run_page(run: str, journal: bytes) -> str:
    """The page of a run, by the lines of its journal file, which it holds byte for byte.

    Bytes that are no text are written out, which makes their line one that the page cannot read.
    """
    return PAGE.format(
        policy=POLICY,
        before=_BEFORE,
        title=html.escape(f"run {run}"),
        style="\n".join((STATIC / name).read_text("utf-8") for name in STYLES),
        script=join_modules(ENTRY),
        journal=_as_script_data(journal.decode(errors="backslashreplace")),
    )


def read_run_page(text: str) -> bytes | None:
    """The journal file that a page of `write_run_page` holds, byte for byte; None for a page that holds none."""
    _, found, rest = text.partition(_BEFORE)
    data, end, _ = rest.partition("</script>")
    if not found or not end:
        return None
    try:
        journal = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return journal.encode() if isinstance(journal, str) else None


def _as_script_data(text: str) -> str:
    """A text as JSON that no parser of HTML sees anything in."""
    data = orjson.dumps(text).decode()
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
