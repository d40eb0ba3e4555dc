"""Values that hold no secret, drawn by a seeded generator: URLs, addresses, code, JSON, logs, base64, prose."""

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any

WORDS = [
    "order",
    "ship",
    "invoice",
    "train",
    "Bonn",
    "report",
    "intranet",
    "server",
    "token",
    "password",
    "key",
    "secret",
    "user",
    "admin",
    "note",
    "page",
    "list",
    "call",
    "tool",
    "value",
    "login",
    "proxy",
    "cache",
    "https",
    "url",
    "mail",
]
CHINESE = "请查看内网页面然后发邮件到订单已发货明天的火车十点半从波恩出发服务器端口密码登录用户"
SEPARATORS = (
    '","',
    '":"',
    "','",
    ",",
    ";",
    "; ",
    " ",
    "\n",
    "\r\n",
    "|",
    ")",
    ") ",
    "> ",
    "，",
    "。",
    "：",
    "、",
    "{",
    "}",
)
JOINTS = (
    '","cc":"',
    '"},{"to":"',
    "','cc':'",
    ";cc=",
    "&cc=",
    "|",
    "，邮箱:",
    "\ncc: ",
    "\\ncc: ",
    '\\",\\"cc\\":\\"',
    ",cc:",
    "})(",
)


def plain_value(chance: Random) -> Any:
    """A text, or a structure of texts."""
    draw = chance.randrange(12)
    if draw == 0:
        return {chance.choice(WORDS): plain_value(chance) for _ in range(chance.randrange(4))}
    if draw == 1:
        return [plain_value(chance) for _ in range(chance.randrange(4))]
    return plain_text(chance)


def plain_text(chance: Random) -> str:
    """A text of one of the kinds."""
    return chance.choice(KINDS)(chance)


def url(chance: Random) -> str:
    """A URL without a password, in any of its forms."""
    host = chance.choice(["intranet", "example.com", "db.internal", "127.0.0.1", "[::1]", "xn--bcher-kva.example"])
    port = chance.choice(["", "", ":80", ":8443"])
    path = chance.choice(["", "/", "/a/b.html", "/@ada/posts", "/a:b@c", "/v1/items/12"])
    query = chance.choice(["", "?to=ada@example.com&n=1", "?next=https%3A%2F%2Fx.example", "#at"])
    user = chance.choice(["", "", "", "git@", "ada@"])
    return f"{chance.choice(['https', 'http', 'ftp', 'postgres', 'git+ssh'])}://{user}{host}{port}{path}{query}"


def address(chance: Random) -> str:
    """An address of mail."""
    return f"{chance.choice(WORDS)}.{chance.choice(WORDS)}@{chance.choice(['example.com', 'mail.example', '例子.cn'])}"


def prose(chance: Random) -> str:
    """Words, with URLs and addresses among them."""
    return " ".join(chance.choice([chance.choice(WORDS), url(chance), address(chance)]) for _ in range(9)) + "."


def chinese(chance: Random) -> str:
    """Chinese, which has no blank before a URL."""
    parts = [
        chance.choice(
            ["".join(chance.choices(CHINESE, k=6)), url(chance), address(chance), "，", "。", "：", "（", "）"]
        )
        for _ in range(9)
    ]
    return "，".join(parts)


def minified(chance: Random) -> str:
    """JSON as a program writes it, perhaps within another text."""
    value = {chance.choice(WORDS): chance.choice([url, address, prose])(chance) for _ in range(3)}
    text = json.dumps({**value, "n": chance.randrange(99)}, separators=(",", ":"), ensure_ascii=chance.random() < 0.5)
    return chance.choice([text, json.dumps(text), f"```json\n{text}\n```", f"It is {text}, as told.", text[:-3]])


def code(chance: Random) -> str:
    """A line of a program."""
    first, second = url(chance), address(chance)
    return chance.choice(
        [
            f'fetch("{first}",{{to:"{second}"}})',
            f"const a='{first}',b='{second}';",
            f"curl -H 'X-To: {second}' '{first}'",
            f"url: {first}\nto: {second}\n",
            f"- [{chance.choice(WORDS)}]({first}) <{second}>",
            f'<a href="{first}">{second}</a>',
            f'dsn = f"postgres://{{user}}:{{password}}@{{host}}/{chance.choice(WORDS)}"',
            f"x={{u:'{first}',m:\"{second}\"}}",
            'export URL="https://$USER:$PASS@host" # ${TOKEN}',
        ]
    )


def log(chance: Random) -> str:
    """Lines of a log."""
    return "\n".join(
        f"2026-11-{day:02d} 10:30:00 INFO proxy={url(chance)} to={address(chance)} id={chance.randbytes(8).hex()}"
        for day in range(1, chance.randrange(2, 5))
    )


def encoded(chance: Random) -> str:
    """Base64 and hex."""
    raw = chance.randbytes(chance.randrange(6, 120))
    return chance.choice([base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex()])


def joined(chance: Random) -> str:
    """A URL, and an address right after it."""
    return f"{url(chance).partition('?')[0]}{chance.choice(JOINTS)}{address(chance)}"


def mixed(chance: Random) -> str:
    """Parts of other kinds, with what parts them."""
    parts = [chance.choice([prose, code, encoded, address, minified])(chance) for _ in range(3)]
    return chance.choice(SEPARATORS).join(parts)


KINDS: tuple[Callable[[Random], str], ...] = (
    *(url, address, prose, chinese, minified, code, log, encoded, joined, mixed),
)
