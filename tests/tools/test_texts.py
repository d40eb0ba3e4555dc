"""What tools say: each template has its Chinese, with the same placeholders, and a Chinese model reads nothing else."""

import ast
import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from support.loopback import http, serving
from support.sentences import english_sentences
from support.templates import fixed_in, texts_in
from utools import Tool, ToolContext, ToolError, ToolRegistry, ToolResult
from utools.builtin import builtin_tools
from utools.context.store_memory import MemoryContextStore
from utools.context.turns import last_turn
from utools.errors import DefinitionError, ResultError
from utools.host_policy import HostPolicy
from utools.sources.manifest import manifest_tools
from utools.words.catalogue import read_language
from utools.words.text import Text, join_and, translate

ROOT = Path(__file__).parents[2]
MODULES = [path for room in ("utools", "agent_core") for path in sorted((ROOT / room).rglob("*.py"))]
CHINESE = read_language("utools.words", "zh")["templates"]
BY_NAME = {
    "langchain.py",
    "pydantic_ai.py",
    "calculator.py",
    "errors.py",
    "formatter.py",
    "function_tool.py",
    "shell_command.py",
    "failure.py",
    "call_results.py",
    "servers.py",
}
"""Where a text is passed on that was made elsewhere."""


def fields(template: str) -> list[tuple[str, str | None, str | None]]:
    """Each placeholder with its conversion and its format."""
    parts = Formatter().parse(template)
    return sorted((name, conversion, spec) for _, name, spec, conversion in parts if name is not None)


# ── the tables ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sampled
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_template_has_its_values_and_its_chinese(path: Path) -> None:
    for made in texts_in(path):
        if made.template is None:
            assert path.name in BY_NAME, made
            continue
        assert made.template in CHINESE, made
        if made.values:
            assert {name for name, *_ in fields(made.template)} == made.values, made


@pytest.mark.sampled
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_error_for_a_model_is_made_without_a_template(path: Path) -> None:
    assert list(fixed_in(path)) == []


def test_what_has_no_template_is_found(tmp_path: Path) -> None:
    path = tmp_path / "tool.py"
    path.write_text('raise TimeoutError("late")\nraise ToolError(f"no {x}")\nToolResult(False, error=f"no {x}")\n')
    assert list(fixed_in(path)) == ["tool.py:1", "tool.py:2", "tool.py:3"]


@pytest.mark.exhaustive
def test_every_text_of_the_tables_is_said_somewhere() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in MODULES]
    literals = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert CHINESE.keys() - literals == set()


@pytest.mark.sampled
@pytest.mark.parametrize("english", CHINESE)
def test_the_chinese_has_the_same_placeholders_and_no_english_sentence(english: str) -> None:
    values_or_none = "{role, content" not in english  # braces that are meant so
    if values_or_none:
        assert fields(CHINESE[english]) == fields(english)
        assert all(name.isidentifier() for name, *_ in fields(english))
    assert english_sentences(re.sub(r"`[^`]*`", "", CHINESE[english])) == []


# ── a text ───────────────────────────────────────────────────────────────────────────────────────


def test_a_text_is_its_english_and_is_read_in_chinese() -> None:
    text = Text("there is no file {path!r}", path="a{b}.txt")
    assert text == "there is no file 'a{b}.txt'"
    assert translate(text, "en") == text
    assert translate(text, "zh") == "没有文件 'a{b}.txt'"
    assert type(translate(text, "en")) is str


def test_texts_and_errors_within_a_text_are_read_in_chinese_too() -> None:
    inner = ToolError("{path!r} {flaw}", path="a", flaw=Text("is a directory"))
    outer = ToolError("{error}; say by root_dir where to search", error=inner)
    assert str(outer) == "'a' is a directory; say by root_dir where to search"
    assert translate(outer, "zh") == "'a' 是目录；请用 root_dir 指明搜索的位置"


def test_a_definition_error_is_read_in_chinese_with_its_place_and_value() -> None:
    fault = Text("not a network such as 10.2.0.0/16: {error}", error="x")
    error = DefinitionError(fault, where="allow_cidrs", value="y")
    assert str(error) == "allow_cidrs: not a network such as 10.2.0.0/16: x (got 'y')"
    assert translate(error, "zh") == "allow_cidrs：不是 10.2.0.0/16 这样的网络：x（当前值：'y'）"


@pytest.mark.parametrize("said", ["a {b} c", Text("a {b} c"), ToolError("a {b} c"), ValueError("a {b} c")])
def test_what_no_table_has_stays_as_it_is(said: Any) -> None:
    assert translate(said, "zh") == translate(said, "en") == "a {b} c"


