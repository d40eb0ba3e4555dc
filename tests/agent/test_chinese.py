"""`language: zh`: each refusal and fault, driven through the node, reaches the model in Chinese alone."""

import asyncio
import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from agent_core import Deny, MemoryJournal, ProtocolError, Skip, agent_tool, parse, replay, run_agent
from agent_core.loop.judge import list_faults
from agent_core.models import ScriptedModel
from agent_core.words.catalogue import words_in
from support.by_hand import Hand, action, final, look
from support.sentences import english_sentences
from utools import Tool, ToolContext, ToolRegistry, ToolResult, default_registry, tool
from utools.builtin import read_file
from utools.function_tool import explain_fault
from utools.schema.config_schema import ConfigSchema, author_keys

REPLIES = Path(__file__).parents[2] / "fixtures" / "replies"
TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
END = final("好")
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 3, "exclusiveMaximum": 9},
        "to": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "size": {"enum": ["s", "m"]},
        "kind": {"const": "order"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "pair": {"type": "array", "prefixItems": [{}, {}], "items": False},
        "some": {"contains": {"type": "integer"}, "type": "array"},
        "map": {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1, "maxProperties": 2},
        "no": {"not": {"type": "string"}},
        "never": {"not": {}},
        "one": {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
        "any": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "with": {"type": "string"},
        "deep": {"type": "object", "additionalProperties": {"type": "array"}},
    },
    "required": ["id"],
    "dependentRequired": {"with": ["to"]},
    "additionalProperties": False,
}
TEXT = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


TEXT_OF_FILE = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


async def slow(args: dict[str, Any], context: ToolContext) -> Any:
    await asyncio.sleep(5)


async def cancels_itself(args: dict[str, Any], context: ToolContext) -> Any:
    raise asyncio.CancelledError


def gives(value: Any) -> Callable[[dict[str, Any], ToolContext], Any]:
    async def execute(args: dict[str, Any], context: ToolContext) -> Any:
        return value

    return execute


@tool(effect="read", description="记下日期。")
def note(day: datetime.date) -> str:
    return day.isoformat()


def registry() -> ToolRegistry:
    whole = {"type": "integer"}
    tools = ToolRegistry(
        [
            Tool("order", "下单。", ORDER, gives("好"), effect="read"),
            Tool("look", "查询。", TEXT, gives("找到了" * 100), effect="read"),
            Tool("send", "发送。", TEXT, gives("已发送"), effect="write"),
            Tool("slow", "很慢。", TEXT, slow, effect="read"),
            Tool("stops", "自行停下。", TEXT, cancels_itself, effect="read"),
            Tool("silent", "不说原因。", TEXT, gives(ToolResult(False)), effect="read"),
            Tool("odd", "给出怪值。", TEXT, gives({"值": object()}), effect="read"),
            Tool("wrong", "给出错值。", TEXT, gives("文本"), effect="read", output_schema=whole),
            Tool("lost", "结果丢失。", TEXT, gives("文本"), effect="write", output_schema=whole),
            Tool("post", "发布。", TEXT, gives(ToolResult(False, error="断了", metadata={"cut_off": True}))),
            note,
        ]
    )
    tools.register(replace(agent_tool(tools), description="另一个智能体。"))
    tools.register(replace(read_file(), description="读取文件。", config_schema=TEXT_OF_FILE))
    return tools


@dataclass(frozen=True)
class Case:
    """One run: what the model says, what the run is bound by, and what the model then reads."""

    replies: Sequence[Any]
    reads: Sequence[str]
    config: Mapping[str, Any] = field(default_factory=dict)
    decisions: Sequence[Any] = ()


def native(*calls: tuple[str, Any]) -> dict[str, Any]:
    return {"content": "", "calls": [{"name": name, "arguments": args} for name, args in calls]}


