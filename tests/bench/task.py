"""What every loop is asked to do: one prompt, and one tool that counts its calls."""

PROMPT = "Echo the text a few times and then say done."
CALLS: dict[str, int] = {"echo": 0}
"""How often `echo_tool` was called in this process."""


def echo(text: str, n: int) -> str:
    return f"{text}#{n}"


async def echo_tool(text: str, n: int) -> str:
    """Echo the text back with the number.

    Args:
        text: The text.
        n: The number.
    """
    CALLS["echo"] += 1
    return echo(text, n)
