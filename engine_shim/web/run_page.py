"""write_run_page(): a run as one HTML file that shows it and proves it, without a server and without a network."""

import html
import re
from functools import cache
from pathlib import Path
from typing import Final

import orjson

STATIC: Final = Path(__file__).parent / "static"
MODULES: Final = ("sha256.js", "journal.js", "timeline.js", "text.js", "run_page.js")
"""The page's script, each module after those that it imports from."""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'"
"""The page loads nothing and sends nothing, whatever stands in the run."""
_IMPORT: Final = re.compile(r"^import \{[^}]*\} from \"\./[\w.]+\";\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
<main id="run"><noscript>This page computes what it shows; allow it to run its script.</noscript></main>
<script type="application/json" id="journal">{journal}</script>
<script type="module">
{script}
showRun(document.getElementById("run"), JSON.parse(document.getElementById("journal").textContent));
</script>
</html>
"""


def write_run_page(run: str, journal: bytes) -> str:
    """The page of a run, by the lines of its journal file, which it holds byte for byte."""
    return PAGE.format(
        policy=POLICY,
        title=html.escape(f"run {run}"),
        style=(STATIC / "run_page.css").read_text("utf-8"),
        script=_join_modules(),
        journal=_as_script_data(journal.decode()),
    )


@cache
def _join_modules() -> str:
    """The modules as one script: their names are different, so that none needs to be imported."""
    texts = ((STATIC / name).read_text("utf-8") for name in MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _as_script_data(text: str) -> str:
    """A text as JSON that no parser of HTML sees anything in."""
    data = orjson.dumps(text).decode()
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
