"""Models: the seam, the script that stands in for one, and the clients."""

from agent_core.models.client import Completion, Delta, ModelClient, ModelError, ModelInfo, Question
from agent_core.models.providers import create_model
from agent_core.models.scripted import ScriptedModel

__all__ = ["Completion", "Delta", "ModelClient", "ModelError", "ModelInfo", "Question", "ScriptedModel", "create_model"]
