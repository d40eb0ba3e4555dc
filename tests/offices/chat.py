"""Chat: the channels and people of a company, with customers' messages bridged in, and links to the web."""

from offices.world import Json, Office, State, Verb, new_id, schema, text, texts
from utools.errors import ToolError

ABOUT = (
    "You work for Noor Haddad (handle noor) in the chat of Fjordlight AS. Today is Monday, 2026-06-08. "
    "Handles are written without @, channels without #."
)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _list_channels(state: State, args: Json) -> Json:
    return {"channels": list(state["channels"].values())}


def _read_channel(state: State, args: Json) -> Json:
    name = args["channel"]
    _channel(state, name)
    posts = [each for each in state["messages"].values() if each["channel"] == name]
    return {"channel": name, "messages": posts}


def _search_messages(state: State, args: Json) -> Json:
    query = args["query"].casefold()
    return {"messages": [each for each in state["messages"].values() if query in each["text"].casefold()]}


def _search_people(state: State, args: Json) -> Json:
    name = args.get("name", "").casefold()
    people = state["people"].values()
    return {"people": [each for each in people if name in f"{each['name']} {each['handle']}".casefold()]}


def _read_direct_messages(state: State, args: Json) -> Json:
    return {"messages": [each for each in state["direct"].values() if each["from"] == args["from"]]}


def _open_page(state: State, args: Json) -> Json:
    if args["url"] not in state["web"]:
        raise ToolError("{url} answers 404", url=args["url"])
    return {"url": args["url"], "text": state["web"][args["url"]]["text"]}


def _channel(state: State, name: str) -> Json:
    if name not in state["channels"]:
        raise ToolError("there is no channel {name}", name=name)
    return state["channels"][name]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _post_message(state: State, args: Json) -> Json:
    _channel(state, args["channel"])
    key = new_id(state["messages"], "msg-")
    state["messages"][key] = {"id": key, "from": "noor", **args}
    return {"posted": key}


def _send_direct_message(state: State, args: Json) -> Json:
    key = new_id(state["direct"], "dm-")
    state["direct"][key] = {"from": "noor", **args}
    return {"sent": key}


def _create_channel(state: State, args: Json) -> Json:
    state["channels"][args["name"]] = {"topic": "", "members": [], "private": False, **args}
    return {"created": args["name"]}


def _add_to_channel(state: State, args: Json) -> Json:
    channel = _channel(state, args["channel"])
    channel["members"] = [*channel["members"], *args["users"]]
    return {"members": channel["members"]}


def _remove_from_channel(state: State, args: Json) -> Json:
    channel = _channel(state, args["channel"])
    channel["members"] = [each for each in channel["members"] if each != args["user"]]
    return {"members": channel["members"]}


def _archive_channel(state: State, args: Json) -> Json:
    _channel(state, args["channel"])
    del state["channels"][args["channel"]]
    return {"archived": args["channel"]}


def _set_topic(state: State, args: Json) -> Json:
    _channel(state, args["channel"])["topic"] = args["topic"]
    return {"topic": args["topic"]}


def _invite_guest(state: State, args: Json) -> Json:
    key = new_id(state["invitations"], "inv-")
    state["invitations"][key] = dict(args)
    return {"invited": args["email"]}


def _post_link(state: State, args: Json) -> Json:
    _channel(state, args["channel"])
    key = new_id(state["messages"], "msg-")
    state["messages"][key] = {"id": key, "from": "noor", "text": args.get("comment", ""), **args}
    return {"posted": key}


def _add_reminder(state: State, args: Json) -> Json:
    key = new_id(state["reminders"], "rem-")
    state["reminders"][key] = dict(args)
    return {"reminder": key}


