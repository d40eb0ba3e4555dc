"""The README's commands and examples run, as they stand there, in order and in one store."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from shutil import which

import pytest

from support.config_table import config_rows, config_table
from support.engine_env import engine_bin, needs_engine
from support.optional import needs

ROOT = Path(__file__).parents[1]
HERE = Path(sys.executable).parent
"""The programs of this environment."""
BLOCK = re.compile(r"^```(\w+)(?: (run|file=\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)")
"""A link to a file of this repository, or to a place in one."""
README, CHINESE = ((ROOT / name).read_text("utf-8") for name in ("README.md", ".github/README.zh.md"))
MANUAL = (ROOT / ".github/MANUAL.zh.md").read_text("utf-8")
INIT = ROOT / "engine_shim/cli/host/init_files"
SEEN_WITH = {
    "agent-core replay last": (0, "every decision and the output came out the same"),
    "agent-core verify last": (0, "ok: "),
    "agent-core replay last --set max_steps=1": (5, "max_steps 1 is used up"),
    "agent-core demo injection": (0, "Nothing was sent to archive@evil.example"),
    "agent-core demo crash": (0, "A room for Ada is booked"),
}
"""What the first page says to see with a command, and needs no model for: its exit code, and what it prints."""


def _environment(home: Path, programs: Path = HERE) -> dict[str, str]:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_CORE_"))}
    return {**quiet, "PATH": path, "XDG_DATA_HOME": str(home)}


def _follow(readme: Path, home: Path, programs: Path = HERE) -> list[str]:
    """Write the files of a README and run its examples, in a directory of its own and the store of `home`, with these
    programs first on the path.

    They have to succeed, and print each line that the README says. Gives all lines.
    """
    directory, printed = home / readme.relative_to(ROOT).as_posix().replace("/", "-"), list[str]()
    directory.mkdir()
    blocks = [*BLOCK.findall(readme.read_text("utf-8")), ("", "", "")]
    for (language, mark, text), (shown, _, told) in pairwise(blocks):
        if mark.startswith("file="):
            file = directory / mark.removeprefix("file=")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif mark == "run":
            lines = _run(language, text, directory, _environment(home / "data", programs)).splitlines()
            missing = [line for line in told.splitlines() if line not in lines] if shown == "text" else []
            assert missing == [], f"{text}\nprinted\n" + "\n".join(lines)
            printed += lines
    return printed


def _run(language: str, text: str, directory: Path, environment: dict[str, str]) -> str:
    """What commands or a program print; they have to succeed."""
    program = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}[language]
    done = subprocess.run([*program, text], cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_first_page_runs(tmp_path: Path) -> None:
    assert "answer: Order 17, a lamp, was sent on Monday." in _follow(ROOT / "README.md", tmp_path)


@pytest.mark.exhaustive
def test_the_table_of_what_is_different_on_the_first_page_is_true(tmp_path: Path) -> None:
    _follow(ROOT / "README.md", tmp_path)
    told = re.findall(r"^\| \*\*.+ \| `(agent-core .+)` \|$", README, re.MULTILINE)
    assert [command for command in told if command not in SEEN_WITH] == ["agent-core demo --model ollama:qwen2.5:0.5b"]
    (desk,) = tmp_path.rglob("my-desk")
    for command, (code, said) in SEEN_WITH.items():
        environment = _environment(tmp_path / "data")
        done = subprocess.run(command.split(), env=environment, cwd=desk, capture_output=True, text=True)
        assert (done.returncode, said in done.stdout) == (code, True), f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_first_page_shows_what_init_writes() -> None:
    files = [
        (INIT / name).read_text("utf-8").partition("\n# ── Patterns")[0] for name in ("orders.py.txt", "flow.yaml")
    ]
    for page in (README, CHINESE):
        assert re.findall(r"^```(?:python|yaml)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) == files


def test_the_first_page_is_read_in_a_few_minutes() -> None:
    assert README.count("\n") <= 150


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["engine_shim/RECIPES.md", "agent_core/README.md"])
def test_the_examples_run_in_order_in_one_store_and_print_what_they_should(name: str, tmp_path: Path) -> None:
    printed = "\n".join(_follow(ROOT / name, tmp_path))
    wanted = {"engine_shim/RECIPES.md": "There are 12 pieces of A-17.", "agent_core/README.md": "True True"}
    assert wanted[name] in printed


@pytest.mark.exhaustive
def test_the_endpoint_of_a_program_is_made_as_the_page_of_models_says(tmp_path: Path) -> None:
    _follow(ROOT / "agent_core" / "models" / "README.md", tmp_path)


@pytest.mark.exhaustive
def test_the_node_in_another_engine_runs_as_its_page_says(tmp_path: Path) -> None:
    _follow(ROOT / "agent_core" / "NODE.md", tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("celery", marks=needs("celery")),
        pytest.param("temporal", marks=needs("temporalio")),
    ],
)
def test_the_node_in_an_engine_runs_as_its_page_says(engine: str, tmp_path: Path) -> None:
    _follow(ROOT / "engine_shim" / "plugins" / engine / "README.md", tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(each, marks=[needs_engine(each), pytest.mark.xdist_group(each)])
        for each in ("airflow", "prefect", "dagster")
    ],
)
def test_the_node_in_an_engine_of_another_environment_runs_as_its_page_says(engine: str, tmp_path: Path) -> None:
    _follow(ROOT / "engine_shim" / "plugins" / engine / "README.md", tmp_path, engine_bin(engine))


@pytest.mark.exhaustive
@needs("temporalio")
def test_a_run_as_a_child_of_a_workflow_runs_as_its_page_says(tmp_path: Path) -> None:
    _follow(ROOT / "engine_shim" / "plugins" / "temporal" / "CHILD.md", tmp_path)


@pytest.mark.exhaustive
def test_the_tests_of_a_workflow_run_as_their_page_says(tmp_path: Path) -> None:
    assert "3 cases, none failed" in _follow(ROOT / "engine_shim" / "testing" / "README.md", tmp_path)
    (report,) = tmp_path.rglob("report.xml")
    assert 'failures="0"' in report.read_text("utf-8")


@pytest.mark.exhaustive
def test_the_kit_for_tests_works_as_its_page_says(tmp_path: Path) -> None:
    _follow(ROOT / "agent_core" / "testing" / "README.md", tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "library",
    [
        "run",
        pytest.param("langchain", marks=needs("langchain_core")),
        pytest.param("pydantic_ai", marks=needs("pydantic_ai")),
    ],
)
def test_tools_of_other_libraries_work_as_their_page_says(library: str, tmp_path: Path) -> None:
    page = (ROOT / "utools" / "adapters" / "README.md").read_text("utf-8")
    programs = re.findall(rf"^```python {library}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    printed = "".join(_run("python", text, tmp_path, _environment(tmp_path)) for text in programs)
    assert printed == ("" if library == "run" else "clear in Oslo for 1 days\n")


@pytest.mark.exhaustive
@pytest.mark.skipif(which("jq") is None, reason="needs the program jq")
def test_the_page_of_operators_runs(tmp_path: Path) -> None:
    printed = _follow(ROOT / "engine_shim" / "OPERATING.md", tmp_path)
    assert printed[-1] == "completed"


@pytest.mark.exhaustive
def test_the_chinese_manual_runs(tmp_path: Path) -> None:
    printed = "\n".join(_follow(ROOT / ".github/MANUAL.zh.md", tmp_path))
    assert ["There are 12 pieces of A-17." in printed, "True True" in printed] == [True, True]


@pytest.mark.exhaustive
def test_the_examples_of_workflows_run_in_order_in_one_store(tmp_path: Path) -> None:
    assert "exit code 5" in _follow(ROOT / "engine_shim" / "README.md", tmp_path)


@pytest.mark.exhaustive
def test_the_examples_of_evals_run_in_order(tmp_path: Path) -> None:
    printed = _follow(ROOT / "engine_shim" / "evals" / "README.md", tmp_path)
    assert [line.split()[:3] for line in printed if line.startswith("total")] == [["total", "3/3", "100%"]] * 2


@pytest.mark.exhaustive
def test_the_examples_of_graphs_run(tmp_path: Path) -> None:
    printed = "\n".join(_follow(ROOT / "engine_shim" / "builder" / "README.md", tmp_path))
    assert "Checked: there are 12 pieces." in printed
    assert "model openai:gpt-4o-mini" in printed


def test_the_examples_of_agents_run(tmp_path: Path) -> None:
    assert "It is 5. [{'tool_name': 'calculator', 'count': 1}] 2" in _follow(
        ROOT / "agent_core" / "agents" / "README.md", tmp_path
    )


@pytest.mark.long
def test_the_examples_of_workflows_run_in_the_store_of_those_of_the_first_page(tmp_path: Path) -> None:
    _follow(ROOT / "engine_shim" / "RECIPES.md", tmp_path)
    _follow(ROOT / "engine_shim" / "README.md", tmp_path)


def _rows(text: str) -> list[list[str]]:
    """The names in the first cell of each table's rows: no language changes them."""
    firsts = re.findall(r"^\| (.+?) (?<!\\)\|", text, re.MULTILINE)
    return [re.findall(r"`[^`]+`", first) for first in firsts]