CHILD = {"model": "m", "max_steps": 1, "allowed_tools": ["look"], "language": "zh"}
ORDERS: list[tuple[dict[str, Any], str]] = [
    ({}, "- /id：应为必填的值（当前值：缺失）"),
    ({"id": "3"}, '- /id：应为整数（当前值："3"）'),
    ({"id": 0}, "- /id：应为不小于 1 的数（当前值：0）"),
    ({"id": 12}, "- /id：应为不大于 9 的数（当前值：12）"),
    ({"id": 9}, "- /id：应为小于 9 的数（当前值：9）"),
    ({"id": 4}, "- /id：应为能被 3 整除的数（当前值：4）"),
    ({"id": 3, "to": "A1"}, '- /to：应为匹配模式 "^[a-z]+$" 的字符串（当前值："A1"）'),
    ({"id": 3, "to": "a"}, '- /to：应为至少 2 个字符的字符串（当前值："a"）'),
    ({"id": 3, "to": "abcdef"}, '- /to：应为至多 5 个字符的字符串（当前值："abcdef"）'),
    ({"id": 3, "size": "xl"}, '- /size：应为以下值之一：["s", "m"]（当前值："xl"）'),
    ({"id": 3, "kind": "offer"}, '- /kind：应为"order"（当前值："offer"）'),
    ({"id": 3, "tags": []}, "- /tags：应为至少有 1 项的数组（当前值：[]）"),
    ({"id": 3, "tags": ["a", "b", "c"]}, "- /tags：应为至多有 2 项的数组"),
    ({"id": 3, "tags": ["a", "a"]}, "- /tags：应为没有重复项的数组"),
    ({"id": 3, "tags": [7]}, "- /tags/0：应为字符串（当前值：7）"),
    ({"id": 3, "pair": [1, 2, 3]}, "- /pair：应为没有多余项的数组"),
    ({"id": 3, "some": ["x"]}, '- /some：应为至少有一项符合 {"type": "integer"} 的数组'),
    ({"id": 3, "map": {}}, "- /map：应为至少有 1 个字段的对象"),
    ({"id": 3, "map": {"a": 1, "b": 2, "c": 3}}, "- /map：应为至多有 2 个字段的对象"),
    ({"id": 3, "map": {"long": 1}}, '- /map/long：应为至多 3 个字符的字符串（当前值："long"）'),
    ({"id": 3, "no": "x"}, '- /no：应为不符合 {"type": "string"} 的值'),
    ({"id": 3, "never": 1}, "- /never：应为不填：此处不允许任何值（当前值：1）"),
    ({"id": 3, "one": 3}, "- /one：应为恰好符合其中一种形式的值（当前值：3）"),
    ({"id": 3, "any": "x"}, '- /any：应为整数或null（当前值："x"）'),
    ({"id": 3, "with": "x"}, "- /to：应为必填的值（当前值：缺失）"),
    ({"id": 3, "deep": {"x": 1}}, "- /deep/x：应为数组（当前值：1）"),
    ({"id": 3, "idd": 1}, "- /idd：应为以下字段之一：any, deep, id"),
]
MANY = {"id": 3, **{f"x{n}": n for n in range(12)}}

