"""The command chat: a conversation with an agent of this host, kept by its id."""

import asyncio

import typer

from agent_core.agents.chat import Conversations
from agent_core.agents.definition import config_of
from agent_core.agents.errors import AgentNotFound
from agent_core.agents.reply import ChatReply
from agent_core.errors import DecisionError, DefinitionError
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.ask import ask_decision, is_attended
from engine_shim.cli.chat_input import line_reader
from engine_shim.cli.chat_view import ChatView
from engine_shim.cli.output import Options
from engine_shim.host.find import load_host_config
from engine_shim.runs.chat import HostConversations, open_conversations
from engine_shim.runs.store import SqliteRunStore, default_store
from utools.errors import ToolError

COMMANDS = {
    "/tools": "the tools of this agent",
    "/trace": "the steps of the last turn",
    "/agent": "/agent NAME: goes on with another agent; /agent lists them",
    "/undo": "takes the last turn back from the conversation",
    "/help": "these commands",
    "/exit": "leaves; so does Ctrl-D. Ctrl-C cancels a turn",
}


def chat_with_agent(agent: str | None, model: str | None, conversation: str | None, options: Options) -> int:
    """Talk with an agent until the input ends."""
    config = load_host_config(options.config)
    store = SqliteRunStore(options.store or default_store())
    try:
        host = open_conversations(config, store.journal, model)
        with asyncio.Runner() as runner:
            chat = Chat(host, _choose_agent(host, agent), conversation or new_run_id(), options, runner)
            try:
                return chat.talk()
            finally:
                runner.run(host.models.close())
    except ToolError as error:
        raise DefinitionError(f"the conversations cannot be read or written: {error}", where="context") from None
    finally:
        store.close()


class Chat:
    """One conversation at a terminal, or through a pipe; all turns run in one event loop."""

    def __init__(
        self, host: HostConversations, agent: str, conversation: str, options: Options, runner: asyncio.Runner
    ) -> None:
        self._host, self._agent, self._conversation = host, agent, conversation
        self._conversations: Conversations = host.of(agent)
        self._runner, self._view = runner, ChatView()
        self._attended = is_attended(options)
        self._last: ChatReply | None = None
        self._code = output.OK

    def talk(self) -> int:
        """Read and answer until the input ends; the exit code, that of the last turn where nobody watched."""
        history = self._runner.run(self._conversations.history(self._conversation))
        asked = [each["content"] for each in history if each["role"] == "user"]
        read = line_reader(attended=self._attended, history=asked, words=COMMANDS)
        self._view.note(f"{self._agent}, conversation {self._conversation}; /help lists the commands")
        while True:
            try:
                line = read(f"{self._agent}> ").strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return output.OK if self._attended else self._code
            if line == "/exit":
                return output.OK if self._attended else self._code
            if line.startswith("/"):
                self._obey(*line.split(maxsplit=1))
            elif line:
                self._answer(line)

    def _answer(self, message: str) -> None:
        chat = self._conversations.chat
        try:
            reply = self._runner.run(chat(message, self._conversation, None, None, on_event=self._view.show))
            reply = self._decide(reply)
        except KeyboardInterrupt:
            self._view.give_up()
            self._view.note("cancelled; the conversation is as it was")
            return
        self._last = reply
        self._view.end(reply)
        self._code = output.OK if reply.success else output.WAITING if reply.waiting else output.FAILED

    def _decide(self, reply: ChatReply) -> ChatReply:
        """The turn's reply, once the person has decided on all calls that wait."""
        while reply.waiting and reply.trace_id is not None:
            call, tape = reply.waiting[0], self._host.journal.load(reply.trace_id)
            decision = ask_decision(call, tape) if self._attended else None
            if decision is None:
                self._view.note(f"{call['tool']} waits, and nobody decided: the turn is not in the conversation")
                return reply
            decisions = {(call["strand"], call["n"]): decision}
            decide = self._conversations.decide
            try:
                reply = self._runner.run(
                    decide(self._conversation, reply.trace_id, decisions, on_event=self._view.show)
                )
            except DecisionError as error:  # such as edited arguments that the tool does not take: asked again
                self._view.note(str(error), style="red")
        return reply

    def _obey(self, command: str, argument: str = "") -> None:
        match command:
            case "/tools":
                self._list_tools()
            case "/trace":
                self._show_trace()
            case "/agent":
                self._change_agent(argument)
            case "/undo":
                self._undo()
            case "/help":
                for name, meaning in COMMANDS.items():
                    output.line(f"{name:<8}{meaning}")
            case _:
                self._view.note(f"there is no command {command}; /help lists them", style="red")

    def _list_tools(self) -> None:
        agent = self._host.catalog.get(self._agent)
        for code in config_of(agent, self._host.catalog.codes)[1]["kept"]:
            output.line(f"{code}  {output.flatten(self._host.registry.get(code).description, 80)}")

    def _show_trace(self) -> None:
        if self._last is None:
            self._view.note("there is no turn yet")
            return
        for call in self._last.tool_calls:
            told = f"{call['tool']} {output.as_text(call['arguments'])} → {output.as_text(call['result'])}"
            output.line(output.in_line(told))
        meta = self._last.meta
        output.line(f"{self._last.finish_reason}, {meta['total_tokens']} tokens, {meta['latency_ms']} ms")
        if self._last.trace_id is not None:
            output.line(f"agent-core show {self._last.trace_id} has every record")

    def _change_agent(self, name: str) -> None:
        if not name:
            for agent in self._host.catalog.list():
                output.line(f"{agent.name}  {agent.description}".rstrip())
            return
        try:
            self._conversations, self._agent = self._host.of(name), name
        except (AgentNotFound, DefinitionError) as error:
            self._view.note(str(error), style="red")

    def _undo(self) -> None:
        self._last = None
        if not self._runner.run(self._conversations.undo(self._conversation)):
            self._view.note("there is no turn to undo")
            return
        self._view.note("the last turn is taken back; what its tools did is not")


def _choose_agent(host: HostConversations, name: str | None) -> str:
    names = [agent.name for agent in host.catalog.list()]
    if name is not None:
        return host.catalog.get(name).name
    if len(names) > 1:
        raise typer.BadParameter(f"several agents are here: name one by --agent, of {', '.join(names)}")
    return names[0]