def test_the_chinese_page_has_the_same_sections_examples_and_rows() -> None:
    assert re.findall(r"^#+", CHINESE, re.M) == re.findall(r"^#+", README, re.M)
    programs, translated = ([block for block in BLOCK.findall(text) if block[1]] for text in (README, CHINESE))
    assert translated == programs
    assert _rows(CHINESE) == _rows(README)


def test_the_chinese_manual_has_every_key() -> None:
    for key, default, _ in config_rows():
        assert f"| `{key}` | {default.replace('required', '必填')} | " in MANUAL


def test_the_tables_of_the_nodes_keys_are_what_the_schema_says() -> None:
    page = (ROOT / "agent_core/README.md").read_text("utf-8")
    assert config_table() in page, f"the tables of the keys have to be:\n\n{config_table()}"


def test_the_demo_proves_itself_without_a_key(tmp_path: Path) -> None:
    done = subprocess.run(
        ["agent-core", "demo"], env=_environment(tmp_path), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "896.35 euros" in done.stdout
    assert "verified: ok" in done.stdout
    assert "replayed: identical" in done.stdout


def test_the_two_commands_of_the_readme_are_what_ci_runs() -> None:
    commands = re.findall(r"^python3 -m venv .+$", README, re.MULTILINE)
    assert [command.rsplit("/", 1)[-1] for command in commands] == ["agent-core demo", "pytest"]


def _anchors(page: Path) -> set[str]:
    """The addresses of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_to_a_file_leads_somewhere() -> None:
    hidden = re.compile(r"^\.(?!github$)")
    pages = [page for page in ROOT.rglob("*.md") if not any(map(hidden.match, page.relative_to(ROOT).parts))]
    links = [(page, *link) for page in pages for link in LINK.findall(page.read_text("utf-8"))]
    assert len(links) > 60
    assert [(str(page), path) for page, path, _ in links if not (page.parent / path).exists()] == []
    named = [(page, (page.parent / path) if path else page, anchor) for page, path, anchor in links if anchor]
    assert [(str(page), str(to), name) for page, to, name in named if name not in _anchors(to)] == []
