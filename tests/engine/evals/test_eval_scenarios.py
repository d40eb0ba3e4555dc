"""The scenarios that ship with the package, and two models or settings side by side."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

from agent_core.models import ScriptedModel
from engine_shim.evals.load import find_case_file, load_cases
from engine_shim.evals.measure import measure
from engine_shim.evals.score import Share, total
from support.by_hand import action, final
from support.command import Cli, Write
from support.gguf import FILE, needs_a_model
from support.oracle import oracle

ROOT = Path(__file__).parents[3]
NAME = "seed-scenarios"


def scripts(only: str = "") -> dict[str, list[str]]:
    cases = load_cases(find_case_file(Path(NAME))).cases
    return {case.name: oracle(case) for case in cases if only in case.name}


def test_the_scenarios_are_part_of_the_wheel() -> None:
    shipped = {Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert Path("engine_shim", *find_case_file(Path(NAME)).parts[-3:]) in shipped


def test_each_scenario_is_asked_in_both_languages_and_can_be_done() -> None:
    suite = load_cases(find_case_file(Path(NAME)))
    found = asyncio.run(measure(suite, model=ScriptedModel(scripts())))
    assert [each.case.name for each in found if each.scores.right.rate != 1] == []
    scores = total(each.scores for each in found)
    assert scores.tool_choice.rate == scores.arguments.rate == scores.recovery.rate == 1
    kinds = {lang: [case.category for case in suite.cases if case.language == lang] for lang in ("en", "zh")}
    assert kinds["en"] == kinds["zh"]
    assert set(kinds["en"]) == {"echo", "search", "calculate", "combination", "log", "missing_file"}


def test_arguments_of_the_wrong_type_are_corrected() -> None:
    suite = load_cases(find_case_file(Path(NAME)))
    wrong = action("file_search", query="openSkill", root_dir="./data/docs", limit="5")
    right = scripts("five-matches")
    model = ScriptedModel({name: [wrong, *replies] for name, replies in right.items()})
    chosen = [case for case in suite.cases if case.name in right]
    found = asyncio.run(measure(replace(suite, cases=chosen), model=model))
    assert [(each.scores.recovery, each.scores.arguments) for each in found] == [(Share(1, 1), Share(1, 1))] * 2


def test_the_scenarios_are_found_by_name_in_any_directory(cli: Cli, write: Write) -> None:
    write("replies.json", scripts())
    told = cli("eval", NAME, "--model", "scripted:replies.json", "--json").json
    assert told["total"]["right"] == {"right": 18, "of": 18, "rate": 1.0}
    ran = cli("eval", "sed-scenarios", "--model", "scripted:replies.json")
    assert (ran.code, NAME in ran.err) == (3, True)


@needs_a_model
@pytest.mark.long
def test_a_real_model_of_any_size_is_measured(cli: Cli) -> None:
    words = ("--only", "echo", "--set", "max_output_tokens=32", "--set", "max_steps=1")
    ran = cli("eval", NAME, "--model", f"local:{FILE}", *words, "--json")
    told = ran.json
    assert [line.split()[0] for line in ran.err.splitlines()] == ["loading", "1/2", "2/2"]
    assert [case["answered"] for case in told["cases"]] == [True] * 2
    assert told["total"]["right"]["of"] == 2
    assert all(case["steps"] >= 1 and case["tokens"] > 100 and case["seconds"] > 0 for case in told["cases"])


@needs_a_model
def test_a_local_model_that_cannot_be_loaded_is_told_once(cli: Cli, home: Path) -> None:
    assert FILE is not None
    (home / "cut.gguf").write_bytes(FILE.read_bytes()[: FILE.stat().st_size // 2])
    ran = cli("eval", NAME, "--model", "local:cut.gguf", "--only", "echo")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "loading local:cut.gguf")
    assert ran.out.splitlines()[1:3] == [
        "2 of 2 runs had no answer and count as not right:",
        "  2 model_error: cut.gguf: llama.cpp cannot load it: it is damaged, or of a kind that is not known",
    ]


# ── side by side ─────────────────────────────────────────────────────────────────────────────────

CASES = {"cases": [{"message": f"Say {word}.", "answer": {"contains": [word]}} for word in ("yes", "no", "perhaps")]}
A = {"say-yes": [final("yes")], "say-no": [final("yes")], "say-perhaps": ["{", final("perhaps")]}
B = {"say-yes": [final("no")], "say-no": [final("no")], "say-perhaps": [final("perhaps")]}


@pytest.fixture
def cases(write: Write) -> str:
    write("a.json", A)
    write("b.json", B)
    return str(write("cases.json", CASES))


def test_two_models_are_compared_case_by_case(cli: Cli, cases: str) -> None:
    ran = cli("eval", cases, "--model", "scripted:a.json", "--compare", "scripted:b.json")
    assert (ran.code, ran.err.splitlines()[2:4]) == (0, ["A 3/3 say-perhaps: right", "B 1/3 say-yes: not right"])
    table, wrong = ran.out.rsplit("\n\n", 1)
    lines = table.splitlines()
    assert lines[:2] == ["A  scripted:a.json: 3 runs", "B  scripted:b.json: 3 runs"]
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("say", "total"))}
    assert (rows["say-yes"][2:4], rows["say-yes"][-1]) == (["1/1", "0/1"], "A")
    assert (rows["say-no"][2:4], rows["say-no"][-1]) == (["0/1", "1/1"], "B")
    assert rows["say-perhaps"][2:4] == ["1/1", "1/1"]
    assert rows["total"][1:5] == ["2/3", "67%", "2/3", "67%"]
    assert lines[-2:] == ["A is better than B in say-yes", "B is better than A in say-no"]
    assert wrong.splitlines() == [
        'A say-no   expected an answer with "no"',
        "           got final: yes",
        'B say-yes  expected an answer with "yes"',
        "           got final: no",
        "Run again with --store PATH to look at the runs.",
    ]


def test_a_comparison_as_json_has_both_and_each_case(cli: Cli, cases: str) -> None:
    told = cli("eval", cases, "--model", "scripted:a.json", "--compare", "scripted:b.json", "--json").json
    assert [told[side]["total"]["right"]["right"] for side in "ab"] == [2, 2]
    assert [each["better"] for each in told["compared"]] == ["A", "B", ""]
    one = told["compared"][2]
    assert one["a"]["tokens"] > one["b"]["tokens"] > 0
    assert one["a"]["right"] == {"right": 1, "of": 1}


def test_two_settings_of_one_model_are_compared(cli: Cli, cases: str) -> None:
    words: list[Any] = ["eval", cases, "--model", "scripted:a.json", "--set", "max_repairs=1"]
    told = cli(*words, "--compare-set", "max_repairs=0", "--json").json
    assert told["b"]["settings"] == {"max_repairs": 0}
    assert [each["better"] for each in told["compared"]] == ["", "", "A"]
    assert "max_repairs=0" in cli(*words, "--compare-set", "max_repairs=0").out
    alike = cli(*words, "--compare-set", "max_repairs=2")
    assert alike.out.rsplit("\n\n", 1)[0].splitlines()[-1] == "both are right in the same cases"


def test_the_first_of_both_decides_on_the_exit_code(cli: Cli, cases: str, write: Write) -> None:
    write("none.json", {name: [final("?")] for name in A})
    models = ("scripted:a.json", "scripted:none.json")
    for one, other, code in ((*models, 0), (*reversed(models), 1)):
        assert cli("eval", cases, "--model", one, "--compare", other, "--min-right", "0.6").code == code


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--compare-set", "max_stps=1"), 3, "max_stps"),
        (("--compare-set", "model=x"), 2, "model is decided"),
        (("--compare", "scripted:nowhere.json"), 3, "cannot be read"),
    ],
)
def test_what_is_wrong_with_the_other_is_told_before_any_case_runs(
    cli: Cli, cases: str, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = cli("eval", cases, "--model", "scripted:a.json", *words)
    assert (ran.code, ran.out, told in ran.err) == (code, "", True)
