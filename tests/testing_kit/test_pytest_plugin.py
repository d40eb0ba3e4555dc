"""The plugin for pytest, in a pytest of its own: what it loads, its fixtures, runs that are recorded and replayed."""

import tomllib
from pathlib import Path

import pytest

from agent_core.testing.pytest_plugin import name_file

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
INI = """
[pytest]
anyio_mode = auto
filterwarnings = error
"""
DESK = '''
import pytest
from agent_core import run_agent
from agent_core.testing import ScriptedModel, assert_called
from utools import tool

PIECES = 12


@tool(effect="read")
def stock(article: str) -> int:
    """Count the pieces of an article."""
    return PIECES


CONFIG = {"model": "openai:gpt-4o-mini", "max_steps": 4, "allowed_tools": ["stock"], "prompt": "How many A-17?"}
REPLIES = [
    {"type": "action", "tool": "stock", "args": {"article": "A-17"}},
    {"type": "final", "answer": "There are 12."},
]


@pytest.fixture
def anyio_backend():
    return "asyncio"
'''
RECORDED = """

async def test_desk(recorded_run, no_real_models):
    output = await recorded_run(CONFIG, registry=[stock], model=ScriptedModel(REPLIES))
    assert output.final_answer == "There are 12."


@pytest.mark.parametrize("name", ["a b", "c"])
def test_both(recorded_run, name):
    for _ in range(2):
        assert recorded_run.sync(CONFIG, registry=[stock], model=ScriptedModel(REPLIES)).finish_reason == "final"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory with tests, far from this project's own settings."""
    for name in ("AGENT_CORE_RECORD_RUNS", "PYTEST_ADDOPTS", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makefile(".ini", pytest=INI)
    pytester.makepyfile(test_desk=DESK + RECORDED)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    slow = ("-p", "no:langsmith_plugin", "-p", "no:schemathesis")  # of others, which import much
    return project.runpytest_subprocess("-p", "no:cacheprovider", *slow, *options)


def test_its_entry_point_is_installed() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pytest11"]
    assert points == {"agent_core": "agent_core.testing.pytest_plugin"}


def test_a_run_that_uses_no_fixture_imports_nothing_of_the_library(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("""
        import sys

        def test_modules():
            heavy = {"pydantic", "jsonschema", "openai", "orjson", "httpx2", "agent_core.run", "agent_core.models"}
            assert heavy & set(sys.modules) == set()
            ours = sorted(each for each in sys.modules if each.split(".")[0] in ("agent_core", "engine_shim"))
            assert ours == ["agent_core", "agent_core.testing", "agent_core.testing.pytest_plugin"]
    """)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those of others import what they like
    run(pytester, "-p", "agent_core").assert_outcomes(passed=1)


def test_the_fixtures_are_there(pytester: pytest.Pytester, project: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_desk=DESK
        + """

async def test_a_model_of_the_schemas(test_model, memory_journal):
    await run_agent(CONFIG, registry=[stock], model=test_model, journal=memory_journal, run_id="r")
    assert_called(memory_journal, "stock", times=1)


async def test_real_models_are_refused(no_real_models):
    output = await run_agent(CONFIG, registry=[stock])
    assert "no_real_models: the real model gpt-4o-mini was asked" in output.error["message"]
"""
    )
    run(project).assert_outcomes(passed=2)


@pytest.mark.exhaustive
def test_runs_are_recorded_beside_their_test_and_replayed(project: pytest.Pytester) -> None:
    done = run(project)
    done.assert_outcomes(failed=3)
    done.stdout.fnmatch_lines(["*there is no recorded run */recorded_runs/test_desk/test_desk.jsonl; record it by*"])
    run(project, "--record-runs", "-n2", "--dist=loadgroup").assert_outcomes(passed=3)
    folder = project.path / "recorded_runs" / "test_desk"
    names = [
        "test_both-a-b-cacdcc2d-2.jsonl",
        "test_both-a-b-cacdcc2d.jsonl",
        "test_both-c-2.jsonl",
        "test_both-c.jsonl",
    ]
    assert sorted(each.name for each in folder.iterdir()) == [*names, "test_desk.jsonl"]
    project.makepyfile(test_desk=(DESK + RECORDED).replace("ScriptedModel(REPLIES)", "None"))
    run(project).assert_outcomes(passed=3)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("return PIECES", "return 13", ["*agent:5: answered, stock", "*/output: recorded 12", "*now      13"]),
        ('prompt": "How', 'prompt": "So how', ["*agent:0: run_started", '*/config/prompt: recorded "How many A-17?"']),
        (
            "Count the pieces",
            "Count all",
            ["*/messages/0/content:", "*-*Count the pieces of*", "*+*Count all*"],
        ),
        ('"max_steps": 4', '"max_steps": 1', ["*agent:0: run_started", "*/config/max_steps: recorded 4"]),
    ],
    ids=["a tool gives something else", "another prompt", "another description", "another limit"],
)
def test_a_run_that_differs_fails_with_the_difference(
    project: pytest.Pytester, was: str, now: str, told: list[str]
) -> None:
    run(project, "--record-runs").assert_outcomes(passed=3)
    project.makepyfile(test_desk=(DESK + RECORDED).replace(was, now))
    done = run(project, "-k", "test_desk and not both")
    done.assert_outcomes(failed=1, deselected=2)
    done.stdout.fnmatch_lines(["*the run is another one than the recorded */test_desk.jsonl; if it should be, record*"])
    done.stdout.fnmatch_lines(told)


@pytest.mark.exhaustive
def test_a_run_is_recorded_anew_by_the_environment_too_unless_its_model_fails(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CORE_RECORD_RUNS", "1")
    project.makepyfile(test_desk=(DESK + RECORDED).replace("ScriptedModel(REPLIES)", "ScriptedModel([])"))
    done = run(project)
    done.assert_outcomes(failed=3)
    done.stdout.fnmatch_lines(["*the run is not recorded, since its model gave no reply: *"])
    assert not (project.path / "recorded_runs").exists()
    project.makepyfile(test_desk=DESK + RECORDED)
    run(project).assert_outcomes(passed=3)


def test_each_test_has_a_file_of_its_own_whose_name_any_system_takes() -> None:
    assert [name_file(each) for each in ("test_x", "test_x[a-b.c]", "TestA::test_x[7]")] == [
        "test_x", "test_x-a-b.c", "TestA-test_x-7",
    ]  # fmt: skip
    alike = ["test_x[+]", "test_x[*]", "test_x[a b]", "test_x[a/b]", "test_x[a-b]", "test_x[-1]", "test_x[1-]"]
    alike += ["test_x[a-2]", "test_x[1]", f"test_x[{'How many? ' * 40}]", f"test_x[{'How many? ' * 41}]"]
    alike += [f"test_x[{'几' * 90}]", f"test_x[{'几' * 91}]"]
    names = [name_file(each) for each in alike]
    assert len(set(names)) == len(alike)
    assert "test_x-a-2" not in names  # which is the second run of test_x[a]
    assert max(len(each.encode()) for each in names) < 200


def test_a_broken_rule_of_a_contract_shows_its_values(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from agent_core.journal.memory import MemoryJournal
        from agent_core.testing import check_journal

        class Silent(MemoryJournal):
            def runs(self):
                return []

        def test_journal():
            check_journal(Silent)
    """)
    done = run(pytester)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*- an unknown run is empty: assert [[]] == [[]'r1']"])
