"""Native calls that a server left in a reply's text: whether the whole text is one. Pure.

Servers turn what a model writes after its chat template into calls. Where one does not, the call is the text:

    a marker of a chat template      <tool_call>{"name": …}</tool_call>, [TOOL_CALLS][…], <function=look>{…}</function>
    the name of an offered tool      {"name": "look", "parameters": {…}}, [look(q="x")], Action: look …

A marker is enough by itself. JSON, Python and a code fence are calls only where they name a tool that was offered, for
an answer may well be JSON. A text with words around a call quotes it, and is an answer. One exception: where the model
says what it does ("I look.") on the lines above a call of an offered tool, marked or as JSON, with which the text ends.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import orjson

from agent_core.outputs import JsonValue
from agent_core.protocol.call_markers import CHILD, MARK, is_bracketed, is_marked, skip_brackets, skip_space
from agent_core.protocol.wrappings import WHITE_SPACE, after_thinking
from agent_core.rules import CURRENT
from utools.lazy_pattern import lazy_compile

NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name", "recipient_name", "action")
ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "params", "input", "kwargs",
    "action_input", "tool_input", "tool_args", "tool_arguments", "function_args", "function_arguments",
)  # fmt: skip
OTHER_KEYS = ("id", "type", "index", "call_id", "thought", "reasoning", "language")
WRAPPERS = ("tool_calls", "tool_uses", "function_calls", "function_call", "tool_call", "calls")
CALL_TYPES = ("function", "function_call", "tool_call", "tool_use")
PREFIXES = ("functions.", "function.", "default_api.", "tools.", "tool.", "api.")
"""What models put before a tool's name."""
_BEFORE_TAGS: Final = "]<]minimax[>["
"""What MiniMax M3 puts before each tag of a call."""
MAX_LEADS = 20
"""Places in a text that are tried as the beginning of a call below words."""

_HEAD = lazy_compile(
    r"""[\[{(\s]*+(?:["'](?:id|type|index|tool_calls|function_call|tool_call|function)["']\s*+:\s*+"""
    r"""(?:["'][^"'\n]*+["']\s*+,|\d++\s*+,|[\[{][\[{\s]*+)\s*+)*"""
    rf"""["'](?:{"|".join(NAME_KEYS)})["']\s*+:\s*+["'](?P<name>[^"'\n]++)["']"""
)
"""How a call written as JSON begins, down to the tool's name."""
_ARGUMENTS = lazy_compile(rf"""["'](?:{"|".join(ARGUMENT_KEYS)})["']\s*:|["']type["']\s*:\s*["']function["']""")
_PYTHON = lazy_compile(r"\[?\s*(?:\w+\s*=\s*)?(?:await\s+|print\(\s*)?(?P<name>[\w.:-]+?)(?:\.call)?\s*\(")
_FENCE = lazy_compile(r"`{3,}+|~{3,}+")
_NAMED = lazy_compile(r"[>@\s]*(?P<name>[\w.:-]+)\s*(?=\{)")
_LABEL = lazy_compile(
    r"(?:thought\s*:.*?\n[^\S\n]*+)?"
    r"(?:(?:tool|function)[ _]?(?:call|use)s?|action|call)\s*+[:：]\s*+(?=[\[{`\w])",
    re.I | re.S,
)
_REACT = lazy_compile(
    r"(?:\**(?:thought|思考)\**\s*[:：].*?\n[^\S\n]*+)?\**(?:action|行动)\**\s*+[:：]\**\s*+(?P<name>[^\n]++)\n\s*+"
    r"\**(?:action[ _]?input|行动输入)\**\s*+[:：]\**\s*+(?P<input>.*)",
    re.IGNORECASE | re.DOTALL,
)
_GONE_ON = lazy_compile(r"\s*\**(?:observation|thought|final answer|观察)\**\s*[:：]", re.IGNORECASE)
_HARMONY = lazy_compile(
    r"(?P<token><\|)?(?:start\|>)?(?:assistant)?(?P<channel><?\|?channel\|>)?\s*+(?:analysis|commentary)?\s*+"
    r"to=(?P<name>[\w.:-]+)(?:<\|\w+\|>|\s|commentary|analysis|json|code)*(?P<rest>.*)",
    re.DOTALL,
)
_HARMONY_WORDS = lazy_compile(
    r"(?:(?:<\|start\|>)?(?:assistant)?<\|channel\|>(?:analysis|commentary)<\|message\|>.*?"
    r"(?:<\|end\|>\s*|(?=<\|start\|>)))+|analysis.*?assistant(?=commentary\s+to=)",
    re.DOTALL,
)
"""What gpt-oss thinks and says before its call."""
_EDGE = (
    r"(?:<\|(?:im_end|eot_id|eom_id|eom|end|endoftext|end_of_text|eot|call|return|observation|user|assistant)\|>"
    r"|<\|im_start\|>(?:assistant)?|<\|start_header_id\|>\w*<\|end_header_id\|>|</?s>|<end_of_turn>|<eos>|\s)+"
)
_OPENING, _ENDING = lazy_compile(_EDGE), lazy_compile(_EDGE + "$")
"""Tokens that begin or end a turn, where a server left those in the text as well."""
LONGEST_END: Final = 400
"""Characters at the end of a text in which tokens are looked for."""
_OF_ITSELF = lazy_compile(r"\b(?:I|I['’](?:ll|m|d|ve)|we|let me|let['’]s)\b|我", re.IGNORECASE)
_OF_CALLS = lazy_compile(
    r"```|[:：]|\b(?:examples?|e\.g\.|looks? like|format|syntax|form|template|written|writes?|raw|quoted?|logs?)\b"
    r"|例|格式|如下",
    re.IGNORECASE,
)
"""What a model says of its own call, and of a call that it quotes."""
_SENTENCE_END = (".", "!", "?", "…", "。", "！", "？")
_LEAD = lazy_compile(r"\n[^\S\n]*+(?=<|\[TOOL|functools|\**action\**\s*+:)", re.IGNORECASE)
_LEAD_OR_JSON = lazy_compile(r"\n[^\S\n]*+(?=<|\[TOOL|functools|\**action\**\s*+:|\[?\{)", re.IGNORECASE)
_CLOSING = lazy_compile(r"\s*</(?:tool|function)_?calls?>\s*$", re.IGNORECASE)
"""The marker at the end of a call whose first one a server took for a token, and left out."""


