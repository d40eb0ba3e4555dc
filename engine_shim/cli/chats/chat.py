"""The command chat: a conversation with an agent of this host, kept by its id."""

import asyncio
from collections.abc import Callable

import typer

from agent_core.agents.reply import ChatReply
from agent_core.errors import DecisionError, DefinitionError
from agent_core.journal.control import calls_for_person, describe_event
from agent_core.run.run_id import new_run_id
from engine_shim.cli import output
from engine_shim.cli.chats.chat_commands import COMMANDS, QUIT, obey
from engine_shim.cli.chats.chat_input import encoding_that_failed, line_reader
from engine_shim.cli.chats.chat_state import ChatState
from engine_shim.cli.output import Options
from engine_shim.cli.runs.ask import ask_decision, is_attended
from engine_shim.cli.runs.summary import code_of_kind
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import load_host_config
from engine_shim.runs.conversations import HostConversations
from engine_shim.runs.engine import Engine
from engine_shim.telemetry.export import exporting
from utools.errors import ToolError
from utools.lazy_pattern import lazy_compile

COMMAND = lazy_compile(r"/[a-z]+")
YOU = "you> "


def chat_with_agent(agent: str | None, model: str | None, conversation: str | None, options: Options) -> int:
    """Talk with an agent until the input ends."""
    config = load_host_config(options.config)
    store = open_named_store(options.store, options.config)
    try:
        engine = Engine._of_host(config, store=store, model=model)
        host = HostConversations(engine, config, store, model)
        with exporting(), asyncio.Runner() as runner:
            try:
                waiting, last = None, None
                if conversation is not None:
                    waiting = host.find_waiting(conversation)
                    last = host.agent_of(waiting) if waiting else runner.run(host.last_agent(conversation))
                name = agent or last or _only_agent(host)
                state = ChatState(host, name, new_run_id() if conversation is None else conversation, runner)
                return Chat(state, options, model).talk(waiting)
            finally:
                runner.run(engine.close())
    except ToolError as error:
        raise DefinitionError(f"the conversations cannot be read or written: {error}", where="context") from None
    finally:
        store.close()


class Chat:
    """A conversation at a terminal, or through a pipe."""

    def __init__(self, state: ChatState, options: Options, model: str | None) -> None:
        self._state, self._options, self._view = state, options, state.view
        self._model = [] if model is None else ["--model", model]
        self._attended = is_attended(options)
        self._code = output.OK

    def talk(self, waiting: str | None) -> int:
        """Read and answer until the input ends. The exit code: at a pipe, that of the first turn that failed.

        `waiting` is the run of a turn that a person is asked about first.
        """
        asked = self._show_beginning()
        if waiting is not None and self._attended:
            self._view.step(f"{YOU}{self._state.question(waiting)}")
            self._take(lambda: self._state.resume(waiting))
        read = line_reader(attended=self._attended, history=asked, words=COMMANDS)
        while True:
            try:
                line = read(YOU).strip()
                if line == QUIT:
                    break
                self._act(line)
            except EOFError:
                break
            except KeyboardInterrupt:
                if not self._attended:
                    return output.INTERRUPTED
        self._show_end()
        return output.OK if self._attended else self._code

    def _act(self, line: str) -> None:
        word, _, argument = line.partition(" ")
        if COMMAND.fullmatch(word):
            self._count(obey(self._state, word, argument.strip()))
        elif encoding := encoding_that_failed(line):
            self._view.fail(f"nothing was sent: this line is no text in {encoding}, the encoding of this locale")
            self._count(output.USAGE)
        elif line:
            self._take(lambda: self._state.ask(line))

    def _take(self, turn: Callable[[], ChatReply]) -> None:
        """Take a turn to its end, and show what came of it."""
        try:
            reply = self._decide(turn())
        except KeyboardInterrupt:
            self._view.note("cancelled: the turn is not in the conversation")
            if not self._attended:
                raise
        except DefinitionError as error:
            self._view.fail(str(error))
            self._count(output.DEFINITION)
        else:
            self._view.end(reply)
            self._count(_code_of(reply))

    def _decide(self, reply: ChatReply) -> ChatReply:
        """Return the turn's reply, once the person has decided on all calls that wait."""
        while (calls := calls_for_person(reply.waiting)) and reply.trace_id is not None:
            call = calls[0]
            tape, agent = self._state.tape(reply.trace_id), self._state.agent
            decision = ask_decision(call, tape, agent) if self._attended else None
            if decision is None:
                self._view.note(f"{call['tool']} waits for your yes or no; {self._going_on()} asks again")
                break
            try:
                reply = self._state.resume(reply.trace_id, {(call["strand"], call["n"]): decision})
            except DecisionError as error:  # such as edited arguments that the tool does not take: asked again
                self._view.fail(str(error))
        for wait in reply.waiting:
            if wait["reason"] == "awaiting_event":
                self._view.note(f"the run waits {describe_event(wait)}; `agent-core resume {reply.trace_id}` goes on")
        return reply

    def _show_beginning(self) -> list[str]:
        """Say where the conversation stands; the questions that were asked in it."""
        history = self._state.history()
        asked = [each["content"] for each in history if each["role"] == "user"]
        stands = f" ({output.count(len(asked), 'turn')})" if asked else ""
        who = f"{self._state.agent}, conversation {self._state.conversation}{stands}"
        self._view.note(f"{who}; /help lists the commands")
        if asked:
            said = next((each["content"] for each in reversed(history) if each["content"]), "")
            self._view.step(f"{YOU}{asked[-1]}")
            self._view.step(f"{self._state.agent}> {said}")
        return asked

    def _show_end(self) -> None:
        if self._attended and self._state.last_run() is not None:
            self._view.note(f"to continue: {self._going_on()}")

    def _going_on(self) -> str:
        return self._options.command("chat", *self._model, "--conversation", self._state.conversation)

    def _count(self, code: int) -> None:
        self._code = self._code or code


def _only_agent(host: HostConversations) -> str:
    names = [agent.name for agent in host.catalog.list()]
    if len(names) > 1:
        raise typer.BadParameter(f"this host has several agents: choose one by --agent, of {', '.join(names)}")
    return names[0]


def _code_of(reply: ChatReply) -> int:
    if reply.success:
        return output.OK
    return output.WAITING if reply.waiting else code_of_kind(reply.finish_reason)
