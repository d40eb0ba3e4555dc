"""The commands about conversations: their options and help."""

from typing import Annotated

import typer

from engine_shim.cli.completion import complete_words
from engine_shim.cli.parameters import AsJson, Config, Debug, LogFormat, LogLevel, Store, Verbose, check_store


def chat(
    agent: Annotated[str | None, typer.Option(metavar="<name>", help="Which agent of this host answers.")] = None,
    model: Annotated[str | None, typer.Option(metavar="<model>", help="Ask this model instead of the agent's.")] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="<id>", help="Continue this conversation; else a new one begins.")
    ] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    debug: Debug = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Talk with an agent. Its steps go to stderr, its answers to stdout; /help lists what else can be done. Without a
    terminal each line of stdin is a message.

    \b
    Examples:
      agent-core chat --model openai:gpt-4o-mini
      agent-core chat --agent support --conversation desk
    """
    from engine_shim.cli.chats.chat import chat_with_agent
    from engine_shim.cli.output import Options

    return chat_with_agent(agent, model, conversation, Options(store, config))


def context(
    action: Annotated[
        str, typer.Argument(metavar="list|show|clear", autocompletion=complete_words("list", "show", "clear"))
    ] = "list",
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="A session_id.")] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL", help="Another conversation store: its file, or a PostgreSQL URL.", callback=check_store
        ),
    ] = None,
    config: Config = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """List, show or clear the stored conversations of this host. `clear` deletes one for good.

    \b
    Examples:
      agent-core context list
      agent-core context show desk
      agent-core context clear desk
      agent-core context list --store postgresql:///agents
    """
    from engine_shim.cli.chats.context import clear_session, list_sessions, show_session

    if action == "list" and session is None:
        return list_sessions(store, config, as_json=as_json)
    if action not in ("show", "clear") or session is None:
        raise typer.BadParameter("write `context list`, `context show SESSION`, or `context clear SESSION`")
    act = show_session if action == "show" else clear_session
    return act(session, store, config, as_json=as_json)