def is_call(text: str, names: Collection[str], rules: int = CURRENT["replies"]) -> bool:
    """Return whether the whole text is a call, its think block taken off. `names` are those of the offered tools."""
    bare = _bare(text, rules)
    return bool(bare) and (_is_whole_call(bare, names) or _ends_in_call(bare, names, rules))


def has_mark(text: str, names: Collection[str], rules: int) -> bool:
    """Return whether a text has the mark of a call anywhere, or begins as one: it may be a call that was cut."""
    bare = _bare(text, rules)
    head = _HEAD.match(bare)
    begun = head is not None and _is_offered(head["name"], names)
    return begun or is_call(text, names, rules) or MARK.search(bare) is not None or "to=functions." in bare


def _bare(text: str, rules: int) -> str:
    """Return the text without think block and tokens of a turn, its markers in plain characters, its fence closed."""
    if rules > 2 and _BEFORE_TAGS in text:
        text = text.replace(f"{_BEFORE_TAGS}<tool_call>", "\n<tool_call>").replace(_BEFORE_TAGS, "")
    bare = after_thinking(text).replace("｜", "|").replace("▁", "_").strip(WHITE_SPACE + "\ufeff")
    if words := _HARMONY_WORDS.match(bare):
        bare = bare[words.end() :]
    if not bare.startswith("<|start|>"):
        opening = _OPENING.match(bare)
        bare = bare[opening.end() :] if opening else bare
    if "<" in bare[-40:]:
        ending = _ENDING.search(bare, max(0, len(bare) - LONGEST_END))
        bare = bare[: ending.start()] if ending else bare
    if (
        rules > 3
        and bare.startswith(("{", "["))
        and (closing := _CLOSING.search(bare, max(0, len(bare) - LONGEST_END)))
    ):
        bare = bare[: closing.start()]
    if rules > 4 and (fence := _FENCE.match(bare)) and bare.count(fence[0]) == 1:
        bare = f"{bare}\n{fence[0]}"
    return bare.strip()


def _is_whole_call(text: str, names: Collection[str]) -> bool:
    if MARK.match(text):
        return is_marked(text)
    if "to=" in text[:80] and (harmony := _HARMONY.match(text)):
        return _is_harmony(harmony, names)
    if text.startswith(("```", "~~~")):
        return _is_fenced(text, names)
    if text[0] in "[{" and _is_json_call(text, names):
        return True
    forms = (_is_python_call, _is_react, _is_labelled, _is_named)
    return any(is_form(text, names) for is_form in forms)


def _ends_in_call(text: str, names: Collection[str], rules: int) -> bool:
    """Return whether the model says what it does, and announces nothing, on the lines above a call of an offered
    tool."""
    leads = _LEAD if rules < 4 else _LEAD_OR_JSON
    for _, lead in zip(range(MAX_LEADS), leads.finditer(text), strict=False):
        above, below = text[: lead.start()].rstrip(), text[lead.end() :]
        is_lead = above.endswith(_SENTENCE_END) and _OF_ITSELF.search(above) and not _OF_CALLS.search(above)
        if not is_lead or not _mentions(below, names):
            continue
        if below.startswith(("{", "[{")) and _is_json_call(below, names):
            return True
        if is_marked(below) or _is_react(below, names, alone=True):
            return True
    return False


