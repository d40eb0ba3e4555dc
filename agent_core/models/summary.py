"""A summariser for the ContextManager: a model summarises what falls out of a conversation's window."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from string import Template

import orjson

from agent_core.models.client import ModelClient, ModelError, Question
from agent_core.models.finish_reasons import DONE, FILTERED, MALFORMED, read_finish_reason
from agent_core.models.usage import count_usage
from agent_core.outputs import Json
from agent_core.protocol.clip import clip
from agent_core.protocol.tokens import estimate_question
from agent_core.protocol.wrappings import after_thinking
from agent_core.words.catalogue import words_in
from utools.context.summary import Summarised
from utools.errors import ToolError

MAX_CONVERSATION = 60_000
"""Characters of a conversation that the model reads, from its head and its tail."""
SECONDS = 60.0


def summariser(
    client: Callable[[], ModelClient], template: str | None = None
) -> Callable[[list[Json], str], Awaitable[Summarised]]:
    """Return the function for `context_manager(summarise=…)`. `client` is called at the first summary.

    `template` replaces the prompt of every language; it has the variable `$conversation_history`.
    It raises ToolError, which fails the `prepare`, when the model gives no summary. One that was cut ends with "…".
    """

    async def summarise(messages: list[Json], language: str) -> Summarised:
        history = clip(_write_conversation(messages), MAX_CONVERSATION, words_in(language))
        prompt = Template(template or _template(language)).substitute(conversation_history=history)
        question = Question("", (orjson.dumps({"role": "user", "content": prompt}),), {}, "summary", 0, SECONDS)
        try:
            completion = await client().complete(question)
        except ModelError as error:
            raise ToolError(
                "the earlier conversation could not be summarised: {error}", error=error, transient=True
            ) from None
        reason = read_finish_reason(completion.finish_reason)
        summary = "" if reason in (FILTERED, MALFORMED) else after_thinking(completion.content).strip()
        if not summary:
            raise ToolError("the earlier conversation could not be summarised: the model said nothing", transient=True)
        if reason != DONE:
            summary += " …"
        usage = count_usage(completion, estimate_question(question.messages, question.options))
        return Summarised(summary, {"requests": completion.requests, **usage})

    return summarise


@lru_cache
def _template(language: str) -> str:
    return files("agent_core.prompts").joinpath(f"summary.{language}.md").read_text("utf-8").strip()


def _write_conversation(messages: Sequence[Json]) -> str:
    """Return the conversation as text, with calls and their answers."""
    lines = []
    for message in messages:
        calls = [
            f"{each['function']['name']} {each['function']['arguments']}" for each in message.get("tool_calls") or ()
        ]
        text = " ".join(part for part in (message.get("content"), *calls) if part)
        lines.append(f"{message['role']}: {text}")
    return "\n".join(lines)
