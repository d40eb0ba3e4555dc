"""The public names: adding one is a decision, losing one breaks users."""

import agent_core
import agent_core.models
import agent_core.testing
import engine_shim
import engine_shim.testing
import utools

NAMES = {
    utools: "DefinitionError Fault Tool ToolContext ToolError ToolRegistry ToolResult default_registry tool",
    agent_core: """Action AgentConfig AgentOutput AnswerError Approve DecisionError DefinitionError Deny Done Edit Event
        Fail Final JournalError JsonlJournal Keys MemoryJournal Plan ProtocolError Replay Retry Skip SqliteJournal
        StreamResult Verification agent_tool parse replay run_agent run_agent_sync step_schema stream_agent verify""",
    agent_core.models: "Completion Delta ModelClient ModelError ModelInfo Question ScriptedModel create_model",
    agent_core.testing: """FunctionModel OfferedTool ScriptedModel TestModel assert_called assert_finish
        assert_not_called assert_refused check_context_store check_journal check_model_client no_real_models
        recorded""",
    engine_shim.testing: "check_run_store",
    engine_shim: """AgentBuilder AgentState Chunk DefinitionError Engine EngineError MemoryRunStore RunBusy RunNotFound
        RunResult SqliteRunStore Workflow load_workflow""",
}


def test_the_public_names_are_these_and_sorted() -> None:
    for module, names in NAMES.items():
        assert module.__all__ == sorted(names.split()), module.__name__
        for name in module.__all__:
            assert getattr(module, name) is not None
