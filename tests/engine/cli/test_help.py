"""What the command line says of itself: its version, its help, and examples that work as they are typed."""

import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import engine_shim
from engine_shim.cli.app import COMMANDS, NAMES
from support.by_hand import action, final
from support.command import Cli, Write

RECIPES = Path(engine_shim.__file__).parent / "RECIPES.md"
WORDS = {NAMES.get(command) or command.__name__: command for command in COMMANDS}
NEEDS_MORE = {"eval", "chat", "dev", "serve", "worker", "store", "mcp"}
"""Commands whose examples need a model or a file that only their user has, or go on until they are stopped."""
WAITING = {"decide", "pause", "cancel", "signal"}


def examples(cli: Cli, command: str) -> list[str]:
    """The examples in the help of a command."""
    paragraph = re.search(r"^  Examples:\n((?: {4}.+\n)+)", cli(command, "--help").out, re.MULTILINE)
    assert paragraph, command
    return [line.strip() for line in paragraph[1].splitlines()]


@pytest.fixture
def flow(write: Write) -> None:
    allowed = [{"tool": "echo", "approval": "on_write"}, {"tool": "calculator", "approval": "always"}]
    agent = {
        "model": "scripted:replies.json",
        "max_steps": 3,
        "allowed_tools": allowed,
        "prompt": "{{external.message}}",
    }
    inputs = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    nodes = [{"tool": "agent_core", "config": agent}]
    write("flow.yaml", {"id": "w", "inputs": inputs, "nodes": nodes})
    write("completes.json", [action("echo", text="a"), final()])
    write("flow.test.yaml", {"cases": [{"inputs": {"message": "Go."}, "path": ["agent_core"]}]})
    write("waits.json", [action("calculator", expression="1 + 1"), final()])


def test_version_is_that_of_the_package(cli: Cli) -> None:
    ran = cli("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"agent-core {version('agent-core')}\n", "")


@pytest.mark.exhaustive
def test_package_runs_as_a_module_where_the_script_is_not_on_the_path(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_core", "validate", "nowhere.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "agent-core: FLOW: there is no file nowhere.yaml\n")


@pytest.mark.exhaustive
def test_h_is_help_of_the_program_and_of_every_command(cli: Cli) -> None:
    assert cli("-h").out == cli("--help").out
    for command in WORDS:
        assert cli(command, "-h").out.startswith(f"Usage: agent-core {command} ")


def test_list_of_commands_cuts_no_sentence_short(cli: Cli) -> None:
    assert "..." not in cli("--help").out.split("Every day:")[1]


@pytest.mark.sampled
@pytest.mark.parametrize("command", sorted(WORDS.keys() - NEEDS_MORE))
@pytest.mark.usefixtures("flow")
def test_first_example_of_a_command_works_as_it_is_typed(cli: Cli, write: Write, command: str) -> None:
    replies = "waits.json" if command in WAITING else "completes.json"
    write("replies.json", (write("x", "").parent / replies).read_text())
    cli("run", "flow.yaml", "--input", "message=Go.")
    words = shlex.split(examples(cli, command)[0])
    assert words[0] == "agent-core"
    ran = cli(*words[1:])
    assert ran.code == 0, ran


@pytest.mark.sampled
@pytest.mark.parametrize("command", sorted(WORDS))
def test_examples_are_of_their_command_and_fit_a_line(cli: Cli, command: str) -> None:
    for example in examples(cli, command):
        assert example.startswith(f"agent-core {command}"), example
        assert len(example) <= 76


def test_ten_commands_of_every_day_come_first(cli: Cli) -> None:
    groups = re.findall(r"^([A-Z][a-z ]+):\n((?:  [a-z].*\n)+)", cli("--help").out, re.MULTILINE)
    assert [title for title, _ in groups] == ["Every day", "Runs", "Audit", "Host", "Tests", "Learn"]
    assert groups[0][1].count("\n") == 10


def test_missing_argument_is_told_with_the_usage_and_what_is_there(cli: Cli, write: Write) -> None:
    write("flow.yaml", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "a"}}]})
    ran = cli("run")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "agent-core: Missing argument 'FLOW'; there is flow.yaml. Usage: agent-core run [OPTIONS] FLOW\n"
    missing = "Missing argument 'RUN|FILE'; there is last. Usage: agent-core show [OPTIONS] RUN|FILE"
    assert cli("show").err == f"agent-core: {missing}\n"


TOPICS = [line.split()[0] for line in re.findall(r"^\| (`[\w-]+` \|)", RECIPES.read_text("utf-8"), re.MULTILINE)]


def test_help_lists_each_recipe_and_the_words(cli: Cli) -> None:
    listed = [line.split()[0] for line in cli("help").out.split("\n\n")[0].splitlines()]
    assert listed == ["words", *(each.strip("`") for each in TOPICS)]
    assert len(TOPICS) > 20


@pytest.mark.sampled
@pytest.mark.parametrize("topic", [each.strip("`") for each in TOPICS])
def test_help_prints_the_page_of_a_topic(cli: Cli, topic: str) -> None:
    ran = cli("help", topic)
    assert ran.code == 0
    assert ran.out.startswith("#")
    assert len(ran.out) > 200
    assert "file=" not in ran.out


def test_help_prints_only_the_part_that_is_meant(cli: Cli) -> None:
    out = cli("help", "branch").out
    assert out.startswith("### Branch\n")
    assert "### Loop" not in out


def test_help_explains_words_and_names_a_near_topic(cli: Cli) -> None:
    assert "| ledger |" in cli("help", "words").out
    ran = cli("help", "aproval")
    assert (ran.code, "there is no topic 'aproval'; did you mean approval?" in ran.err) == (2, True)


def test_help_of_a_command_is_what_the_command_says(cli: Cli) -> None:
    assert cli("help", "chat").out.split() == cli("chat", "--help").out.split()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_that_cannot_be_written_is_told(word: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ran = cli(word)
    assert (ran.code, ran.err) == (1, "agent-core: stdout cannot be written: No space left on device\n")
