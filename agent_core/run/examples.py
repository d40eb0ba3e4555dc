"""The examples that a run's model is shown: the node's, those that ship, those of its tools' authors."""

from collections.abc import Mapping
from typing import NamedTuple

from agent_core.config import AgentConfig, Example
from agent_core.outputs import Json
from agent_core.prompts.examples import WrittenExamples, examples_of_tools, show_turns, write_turns
from agent_core.prompts.render import PLAIN_EXAMPLE, built_in, render
from agent_core.tool_policy import Policies
from agent_core.words.catalogue import words_in
from utools.lazy_pattern import lazy_compile

CHINESE = lazy_compile("[\u4e00-\u9fff]")


class ShownExamples(NamedTuple):
    """Examples of the run's own tools: as messages before the conversation, or as texts of the system message."""

    turns: list[Json]
    shown: list[str]


def read_examples(
    config: AgentConfig, tools: Policies, written: WrittenExamples, texts: Json, *, as_turns: bool
) -> ShownExamples:
    """Return the examples of the run's own tools: the node's, else those of the tools, where calls are written as
    text. Behind the latter a small model sees a request that needs no tool."""
    words = words_in(config.language)
    own = [each for each in config.examples or () if isinstance(each, Example)]
    if config.examples is None and config.protocol == "json" and "examples" not in config.templates:
        own = examples_of_tools(tools, written, config.language, as_turns=as_turns)
        if as_turns and own:
            own.append(_plain_example(like=own[-1]))
    if as_turns:
        return ShownExamples(write_turns(own), [])
    as_plans = config.mode == "plan"
    return ShownExamples([], [show_turns(write_turns([each]), texts, words, as_plans=as_plans) for each in own])


def write_examples(
    config: AgentConfig, texts: Json, variables: Mapping[str, str], examples: ShownExamples
) -> list[str]:
    """Return the examples in the system text: the node's, else those that ship, and those of the run's own tools.

    Turns stand in for those that ship: what a small model reads of other tools keeps it from calling its own.
    """
    turns = [render(texts["example_turns"], variables)] if examples.turns else []
    if config.examples is not None:
        return [*(each for each in config.examples if isinstance(each, str)), *examples.shown, *turns]
    if turns:
        return turns
    return [render(texts["examples"], {**variables, "examples": "\n\n".join(examples.shown)}).strip()]


def _plain_example(like: Example) -> Example:
    """Return a request that needs no tool, in the language of another example: as the only one in the user's language
    it would be the one that a small model follows."""
    question, answer = built_in("zh" if CHINESE.search(like.user) else "en", PLAIN_EXAMPLE).splitlines()
    return Example(user=question, answer=answer)
