"""mask_keys(): a text without keys, by their formats alone."""

from collections.abc import Collection

from utools.secrets.finds import Edit, apply_edits, mark_of
from utools.secrets.key_formats import NAMES, find_keys


def mask_keys(text: str, formats: Collection[str] = NAMES) -> str:
    """Return the text with each key of these formats replaced by `[redacted:FORMAT]`."""
    return apply_edits(text, (Edit(each.start, each.end, mark_of(each.name)) for each in find_keys(text, formats)))