def _is_harmony(call: re.Match[str], names: Collection[str]) -> bool:
    """Return whether a call in gpt-oss's words is one as a whole, with those after it."""
    following: re.Match[str] | None = call
    while following is not None:
        is_marked = following["token"] or following["channel"] or following["name"].startswith("functions.")
        rest = following["rest"]
        end = skip_brackets(rest, 0) if rest[:1] in ("{", "[") else 0
        if end is None or not (is_marked or _is_offered(following["name"], names)):
            return False
        rest = rest[end:].removeprefix("<|call|>").strip()
        if not rest:
            return True
        following = _HARMONY.match(rest)
    return False


# ── by the name of an offered tool ───────────────────────────────────────────────────────────────


def _is_json_call(text: str, names: Collection[str]) -> bool:
    """Return whether a text is calls of offered tools as JSON, one or several, whole or broken."""
    try:
        return _are_calls(orjson.loads(text), names)
    except orjson.JSONDecodeError:
        head = _HEAD.match(text)
    if head is None or not _is_offered(head["name"], names) or not _ARGUMENTS.search(text):
        return False
    return is_bracketed(text)


def _are_calls(value: JsonValue, names: Collection[str]) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_are_calls(each, names) for each in value)
    if not isinstance(value, dict):
        return False
    if len(value) == 1 and (wrapper := next(iter(value))) in WRAPPERS:
        return _are_calls(value[wrapper], names)
    if isinstance(function := value.get("function"), dict):
        return _are_calls({"type": "function", **function}, names)
    name = next((each for key in NAME_KEYS if isinstance(each := value.get(key), str)), None)
    has_arguments = any(key in value for key in ARGUMENT_KEYS) or value.get("type") in CALL_TYPES
    known_keys = value.keys() <= {*NAME_KEYS, *ARGUMENT_KEYS, *OTHER_KEYS}
    return name is not None and has_arguments and known_keys and _is_offered(name, names) and not _is_schema(value)


def _is_schema(value: dict[str, Any]) -> bool:
    """Return whether it describes a tool rather than calling it."""
    parameters: JsonValue = value.get("parameters")
    return isinstance(parameters, dict) and parameters.get("type") == "object" and "properties" in parameters


def _is_python_call(text: str, names: Collection[str]) -> bool:
    """Return whether a text is calls of offered tools in Python: look(q="x"), or a list of such calls."""
    at: int | None = 0
    while at is not None and at < len(text):
        call = _PYTHON.match(text, at)
        if call is None or not _is_offered(call["name"], names):
            return False
        bracket = text.find("[" if text.startswith("[", at) else "(", at)
        end = skip_brackets(text, bracket)
        at = None if end is None else skip_space(text, end)
    return at is not None


def _is_react(text: str, names: Collection[str], *, alone: bool = False) -> bool:
    """Return whether a text is a step in ReAct's words: Action and Action Input, perhaps with what the model made up
    after."""
    react = _REACT.match(text)
    if react is None or not _is_offered(react["name"].strip("`*[]\"' "), names):
        return False
    given = react["input"]
    end = skip_brackets(given, 0) if given[:1] in ("{", "[") else given.find("\n") if "\n" in given else len(given)
    return end is not None and (not given[end:].strip() or (not alone and _GONE_ON.match(given, end) is not None))


def _is_named(text: str, names: Collection[str]) -> bool:
    """Return whether a text is an offered tool's name with JSON below it, or a tag of that name."""
    if tag := CHILD.match(text):
        return _is_offered(tag[1], names) and text.endswith(f"</{tag[1]}>")
    named = _NAMED.match(text)
    return named is not None and _is_offered(named["name"], names) and is_bracketed(text[named.end() :])


def _is_labelled(text: str, names: Collection[str]) -> bool:
    """Return whether a call of an offered tool stands behind a label: `Tool call: …`."""
    label = _LABEL.match(text)
    if label is None:
        return False
    held = text[label.end() :]
    if _LABEL.match(held):
        return False
    name, bracket, _ = held.partition("[")
    return _is_whole_call(held, names) or (bool(bracket) and _is_offered(name, names) and held.endswith("]"))


def _is_fenced(text: str, names: Collection[str]) -> bool:
    """Return whether a text is code fences that hold only calls of offered tools, and no fence within one."""
    bodies = list(_fenced_bodies(text))
    return all(
        body and not _FENCE.search(body) and _mentions(body, names) and _is_whole_call(body, names) for body in bodies
    )


def _fenced_bodies(text: str) -> Iterator[str]:
    """Yield what the code fences of a text hold; an empty text where something else stands between them."""
    while text:
        fence = _FENCE.match(text)
        mark = fence[0] if fence else ""
        opened, _, rest = text[len(mark) :].partition("\n")
        if mark and mark in opened:
            opened, rest = "", text[len(mark) :]
        body, closed, text = rest.partition(mark) if mark else ("", "", "")
        yield body.strip() if closed and "`" not in opened else ""
        text = text.strip()


def _mentions(text: str, names: Collection[str]) -> bool:
    return any(name in text for name in names)


def _is_offered(name: str, names: Collection[str]) -> bool:
    return any(each in names for each in _spellings(name.strip()))


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from (name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix))
