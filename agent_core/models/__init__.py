"""Models: the seam to a language model, and its clients."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from agent_core.models.client import Completion as Completion
    from agent_core.models.client import Delta as Delta
    from agent_core.models.client import ModelClient as ModelClient
    from agent_core.models.client import ModelError as ModelError
    from agent_core.models.client import ModelInfo as ModelInfo
    from agent_core.models.client import Question as Question
    from agent_core.models.providers import create_model as create_model
    from agent_core.models.scripted import ScriptedModel as ScriptedModel

HOMES = {
    "agent_core.models.client": "Completion Delta ModelClient ModelError ModelInfo Question",
    "agent_core.models.providers": "create_model",
    "agent_core.models.scripted": "ScriptedModel",
}
"""The public names by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
