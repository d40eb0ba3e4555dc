"""Models: the seam to a language model, and its clients."""

from agent_core.models.client import Completion, Delta, ModelClient, ModelError, ModelInfo, Question
from agent_core.models.providers import create_model
from agent_core.models.scripted import ScriptedModel

__all__ = ["Completion", "Delta", "ModelClient", "ModelError", "ModelInfo", "Question", "ScriptedModel", "create_model"]
