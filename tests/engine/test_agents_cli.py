"""agent-core agents: what is listed, what is shown of one, and what is told of a bad one."""

from support.command import Cli, Write

SUPPORT = {
    "name": "support",
    "model": "openai:gpt-4o-mini",
    "description": "Answers customers.",
    "skill_policy": {"allow": ["calc*", "echo"], "deny": ["echo"]},
}


def test_agents_are_listed_with_model_and_description(cli: Cli, write: Write) -> None:
    write("agents/support.json", SUPPORT)
    write("agents/other.yaml", "name: other\nmodel: scripted:x\n")
    ran = cli("agents")
    assert ran.out.splitlines() == [
        "name     model               description",
        "other    scripted:x",
        "support  openai:gpt-4o-mini  Answers customers.",
    ]
    assert [each["name"] for each in cli("agents", "--json").json] == ["other", "support"]


def test_one_is_shown_with_the_tools_that_it_has_and_why_it_lacks_the_others(cli: Cli, write: Write) -> None:
    write("agents/support.json", SUPPORT)
    shown = cli("agents", "show", "support").json
    assert (shown["name"], shown["tools"]) == ("support", ["calculator"])
    assert (shown["dropped"]["echo"], shown["dropped"]["read_file"]) == ("denied", "not allowed")
    missing = cli("agents", "show", "suport")
    assert (missing.code, missing.out) == (2, "")
    assert "there is no agent 'suport'; did you mean 'support'?" in missing.err


def test_a_host_without_agents_says_how_to_write_one(cli: Cli) -> None:
    assert cli("agents").out.startswith("no agents: write one as agents/NAME.yaml")
    assert cli("agents", "--json").json == []


def test_a_bad_agent_is_told_with_file_and_line(cli: Cli, write: Write) -> None:
    write("agents/support.yaml", "name: support\nmodel: scripted:x\nskill_policy:\n  allow: [calculater]\n")
    ran = cli("agents")
    assert (ran.code, ran.out) == (3, "")
    assert "agents/support.yaml:4: skill_policy/allow/0: " in ran.err
    assert "calculator" in ran.err


def test_the_directory_may_have_another_name(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"agents": "people"})
    write("people/support.json", SUPPORT)
    assert cli("agents", "--json").json[0]["name"] == "support"
    write("agent-core.yaml", {"agents": "nobody"})
    ran = cli("agents")
    assert (ran.code, "agents: there is no such directory (got 'nobody')" in ran.err) == (3, True)


def test_other_words_are_told(cli: Cli) -> None:
    assert "write `agents`, or `agents show NAME`" in cli("agents", "list").err
    assert cli("agents", "show").code == 2