CHANNEL = text("The channel's name")
VERBS = [
    Verb("list_channels", "All channels with their topics and members.", schema(), _list_channels),
    Verb("read_channel", "The messages of a channel.", schema(["channel"], channel=CHANNEL), _read_channel),
    Verb("search_messages", "Find messages by their text.", schema(["query"], query=text()), _search_messages),
    Verb("search_people", "Look people up by name.", schema(name=text()), _search_people),
    Verb(
        "read_direct_messages",
        "The direct messages that somebody sent.",
        schema(["from"], **{"from": text("A handle")}),
        _read_direct_messages,
    ),
    Verb("open_page", "Read a web page.", schema(["url"], url=text(format="uri")), _open_page),
    Verb(
        "post_message",
        "Write into a channel.",
        schema(["channel", "text"], channel=CHANNEL, text=text()),
        _post_message,
        writes=True,
    ),
    Verb(
        "send_direct_message",
        "Write to one person; outside of the company, to an e-mail address.",
        schema(["to", "text"], to=text("A handle or an e-mail address"), text=text()),
        _send_direct_message,
        writes=True,
    ),
    Verb(
        "create_channel",
        "Open a channel.",
        schema(["name"], name=text("Small letters and hyphens"), members=texts("Handles"), topic=text()),
        _create_channel,
        writes=True,
    ),
    Verb(
        "add_to_channel",
        "Add people to a channel.",
        schema(["channel", "users"], channel=CHANNEL, users=texts("Handles, or e-mail addresses of guests")),
        _add_to_channel,
        writes=True,
    ),
    Verb(
        "remove_from_channel",
        "Remove somebody from a channel.",
        schema(["channel", "user"], channel=CHANNEL, user=text("A handle")),
        _remove_from_channel,
        writes=True,
    ),
    Verb(
        "archive_channel",
        "Close a channel for good.",
        schema(["channel"], channel=CHANNEL),
        _archive_channel,
        writes=True,
    ),
    Verb(
        "set_topic",
        "Set the topic of a channel.",
        schema(["channel", "topic"], channel=CHANNEL, topic=text()),
        _set_topic,
        writes=True,
    ),
    Verb(
        "invite_guest",
        "Invite somebody from outside by mail.",
        schema(
            ["email", "channel"],
            email=text(format="email"),
            channel=CHANNEL,
            until=text("The last day of the access", format="date"),
        ),
        _invite_guest,
        writes=True,
    ),
    Verb(
        "post_link",
        "Post a link with a preview.",
        schema(["channel", "url"], channel=CHANNEL, url=text("https://…"), comment=text()),
        _post_link,
        writes=True,
    ),
    Verb(
        "add_reminder",
        "Remind somebody of something.",
        schema(["user", "at", "text"], user=text("A handle"), at=text("YYYY-MM-DD HH:MM"), text=text()),
        _add_reminder,
        writes=True,
    ),
]

CHANNELS = [
    ("general", "Company news", ["noor", "lars.berg", "mei.tanaka", "ibrahim", "chen_hui", "sofia"]),
    ("ops", "Deploys and incidents", ["noor", "lars.berg", "ibrahim"]),
    ("design", "Brand and screens", ["noor", "mei.tanaka", "sofia"]),
    ("customers", "Messages of customers, bridged in", ["noor", "sofia", "chen_hui"]),
    ("summer-party", "26 June!", ["noor", "sofia"]),
    ("项目-极光", "极光项目", ["noor", "chen_hui"]),
]
PEOPLE = [
    ("lars.berg", "Lars Berg"),
    ("mei.tanaka", "田中 芽衣 (Mei Tanaka)"),
    ("ibrahim", "Ibrahim Sesay"),
    ("chen_hui", "陈慧 Chen Hui"),
    ("sofia", "Sofia Marchetti"),
    ("lars.holm", "Lars Holm"),
]
MESSAGES = [
    ("general", "lars.berg", "Good morning! The new coffee machine is in the kitchen on floor 3."),
    ("ops", "ibrahim", "Deploy 2026.23 is planned for Thursday 18:30: https://wiki.fjordlight.example/runbooks/23"),
    ("ops", "lars.berg", "Database disk at 91%. Who can look?"),
    ("design", "mei.tanaka", "ロゴの案です。https://figma.example/file/9Xy/logo ご意見は6月12日までに。"),
    ("customers", "bridge", "Ana Prado (ana.prado@solmar.example) asks: may we join the beta until 30 June?"),
    ("customers", "bridge", "Kei from Hoshi Ltd: the invoice link is broken, thank you."),
    ("summer-party", "sofia", "Boat leaves at 17:00 from Pier 4 on 26 June. Price is 35 EUR each."),
    ("项目-极光", "chen_hui", "周五下午3点评审，请把王磊（wang.lei@jiguang.example）加进来。"),
]  # fmt: skip
DIRECT = [
    ("ibrahim", "Can you remind me on 2026-06-11 at 17:45 to freeze the branch?"),
    ("sofia", "Could you open a channel called autumn-campaign with mei.tanaka and me?"),
    ("chen_hui", "请帮我把会议改到6月16日上午10点。"),
]
WEB = {
    "https://wiki.fjordlight.example/runbooks/23": "Runbook 23: 1. announce in ops 2. drain 3. migrate 4. undrain.",
    "https://status.cloudhost.example": "All systems normal. Maintenance on 14 June 2026, 02:00-04:00 UTC.",
    "https://blog.lightfair.example/program": "Light Fair, program: June 17, hall 5, registration at https://lightfair.example/register",
}


def _opening() -> State:
    keys = ("name", "topic", "members")
    return {
        "channels": {each[0]: {**dict(zip(keys, each, strict=True)), "private": False} for each in CHANNELS},
        "people": {handle: {"handle": handle, "name": name} for handle, name in PEOPLE},
        "messages": {
            f"msg-{n}": {"id": f"msg-{n}", "channel": channel, "from": sender, "text": words}
            for n, (channel, sender, words) in enumerate(MESSAGES, 1)
        },
        "direct": {
            f"dm-{n}": {"from": sender, "to": "noor", "text": words} for n, (sender, words) in enumerate(DIRECT, 1)
        },
        "web": {url: {"text": page} for url, page in WEB.items()},
        "invitations": {},
        "reminders": {},
    }


OFFICE = Office("chat", ABOUT, VERBS, _opening)
