"""A kit for tests of agents, tools, stores and models: stand-ins, assertions, recorded runs, contracts."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from agent_core.models.recorded import RecordedModel as RecordedModel
    from agent_core.models.scripted import ScriptedModel as ScriptedModel
    from agent_core.testing.assertions import assert_called as assert_called
    from agent_core.testing.assertions import assert_finish as assert_finish
    from agent_core.testing.assertions import assert_not_called as assert_not_called
    from agent_core.testing.assertions import assert_refused as assert_refused
    from agent_core.testing.contracts.context_store import check_context_store as check_context_store
    from agent_core.testing.contracts.journal import check_journal as check_journal
    from agent_core.testing.contracts.model_client import check_model_client as check_model_client
    from agent_core.testing.function_model import FunctionModel as FunctionModel
    from agent_core.testing.real_models import no_real_models as no_real_models
    from agent_core.testing.recorded_model import recorded as recorded
    from agent_core.testing.recorded_runs import RecordedRuns as RecordedRuns
    from agent_core.testing.schema_model import TestModel as TestModel
    from agent_core.testing.stand_in import OfferedTool as OfferedTool

HOMES = {
    "agent_core.models.recorded": "RecordedModel",
    "agent_core.models.scripted": "ScriptedModel",
    "agent_core.testing.assertions": "assert_called assert_finish assert_not_called assert_refused",
    "agent_core.testing.contracts.context_store": "check_context_store",
    "agent_core.testing.contracts.journal": "check_journal",
    "agent_core.testing.contracts.model_client": "check_model_client",
    "agent_core.testing.function_model": "FunctionModel",
    "agent_core.testing.real_models": "no_real_models",
    "agent_core.testing.recorded_model": "recorded",
    "agent_core.testing.recorded_runs": "RecordedRuns",
    "agent_core.testing.schema_model": "TestModel",
    "agent_core.testing.stand_in": "OfferedTool",
}
"""The public names by their modules; each is imported when it is first used: no test run pays for the others."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
