"""`agent-core chat`: on a terminal, and where each line of stdin is a message."""

import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from engine_shim.cli.output import user
from engine_shim.store.conversations import find_waiting_turn
from engine_shim.store.open import open_store
from support.by_hand import action, final
from support.command import Cli, Ran, Write
from support.terminal import COMMAND, Terminal

pytestmark = pytest.mark.exhaustive

TOOLS = """
import asyncio
from pathlib import Path
from utools import tool


@tool
def pay(to: str) -> str:
    "Pay."
    with Path("paid.txt").open("a") as file:
        file.write(f"{to}\\n")
    return "paid"


@tool(effect="read")
async def ponder() -> str:
    "Ponder."
    await asyncio.Event().wait()
"""
HOSTILE = "a\x1b[2J\u202eb"
PROMPT = "\x1b[?2004h"
"""What prompt_toolkit writes first when it begins to read a line."""

Start = Callable[..., Terminal]
Say = Callable[..., Ran]


@pytest.fixture(autouse=True)
def agents(write: Write) -> None:
    """A host with four agents, each with a script for every one of its turns."""
    scripts: dict[str, tuple[list[Any], Any]] = {
        "desk": ([action("calculator", operation="sum", numbers=[2, 3]), final("It is 5.")], "calculator"),
        "payer": ([action("pay", to=HOSTILE), final("Paid.")], {"tool": "pay", "approval": "always"}),
        "slow": ([{"type": "action", "tool": "ponder", "args": {}}, final("Done.")], "ponder"),
        "hostile": ([final(HOSTILE)], "calculator"),
    }
    write("own_tools.py", TOOLS)
    write("agent-core.yaml", "tools: [own_tools.py:pay, own_tools.py:ponder]")
    for name, (replies, allowed) in scripts.items():
        write(f"{name}.json", replies)
        policy = {"skill_policy": {"allow": [allowed]}, "runtime_policy": {"max_steps": 3}}
        write(f"agents/{name}.yaml", {"name": name, "model": f"scripted:{name}.json", **policy})


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def start(*words: str, **environment: str) -> Terminal:
            terminal = Terminal("chat", *words, PROMPT_TOOLKIT_NO_CPR="1", **environment)
            stack.callback(terminal.process.kill)
            return terminal

        yield start


