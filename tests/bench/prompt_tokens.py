"""How many tokens the system prompt takes, ours and the peers', for the same five tools.

    python tests/bench/prompt_tokens.py FILE.gguf [--text NAME=FILE]… [--mcp COMMAND]…

The file's own tokenizer counts, through xllamacpp. Peers that are installed (langchain-classic, smolagents,
llama-index-core) make their prompts themselves. `--text` adds one from a file, in which {{tools}} stands for the
tools' JSON and {{tool_names}} for their names. `--mcp` prints what the tools of MCP servers say of themselves: whole,
and by first sentences.
"""

import json
import re
import sys
import urllib.request
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from agent_core.prompts.tools import Described, tool_definitions
from agent_core.run.prepare import prepare_agent
from utools import Tool, ToolRegistry

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS: dict[str, tuple[str, dict[str, dict[str, Any]], list[str]]] = {
    "calculator": (
        "Evaluate an arithmetic expression.",
        {"expression": {**STRING, "description": "Numbers and + - * / ** ( )."}},
        ["expression"],
    ),
    "file_search": (
        "Search the text files below a directory for words.",
        {
            "query": {**STRING, "description": "The words to look for."},
            "root_dir": {**STRING, "description": "Where to search.", "default": "./data"},
            "limit": {**INTEGER, "description": "At most this many hits.", "default": 20},
        },
        ["query"],
    ),
    "http_request": (
        "Make an HTTP request; gives its status, headers and body.",
        {
            "method": {**STRING, "enum": ["GET", "POST", "PUT", "DELETE"], "description": "The method."},
            "url": {**STRING, "description": "The whole URL."},
            "headers": {"type": "object", "description": "Headers by name."},
            "body": {**STRING, "description": "The request's body."},
        },
        ["method", "url"],
    ),
    "order_lookup": (
        "Look up an order: its items, price and status.",
        {"order_id": {**STRING, "description": "The order's id, digits only."}},
        ["order_id"],
    ),
    "weather": (
        "The weather in a city on a day.",
        {
            "city": {**STRING, "description": "The city's name."},
            "day": {**STRING, "description": "ISO date; today if left out."},
        },
        ["city"],
    ),
}


def schema(name: str) -> dict[str, Any]:
    _, properties, required = TOOLS[name]
    return {"type": "object", "properties": properties, "required": required}


def ours(language: str) -> str:
    tools = [Tool(name, told, schema(name), lambda args, context: None) for name, (told, _, _) in TOOLS.items()]
    config = {"model": "m", "max_steps": 5, "allowed_tools": list(TOOLS), "prompt": "Go.", "language": language}
    body = prepare_agent("r", "agent", config, {}, registry=ToolRegistry(tools), at="")
    return str(body["messages"][0]["content"])


def structured_chat() -> str:
    from langchain_classic.agents import StructuredChatAgent

    return _filled(StructuredChatAgent.create_prompt(_langchain()))


def conversational() -> str:
    """Its own way tells no arguments, being for tools that take one text; here they stand in the description."""
    from langchain_classic.agents import ConversationalAgent

    tools = _langchain()
    for tool in tools:
        tool.description += f", args: {tool.args}".replace("{", "{{").replace("}", "}}")
    return str(ConversationalAgent.create_prompt(tools).format(input="", agent_scratchpad="", chat_history=""))


def _filled(prompt: Any) -> str:
    return str(prompt.messages[0].format(input="", agent_scratchpad="").content)


def _langchain() -> list[Any]:
    from langchain_core.tools import StructuredTool

    return [
        StructuredTool(name=name, description=told, args_schema=schema(name), func=lambda **_: None)
        for name, (told, _, _) in TOOLS.items()
    ]


def tool_calling() -> str:
    from smolagents import ToolCallingAgent

    return _smol(ToolCallingAgent)


def code_agent() -> str:
    from smolagents import CodeAgent

    return _smol(CodeAgent)