CASES: dict[str, Case] = {
    "a file that is not there": Case(
        [action("read_file", path="没有.txt")], ["没有文件 '没有.txt'"], {"allowed_tools": ["read_file"]}
    ),
    "empty reply": Case([" "], ["回复是空的"]),
    "prose": Case(["让我想想。"], ["回复中没有 JSON 对象"]),
    "broken JSON": Case(['{"type":"final",}'], ["回复不是有效的 JSON", "右括号之前不能有逗号"]),
    "surrounding text": Case(["好的：" + action("look", q="x")], ["前后还有其他文字"]),
    "several values": Case([action("look", q="x") * 2], ["多个 JSON 值"]),
    "cut off": Case([{"content": '{"type":', "finish_reason": "length"}], ["达到输出上限"]),
    "too large": Case(["长" * 400_000], ["最多读取 1048576 个"]),
    "too deep": Case(["[" * 70 + "]" * 70], ["括号嵌套过深"]),
    "duplicate key": Case(['{"type":"final","type":"final"}'], ['键 "type" 在 最外层 处']),
    "number out of range": Case(['{"type":"final","answer":1e999}'], ["超出范围"]),
    "no object": Case(["[1]"], ["回复是列表"]),
    "no type": Case(["{}"], ['缺少 "type"']),
    "unknown type": Case(['{"type":7}'], ['"type" 是整数（7）']),
    "both": Case(['{"type":"final","answer":"x","tool":"look"}'], ["既是 action 又是 final"]),
    "missing field": Case(['{"type":"action","tool":"look"}'], ["/args：必填（缺失）。请补上：对象"]),
    "wrong type": Case(['{"type":"action","tool":7,"args":{}}'], ["/tool：当前值是整数（7），必须是字符串。"]),
    "arguments as text": Case(['{"type":"action","tool":"look","args":"x"}'], ['字符串（"x"），必须是对象。请直接']),
    "unknown field": Case(['{"type":"final","answer":"x","n":1}'], ['"n" 不是这个对象的字段']),
    "a plan": Case(['{"type":"plan","steps":[]}'], ["/steps 是空列表"]),
    "a good plan": Case(
        ['{"type":"plan","steps":[{"step":1,"description":"x","tool":"look","parameters":{}}]}'], ["没有要求计划"]
    ),
    "unknown tool": Case([action("shell")], ["这里不允许使用工具 'shell'。可以调用：order"]),
    "unknown tool of a long name": Case([action("s" * 500)], ["…[省略 "]),
    "no tools": Case([action("shell")], ["这次运行没有工具"], {"allowed_tools": []}),
    **{f"arguments {json.dumps(args)}": Case([action("order", **args)], [reads]) for args, reads in ORDERS if args},
    "no arguments": Case(['{"type":"action","tool":"order","args":{}}'], [ORDERS[0][1]]),
    "many faults": Case([action("order", **MANY)], ["工具 order 的参数有误，未执行任何操作：\n- /x0：", "- 另有 4 处"]),
    "long arguments": Case([action("order", id="x" * 3000)], ["…[省略 "]),
    "an author's argument": Case(
        [action("order", id=3, size="s")],
        ['- /size：应为不填：由工作流作者设定（当前值："s"）'],
        {"allowed_tools": [{"tool": "order", "preset": {"size": "m"}}]},
    ),
    "narrowed": Case(
        [action("look", q="1"), action("look", q="x\x00")],
        ['匹配模式 "[a-z]+" 的字符串（当前值："1"）', "不含控制字符的字符串"],
        {"allowed_tools": [{"tool": "look", "args": {"properties": {"q": {"pattern": "[a-z]+"}}}}]},
    ),
    "provenance": Case(
        [action("look", q="eve")],
        ['- /q：应为从用户或作者所写内容中原样复制的值（当前值："eve"，来自你自己的话）'],
        {"allowed_tools": [{"tool": "look", "provenance": {"q": "trusted"}}]},
    ),
    "called too often": Case(
        [action("send", q="x"), action("send", q="y")],
        ["工具 send 最多只能调用 1 次"],
        {"allowed_tools": [{"tool": "send", "max_calls": 1}]},
    ),
    "refused by a person": Case(
        [action("send", q="x"), action("send", q="y")],
        ["有人拒绝了对 send 的调用：今天不行", "有人拒绝了对 send 的调用。"],
        {"allowed_tools": [{"tool": "send", "approval": "always"}]},
        [Deny("今天不行"), Deny("")],
    ),
    "skipped by a person": Case([action("post", q="x")], ["有人跳过了这次调用"], {}, [Skip()]),
    "too late": Case([action("slow", q="x")], ["slow 在 0.1 秒内没有给出结果"], {"single_call_timeout": 0.1}),
    "cancels itself": Case([action("stops", q="x")], ["工具自行取消了"]),
    "fails silently": Case([action("silent", q="x")], ["工具 silent 失败，但没有说明原因"]),
    "no JSON": Case([action("odd", q="x")], ["工具 odd 返回的内容不是 JSON：/值 的类型是 object"]),
    "breaks its schema": Case([action("wrong", q="x")], ['不符合它的 output_schema：该值：应为整数（当前值："文本"）']),
    "lost result": Case([action("lost", q="x")], ["调用已经执行，只是结果无法保留：工具 lost 的输出"]),
    "rate limit": Case(
        [action("look", q="x"), action("look", q="y")],
        ["look 限制为每小时 1 次，这次调用等不了那么久"],
        {"allowed_tools": [{"tool": "look", "rate_limit": "1/h"}]},
    ),
    "rate limit of a write": Case(
        [action("send", q="x"), action("send", q="y")],
        ["send 限制为每小时 1 次，这次调用等不了那么久"],
        {"allowed_tools": [{"tool": "send", "rate_limit": "1/h"}]},
    ),
    "pydantic": Case(
        [action("note", day="2026-02-31")], ['参数有误：/day：应为日期，例如 2026-01-31（当前值："2026-0']
    ),
    "cut, and read on": Case(
        [
            action("look", q="x"),
            action("read_observation", step=7, **{"from": 0}),
            action("read_observation", step=1, **{"from": 999}),
            action("read_observation", step="1"),
            action("read_observation", step=1, **{"from": 100}),
        ],
        [
            "…[省略 227 个字符]… ",
            "（还有 227 个字符：",
            "- /step：应为观察结果被截短的步骤之一：1（当前值：7）",
            "- /from：应小于观察结果的长度 300（当前值：999）",
            '- /step：应为整数（当前值："1"）',
            "（还有 111 个字符：",
        ],
        {"observation_max_len": 89},
    ),
    "answer schema": Case(
        [final({"sum": "x"})],
        ['答案不符合要求的格式：\n- /answer/sum：应为整数（当前值："x"）'],
        {"answer_schema": {"type": "object", "properties": {"sum": {"type": "integer"}}}},
    ),
    "quoted error": Case(
        ["x", final("请重新回复：只写一个 JSON 对象（action 或 final），不要有任何其他内容。")], ["只是重复了错误信息"]
    ),
    "nested agent": Case(
        [action("agent_core", prompt="数一数。")],
        ["智能体以 max_steps 结束：在允许的最后一步，模型仍要求调用工具"],
        {"allowed_tools": [{"tool": "agent_core", "preset": CHILD}]},
    ),
    "last step": Case([action("look", q="x")], ["这是你的最后一次回复"], {"max_steps": 2}),
    "last call": Case([action("look", q="x")], ["工具调用次数已用完"], {"max_tool_calls": 1}),
    "cut to size": Case(
        [action("look", q="x")] * 3, ["…[省略 "], {"max_input_tokens": 700, "observation_max_len": None}
    ),
    "history": Case(
        [],
        ["没有记录到答复", "工具 某个工具 返回：旧的"],
        {
            "messages_json": [
                {"role": "user", "content": "你好"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
                },
                {"role": "user", "content": "然后"},
                {"role": "tool", "tool_call_id": "b", "content": "旧的"},
            ]
        },
    ),
    "native: broken arguments": Case(
        [native(("look", '{"q":'))], ["无法读取工具 look 的参数", "文本到此结束，这里应有一个值"], {"protocol": "tools"}
    ),
    "native: arguments that are none": Case(
        [native(("look", "[1]"))], ["工具 look 的参数必须是一个 JSON 对象（当前值：[1]）"], {"protocol": "tools"}
    ),
    "native: arguments twice": Case([native(("look", '{"q":1,"q":2}'))], ["未执行任何操作。键"], {"protocol": "tools"}),
    "native: a call as text": Case([action("look", q="x")], ["调用被写成了文字"], {"protocol": "tools"}),
    "native: too many calls": Case(
        [native(*[("look", '{"q":"x"}')] * 129)], ["这次回复有 129 个调用"], {"protocol": "tools"}
    ),
    "native: empty": Case([" "], ["回复是空的。请调用工具"], {"protocol": "tools"}),
    "native: too large": Case(["长" * 400_000], ["一次回复最多读取"], {"protocol": "tools"}),
    "native: cut off": Case([{"content": "x", "finish_reason": "length"}], ["达到输出上限"], {"protocol": "tools"}),
    "native: refused": Case(
        [native(("order", {"id": "x" * 3000}), ("shell", {}))],
        ["- /id：应为整数", "不允许使用工具 'shell'", "…[省略 "],
        {"protocol": "tools"},
    ),
}


