"""The public names: adding one is a decision, losing one breaks users."""

import ast
import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import agent_core
import agent_core.agents
import agent_core.evidence
import agent_core.models
import agent_core.run.events
import agent_core.testing
import engine_shim
import engine_shim.testing
import utools
import utools.adapters
from support.signatures import is_ours, named_classes, public_attributes, raised_classes

NAMES: dict[ModuleType, str] = {
    utools: """CallStore ContextStore DatabaseAway DatabaseError DefinitionError DefinitionErrors Document Fault
        FunctionTool HostPolicy MemoryContextStore NetworkError Problem Progress Redactor Reservation ResultError
        SandboxError SharedCalls SqliteContextStore Summarised Summary Threads Tool ToolContext ToolError ToolRegistry
        ToolResult UnknownTool UtoolsError default_registry tool""",
    utools.adapters: "ForeignOptions from_langchain from_openai from_toolset",
    agent_core: """Abandoned ActListener Action AgentConfig AgentCoreError AgentOutput AllowedTool AnswerError AnyOf
        Approve Completion Damaged DecisionError DecisionTaken Decisions DefinitionError DefinitionErrors Delta Deny
        Divergence Document Done Edit Event Example ExampleCall Fail Final FinishReason Journal JournalAway JournalEnd
        JournalError JsonlJournal Keys Lost MadeWrite MemoryJournal ModelClient ModelError ModelInfo NoEventLoop
        Observe Plan PlanConfig PlanStep PolicyDecision ProtocolError Question Replay Retry Row RunError RunStatus
        RunUsage ScriptedModel Secrets Skip Source SqliteJournal StoreIdentity StreamResult TailedJournal Tape
        TraceAction TraceStep UsedTool Verification WaitingCall agent_tool create_model parse replay run_agent
        run_agent_sync step_schema stream_agent verify""",
    agent_core.agents: """AgentCatalog AgentDefinition AgentError AgentExecutor AgentNotFound ChatReply
        ConversationOptions ConversationResult Conversations MaxStepsExceeded McpPolicy McpPrompt McpResource
        ModelCallFailed ReplyCall ReplyMeta SkillPolicy ToolCount TurnUsage""",
    agent_core.evidence: "KeyFiles Keyring PublicKey PublicKeys Sign Signature Signer",
    agent_core.models: "Completion Delta ModelClient ModelError ModelInfo Question ScriptedModel create_model",
    agent_core.testing: """FunctionModel OfferedTool RecordedModel ScriptedModel TestModel assert_called assert_finish
        assert_not_called assert_refused check_context_store check_journal check_model_client no_real_models
        RecordedRuns recorded""",
    engine_shim: """AgentBuilder AgentGraph AgentState Chunk ClockDifference Definition DefinitionError
        DefinitionErrors Edge Engine EngineAway EngineError EnvName Execution ExecutionResult ExecutionStatus LLMNode
        Leases MemoryRunStore Node NodeConfig NodeRecord PageDamaged Retry RunBusy RunEntry RunFilter RunNotFound
        RunResult RunStore SqliteRunStore StoreClock Telemetry TemporalConfig ToolCallRecord Workflow WritesRepeated
        load_workflow""",
    engine_shim.testing: "ManualClock check_run_store",
}
INSTALLED = [
    each for each in NAMES if each is not utools.adapters or (find_spec("langchain_core") and find_spec("pydantic_ai"))
]
"""The menus whose names can be imported: those of adapters need the libraries that they are of."""
EVENTS = {id(each) for each in vars(agent_core.run.events).values() if is_ours(each)}
"""A type for each kind of event: some are called as the steps of a reply are, so that the module is their menu."""
NOT_IN_A_MENU = {
    "agent_core.effects": "what a loop asks for: `replay(loops=…)` takes the loops of these packages",
    "agent_core.journal.operations": "what a listener to acts is given: telemetry alone listens",
    "agent_core.records": "the records of the journal, which has a page of its own",
    "agent_core.run.answer_type.AnswerReader": "what reads the answers of a graph: `AgentBuilder.build` makes it",
    "agent_core.words.en": "the texts of a language, which each call has by default",
    "engine_shim.definition.load.Bounds": "what a definition over HTTP may reach: the server alone sets it",
    "engine_shim.definition.model.PlacedPlaceholder": "what checks of definitions read",
    "engine_shim.definition.validate.CheckedWorkflow": "a Workflow that a server has checked once for many runs",
    "engine_shim.store.database": "what a store of this package is made of",
    "engine_shim.telemetry": "counts of a server for its page of metrics",
    "utools.databases": "what a store of this package is made of",
    "utools.words.en": "the texts of a language, which each call has by default",
}
"""Where the classes are that a signature names and no menu has, and why."""
ROOT = Path(__file__).parents[1]
MENUS = [
    menu
    for package in ("utools", "agent_core", "engine_shim")
    for menu in (ROOT / package).rglob("__init__.py")
    if "HOMES" in menu.read_text()
]
"""The packages whose names are imported when they are first used."""
MAIN = {
    agent_core.AgentConfig: """after_untrusted agent allowed_tools answer_schema api api_key_env approval base_url
        cost_budget deny_tools developer_prompt documents examples extra fallback_models language max_history_messages
        max_input_tokens max_output_tokens max_repairs max_steps max_tool_calls messages_json mode model
        observation_max_len parsing plan primary_output prompt prompts protocol reasoning repair_scope response_format
        seed service_tier single_call_timeout stop system_prompt temperature templates timeout tool_choice top_p
        total_token_budget trace_max_bytes trusted_text user_id""",
    agent_core.AgentOutput: """answer ended_at error final_answer finish_reason journal messages_json plan run_id
        started_at status total_ms trace usage used_tools waiting""",
    agent_core.MemoryJournal: "append close delete identity load runs tail threads",
    agent_core.SqliteJournal: "append close delete identity load path runs tail threads",
    agent_core.JsonlJournal: "append close delete identity load path runs threads",
    utools.Tool: """awaits cache check code config_schema description effect effect_of examples execute fingerprint
        foreign idempotent inward is_built_in node_only output_schema""",
    utools.ToolContext: """clean clock deadline_s deps idempotency_key is_let_go language log n progress run_id secret
        strand""",
    utools.ToolResult: "error metadata output success",
    utools.ToolRegistry: "all definitions discover execute for_models from_tools get matching register validate",
    engine_shim.Engine: """add_message begin cancel close fork from_config has_event host pause registry release result
        resume retry_failed run run_sync send_signal status store stream stream_resumed warm_up workflow""",
    engine_shim.AgentBuilder: """add_conditional_edge add_edge add_llm_node build set_description set_end_points
        set_entry_point set_max_iterations set_timeout""",
    engine_shim.RunResult: "as_json declared error journal messages nodes outputs path run_id status waiting",
}
"""The classes that users meet first, with all that they see of them."""