def _smol(agent: Any) -> str:
    from smolagents import Model, Tool

    def made(name: str, told: str, properties: dict[str, dict[str, Any]], required: list[str]) -> Any:
        inputs = {
            each: {**{k: rule[k] for k in ("type", "description")}, "nullable": each not in required}
            for each, rule in properties.items()
        }
        fields = {"name": name, "description": told, "inputs": inputs, "output_type": "string"}
        body = {**fields, "skip_forward_signature_validation": True, "forward": lambda self, **_: ""}
        return type(name, (Tool,), body)()

    tools = [made(name, *rest) for name, rest in TOOLS.items()]
    return str(agent(tools=tools, model=Model()).memory.system_prompt.system_prompt)


def llama_index() -> str:
    from llama_index.core.agent.react.formatter import ReActChatFormatter
    from llama_index.core.tools import FunctionTool, ToolMetadata

    class Known(ToolMetadata):
        def get_parameters_dict(self) -> dict[str, Any]:
            return schema(self.name or "")

    tools = [
        FunctionTool(fn=lambda **_: None, metadata=Known(description=told, name=name))
        for name, (told, _, _) in TOOLS.items()
    ]
    return str(ReActChatFormatter.from_defaults().format(tools, chat_history=[])[0].content)


def from_file(path: Path) -> str:
    tools = [{"name": name, "description": told, "parameters": schema(name)} for name, (told, _, _) in TOOLS.items()]
    values = {"tools": json.dumps(tools), "tool_names": ", ".join(f'"{name}"' for name in TOOLS)}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values.get(found[1], ""), path.read_text("utf-8"))


PEERS: dict[str, Callable[[], str]] = {
    "LangChain structured chat": structured_chat,
    "LangChain conversational (react-chat)": conversational,
    "smolagents ToolCallingAgent": tool_calling,
    "smolagents CodeAgent": code_agent,
    "LlamaIndex ReAct": llama_index,
}


def counter(model: Path) -> Callable[[str], int]:
    """Counts with the tokenizer of a GGUF."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.warmup, params.verbosity = str(model), 512, False, -1
    params.api_keys = [key := token_hex()]
    server = xllamacpp.Server(params)

    def count(text: str) -> int:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        body = json.dumps({"content": text}).encode()
        asked = urllib.request.Request(f"{server.listening_address}/tokenize", body, headers)
        with urllib.request.urlopen(asked) as answer:
            return len(json.load(answer)["tokens"])

    return count


def prompts(texts: list[str]) -> Iterator[tuple[str, str | None, str]]:
    """Name, text, and why there is no text."""
    for name, make in PEERS.items():
        try:
            yield name, make(), ""
        except ImportError as error:
            yield name, None, f"not installed: {error.name}"
    for entry in texts:
        name, _, file = entry.partition("=")
        yield name, from_file(Path(file)), ""


def mcp_tools(commands: list[str]) -> dict[str, Described]:
    """The tools of MCP servers over stdio, by code."""
    from utools.sources.mcp.servers import McpServer, McpServers

    read = {f"s{at}": McpServer.model_validate({"command": words.split()}) for at, words in enumerate(commands)}
    with TemporaryDirectory() as home:
        servers = McpServers(read, lock=Path(home) / "lock.json", base=Path(home), secret=lambda name: "")
        try:
            return {
                each.code: {"description": each.description, "visible": each.config_schema} for each in servers.tools()
            }
        finally:
            servers.close()


def main(*words: str) -> None:
    parser = ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--mcp", action="append", default=[])
    options = parser.parse_args(words)
    model = options.model
    warnings.simplefilter("ignore")
    count = counter(Path(model))
    own = {language: count(ours(language)) for language in ("en", "zh")}
    print(f"tokens by the tokenizer of {Path(model).name}")
    for language, tokens in own.items():
        print(f"{'ours, ' + language:<40} {tokens:>6}")
    for name, text, why in prompts(options.text):
        tokens = 0 if text is None else count(text)
        print(f"{name:<40} " + (f"{tokens:>6}   ours is {1 - own['en'] / tokens:>4.0%} below" if text else why))

    if options.mcp:
        tools = dict(list(mcp_tools(options.mcp).items())[:27])
        whole, brief = (count(tool_definitions(tools, brief=each)) for each in (False, True))
        print(
            f"{len(tools)} tools of MCP servers: {whole} tokens, {brief} by first sentences, {whole / brief:.2f} times"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
