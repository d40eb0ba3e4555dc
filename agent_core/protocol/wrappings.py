"""What models put around a reply: a byte order mark, a think block, a code fence. Pure."""

from collections.abc import Iterator

from agent_core.rules import CURRENT
from utools.lazy_pattern import lazy_compile

WHITE_SPACE = " \t\n\r"
BOM = "\ufeff"
THINK, END_OF_THINKING = "<think>", "</think>"
FENCE = "```"
THINKING = (
    (THINK, END_OF_THINKING),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
"""How chat templates open and close what a model thinks."""
_TICKS = lazy_compile(r"`+")
_QUOTES = ("`", '"', "'", "“", "”", "‘", "’", "«", "»", "「", "」", "(", ")", "（", "）")
_STOPS = (".", "!", "?", "…", "。", "！", "？", ")", ":")


def unwrap(reply: str, *, rules: int = CURRENT["replies"]) -> tuple[str, tuple[str, ...]]:
    """Return the reply without a byte order mark, a leading think block and one code fence, and which of them it had.

    A think block may lack its beginning, which many chat templates put into the prompt; by the first `rules` of
    reading replies it may not.
    """
    body, stripped = reply.strip(WHITE_SPACE), list[str]()
    if reply.startswith(BOM):
        body = body[1:].lstrip(WHITE_SPACE)
        stripped.append("bom")
    if body.startswith(THINK) and END_OF_THINKING in body:
        body = body.partition(END_OF_THINKING)[2].lstrip(WHITE_SPACE)
        stripped.append("think")
    elif rules > 1 and (end := find_end_of_thinking(body)) is not None:
        body = body[end:].lstrip(WHITE_SPACE)
        stripped.append("think")
    if len(body) >= 6 and body.startswith(FENCE) and body.endswith(FENCE):
        body = body[3:-3].removeprefix("json")
        stripped.append("fence")
    return body, tuple(stripped)


def find_end_of_thinking(text: str, *, whole: bool = True) -> int | None:
    """Return where thinking ends whose beginning is not in the text; None where nothing says so.

    A tag in code, in quotes or in the midst of a sentence is spoken of, and a reply that begins as JSON or as code has
    not been thinking. More may follow a text that is not `whole`.
    """
    if END_OF_THINKING not in text or text.lstrip(BOM + WHITE_SPACE).startswith(("{", "[", "`", THINK)):
        return None
    code = list(_code_spans(text))
    start = text.find(END_OF_THINKING)
    while start >= 0:
        end = start + len(END_OF_THINKING)
        is_code = any(begin <= start < stop for begin, stop in code)
        if not is_code and _ends_thinking(text[:start], text[end:], whole=whole):
            return end
        start = text.find(END_OF_THINKING, end)
    return None


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where code stands, between equal runs of backticks (CommonMark 6.1)."""
    runs = [run.span() for run in _TICKS.finditer(text)]
    following: dict[int, list[int]] = {}
    for start, end in reversed(runs):
        following.setdefault(end - start, []).append(start)
    at = 0
    for start, end in runs:
        closing = following[end - start]
        closing.pop()
        if start >= at and closing:
            at = closing[-1] + end - start
            yield start, at


def _ends_thinking(before: str, after: str, *, whole: bool) -> bool:
    """Return whether the tag between two texts ends what was thought: at the end of a line, a sentence or a word."""
    if THINK in before or (before.endswith(_QUOTES) and after.startswith(_QUOTES)):
        return False
    if not before.strip() or before[-1] == "\n" or not before[-1].isspace():
        return True
    is_last = "\n" in after[: len(after) - len(after.lstrip())] or (whole and not after.strip())
    return is_last or before.rstrip().endswith(_STOPS)


def after_thinking(reply: str) -> str:
    """Return what a reply says after thinking, in whatever tags; all of it where it did not think, or has not ended
    to."""
    text = reply.lstrip(BOM + WHITE_SPACE)
    for begin, end in THINKING:
        if text.startswith(begin):
            return text.partition(end)[2] if end in text else text.removeprefix(begin)
    found = find_end_of_thinking(text)
    return text if found is None else text[found:]


def unwrap_so_far(reply: str) -> str:
    """Return a reply that is still being written, from where its object begins."""
    text = reply.lstrip(BOM + WHITE_SPACE)
    if text.startswith(THINK):
        text = text.partition(END_OF_THINKING)[2].lstrip()
    elif (end := find_end_of_thinking(text, whole=False)) is not None:
        text = text[end:].lstrip()
    if text.startswith(FENCE):
        text = text.partition("\n")[2]
    return text


def strip_thinking_so_far(reply: str, *, whole: bool) -> str:
    """Return an answer that is still being written, without the think block before it.

    Nothing is shown until thinking has ended, or the reply is `whole`: where a think block lacks its beginning, only
    its end tells that it was one.
    """
    text = reply.strip()
    if text.startswith(THINK):
        return text.partition(END_OF_THINKING)[2].strip()
    end = find_end_of_thinking(text, whole=whole)
    if end is None:
        return reply if whole else ""
    return text[end:].strip()
