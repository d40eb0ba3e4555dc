"""JSON texts: the value of one in which each key is said once, a value as a text, and its digest. Pure."""

import json
from hashlib import sha256
from typing import Any


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; ValueError for what is no JSON, or says twice what a key is."""
    try:
        return json.loads(text, object_pairs_hook=refuse_doubled_keys)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def refuse_doubled_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, for `object_pairs_hook`. ValueError for one with the same key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return found


def to_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a value's JSON, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
