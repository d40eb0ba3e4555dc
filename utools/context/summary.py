"""The summary of a conversation's beginning: made when the window overflows, kept with the session."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from utools.context.store import ContextStore, Summary
from utools.context.turns import Message, Turn
from utools.context.window import Window, split_at_window
from utools.errors import ToolError
from utools.words.catalogue import words_in


class Summarised(NamedTuple):
    """A summary, and what it cost: {requests, input_tokens, output_tokens, estimated, cost}."""

    text: str
    usage: Mapping[str, Any]


Summarise = Callable[[list[Message], str], str | Summarised | Awaitable[str | Summarised]]
"""Makes a text of messages, in a language: en or zh."""


class Folded(NamedTuple):
    """The summary of the first turns, if there is one, and what it cost when it was made just now."""

    summary: Summary | None
    usage: Mapping[str, Any] | None


async def fold_turns(
    store: ContextStore, session: str, turns: Sequence[Turn], window: Window, summarise: Summarise, language: str
) -> Folded:
    """Return a summary of as many turns that the others fit into the window; none where all fit.

    The kept one serves for as long as they do. Then it is made anew, of the one before and of as many turns that the
    others fill half the window: so each turn is read once, and most calls make none.
    """
    if len(split_at_window(turns, window)[1]) == len(turns):
        return Folded(None, None)
    kept = await store.summary(session)
    if kept and kept.turns > len(turns):  # the session was cleared, and begun again, just now
        kept = None
    first = kept.turns if kept else 0
    fitting = split_at_window(turns[first:], window)[1]
    if first + len(fitting) == len(turns):
        return Folded(kept, None)
    newest = split_at_window(turns[first:], window.halved())[1] or fitting[-1:]
    end = len(turns) - len(newest)
    before = [as_message(kept, language)] if kept else []
    answer = summarise([*before, *chain.from_iterable(turns[first:end])], language)
    made = await answer if inspect.isawaitable(answer) else answer
    text, usage = made if isinstance(made, Summarised) else (made, None)
    if not isinstance(text, str) or not text.strip():  # kept, it would stand for these turns from now on
        raise ToolError("the summary of the conversation's beginning came back empty", transient=True)
    summary = Summary(end, text)
    await store.keep_summary(session, summary)
    return Folded(summary, usage)


MAX_QUOTED = 16 * 1024
"""Characters of summarised messages that a summary carries along, the newest."""


def quote(turns: Sequence[Turn]) -> list[Message]:
    """Return what users and tools said in turns that a summary stands for, so that a value in it keeps its origin.

    No model reads them. The newest messages that fit, in order.
    """
    quotes: list[Message] = []
    left = MAX_QUOTED
    for message in reversed([each for turn in turns for each in turn if each["role"] in ("user", "tool")]):
        left -= len(message["content"])
        if left < 0:
            break
        quotes.insert(0, {key: message[key] for key in ("role", "content", "name") if key in message})
    return quotes


def as_message(summary: Summary, language: str) -> Message:
    """Return the summary as the assistant's words: it is made of texts of tools and models, so it must not be the
    system's."""
    return {"role": "assistant", "content": words_in(language).summary + summary.text}
