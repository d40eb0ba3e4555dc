"""What models put around a reply: a byte order mark, a think block, a code fence. Pure."""

WHITE_SPACE = " \t\n\r"
BOM = "\ufeff"
THINK, END_OF_THINKING = "<think>", "</think>"
FENCE = "```"


def unwrap(reply: str) -> tuple[str, tuple[str, ...]]:
    """The reply without a byte order mark, a leading think block and one code fence, and which of them it had."""
    body, stripped = reply.strip(WHITE_SPACE), []
    if reply.startswith(BOM):
        body = body[1:].lstrip(WHITE_SPACE)
        stripped.append("bom")
    if body.startswith(THINK) and END_OF_THINKING in body:
        body = body.partition(END_OF_THINKING)[2].lstrip(WHITE_SPACE)
        stripped.append("think")
    if len(body) >= 6 and body.startswith(FENCE) and body.endswith(FENCE):
        body = body[3:-3].removeprefix("json")
        stripped.append("fence")
    return body, tuple(stripped)


def unwrap_so_far(reply: str) -> str:
    """A reply that is still being written, from where its object begins."""
    text = reply.lstrip(BOM + WHITE_SPACE)
    if text.startswith(THINK):
        text = text.partition(END_OF_THINKING)[2].lstrip()
    if text.startswith(FENCE):
        text = text.partition("\n")[2]
    return text


def strip_thinking_so_far(reply: str) -> str:
    """An answer that is still being written, without the think block before it."""
    text = reply.strip()
    if THINK.startswith(text[: len(THINK)]) and not text.startswith(THINK):
        return ""  # it may be about to think
    return text.partition(END_OF_THINKING)[2].strip() if text.startswith(THINK) else reply