@pytest.fixture
def say(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs the command with these lines at its stdin."""

    def say(lines: str, *words: str) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return cli("chat", *words)

    return say


def ask(terminal: Terminal, line: str) -> Terminal:
    return terminal.expect(PROMPT).type(f"{line}\r")


def leave(terminal: Terminal, key: str = "\x04") -> int:
    return terminal.expect(PROMPT).type(key).end()


def questions(cli: Cli, conversation: str) -> list[str]:
    turns = cli("context", "show", conversation, "--json").json["turns"]
    return [each["content"] for turn in turns for each in turn if each["role"] == "user"]


def test_a_turn_shows_its_steps_dimly_and_then_its_answer(start: Start) -> None:
    terminal = ask(start("--agent", "desk", "--conversation", "c"), "What is 2 + 3?")
    terminal.expect("\x1b[2mcalculator {").expect("\x1b[2m→ 5").expect("desk> It is 5.\r\n")
    assert leave(terminal) == 0
    assert "to continue: agent-core chat --conversation c" in terminal.shown
    assert terminal.shown.count("It is 5.") == 1


def test_a_terminal_that_takes_no_commands_is_sent_none(start: Start) -> None:
    terminal = start("--agent", "desk", TERM="dumb").expect("you> ").type("What is 2 + 3?\n")
    terminal.expect("desk> It is 5.").expect("you> ").type("\x04")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.shown


def test_a_character_that_stdout_does_not_have_is_a_question_mark(start: Start, write: Write) -> None:
    write("desk.json", [final("Gr\u00fc\u00dfe.")])
    terminal = start("--agent", "desk", PYTHONIOENCODING="ascii")
    ask(terminal, "Say it.").expect("desk> Gr??e.")
    assert leave(terminal) == 0
    assert "Traceback" not in terminal.shown


@pytest.mark.exhaustive
def test_message_may_have_several_lines(start: Start, cli: Cli) -> None:
    terminal = ask(start("--agent", "desk", "--conversation", "c"), "What is\x1b\r2 + 3?").expect("It is 5.\r\n")
    assert leave(terminal) == 0
    assert questions(cli, "c") == ["What is\n2 + 3?"]


@pytest.mark.exhaustive
def test_the_answer_is_shown_while_it_is_written(start: Start, write: Write) -> None:
    """A reply that breaks off was shown as far as it came, although it is discarded."""
    write(
        "desk.json", [{"content": '{"type":"final","answer":"It is fi', "finish_reason": "length"}, final("It is 5.")]
    )
    terminal = ask(start("--agent", "desk"), "What is 2 + 3?")
    terminal.expect("It is fi\r\n").expect("truncated").expect("It is 5.\r\n")
    assert leave(terminal) == 0


@pytest.mark.exhaustive
def test_nothing_that_a_model_writes_steers_the_terminal(start: Start) -> None:
    terminal = ask(start("--agent", "hostile"), "Hello.").expect("a\\x1b[2J\\u202eb")
    ask(terminal, "/trace").expect("has every record")
    ask(terminal, "/agent payer")
    ask(terminal, "Pay.").expect("[y/n/edit] ").type("y\n").expect("Paid.")
    assert leave(terminal) == 0
    assert "\x1b[2J" not in terminal.shown
    assert "\u202e" not in terminal.shown


@pytest.mark.parametrize(
    ("answers", "paid", "decision"),
    [
        pytest.param([("[y/n/edit] ", "y")], [HOSTILE], "approve", id="yes"),
        pytest.param([("[y/n/edit] ", "n"), ("why? ", "Not today.")], [], "deny", id="no"),
        pytest.param([("[y/n/edit] ", "n, not today.")], [], "deny", id="no, with its reason"),
        pytest.param([("[y/n/edit] ", "edit"), ("JSON object: ", '{"to": 1}'), ("/to: expected a string", ""),
                      ("[y/n/edit] ", "edit"), ("JSON object: ", '{"to": "c"}')], ["c"], "edit", id="edit"),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_a_call_that_waits_is_asked_in_place(
    start: Start, cli: Cli, home: Any, answers: list[tuple[str, str]], paid: list[str], decision: str
) -> None:
    terminal = ask(start("--agent", "payer", "--conversation", "c"), "Pay.")
    for shown, typed in answers:
        terminal.expect(shown)
        if typed:
            terminal.type(f"{typed}\n")
    assert leave(terminal.expect("Paid.")) == 0
    assert [each.read_text().strip() for each in home.glob("paid.txt")] == paid
    resolved = [each for each in cli("show", "last", "--json").json["records"] if each["kind"] == "resolved"]
    assert [(each["decision"], each["by"]) for each in resolved] == [(decision, user())]
    assert questions(cli, "c") == ["Pay."]


@pytest.mark.exhaustive
def test_who_leaves_a_waiting_call_is_asked_again_in_the_next_session(start: Start, cli: Cli, home: Any) -> None:
    terminal = ask(start("--agent", "payer", "--conversation", "c"), "Pay.").expect("[y/n/edit] ").type("\x03")
    assert leave(terminal.expect("agent-core chat --conversation c asks again")) == 0
    assert "no sessions" in cli("context", "list").out
    terminal = start("--conversation", "c").expect("you> Pay.").expect("[y/n/edit] ").type("y\n")
    assert leave(terminal.expect("Paid.")) == 0
    assert (home / "paid.txt").exists()
    assert questions(cli, "c") == ["Pay."]


@pytest.mark.exhaustive
def test_ctrl_c_cancels_the_turn_and_keeps_the_conversation(start: Start, cli: Cli) -> None:
    terminal = ask(start("--agent", "desk", "--conversation", "c"), "What is 2 + 3?").expect("It is 5.\r\n")
    ask(terminal, "/agent slow")
    ask(terminal, "Ponder.").expect("ponder {").type("\x03").expect("cancelled: the turn is not in the conversation")
    ask(terminal, "/trace").expect("ponder {").expect("has every record")
    ask(terminal, "/agent desk")
    ask(terminal, "And again?").expect("It is 5.\r\n")
    assert leave(terminal) == 0
    assert questions(cli, "c") == ["What is 2 + 3?", "And again?"]
    assert sorted(each["status"] for each in cli("runs", "--json").json) == ["cancelled", "completed", "completed"]


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.exhaustive
def test_on_an_empty_line_a_key_ends_and_on_a_written_one_ctrl_c_clears_it(start: Start, cli: Cli, key: str) -> None:
    terminal = start("--agent", "desk", "--conversation", "c").expect(PROMPT).type("nonsense\x03Hello.\r")
    assert leave(terminal.expect("It is 5.\r\n"), key) == 0
    assert "Traceback" not in terminal.shown
    assert questions(cli, "c") == ["Hello."]


@pytest.mark.exhaustive
def test_arrows_recall_what_was_written_in_an_earlier_session_too(start: Start, say: Say, cli: Cli) -> None:
    say("First.\n", "--agent", "desk", "--conversation", "c")
    terminal = ask(start("--conversation", "c"), "Second.").expect("It is 5.\r\n")
    ask(terminal, "\x1b[A\x1b[A").expect("It is 5.\r\n")
    assert leave(terminal) == 0
    assert questions(cli, "c") == ["First.", "Second.", "First."]


@pytest.fixture
def planner(write: Write) -> Callable[..., None]:
    """Writes an agent that plans a sum and an echo of what it does not give."""
    tools = [("calculator", {"operation": "sum", "numbers": [2, 3]}), ("echo", {"text": "{{steps.1.sum}}"})]
    steps = [{"step": n, "description": f"Use {t}", "tool": t, "parameters": a} for n, (t, a) in enumerate(tools, 1)]
    agent = {"name": "planner", "model": "scripted:planner.json", "skill_policy": {"allow": ["calculator", "echo"]}}

    def planner(**plan: Any) -> None:
        write("planner.json", [{"type": "plan", "steps": steps}, final("It is 5.")])
        policy = {"max_steps": 3, "mode": "plan", "plan": {"on_failure": "skip", **plan}}
        write("agents/planner.yaml", {**agent, "runtime_policy": policy})

    return planner


@pytest.mark.exhaustive
def test_a_plan_that_waits_is_asked_in_place_and_may_be_edited(start: Start, cli: Cli, planner: Any) -> None:
    planner(confirm=True)
    step = {"step": 1, "description": "Echo", "tool": "echo", "parameters": {"text": "mine"}}
    terminal = ask(start("--agent", "planner", "--conversation", "c"), "2 + 3?")
    terminal.expect("plan: Use calculator").expect("[y/n/edit] ").type("edit\n").expect("JSON object: ")
    terminal.type(json.dumps({"steps": [{**step, "tool": "pay"}]}) + "\n").expect("not allowed here")
    terminal.expect("[y/n/edit] ").type("edit\n").expect("JSON object: ").type(json.dumps({"steps": [step]}) + "\n")
    assert leave(terminal.expect("→ mine").expect("It is 5.")) == 0
    assert questions(cli, "c") == ["2 + 3?"]


def test_an_agent_that_plans_shows_its_plan_its_steps_and_why_one_was_not_run(say: Say, planner: Any) -> None:
    planner()
    ran = say("2 + 3?\n", "--agent", "planner")
    assert (ran.code, ran.out) == (0, "It is 5.\n")
    assert "plan: Use calculator; Use echo" in ran.err
    assert "→ 5" in ran.err
    assert "step 2 of the plan was not run: {{steps.1.sum}}: there is no" in ran.err


def test_a_conversation_goes_on_by_its_id_and_shows_where_it_stands(say: Say, cli: Cli) -> None:
    first = say("What is 2 + 3?\n", "--agent", "desk", "--conversation", "c")
    assert (first.code, first.out) == (0, "It is 5.\n")
    second = say("And now?\n", "--conversation", "c")
    assert (second.code, second.out) == (0, "It is 5.\n")
    assert second.err.startswith(
        "desk, conversation c (1 turn); /help lists the commands\nyou> What is 2 + 3?\ndesk> It is 5.\n"
    )
    records = cli("show", "last", "--json").json["records"]
    asked = next(each for each in records if each.get("loop") == "agent")
    assert "What is 2 + 3?" in json.dumps(asked["messages"])


def test_the_commands_answer_on_stdout(say: Say) -> None:
    ran = say("Sum?\n/tools\n/trace\n/agent slow\n/agent\n/help\n/quit\nNever read.\n", "--agent", "desk")
    answer, tools, *rest = ran.out.splitlines()
    assert (answer, tools.split()[0]) == ("It is 5.", "calculator")
    trace, others = rest[:4], rest[4:]
    assert trace[:2] == ['calculator {"operation": "sum", "numbers": [2, 3]}', "→ 5"]
    assert re.fullmatch(r"final, [\d,]+ tokens", trace[2])
    assert re.fullmatch(r"agent-core show \S+ has every record", trace[3])
    assert others[:4] == ["  desk", "  hostile", "  payer", "* slow"]
    commands = ["/tools", "/trace", "/agent", "/cost", "/files", "/undo", "/help", "/quit", "Alt-Enter"]
    assert [each.split()[0] for each in others[4:]] == commands
    assert ran.code == 0


@pytest.mark.exhaustive
def test_cost_counts_the_turns_of_the_conversation(say: Say, write: Write) -> None:
    usage = {"input_tokens": 100, "output_tokens": 7, "cost": 0.25}
    write("desk.json", [{"content": json.dumps(final("Hi.")), "usage": usage}])
    ran = say("/cost\nHi.\nHi.\n/cost\n", "--agent", "desk", "--conversation", "c")
    first, *_, last = ran.out.splitlines()
    assert first == "0 turns, 0 steps, 0 + 0 tokens"
    assert last == "2 turns, 2 steps, 200 + 14 tokens; 0.5000 USD for the 2 with a price"
    assert say("/cost\n", "--conversation", "c").out.splitlines() == [last]


@pytest.mark.exhaustive
def test_files_are_those_that_tools_can_see(say: Say, home: Path, write: Write) -> None:
    (home / "data").mkdir()
    (home / "data" / "a.txt").write_text("x")
    (home / ".env").write_text("X=1")
    files = say("/files\n", "--agent", "desk").out.splitlines()
    assert "data/a.txt" in files
    assert ".env" not in files
    write("agent-core.yaml", "tools: [own_tools.py:pay, own_tools.py:ponder]\nroot: null")
    ran = say("/files\n", "--agent", "hostile")
    assert (ran.out, "there are no files that tools can see" in ran.err) == ("", True)


def test_undo_takes_the_last_turn_back(say: Say, cli: Cli) -> None:
    ran = say("First.\nSecond.\n/undo\nThird.\n", "--agent", "desk", "--conversation", "c")
    assert (ran.code, questions(cli, "c"), "took back: Second.\n" in ran.err) == (0, ["First.", "Third."], True)
    records = cli("show", "last", "--json").json["records"]
    started = next(each for each in records if each.get("loop") == "agent")
    assert "Second." not in json.dumps(started)
    assert "there is no turn to take back" in say("/undo\n/undo\n/undo\n", "--conversation", "c").err


def test_undo_withdraws_the_turn_that_waits_and_says_so(say: Say, cli: Cli) -> None:
    say("First.\n", "--agent", "desk", "--conversation", "c")
    say("Pay.\n", "--agent", "payer", "--conversation", "c")
    ran = say("/undo\n", "--agent", "desk", "--conversation", "c")
    assert "withdrew the turn that waited for a decision: Pay.\n" in ran.err
    assert (questions(cli, "c"), cli("runs", "--json").json[0]["status"]) == (["First."], "cancelled")
    assert "took back: First.\n" in say("/undo\n", "--agent", "desk", "--conversation", "c").err
    ran = say("Pay.\n/undo\n/undo\n", "--agent", "payer", "--conversation", "d")
    assert "withdrew the turn that waited for a decision: Pay.\nthere is no turn to take back\n" in ran.err


def test_after_undo_the_trace_is_that_of_the_turn_before(say: Say) -> None:
    ran = say("/trace\nFirst.\n/trace\nSecond.\n/undo\n/trace\n", "--agent", "desk")
    first, again = re.findall(r"agent-core show (\S+) has", ran.out)
    assert (first == again, "there is no turn yet" in ran.err) == (True, True)


def test_a_message_may_begin_with_a_slash(say: Say, cli: Cli) -> None:
    assert say("/etc/hosts says what?\n", "--agent", "desk", "--conversation", "c").code == 0
    assert questions(cli, "c") == ["/etc/hosts says what?"]


ENDS: list[tuple[str, str, list[str], int, str]] = [
    (
        "a failed turn, although the next one is well",
        "Hi.\n/agent desk\nHi.\n",
        ["--agent", "broken"],
        1,
        "model_error",
    ),
    ("a limit", "Hi.\n", ["--agent", "limited"], 4, "max_steps"),
    ("a waiting call", "Pay.\n", ["--agent", "payer"], 6, "asks again"),
    (
        "a waiting call of another model",
        "Pay.\n",
        ["--agent", "payer", "--model", "scripted:payer.json"],
        6,
        "agent-core chat --model scripted:payer.json --conversation",
    ),
    ("an unknown command", "/nope\n", ["--agent", "desk"], 2, "there is no command /nope"),
    ("an unknown agent to go on with", "/agent nope\n", ["--agent", "desk"], 2, "there is no agent 'nope'"),
    ("an unknown agent", "Hi.\n", ["--agent", "nope"], 2, "there is no agent 'nope'"),
    ("no agent named", "Hi.\n", [], 2, "choose one by --agent, of broken, desk,"),
    ("a model that is none", "Hi.\n", ["--agent", "desk", "--model", "scripted:nope.json"], 3, "nope.json"),
    (
        "bytes that are no text",
        "Hi \udcff\n",
        ["--agent", "desk"],
        2,
        "nothing was sent: this line is no text in UTF-8",
    ),
    ("an id that is too long", "Hi.\n", ["--agent", "desk", "--conversation", "c" * 257], 3, "1 to 256 characters"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lines", "words", "code", "told"), [each[1:] for each in ENDS], ids=[each[0] for each in ENDS]
)
def test_without_a_terminal_the_exit_code_says_what_failed(
    say: Say, write: Write, lines: str, words: list[str], code: int, told: str
) -> None:
    write("agents/broken.yaml", {"name": "broken", "model": "scripted:empty.json", "skill_policy": {"allow": ["echo"]}})
    write("empty.json", [])
    policy = {"skill_policy": {"allow": ["calculator"]}, "runtime_policy": {"max_steps": 1}}
    write("agents/limited.yaml", {"name": "limited", "model": "scripted:desk.json", **policy})
    ran = say(lines, *words)
    assert (ran.code, told in ran.err) == (code, True), ran.err
    assert "Traceback" not in ran.err


def test_json_logs_take_the_place_of_the_steps_and_errors_are_written_all_the_same(say: Say) -> None:
    ran = say("Hi.\n/nope\n", "--agent", "desk", "--log-format", "json")
    *logged, error = ran.err.splitlines()
    assert error == "agent-core: there is no command /nope; /help lists them"
    assert "tool_call" in [json.loads(each)["event"] for each in logged]
    assert ran.out == "It is 5.\n"


def test_a_host_without_agents_has_one_that_stands_in_with_a_recorded_model_too(
    say: Say, cli: Cli, write: Write, home: Any
) -> None:
    for file in (home / "agents").iterdir():
        file.unlink()
    assert say("Hi.\n").code == 3
    assert say("Hi.\n", "--model", "scripted:desk.json").out == "It is 5.\n"
    run = cli("runs", "--json").json[0]["run_id"]
    assert say("Hi.\n", "--model", f"replay:{run}").out == "It is 5.\n"
    tools = say("/tools\n", "--model", "scripted:desk.json").out
    assert "pay " in tools
    assert "shell_command" not in tools
    waits = say("Pay.\n", "--model", "scripted:payer.json")
    assert (waits.code, "pay waits for your yes or no" in waits.err) == (6, True)


@pytest.mark.exhaustive
def test_ctrl_c_without_a_terminal_ends_with_130(home: Any, cli: Cli) -> None:
    words = [COMMAND, "chat", "--agent", "slow", "--conversation", "c"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    reset = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(words, env=dict(os.environ), text=True, **pipes, **reset) as process:  # type: ignore[call-overload]
        process.stdin.write("Ponder.\nNever asked.\n")
        process.stdin.flush()
        while "ponder" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert [each["status"] for each in cli("runs", "--json").json] == ["cancelled"]


@pytest.mark.exhaustive
def test_a_turn_is_listed_counted_and_checked_as_its_agents(say: Say, cli: Cli) -> None:
    assert say("What is 2 + 3?\n", "--agent", "desk", "--conversation", "c").code == 0
    listed = cli("runs")
    assert "desk  What is 2 + 3?" in listed.out
    (run,) = cli("runs", "--json").json
    assert (run["workflow"], run["agent"], run["external"]["message"]) == ("desk", "desk", "What is 2 + 3?")
    assert set(cli("stats", "--json").json["tools"]) == {"calculator"}
    checked = cli("agents", "check", "desk")
    assert checked.code == 0, checked.err
    assert "1 " in checked.out


def test_turn_that_waits_is_the_newest_of_its_conversation_that_does(say: Say, cli: Cli) -> None:
    store = open_store(Path("chat.db"))
    for agent, conversation in (("desk", "done"), ("payer", "waits")):
        say("Go.\n", "--agent", agent, "--conversation", conversation, "--store", "chat.db")
    (run,) = [each.run for each in store.entries() if each.status == "waiting"]
    assert (find_waiting_turn(store, "done"), find_waiting_turn(store, "waits")) == (None, run)
    assert cli("cancel", run, "--store", "chat.db").code == 0
    assert find_waiting_turn(store, "waits") is None