async def drive(case: Case) -> tuple[list[str], MemoryJournal]:
    """Every text that the model reads in a run, and its journal."""
    seen: list[str] = []
    replies = iter([*case.replies, *[END] * 5])

    def reply(messages: list[dict[str, Any]]) -> Any:
        seen.extend(json.dumps(each, ensure_ascii=False) for each in messages if each.get("tool_calls"))
        seen.extend(each["content"] for each in messages if each["content"])
        if any("数一数" in each for each in seen[-1:]):
            return action("look", q="x")
        answer = next(replies)
        native_end = answer == END and case.config.get("protocol") == "tools"
        return "好" if native_end else '{"type":"final","answer":{"sum":1}}' if "答案不符合" in seen[-1] else answer

    allowed = ["order", "look", "send", "slow", "stops", "silent", "odd", "wrong", "lost", "post", "note"]
    usual = {"model": "m", "max_steps": 20, "max_repairs": 20, "max_tool_calls": 20, "allowed_tools": allowed}
    config = {**usual, "prompt": "请做。", "language": "zh", "prompts": "small", **case.config}
    if "messages_json" in config:
        del config["prompt"]
    journal, tools, model = MemoryJournal(), registry(), ScriptedModel(reply)
    output = await run_agent(config, registry=tools, model=model, journal=journal, run_id="r")
    for decision in case.decisions:
        where = (output.waiting[0]["strand"], output.waiting[0]["n"])
        output = await run_agent(
            config, registry=tools, model=model, journal=journal, run_id="r", decisions={where: decision}
        )
    assert output.finish_reason == "final", output.error
    return seen, journal


