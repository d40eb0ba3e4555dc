"""What a person may write in a conversation besides messages: /tools, /cost, /files, and others."""

from agent_core.agents.errors import AgentNotFound
from agent_core.audit.totals import Totals
from agent_core.errors import DefinitionError
from agent_core.run.event_listener import EventListener
from engine_shim.cli import output
from engine_shim.cli.chats.chat_state import ChatState
from engine_shim.cli.chats.chat_view import describe_step
from engine_shim.runs.conversations import AGENT_STRAND
from utools.files.sandbox import Sandbox

QUIT = "/quit"
COMMANDS = {
    "/tools": "the tools of this agent",
    "/trace": "the steps of the last turn",
    "/agent": "the agents of this host; /agent NAME switches to another one",
    "/cost": "the tokens of this conversation, and what they cost",
    "/files": "the files that tools of this host can see",
    "/undo": "takes the last turn back, or withdraws the one that waits; what its tools did stays",
    "/help": "these commands",
    QUIT: "ends; so do Ctrl-D, and Ctrl-C on an empty line. Ctrl-C cancels a turn",
}
KEYS = "Alt-Enter begins a new line, Ctrl-R searches earlier questions, Tab completes a command"
MOST_FILES = 20
LONGEST = 100
"""How many characters of a description are shown."""


def obey(state: ChatState, command: str, argument: str) -> int:
    """Do what the command says; its exit code."""
    match command:
        case "/tools":
            _list_tools(state)
        case "/trace":
            _show_trace(state)
        case "/agent" if argument:
            return _change_agent(state, argument)
        case "/agent":
            _list_agents(state)
        case "/cost":
            _show_cost(state)
        case "/files":
            _list_files(state)
        case "/undo":
            _take_back(state)
        case "/help":
            for name, meaning in COMMANDS.items():
                output.line(f"{name:<8}{meaning}")
            output.line(KEYS)
        case _:
            state.view.fail(f"there is no command {command}; /help lists them")
            return output.USAGE
    return output.OK


def _take_back(state: ChatState) -> None:
    """Withdraw the turn that waits, else take back the last one that is stored."""
    if waiting := state.withdraw():
        state.view.step(f"withdrew the turn that waited for a decision: {waiting}")
        return
    turn = state.undo()
    state.view.step(f"took back: {turn[0]['content']}" if turn else "there is no turn to take back")


def _list_tools(state: ChatState) -> None:
    codes = state.host.catalog.config_of(state.agent)[1]["kept"]
    width = max(map(len, codes), default=0)
    for code in codes:
        output.line(f"{code:<{width}}  {output.flatten(state.host.engine.registry.get(code).description, LONGEST)}")
    if not codes:
        state.view.note("this agent has no tools")


def _show_cost(state: ChatState) -> None:
    totals, runs = Totals(), state.runs()
    for run in runs:
        totals.add_run(state.agent, "completed", state.tape(run))
    models = totals.models
    cost = f"; {models.cost:.4f} USD for the {models.priced:,} with a price" if models.priced else ""
    tokens = f"{models.input_tokens:,} + {models.output_tokens:,} tokens"
    output.line(f"{output.count(len(runs), 'turn')}, {output.count(models.replies, 'step')}, {tokens}{cost}")


def _list_files(state: ChatState) -> None:
    root = state.host.root
    files = [] if root is None else sorted(Sandbox(root).files("."))
    for name in files[:MOST_FILES]:
        output.line(output.in_line(name))
    if len(files) > MOST_FILES:
        output.line(f"and {len(files) - MOST_FILES:,} more")
    if not files:
        state.view.note("there are no files that tools can see")


def _list_agents(state: ChatState) -> None:
    for agent in state.host.catalog.list():
        mark = "*" if agent.name == state.agent else " "
        output.line(f"{mark} {agent.name}  {output.flatten(agent.description, LONGEST)}".rstrip())


def _change_agent(state: ChatState, name: str) -> int:
    try:
        state.choose(name)
    except (AgentNotFound, DefinitionError) as error:
        state.view.fail(str(error))
        return output.USAGE
    return output.OK


def _show_trace(state: ChatState) -> None:
    run = state.last_run()
    if run is None:
        state.view.note("there is no turn yet")
        return
    steps: list[str | None] = []
    source = EventListener(lambda event: steps.append(describe_step(event)))
    for row in state.tape(run).get(AGENT_STRAND, []):
        source(row)
    for step in filter(None, steps):
        output.line(output.in_line(step))
    output.line(f"agent-core show {run} has every record")