def public_values() -> Iterator[tuple[str, Any]]:
    for module in INSTALLED:
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)


PUBLIC = {id(value) for _, value in public_values()} | EVENTS


def has_reason(found: type) -> bool:
    return f"{found.__module__}.{found.__qualname__}".startswith(tuple(NOT_IN_A_MENU))


def test_the_public_names_are_these_and_sorted() -> None:
    for module, names in NAMES.items():
        assert sorted(module.__all__) == sorted(names.split()), module.__name__
        assert list(module.__all__) == sorted(module.__all__), module.__name__
    assert [name for name, value in public_values() if value is None] == []


@pytest.mark.parametrize("menu", MENUS, ids=lambda menu: menu.parent.name)
def test_type_checker_sees_no_function_that_gives_any_name(menu: Path) -> None:
    """Where it sees a `__getattr__`, a name that is not there is of type Any, and fails when the program runs."""
    parts = [ast.unparse(statement) for statement in ast.parse(menu.read_text()).body]
    hidden = [part for part in parts if part.startswith("if not TYPE_CHECKING:")]
    assert [part for part in parts if "__getattr__" in part] == hidden


def test_class_that_a_public_signature_names_is_in_a_menu() -> None:
    named = [(name, found) for name, value in public_values() for found in named_classes(value)]
    assert len(named) > 400
    assert {(name, found) for name, found in named if id(found) not in PUBLIC and not has_reason(found)} == set()


def test_exception_that_a_public_name_raises_is_in_a_menu() -> None:
    raised = [(name, found) for name, value in public_values() for found in raised_classes(value)]
    assert len(raised) > 50
    assert {(name, found) for name, found in raised if id(found) not in PUBLIC} == set()


def test_each_reason_not_to_be_in_a_menu_is_needed() -> None:
    hidden = {
        f"{found.__module__}.{found.__qualname__}" for _, value in public_values() for found in named_classes(value)
    }
    assert [place for place in NOT_IN_A_MENU if not any(each.startswith(place) for each in hidden)] == []


@pytest.mark.parametrize("owner", MAIN, ids=lambda owner: owner.__name__)
def test_what_users_see_of_a_main_class_is_meant_for_them_and_explained(owner: type) -> None:
    attributes = public_attributes(owner)
    assert sorted(attributes) == sorted(MAIN[owner].split())
    assert [name for name, text in attributes.items() if not text] == []


RESULT: Any = {"content": "what it came to"}
ERRORS = [
    utools.DefinitionErrors([utools.Problem("nodes/0", "unknown key"), utools.Problem("nodes/1", "is missing")]),
    utools.UnknownTool("serch", ["search"]),
    utools.ToolError("there is no file {path!r}", path="a.txt", transient=True),
    agent_core.Damaged("flow/write.1", 3, "its hash is another one"),
    agent_core.Divergence("flow/write.1", 3, {"ask": "model"}, {"ask": "tool"}),
    agent_core.agents.AgentNotFound("clark", ["clerk"]),
    agent_core.agents.MaxStepsExceeded("no answer", RESULT),
    engine_shim.RunNotFound("r1", "it was erased"),
    engine_shim.RunBusy("r1", "host:17:a"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_exception_of_another_process_says_the_same(error: Exception) -> None:
    """A pool of processes waits for ever for one that cannot be raised again."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    assert again.__dict__ == error.__dict__