def test_names_are_joined_as_a_sentence_does() -> None:
    assert [join_and(names) for names in ([], ["a"], ["a", "b", "c"])] == ["none", "a", "a and b and c"]
    assert [translate(join_and(names), "zh") for names in ([], ["a"], ["a", "b", "c"])] == ["无", "a", "a 和 b 和 c"]


# ── a call ───────────────────────────────────────────────────────────────────────────────────────


async def call(tools: list[Tool], code: str, args: Mapping[str, Any], language: str) -> ToolResult:
    policy = HostPolicy(presets={"shell_command": {"allow": ["ls *", "no-such"]}})
    return await ToolRegistry(tools, policy=policy).execute(code, dict(args), ToolContext(language=language))


def raising(error: BaseException) -> Tool:
    def execute(args: dict[str, Any], context: ToolContext) -> Any:
        raise error

    return Tool("fails", "Fails.", {"type": "object"}, execute, effect="read")


RAISED: dict[str, tuple[BaseException, str]] = {
    "tool": (ToolError("there is no file {path!r}", path="/home/ada/a.txt"), "没有文件 '…/a.txt'"),
    "result": (ResultError("the command wrote no JSON: {cut}", cut="x"), "命令的输出不是 JSON：x"),
    "connection": (
        ConnectionResetError(Text("{host} gave no answer: {reason}", host="h", reason="x")),
        "ConnectionResetError: h 没有应答：x",
    ),
    "exit": (SystemExit(3), "工具调用了 sys.exit(3)"),
    "definition": (DefinitionError(Text("{server} {reason}", server="r", reason="x"), where="w"), "w：r x"),
}


@pytest.mark.parametrize("name", RAISED)
async def test_what_a_tool_raises_reaches_the_model_in_its_language(name: str) -> None:
    error, reads = RAISED[name]
    assert (await call([raising(error)], "fails", {}, "zh")).error == reads
    english = (await call([raising(error)], "fails", {}, "en")).error
    assert english
    assert not re.search(r"[\u4e00-\u9fff]", english)


HERE = {"allow_cidrs": ["127.0.0.1/32"]}
POST = {"method": "POST", "url": "http://127.0.0.1:{port}/"}
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("read_file", {"path": "missing.txt"}, "没有文件 'missing.txt'"),
    ("read_file", {"path": "../x"}, "'../x' 不在这个工具的根目录之内"),
    ("read_file", {"path": ".env"}, "'.env' 是隐藏的：'.env' 以点开头"),
    ("read_file", {"path": "data"}, "'data' 是目录"),
    ("read_file", {"path": "a", "root": "none"}, "没有文件 'a'"),
    ("write_file", {"path": "run.sh", "text": "x", "root": "."}, "'run.sh' 是程序，不能由工具写入"),
    ("write_file", {"path": "data/a.txt", "text": "x", "root": ".", "mode": "new"}, "文件 'data/a.txt' 已经存在"),
    ("write_file", {"path": "hard.txt", "text": "x", "root": ".", "mode": "append"}, "无法写入：它另有其他名称"),
    ("file_search", {"query": "x", "root_dir": "away"}, "没有目录 'away'"),
    ("calculator", {"expression": "1/0"}, "除数为零"),
    ("calculator", {"expression": "x"}, "表达式只能包含数字"),
    ("calculator", {"expression": "2**9999"}, "指数最大为 1024"),
    ("calculator", {"operation": "mean", "numbers": []}, "这个运算至少需要一个数"),
    ("json_transform", {"data": "{", "expression": "a"}, "'data' 是一段不是 JSON 的文本："),
    ("json_transform", {"data": {}, "expression": "a["}, "JMESPath："),
    ("formatter", {}, "你给出的是：无"),
    ("formatter", {"number": 1, "date": "now"}, "你给出的是：number 和 date"),
    ("formatter", {"date": "x"}, "'x' 不是 ISO 8601 格式的时间"),
    ("formatter", {"template": "{{ 'x' * 2000000 }}"}, "模板无法渲染：它生成了 2000000 个字符"),
    ("log_transform", {}, "请给出日志文件的 path"),
    ("log_transform", {"text": "x", "since": "y"}, "since 必须是 ISO 8601 格式的时间"),
    ("shell_command", {"argv": ["ls"], "allow": []}, "不允许使用命令 'ls'；工作流作者没有用 `allow` 允许任何命令"),
    ("shell_command", {"argv": ["rm", "x"], "allow": ["ls *"]}, "允许的有：ls *；代替 * 的内容不能是选项"),
    ("shell_command", {"argv": ["ls", "out"], "allow": ["ls *"]}, "'out' 通过链接通向这个工具的根目录之外"),
    ("shell_command", {"argv": ["no-such"], "allow": ["no-such"]}, "命令 'no-such' 无法启动："),
    ("http_request", {"method": "GET", "url": "x"}, "'x' 不是 http 或 https 网址"),
    ("http_request", {"method": "GET", "url": "http://127.0.0.1/"}, "127.0.0.1 不是公网地址；只有工作流作者或运维人员"),
    ("http_request", {"method": "GET", "url": "http://127.0.0.1:1/", **HERE}, "无法连接 127.0.0.1："),
    ("http_request", {**POST, **HERE, "json": 1, "form": {}}, "不要同时给出 json 和 form"),
    ("http_request", {**POST, **HERE, "headers": {"Host": "x"}}, "请求头 Host 不能由你设定"),
    ("http_request", {**POST, **HERE, "allowed_methods": ["GET"]}, "这里不允许使用方法 POST；允许的有：GET"),
    ("http_request", {**POST, **HERE, "token_env": "KEY"}, "才会发送令牌"),
    ("http_request", {**POST, **HERE, "allowed_domains": ["x_?"]}, "allowed_domains：'x_?' 不是主机名；请写成"),
    ("http_request", {**POST, **HERE, "fail_on_status": True}, "服务器的应答是 404：没有"),
    ("health", {"targets": ["ftp:x"]}, "'ftp:x' 无法检查；请写成 https://…、"),
    ("health", {}, "没有要检查的目标"),
    ("redis_context", {"op": "get", "prefix": "p", "key": "k", "url_env": "KEY"}, "运维人员没有允许使用密钥 KEY"),
    ("redis_context", {"op": "get", "prefix": "p"}, "get 需要 key"),
    ("redis_context", {"op": "list", "prefix": "p", "key": "k"}, "list 没有参数 key"),
    ("feishu_bot", {"webhook_env": "KEY"}, "text、post 和 card 请给出其中一个；你给出的是：无"),
    ("email", {"to": ["a@b.c"], "subject": "s", "text": "t"}, "a@b.c 不在 allowed_recipients（none）之中"),
    ("context_manager", {"op": "prepare", "session_id": "s"}, "prepare 需要 user_message"),
    ("context_manager", {"op": "persist", "session_id": "s", "user_message": "u"}, "persist 时需要 turn_id"),
    (
        "context_manager",
        {"op": "persist", "session_id": "s", "turn_id": "t", "messages_json": [{"role": "x"}]},
        "消息 0 的角色是 'x'；允许的有：user, assistant, tool",
    ),
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    (root / "data" / "a.txt").write_text("x")
    (root / "hard.txt").hardlink_to(root / "data" / "a.txt")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "out").symlink_to(tmp_path)
    return root


