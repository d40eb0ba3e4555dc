"""OpenAICompatible: any endpoint that speaks OpenAI's chat completions, as a ModelClient."""

from typing import TYPE_CHECKING, Any

from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.openai.chat import ChatWire

if TYPE_CHECKING:
    from agent_core.models.vendors import Vendor


class OpenAICompatible(EndpointClient):
    """A model at an endpoint of chat completions, that of a `vendor` or any other; see `EndpointClient`."""

    def __init__(self, model: str, *, vendor: "Vendor | None" = None, **about: Any) -> None:
        wire = ChatWire(vendor.capabilities) if vendor else ChatWire()
        super().__init__(model, wire, vendor=vendor, **about)
