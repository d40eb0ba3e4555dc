"""The public names: adding one is a decision, losing one breaks users."""

from importlib.util import find_spec

import agent_core
import agent_core.models
import agent_core.testing
import engine_shim
import engine_shim.testing
import utools

NAMES = {
    utools: "DefinitionError Fault Tool ToolContext ToolError ToolRegistry ToolResult default_registry tool",
    agent_core: """Action AgentConfig AgentOutput Approve DecisionError DefinitionError Deny Done Edit Event Fail
        Final JournalError JsonlJournal Keys MemoryJournal Plan ProtocolError Replay Retry Skip SqliteJournal
        Verification agent_tool parse replay run_agent run_agent_sync step_schema verify""",
    agent_core.models: "Completion Delta ModelClient ModelError ModelInfo Question ScriptedModel create_model",
    agent_core.testing: """FunctionModel OfferedTool ScriptedModel TestModel assert_called assert_finish
        assert_not_called assert_refused check_context_store check_journal check_model_client no_real_models
        recorded""",
    engine_shim.testing: "check_run_store",
    engine_shim: """AgentBuilder AgentState DefinitionError Engine EngineError MemoryRunStore RunBusy RunNotFound
        RunResult SqliteRunStore Workflow load_workflow""",
}


def test_the_public_names_are_these_and_sorted() -> None:
    for module, names in NAMES.items():
        assert module.__all__ == sorted(names.split()), module.__name__
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_no_module_takes_the_name_of_what_the_kit_offers() -> None:
    """A module that is imported becomes an attribute of its package."""
    for name in agent_core.testing.__all__:
        assert find_spec(f"agent_core.testing.{name}") is None, name
