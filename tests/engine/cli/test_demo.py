"""The command demo: it needs no key and asks no model unless one is named, and the command that it ends with works."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from engine_shim.cli.host.demo_stories import STORIES, begin_and_be_killed
from engine_shim.cli.host.init import read_files
from engine_shim.cli.output import Options
from engine_shim.errors import EngineError
from support.by_hand import final
from support.command import Cli, Write

pytestmark = pytest.mark.exhaustive


def test_demo_tells_a_program_in_one_document(cli: Cli) -> None:
    told = cli("demo", "--json").json
    assert (told["status"], told["verified"], told["replay_identical"]) == ("completed", True, True)


def test_mail_that_gives_orders_is_not_obeyed(cli: Cli) -> None:
    ran = cli("demo", "injection")
    assert (ran.code, "verified: ok" in ran.out, "replayed: identical" in ran.out) == (0, True, True)
    assert 'you sent "archive@evil.example", from read_file step 1' in ran.err
    assert 'send_mail {"to": "ada@example.com"' in ran.err


def test_process_that_is_killed_after_a_write_is_gone_on_with_and_writes_nothing_twice(cli: Cli) -> None:
    ran = cli("demo", "crash")
    assert (ran.code, "verified: ok" in ran.out, "replayed: identical" in ran.out) == (0, True, True)
    assert "was killed after 1 booking" in ran.err
    assert "at the end there is 1 booking" in ran.err


def test_a_process_that_ends_before_it_is_killed_says_why(tmp_path: Path) -> None:
    """The directory has no workflow."""
    with pytest.raises(EngineError, match=r"was to be killed ended before: .*the definition cannot be read") as ended:
        begin_and_be_killed("r", tmp_path, tmp_path, tmp_path / "runs.db")
    assert "Traceback" not in str(ended.value)


def test_process_that_is_to_be_killed_takes_no_model(cli: Cli) -> None:
    ran = cli("demo", "crash", "--model", "openai:gpt-4o-mini")
    assert (ran.code, "crash is shown with recorded replies" in ran.err) == (2, True)


def test_demo_reads_its_files_where_an_installer_linked_them(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trip = STORIES["trip"]
    for name, content in read_files(trip.files):
        (tmp_path / "cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "installed" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / name).write_bytes(content)
        (tmp_path / "installed" / name).hardlink_to(tmp_path / "cache" / name)
    monkeypatch.setitem(STORIES, "trip", replace(trip, files=tmp_path / "installed"))
    ran = cli("demo")
    assert (ran.code, "896.35 euros" in ran.out) == (0, True)


# ── what is said twice, and what is said where a name belongs ────────────────────────────────────


def test_demo_asks_no_model_that_is_not_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-no-such-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    ran = cli("demo")
    assert (ran.code, "model: recorded replies" in ran.out) == (0, True)


def test_recorded_replies_answer_no_other_question(cli: Cli) -> None:
    ran = cli("demo", "--question", "What did the trip to Rome cost?")
    assert (ran.code, ran.out) == (2, "")
    assert "recorded replies cannot answer another question; name a model by --model" in ran.err


def test_replies_of_ones_own_are_found_from_the_working_directory(cli: Cli, write: Write) -> None:
    write("mine.json", [final("Forty-two.")])
    ran = cli("demo", "--model", "scripted:mine.json", "--question", "What is the answer?")
    assert (ran.code, "Forty-two." in ran.out) == (0, True)


@pytest.mark.exhaustive
def test_a_model_of_ones_own_machine_gets_more_time_and_is_told_how_it_starts(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    told = cli("demo", "--model", "ollama:tiny", "--json").json
    assert "127.0.0.1:9 gave no answer" in told["error"]["message"]
    assert "tried http://127.0.0.1:9/v1: `ollama serve` starts it there" in told["error"]["message"]
    shown = cli("show", "last", "--json").json
    configs = [each["config"] for each in shown["records"] if each["kind"] == "run_started" and "config" in each]
    assert configs[0]["single_call_timeout"] == 600


@pytest.mark.parametrize("options", [[], ["--store", "my runs.db"]], ids=["usual store", "another store"])
def test_the_command_that_the_demo_ends_with_works_as_typed(cli: Cli, options: list[str]) -> None:
    hint = cli("demo", *options).out.splitlines()[-1]
    assert hint.startswith("look closer: agent-core show ")
    shown = cli(*shlex.split(hint)[3:])
    assert (shown.code, "run_finished" in shown.out) == (0, True)


def test_demo_is_served_from_a_directory_that_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi")
    from engine_shim.cli.host import demo_serve

    served: list[tuple[int, Options]] = []

    def note(host: str, port: int, hosts: object, origins: object, model: object, options: Options) -> int:
        served.append((port, options))
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_serve, "serve_host", note)
    for _ in range(2):
        assert demo_serve.serve_demo(8080, None) == 0
    directory = tmp_path / demo_serve.DIRECTORY
    assert served == [(8080, Options(directory / "runs.db", directory / "agent-core.yaml"))] * 2
    assert {each.name for each in directory.iterdir()} >= {"workflow.yaml", "trips", ".env", "agent-core.yaml"}
    (directory / "agent-core.yaml").unlink()
    with pytest.raises(typer.BadParameter, match="is no demo"):
        demo_serve.serve_demo(8080, None)
