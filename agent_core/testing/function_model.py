"""FunctionModel: a function in place of a model."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

import orjson

from agent_core.models.client import Question
from agent_core.outputs import Json
from agent_core.testing.stand_in import OfferedTool, Reply, StandIn, offered_tools

ReplyFunction = Callable[[list[Json], Sequence[OfferedTool]], "Reply | Awaitable[Reply]"]


class FunctionModel(StandIn):
    """Answers each question by `function(messages, tools)`, sync or async.

    `messages` are as they would be sent, {role, content} each, the oldest first; `tools` are those that may be called
    now: none, where the model has to answer. The function returns a text, an `Action`, a `Final`, several actions for
    function calling, or what a script may hold; steps are written in the protocol of the run. What it raises ends the
    run with `model_error`.

    ```python
    FunctionModel(lambda messages, tools: Action("stock", {"article": "A-17"}) if len(messages) < 3 else Final("12"))
    ```
    """

    def __init__(self, function: ReplyFunction, *, name: str = "function") -> None:
        super().__init__(name)
        self._function = function

    async def answer(self, question: Question) -> Reply:
        """Return what the function gives."""
        messages = [orjson.loads(message) for message in question.messages]
        reply = self._function(messages, offered_tools(question))
        return await reply if inspect.isawaitable(reply) else reply