def tools_of(root: Path) -> list[Tool]:
    return builtin_tools(root, context_store=MemoryContextStore())


@pytest.mark.sampled
@pytest.mark.parametrize(("code", "args", "reads"), CALLS, ids=[f"{code} {reads}" for code, _, reads in CALLS])
async def test_a_built_in_tool_fails_in_chinese_alone(code: str, args: dict[str, Any], reads: str, root: Path) -> None:
    async with serving(http(404, "没有")) as server:
        given = {**args, "url": args["url"].format(port=server.port)} if "url" in args else args
        result = await call(tools_of(root), code, given, "zh")
    assert not result.success
    assert reads in str(result.error)
    assert english_sentences(re.sub(r"文本：.*|JMESPath：.*|无法启动：.*|无法连接 .*", "", str(result.error))) == []


async def test_what_health_finds_is_told_in_chinese(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        result = await call(tools_of(root), "health", {"targets": [target], "timeout": 0.1, **HERE}, "zh")
    assert result.output["targets"][0]["detail"] == "0.1 秒内没有应答"


async def test_a_command_of_a_manifest_fails_in_chinese(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    manifest = {"code": "say", "description": "d", "schema": schema, "command": {"argv": ["false", "{{word}}"]}}
    (tmp_path / "say.json").write_text(json.dumps(manifest))
    tools = manifest_tools(tmp_path / "say.json", root=tmp_path, trusted=True)
    assert (await call(tools, "say", {"word": "x"}, "zh")).error == "命令结束，退出码为 1"
    assert (await call(tools, "say", {"word": "x"}, "en")).error == "the command ended with exit code 1"
    assert "'-x' 会被当作命令的选项" in str((await call(tools, "say", {"word": "-x"}, "zh")).error)


def test_an_error_that_explains_itself_is_told_in_the_models_language() -> None:
    with pytest.raises(ToolError) as raised:
        last_turn([{"role": "user", "content": "\ud800"}])
    told = translate(raised.value, "zh")
    assert told.startswith("这一轮对话无法存储：")
    assert english_sentences(told) == []
