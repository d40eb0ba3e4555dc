"""The markers in which chat templates put calls: whether a text consists of them and of what they hold. Pure."""

import re

from utools.lazy_pattern import lazy_compile

_MARKED = r"""
    tool_?calls?|tool_?use|tool_?code|tool_?request|tool_?invocation|use_mcp_tool|execute_tool|call_tool
    |function_?calls?|functioncall|invoke|python_(?:tag|start|end)|start_action|end_action|action_start|action_end|plugin
    |tool_?sep|tool_?call_argument
""".replace("\n", "").replace(" ", "")
MARK = lazy_compile(
    rf"<[\w:.|/-]{{0,40}}?(?:{_MARKED})[\w:.|/-]{{0,80}}(?:[\s=][^<>\n]*)?>"
    r"|</?function(?:[=\s][^<>\n]+)?>|<<function>>"
    r"|\[/?(?:END_)?(?:TOOL_CALLS?|TOOL_REQUEST|ARGS|CALL_ID)\]|functools(?=\s*[\[{])|✿(?:FUNCTION|ARGS|RESULT|RETURN)✿\s*:?"
    r"|<\|(?:recipient|content|from)\|>",
    re.IGNORECASE,
)
"""A marker in which a chat template puts a call, as it opens or closes; `｜` and `▁` are read as `|` and `_`."""
CHILD = lazy_compile(r"</?([\w:.|-]*\w)(?=[\s=>/])[^<>\n]*>")
_NAME = lazy_compile(r"(?:call:)?[\w./:-]+")
_AFTER_NAME = lazy_compile(r"\s*(?:```\w*\s*)?(?=[({\[<=✿]|$)")
_SPACE = lazy_compile(r"[\s,;]*(?:```)?[\s,;]*")
_CLOSERS = lazy_compile(r"[\s\])}>;]*$")


def is_marked(text: str) -> bool:
    """Return whether a text consists of markers and of what they hold."""
    at: int | None = 0
    while at is not None and at < len(text):
        mark = MARK.match(text, at)
        if mark is None:
            return _CLOSERS.match(text, at) is not None
        at = _skip_held(text, mark.end())
    return at is not None


def _skip_held(text: str, at: int) -> int | None:
    """Return where the next marker may stand after one: behind JSON, a name with arguments, or tags; None before
    words."""
    while True:
        at = skip_space(text, at)
        if at == len(text) or MARK.match(text, at):
            return at
        if text[at] in "{[(":
            end = skip_brackets(text, at)
        elif text[at] == "<":
            end = _skip_child(text, at)
        else:
            end = _skip_name(text, at)
        if end is None:
            return None
        at = end


def skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _skip_name(text: str, at: int) -> int | None:
    """Behind a tool's name, where arguments follow it, or a marker, or nothing."""
    name = _NAME.match(text, at)
    after = name and _AFTER_NAME.match(text, name.end())
    return after.end() + text.startswith("=", after.end()) if after else None


def _skip_child(text: str, at: int) -> int | None:
    """Behind a tag with a value, such as <parameter name="q">x</parameter>; at the end where it is not closed."""
    child = CHILD.match(text, at)
    if child is None:
        return None
    if child[0].endswith("/>") or text.startswith("</", at):
        return child.end()
    close = text.find(f"</{child[1]}>", child.end())
    return len(text) if close < 0 else close + len(child[1]) + 3


def skip_brackets(text: str, at: int) -> int | None:
    """Behind a bracketed value, read with either quote; at the end where it is not closed; None where words end it."""
    depth, quote, last = 0, "", at
    index = at
    while index < len(text):
        char = text[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote, last = "", index
        elif char == '"' or (
            char == "'" and text[max(0, index - 9) : index].rstrip()[-1:] in ("", "(", "[", "{", ",", ":", "=")
        ):
            quote = char
        elif char in "{[(":
            depth, last = depth + 1, index
        elif char in "}])":
            depth, last = depth - 1, index
            if depth == 0:
                return index + 1
        elif char in ",:=":
            last = index
        index += 1
    rest = text[last + 1 :].strip()
    return len(text) if quote or re.fullmatch(r"[\w.+-]*", rest) else None


def is_bracketed(text: str) -> bool:
    """Return whether a text consists of bracketed values."""
    at: int | None = 0
    while at is not None and at < len(text):
        if text[at] not in "{[(":
            return _CLOSERS.match(text, at) is not None
        end = skip_brackets(text, at)
        at = None if end is None else skip_space(text, end)
    return at is not None
