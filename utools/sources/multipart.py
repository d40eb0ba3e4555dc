"""A form in parts (RFC 7578): texts, lists, objects as JSON, and files, whose content an argument is. Pure."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from utools.json_text import to_text

MULTIPART = "multipart/form-data"
BETWEEN = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}


def encode_multipart(
    body: Mapping[str, Any], files: Mapping[str, str], encoding: Mapping[str, Any]
) -> tuple[str, bytes]:
    """Return the content type, with its boundary, and the bytes of a form. `files` has the type of each property that
    is a file, `encoding` how the document writes a property.

    The boundary is of the content, so that a call that is tried again sends the same.
    """
    parts = [part for name, value in body.items() if value is not None for part in _write(name, value, files, encoding)]
    boundary = sha256(b"\0".join(parts)).hexdigest()
    written = b"".join(b"--%b\r\n%b\r\n" % (boundary.encode(), part) for part in parts)
    return f"{MULTIPART}; boundary={boundary}", written + b"--%b--\r\n" % boundary.encode()


def _write(name: str, value: Any, files: Mapping[str, str], encoding: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the parts of a property: one for each item of a list, unless the document joins them."""
    found = encoding.get(name)
    told: Mapping[str, Any] = found if isinstance(found, dict) else {}
    if not isinstance(value, list):
        yield _write_part(name, value, files.get(name), told)
    elif "style" in told and not told.get("explode", told["style"] == "form"):
        between = BETWEEN.get(told["style"], ",")
        yield _write_part(name, between.join(map(to_text, value)), files.get(name), told)
    else:
        for each in value:
            yield _write_part(name, each, files.get(name), told)


def _write_part(name: str, value: Any, file: str | None, told: Mapping[str, Any]) -> bytes:
    kind = str(told.get("contentType") or "").partition(",")[0].strip() or file
    if kind is None and not isinstance(value, str | int | float):
        kind = "application/json"
    quoted = _quote(name)
    head = f'Content-Disposition: form-data; name="{quoted}"' + (f'; filename="{quoted}"' if file else "")
    if kind and kind.isprintable():
        head += f"\r\nContent-Type: {kind}"
    return f"{head}\r\n\r\n{to_text(value)}".encode()


def _quote(name: str) -> str:
    """Return a name as browsers write it in a header (WHATWG HTML, multipart form data)."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
