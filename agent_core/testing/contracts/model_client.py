"""check_model_client(): what every client of a language model must do, whichever model it asks."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from copy import deepcopy
from typing import Any, Final

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.journal.memory import MemoryJournal
from agent_core.models.client import Completion, Delta, ModelClient, ModelError, ModelInfo, Question
from agent_core.run.agent_output import AgentOutput
from agent_core.run.node import run_agent
from agent_core.testing.contracts.rules import Verdicts, raises, rules_of

MESSAGES: Final = (b'{"role":"system","content":"Be brief."}', b'{"role":"user","content":"What is a casa?"}')
FUNCTION: Final = {
    "name": "lookup",
    "description": "Look a word up.",
    "parameters": {"type": "object", "properties": {}},
}
FAILURES: Final = ("model_error", "content_filter")


async def check_model_client(
    make_client: Callable[[], ModelClient], *, make_failing: Callable[[], ModelClient] | None = None
) -> None:
    """Try a model client of your own by every rule of the seam. AssertionError names all rules that are broken.

    `make_client` returns one for each rule that answers any question, whatever it says; one of `make_failing` fails at
    each, as where its server is away. A client of a service is made for a stand-in of that service: each rule asks it.
    They are closed afterwards.
    """
    verdicts = Verdicts("the model client")
    ways = [(make_client, MODEL_RULES), *([(make_failing, RULES_OF_FAILURES)] if make_failing else [])]
    for make, rules in ways:
        for rule in rules:
            with verdicts.of(rule):
                client = make()
                try:
                    await rule.run(client)
                finally:
                    await client.close()
    verdicts.tell()


def make_question(**options: Any) -> Question:
    """Return a question of a run's first step."""
    return Question("m1", MESSAGES, options, "agent", 0, within=20.0)


async def read_stream(client: ModelClient, question: Question) -> tuple[str, list[Completion]]:
    """Return what was shown at the end of a stream, and the replies in it. Nothing may come behind a reply."""
    shown, whole = "", list[Completion]()
    async with aclosing(client.stream(question)) as pieces:
        async for piece in pieces:
            assert not whole, "a piece comes behind the whole reply"
            match piece:
                case Delta(text, anew):
                    shown = text if anew else shown + text
                case Completion():
                    whole.append(piece)
                case _:
                    raise AssertionError(f"a stream has pieces of type Delta, and last a Completion; got {piece!r}")
    return shown, whole


def check_completion(completion: Completion) -> None:
    """AssertionError for a reply that no run could record."""
    assert isinstance(completion, Completion)
    assert isinstance(completion.content, str)
    assert isinstance(completion.finish_reason, str)
    assert completion.finish_reason
    assert completion.requests >= 0
    for count in (completion.input_tokens, completion.output_tokens):
        assert count is None or count >= 0
    for call in completion.calls:
        assert isinstance(call["name"], str)
        assert isinstance(call["arguments"], str), "the arguments of a call are their JSON text, as received"


async def a_question_is_answered_by_a_completion(client: ModelClient) -> None:
    check_completion(await client.complete(make_question()))


async def a_question_with_functions_is_answered_by_a_completion(client: ModelClient) -> None:
    tools = [{"type": "function", "function": FUNCTION}]
    check_completion(await client.complete(make_question(protocol="tools", tools=tools)))


async def a_stream_ends_with_the_whole_reply_that_it_has_shown(client: ModelClient) -> None:
    shown, whole = await read_stream(client, make_question())
    assert len(whole) == 1, "the last piece of a stream is the reply"
    check_completion(whole[0])
    assert shown == whole[0].content


async def a_stream_that_is_left_leaves_the_client_usable(client: ModelClient) -> None:
    async with aclosing(client.stream(make_question())) as pieces:
        async for _ in pieces:
            break
    check_completion(await client.complete(make_question()))


async def questions_at_the_same_time_are_all_answered(client: ModelClient) -> None:
    for completion in await asyncio.gather(*(client.complete(make_question()) for _ in range(8))):
        check_completion(completion)


async def a_cancelled_question_ends_and_leaves_the_client_usable(client: ModelClient) -> None:
    asked = asyncio.ensure_future(client.complete(make_question()))
    await asyncio.sleep(0)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    check_completion(await client.complete(make_question()))


async def each_request_is_announced_at_most_once_and_counted(client: ModelClient) -> None:
    announced: list[int] = []
    question = Question("m1", MESSAGES, {}, "agent", 0, 20.0, lambda: announced.append(1))
    completion = await client.complete(question)
    assert len(announced) <= completion.requests


async def a_question_is_left_as_it_is(client: ModelClient) -> None:
    options: dict[str, Any] = {"temperature": 0.5, "stop": ["x"], "step_schema": {"anyOf": [{"type": "object"}]}}
    question = make_question(**deepcopy(options))
    await client.complete(question)
    assert question.options == options
    assert question.messages == MESSAGES


async def what_is_known_of_the_model_is_told_without_asking_it(client: ModelClient) -> None:
    assert isinstance(client.info(), ModelInfo)
    assert client.info().name


async def closing_twice_is_fine(client: ModelClient) -> None:
    await client.complete(make_question())
    await client.close()
    await client.close()


async def a_run_records_what_it_says_and_is_replayed(client: ModelClient) -> None:
    journal = MemoryJournal()
    output = await _run(client, journal)
    assert output.finish_reason not in FAILURES, output.error
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


async def a_failure_is_a_model_error(client: ModelClient) -> None:
    with raises(ModelError) as raised:
        await client.complete(make_question())
    assert raised.error.kind in FAILURES
    assert str(raised.error), "a failure says what was wrong"
    with raises(ModelError):
        await read_stream(client, make_question())


async def a_run_ends_by_a_failure_of_its_model(client: ModelClient) -> None:
    journal = MemoryJournal()
    output = await _run(client, journal)
    assert output.finish_reason in FAILURES
    assert verify(journal, run_id="r").ok


async def _run(client: ModelClient, journal: MemoryJournal) -> AgentOutput:
    config = {"model": "m1", "max_steps": 1, "allowed_tools": [], "prompt": "What is a casa?", "max_repairs": 0}
    return await run_agent(config, registry=[], model=client, journal=journal, run_id="r")


MODEL_RULES: Final = rules_of(
    a_question_is_answered_by_a_completion,
    a_question_with_functions_is_answered_by_a_completion,
    a_stream_ends_with_the_whole_reply_that_it_has_shown,
    a_stream_that_is_left_leaves_the_client_usable,
    questions_at_the_same_time_are_all_answered,
    a_cancelled_question_ends_and_leaves_the_client_usable,
    each_request_is_announced_at_most_once_and_counted,
    a_question_is_left_as_it_is,
    what_is_known_of_the_model_is_told_without_asking_it,
    closing_twice_is_fine,
    a_run_records_what_it_says_and_is_replayed,
)
"""What every client must do."""
RULES_OF_FAILURES: Final = rules_of(a_failure_is_a_model_error, a_run_ends_by_a_failure_of_its_model)
"""What a client must do whose model cannot be asked."""
