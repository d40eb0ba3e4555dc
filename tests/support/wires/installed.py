"""The stand-ins whose SDKs are installed: chat completions and Responses always, the others with their extra."""

from importlib import import_module

from agent_core.models.apis import is_installed
from support.wires.turn import WireStandIn

PACKAGES = {"chat": "openai", "responses": "openai", "anthropic": "anthropic", "gemini": "google.genai"}
"""The module of each stand-in, and the package whose types it is written with."""
STAND_INS: list[WireStandIn] = [
    import_module(f"support.wires.{module}").STAND_IN for module, package in PACKAGES.items() if is_installed(package)
]
