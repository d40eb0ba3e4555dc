"""show(): a text of a stranger, so that it neither hides nor turns what stands around it. Pure."""

from typing import Final

from utools.lazy_pattern import lazy_compile

HIDDEN: Final = lazy_compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
    "|(?<![\u0600-\u1cff\ufe0f\U0001f000-\U0001faff\u2190-\u2bff])[\u200c\u200d]"
    "|[\u200c\u200d](?![\u0600-\u1cff\U0001f000-\U0001faff\u2190-\u2bff])"
)
"""Characters that would hide or turn the text around them: control and direction characters, as in `kit/text.js`, and
joiners, except within an emoji or between letters of scripts that need them (Arabic to Mongolian)."""


def show(text: str) -> str:
    """Return a text whose control and direction characters are written out, so that they neither hide nor turn
    anything."""
    return HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
