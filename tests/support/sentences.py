"""What reads as English in a text."""

import re

WORD = r"[A-Za-z]+(?:['’-][A-Za-z]+)*"
SENTENCE = re.compile(rf"\b{WORD}(?: {WORD}){{2,}}")


def english_sentences(text: str) -> list[str]:
    """The runs of three and more Latin words, one space between them."""
    return SENTENCE.findall(text)