@pytest.mark.sampled
@pytest.mark.anyio
@pytest.mark.parametrize("name", CASES)
async def test_the_model_reads_it_in_chinese_alone(name: str) -> None:
    seen, journal = await drive(CASES[name])
    read = "\n\n".join(dict.fromkeys(seen))
    assert [each for each in CASES[name].reads if each not in read] == []
    assert english_sentences(read) == []
    assert replay(journal, run_id="r").identical


@pytest.mark.parametrize("mode", ["strict", "tolerant"])
@pytest.mark.parametrize("file", sorted(REPLIES.glob("*.json")), ids=lambda file: file.stem)
def test_every_reply_that_cannot_be_read_is_explained_in_chinese(
    file: Path, mode: Literal["strict", "tolerant"]
) -> None:
    for entry in json.loads(file.read_text("utf-8")):
        step = parse(entry["raw"], mode=mode, finish_reason=entry["finish_reason"], words=words_in("zh"))
        assert not isinstance(step, ProtocolError) or english_sentences(step.message) == [], entry["id"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.floats(-9, 9)
    | st.sampled_from(["", "s", "ab", "A1", "长" * 9]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "long"]), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*ORDER["properties"], "more"]), JSON, max_size=6))
def test_every_fault_of_arguments_names_field_and_value_in_chinese(args: dict[str, Any]) -> None:
    schema = ConfigSchema(ORDER)
    faults = schema.faults(args, words_in("zh"))
    assert [fault.pointer for fault in faults] == [fault.pointer for fault in schema.faults(args)]
    for fault in faults:
        line = list_faults([fault], words_in("zh"))
        assert line.startswith(f"- {fault.pointer}：应为")
        assert line.endswith(f"（当前值：{fault.got}）")
        assert english_sentences(line + fault.message) == []


