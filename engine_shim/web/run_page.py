"""write_run_page(), write_excerpt_page(): a run, or some records of it, as one HTML file that shows it and proves it,
without a server and without a network."""

import hashlib
import html
import json
from typing import Final, NamedTuple

import orjson

from engine_shim.errors import PageDamaged
from engine_shim.web.bundle import STATIC, join_modules

ENTRY: Final = "run/exported.js"
EXCERPT_ENTRY: Final = "run/excerpt.js"
GUARD: Final = "run/guard.js"
STYLES: Final = ("css/base.css", "css/run.css")
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing and sends nothing, whatever stands in the run."""
UNCHECKED: Final = (
    "Not checked yet. This page checks its run by its own script; until that has said so here, rely on nothing in it. "
    "尚未校验。本页由自带的脚本校验这次运行；在此处给出结论之前，请勿信赖其中任何内容。"
)
NO_SCRIPT: Final = (
    "No script may run here, so nothing was checked: allow this page to run its script, or use agent-core verify. "
    "此处不允许运行脚本，因此未作任何校验：请允许本页运行脚本，或使用 agent-core verify。"
)
_JOURNAL: Final = "journal"
_EXCERPT: Final = "excerpt"
_BEFORE: Final = '<script type="application/json" id="{}">'
_VOID: Final = ("meta",)
PARSED: Final = "html CSS1Compat"
"""What a browser's parser makes of the document's first line, with no text beside the elements."""


class _Part(NamedTuple):
    """An element of the page that its script looks at again: whatever of it is hit, its digest says so."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    is_raw: bool = False
    """Whether the text is a script or a style, which is written as it is."""


def write_run_page(run: str, journal: bytes) -> str:
    """Return the page of a run, by the lines of its journal file, which it holds byte for byte. Bytes that are no text
    are written out, which makes their line one that the page cannot read."""
    return _write_page(f"run {run}", _JOURNAL, journal.decode(errors="backslashreplace"), ENTRY)


def write_excerpt_page(run: str, excerpt: str) -> str:
    """Return the page of some records of a run, by the excerpt of `make_excerpt`, which it holds as it is."""
    return _write_page(f"excerpt of {run}", _EXCERPT, excerpt, EXCERPT_ENTRY)


def _write_page(title: str, held: str, text: str, entry: str) -> str:
    """Return a page that holds a text, as the element `held`, and is drawn by `openPage` of the module `entry`.

    What says that nothing is checked yet, and the guard that says what went wrong, stand before all that may be
    damaged; tags that may be left out are, since nothing would tell that they are hit.
    """
    start = (
        _Part("meta", {"charset": "utf-8"}),
        _Part("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        _Part("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
    )
    shown = (_Part("p", {"id": "unchecked"}, UNCHECKED), _Part("noscript", {}, NO_SCRIPT))
    rest = (
        _Part("script", {"id": "guard"}, _read(GUARD), is_raw=True),
        _Part("title", {}, _printable(title)),
        _Part("style", {"id": "style"}, "\n".join(map(_read, STYLES)), is_raw=True),
        _Part("script", {"type": "application/json", "id": held}, _as_script_data(text), is_raw=True),
        _Part("script", {"type": "module", "id": "page"}, f"{join_modules(entry)}\npage.openPage();", is_raw=True),
    )
    head, body, tail = ("".join(map(_write, parts)) for parts in (start, shown, rest))
    digest = _Part("meta", {"name": "digest", "content": _digest((*start, *shown, *rest))})
    return f'<!doctype html><html lang="en">{head}{_write(digest)}{body}{tail}'


def read_run_page(text: str, name: str = "the page") -> bytes | None:
    """Return the journal file that a page of `write_run_page` holds, byte for byte; None for a page that holds none.
    PageDamaged for one whose journal cannot be read any more."""
    journal = _read_held(text, _JOURNAL, name)
    return None if journal is None else journal.encode()


def read_excerpt_page(text: str, name: str = "the page") -> str | None:
    """Return the excerpt that a page of `write_excerpt_page` holds; None for a page that holds none. PageDamaged for
    one whose excerpt cannot be read any more."""
    return _read_held(text, _EXCERPT, name)


def _read_held(text: str, held: str, name: str) -> str | None:
    _, found, rest = text.partition(_BEFORE.format(held))
    data, end, _ = rest.partition("</script>")
    if not found:
        return None
    try:
        value = orjson.loads(data) if end else None
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, str):
        raise PageDamaged(f"{name} is damaged: what it holds in place of its {held} cannot be read")
    return value


def _read(path: str) -> str:
    return (STATIC / path).read_text("utf-8")


def _printable(text: str) -> str:
    """Return a text that a browser reads as it is written."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _write(part: _Part) -> str:
    """Return an element as HTML, with nothing around it that no digest is of."""
    attributes = "".join(f' {name}="{_quote(value)}"' for name, value in part.attributes.items())
    text = part.text if part.is_raw else html.escape(part.text, quote=False)
    return f"<{part.tag}{attributes}>" + ("" if part.tag in _VOID else f"{text}</{part.tag}>")


def _quote(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


def _digest(parts: tuple[_Part, ...]) -> str:
    """Return the SHA-256 of the elements, as the page's script computes it."""
    told = [PARSED, *([part.tag, sorted(map(list, part.attributes.items())), part.text] for part in parts)]
    return hashlib.sha256(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def _as_script_data(text: str) -> str:
    """Return a text as JSON that no parser of HTML sees anything in."""
    data = orjson.dumps(text).decode()
    return data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
