"""What a conversation with an agent may raise.

AgentError (an AgentCoreError)
├── AgentNotFound       the catalogue has no such agent
├── MaxStepsExceeded    the agent had no answer when its steps were used up
└── ModelCallFailed     no model gave a reply
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_core.errors import AgentCoreError
from utools.near_names import near_names

if TYPE_CHECKING:  # what raises these without a result loads no more
    from agent_core.agents.result import ConversationResult


class AgentError(AgentCoreError):
    """The root of these. `result` is the conversation as far as it came, None if nothing ran.

    What to do: catch it for every error of a conversation with an agent.
    """

    def __init__(self, message: str, result: "ConversationResult | None" = None) -> None:
        super().__init__(message)
        self.result = result


class AgentNotFound(AgentError):
    """A name that no agent has; `why` is given for one that cannot be used here.

    What to do: correct the name, or write the agent's file.
    """

    def __init__(self, name: str, names: Sequence[str], *, why: str = "") -> None:
        if why:
            super().__init__(f"the agent {name!r} cannot be used: {why}")
            return
        close = near_names(name, names)
        known = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
        if not names:
            known = (
                "this host has none. Write one as agents/NAME.yaml, which a server reads when it starts, or start the "
                "server with --model, which adds an assistant"
            )
        super().__init__(f"there is no agent {name!r}; {known}" if name else f"no agent is named; {known}")


class _Unanswered(AgentError):
    """A turn without an answer: its result says how far it came."""

    result: "ConversationResult"

    def __init__(self, message: str, result: "ConversationResult") -> None:
        super().__init__(message, result)


class MaxStepsExceeded(_Unanswered):
    """The steps were used up before there was an answer.

    What to do: look at `result`; give the agent more `max_steps`, or a narrower task.
    """


class ModelCallFailed(_Unanswered):
    """No model gave a reply.

    What to do: look at the message for the model's fault; ask again, or name `fallback_models`.
    """