@pytest.mark.parametrize(
    ("language", "reads"),
    [
        ("en", ['args: expected something other than what {"required": ["a", "key"]} describes, you sent {"a": "x"}',
                "/key: expected at most 2 characters long, you sent a value that the author set"]),
        ("zh", ['- args：应为不符合 {"required": ["a", "key"]} 的值（当前值：{"a": "x"}）',
                "- /key：应为至多 2 个字符的字符串（当前值：作者设定的值）"]),
    ],
)  # fmt: skip
def test_no_fault_shows_what_the_author_set(language: str, reads: list[str]) -> None:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"a": text, "key": text}, "not": {"required": ["a", "key"]}}
    schema |= {"dependentSchemas": {"a": {"properties": {"key": {"maxLength": 2}}}}}
    allowed = [{"tool": "look", "preset": {"key": "topmost"}}]
    run = Hand([action(a="x"), END], tools=[look(schema=schema)], allowed_tools=allowed, language=language)
    assert [each for each in reads if each not in run.last_heard] == []
    assert "topmost" not in run.last_heard


PYTHON_FAULTS: list[tuple[Any, Any, str]] = [
    (datetime.date, "x", "应为日期，例如 2026-01-31"),
    (datetime.datetime, "x", "应为日期和时间"),
    (datetime.time, "x", "应为时间"),
    (datetime.timedelta, "x", "应为时长"),
    (uuid.UUID, "x", "应为有效的 UUID"),
    (decimal.Decimal, "x", "应为十进制数"),
    (int, "x", "应为整数"),
    (int, 1.5, "应为没有小数部分的整数"),
    (float, "x", "应为数字"),
    (bool, "x", "应为布尔值"),
    (str, 1, "应为字符串"),
    (list[int], "x", "应为数组"),
    (dict[str, int], 1, "应为对象"),
    (Literal["a", "b"], "x", "应为以下值之一：'a' or 'b'"),
    (tuple[int, int], [1], "必填（缺失）"),
    (set[int], 1, "应为数组"),
    (Callable[[], int], 1, "无效（callable_type）"),
]


@pytest.mark.parametrize(("kind", "value", "reads"), PYTHON_FAULTS, ids=lambda each: str(each)[:30])
def test_what_pydantic_finds_is_told_in_chinese(kind: Any, value: Any, reads: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    told = explain_fault(caught.value.errors()[0], words_in("zh"))
    assert reads in told
    assert english_sentences(told) == []


def test_a_chinese_run_under_the_first_texts_replays_with_its_english_errors() -> None:
    path = TRANSCRIPTS / "chinese.jsonl"
    assert "The reply holds no JSON object." in path.read_text("utf-8")
    assert replay(path).identical


# ── what tools are ───────────────────────────────────────────────────────────────────────────────


def descriptions(value: Any) -> list[str]:
    """Every description in a schema that a model sees."""
    if isinstance(value, list):
        return [each for item in value for each in descriptions(item)]
    if not isinstance(value, dict):
        return []
    own = [value["description"]] if isinstance(value.get("description"), str) else []
    return own + [each for item in value.values() for each in descriptions(item)]


def test_the_tools_of_our_own_are_told_in_chinese() -> None:
    registry = default_registry()
    registry.register(agent_tool(registry))
    entries = [{"tool": tool.code, "preset": needed_presets(registry, tool.code)} for tool in registry.for_models()]
    run = Hand([END], tools=registry.all(), allowed_tools=entries, language="zh")
    told = [each for policy in run.started["tools"].values() for each in descriptions(policy["visible"])]
    told += [policy["description"] for policy in run.started["tools"].values()]
    assert len(told) > 80
    assert [each for each in told if each.isascii() and not each.startswith("JMESPath")] == []


def needed_presets(registry: ToolRegistry, code: str) -> dict[str, Any]:
    given = {
        "webhook_env": "HOOK",
        "server": "smtp.example.org",
        "sender": "a@example.org",
        "allowed_recipients": ["b@example.org"],
        "prefix": "x:",
        "root": "data",
        "commands": ["true"],
        "model": "scripted:x.json",
        "max_steps": 2,
        "allowed_tools": [],
    }
    required = registry._schema(code).schema.get("required", ())
    return {
        name: given[name] for name in required if name in given and name in author_keys(registry._schema(code).schema)
    }


def test_a_foreign_tool_is_told_in_its_own_words() -> None:
    run = Hand([END], tools=[look()], language="zh")
    assert run.started["tools"]["look"]["description"] == "Does look."
