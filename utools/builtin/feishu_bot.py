"""`feishu_bot`: a message to a group of Feishu (or Lark), through the webhook of a custom bot.

Source: Feishu Open Platform, "Custom bot usage guide": signature, message types, limits, codes.
"""

import base64
import hmac
import json
import time
from typing import Any

from utools.errors import NetworkError, ToolError
from utools.net.outgoing_secrets import checked_secret
from utools.tool import Args, Tool, ToolContext, ToolResult
from utools.words.text import Text, join_and

LARGEST = 20 * 1024
"""Bytes of a message that Feishu takes."""
BUSY = 11232
"""Feishu's code for a bot that sends too often: nothing was sent, and a later try may succeed."""
PAUSES = (1.0, 2.0)
MAX_REPLY = 65_536


def feishu_bot() -> Tool:
    """Return the tool `feishu_bot`. The webhook and its secret are environment variables that the author names."""
    return Tool(
        code="feishu_bot",
        description="Send a message to a Feishu group: a text, a rich post, or an interactive card.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "Tell the group that the lift works.",
                "args": {"text": "The lift works."},
                "output": {"sent": True},
                "answer": "I told the group.",
            }
        ],
        execute=_execute,
    )


def _env(content: str) -> dict[str, Any]:
    return {"type": "string", "x-author": True, "description": f"The environment variable of {content}."}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "A plain text."},
        "post": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "Its title."},
                "paragraphs": {
                    "description": "Its lines.",
                    "type": "array",
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "text": {"type": "string"},
                                "href": {"type": "string", "description": "Makes it a link."},
                                "at": {"type": "string", "description": "A user's id to mention, or all."},
                            },
                        },
                    },
                },
            },
            "required": ["paragraphs"],
            "description": "A rich text: paragraphs of pieces.",
        },
        "card": {"type": "object", "description": "An interactive card, in Feishu's JSON."},
        "language": {"enum": ["zh_cn", "en_us", "ja_jp"], "default": "zh_cn", "description": "Of the post."},
        "webhook_env": _env("the webhook's URL"),
        "secret_env": _env("the signing secret, if the bot has one"),
        "allow_cidrs": {
            "type": "array",
            "items": {"type": "string"},
            "x-author": True,
            "x-narrow": "subset",
            "description": "Networks that may be reached although they are not public, such as 10.2.0.0/16.",
        },
    },
    "required": ["webhook_env"],
}
OUTPUT = {"type": "object", "properties": {"sent": {"const": True}}, "additionalProperties": False}


def signature(secret: str, timestamp: int) -> str:
    """Base64 of HMAC-SHA256, the key being `timestamp\\nsecret` and the message empty."""
    return base64.b64encode(hmac.digest(f"{timestamp}\n{secret}".encode(), b"", "sha256")).decode()


def message_body(args: Args) -> dict[str, Any]:
    """Return the body for the webhook; ToolError unless there is exactly one kind of message."""
    kinds = [kind for kind in ("text", "post", "card") if kind in args]
    match kinds:
        case ["text"]:
            return {"msg_type": "text", "content": {"text": args["text"]}}
        case ["post"]:
            return {
                "msg_type": "post",
                "content": {"post": {args.get("language", "zh_cn"): _paragraphs(args["post"])}},
            }
        case ["card"]:
            return {"msg_type": "interactive", "card": args["card"]}
        case _:
            raise ToolError("give one of text, post and card; you gave {kinds}", kinds=join_and(kinds))


def _paragraphs(post: Args) -> dict[str, Any]:
    content = [[_piece(piece) for piece in paragraph] for paragraph in post["paragraphs"]]
    return {"title": post.get("title", ""), "content": content}


def _piece(piece: Args) -> dict[str, Any]:
    if "at" in piece:
        return {"tag": "at", "user_id": piece["at"]}
    if "href" in piece:
        return {"tag": "a", "text": piece.get("text", piece["href"]), "href": piece["href"]}
    return {"tag": "text", "text": piece.get("text", "")}


async def _execute(args: Args, context: ToolContext) -> ToolResult:
    from asyncio import sleep

    body = message_body(args)
    url = checked_secret(context.secret, args["webhook_env"], Text("used as the URL of a webhook"))
    reply = await _post(url, _sign(body, args, context), args)
    for pause in PAUSES:
        if _code_of(reply) != BUSY:
            break
        await sleep(pause)
        reply = await _post(url, _sign(body, args, context), args)
    if (code := _code_of(reply)) == 0:
        return ToolResult(output={"sent": True})
    reason = reply.get("msg") or reply.get("StatusMessage") or Text("no reason was given")
    return ToolResult(False, error=Text("Feishu refused the message: {reason} (code {code})", reason=reason, code=code))


def _code_of(reply: dict[str, Any]) -> Any:
    return reply.get("code", reply.get("StatusCode"))


def _sign(body: dict[str, Any], args: Args, context: ToolContext) -> bytes:
    if "secret_env" in args:
        now, secret = (
            int(time.time()),
            checked_secret(context.secret, args["secret_env"], Text("used to sign a message")),
        )
        body = {"timestamp": str(now), "sign": signature(secret, now), **body}
    data = json.dumps(body, ensure_ascii=False).encode()
    if len(data) > LARGEST:
        raise ToolError(
            "the message has {size} bytes, and Feishu takes at most {most}; send a shorter one",
            size=len(data),
            most=LARGEST,
        )
    return data


async def _post(url: str, data: bytes, args: Args) -> dict[str, Any]:
    from utools.net.guard import NetworkGuard
    from utools.net.transport import fetch

    guard = NetworkGuard.from_settings(allow_cidrs=args.get("allow_cidrs", ()))
    try:
        answer = await fetch(
            guard, "POST", url, headers={"content-type": "application/json"}, content=data, limit=MAX_REPLY, redirects=0
        )
    except NetworkError as error:  # its message may hold the URL, which is a secret
        raise NetworkError(
            "the webhook in {variable} is no URL of a host that may be reached",
            variable=args["webhook_env"],
            transient=error.transient,
        ) from None
    try:
        reply = json.loads(answer.body)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        raise ToolError("Feishu answered {status} with what is not JSON", status=answer.status)
    return reply
