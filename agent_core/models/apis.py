"""By which API a model is asked: chat completions, which nearly every vendor speaks, or its vendor's own."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_core.errors import DefinitionError

if TYPE_CHECKING:
    from agent_core.models.endpoint.wire import Wire
    from agent_core.models.vendors import Vendor

CHAT: Final = "chat"


class NativeApi(NamedTuple):
    """A vendor's own API. `extra` brings the `package` of its SDK; "" where that is always there."""

    api: str
    package: str
    extra: str


NATIVE: Final[Mapping[str, NativeApi]] = {
    "anthropic": NativeApi("messages", "anthropic", "anthropic"),
    "gemini": NativeApi("gemini", "google.genai", "gemini"),
    "openai": NativeApi("responses", "openai", ""),
}
"""By the name of the provider."""


def choose_api(provider: str, asked: str | None, *, is_own: bool) -> str:
    """Return the API of a provider's model: the one that is `asked` for, else its own where that can be spoken.

    `is_own` says whether the endpoint is the vendor's; `openai` is also the name for any other endpoint of chat
    completions, so that its own API is spoken at its own endpoint only. DefinitionError where `native` is asked for and
    cannot be spoken.
    """
    native = NATIVE.get(provider)
    if asked == CHAT or (native is None and asked is None):
        return CHAT
    if native is None:
        have = ", ".join(f"{name}:" for name in NATIVE)
        message = f"{provider}: has no API of its own here, only {have} have; leave api out, or set api: chat"
        raise DefinitionError(message, where="api", value=asked)
    if asked is None:
        can_be = is_installed(native.package) and (is_own or provider != "openai")
        return native.api if can_be else CHAT
    if not is_installed(native.package):
        raise DefinitionError(f"this needs the extra {native.extra}: {install_of(native)}", where="api", value=asked)
    return native.api


def find_lacking(provider: str, api: str) -> NativeApi | None:
    """Return the vendor's own API, where it is not spoken only because its extra is not installed."""
    native = NATIVE.get(provider)
    return native if native and api == CHAT and native.extra and not is_installed(native.package) else None


def install_of(native: NativeApi) -> str:
    return f"pip install 'agent-core[{native.extra}]'"


@lru_cache
def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def make_wire(api: str, vendor: "Vendor | None", *, is_own: bool = False) -> "Wire":
    """Return how an API is spoken. `vendor` is whose habits the endpoint has, None for those of no table; `is_own` says
    whether it is the vendor's own."""
    if api == "messages":
        from agent_core.models.anthropic.messages import OWN_VENDOR, MessagesWire

        return MessagesWire(OWN_VENDOR) if is_own else MessagesWire()
    if api == "gemini":
        from agent_core.models.gemini.wire import GeminiWire

        return GeminiWire()
    if api == "responses":
        from agent_core.models.openai.responses.wire import ResponsesWire

        return ResponsesWire()
    from agent_core.models.openai.chat import ANY_ENDPOINT, ChatWire

    return ChatWire(vendor.capabilities if vendor else ANY_ENDPOINT)
