"""Mail and calendar: the inbox, the diary and the address book of one person."""

from offices.world import Json, Office, State, Verb, new_id, schema, text, texts
from utools.errors import ToolError

ME = "anna.keller@nordwind.example"
ABOUT = (
    f"You are the assistant of Anna Keller ({ME}), Nordwind GmbH, Hamburg. Today is Monday, 2026-06-08. "
    "You read and write her mail and keep her calendar."
)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _head(mail: Json) -> Json:
    return {key: mail[key] for key in ("id", "from", "from_name", "subject", "date")}


def _list_emails(state: State, args: Json) -> Json:
    folder = args.get("folder", "inbox")
    return {"emails": [_head(mail) for mail in state["emails"].values() if mail["folder"] == folder]}


def _search_emails(state: State, args: Json) -> Json:
    query = args["query"].casefold()
    fields = ("from", "from_name", "subject", "body")
    found = [mail for mail in state["emails"].values() if any(query in mail[key].casefold() for key in fields)]
    return {"emails": [_head(mail) for mail in found]}


def _read_email(state: State, args: Json) -> Json:
    return _one(state, "emails", args["email_id"])


def _search_contacts(state: State, args: Json) -> Json:
    name = args["name"].casefold()
    return {"contacts": [each for each in state["contacts"].values() if name in each["name"].casefold()]}


def _list_events(state: State, args: Json) -> Json:
    first, last = args["from_day"], args.get("to_day", args["from_day"])
    return {"events": [each for each in state["events"].values() if first <= each["start"][:10] <= last]}


def _search_events(state: State, args: Json) -> Json:
    query = args["query"].casefold()
    return {
        "events": [
            each
            for each in state["events"].values()
            if query in f"{each['title']} {each['description']} {each['participants']}".casefold()
        ]
    }


def _one(state: State, collection: str, key: str) -> Json:
    if key not in state[collection]:
        raise ToolError("there is no {key} in {collection}", key=key, collection=collection)
    return state[collection][key]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _send_email(state: State, args: Json) -> Json:
    sent = {"cc": [], "bcc": [], "attachments": [], **args}
    key = new_id(state["outbox"], "out-")
    state["outbox"][key] = sent
    return {"sent": key}


def _forward_email(state: State, args: Json) -> Json:
    _one(state, "emails", args["email_id"])
    key = new_id(state["outbox"], "out-")
    state["outbox"][key] = {"forwarded": args["email_id"], "to": args["to"], "body": args.get("note", "")}
    return {"sent": key}


def _delete_email(state: State, args: Json) -> Json:
    _one(state, "emails", args["email_id"])
    del state["emails"][args["email_id"]]
    return {"deleted": args["email_id"]}


def _set_forwarding(state: State, args: Json) -> Json:
    state["settings"]["forwarding"] = {"until": None, **args}
    return {"forwarding": args["address"]}


def _create_event(state: State, args: Json) -> Json:
    key = new_id(state["events"], "ev-")
    defaults = {"duration_minutes": 60, "participants": [], "location": "", "description": ""}
    state["events"][key] = {"id": key, **defaults, **args}
    return {"created": key}


def _reschedule_event(state: State, args: Json) -> Json:
    event = _one(state, "events", args["event_id"])
    event |= {"start": args["new_start"]}
    if "new_duration_minutes" in args:
        event |= {"duration_minutes": args["new_duration_minutes"]}
    return {"event": event}


def _add_participants(state: State, args: Json) -> Json:
    event = _one(state, "events", args["event_id"])
    event["participants"] = [*event["participants"], *args["participants"]]
    return {"event": event}


def _cancel_event(state: State, args: Json) -> Json:
    _one(state, "events", args["event_id"])
    del state["events"][args["event_id"]]
    return {"cancelled": args["event_id"]}


START = "Local time in ISO 8601, e.g. 2026-06-13T14:00"
EMAIL_ID = text("As in list_emails or search_emails")
EVENT_ID = text("As in list_events or search_events")
MINUTES = {"type": "integer", "minimum": 5, "maximum": 1440}
VERBS = [
    Verb(
        "list_emails",
        "List the mails of a folder.",
        schema(folder=text(enum=["inbox", "archive", "spam"], default="inbox")),
        _list_emails,
    ),
    Verb("search_emails", "Find mails by sender, subject or text.", schema(["query"], query=text()), _search_emails),
    Verb("read_email", "Read one mail in full.", schema(["email_id"], email_id=EMAIL_ID), _read_email),
    Verb("search_contacts", "Look somebody up in the address book.", schema(["name"], name=text()), _search_contacts),
    Verb(
        "list_events",
        "List the calendar's events from one day to another.",
        schema(["from_day"], from_day=text(format="date"), to_day=text(format="date")),
        _list_events,
    ),
    Verb(
        "search_events", "Find events by title, text or participant.", schema(["query"], query=text()), _search_events
    ),
    Verb(
        "send_email",
        "Send a mail.",
        schema(
            ["to", "subject", "body"],
            to=texts("The recipients' addresses", format="email"),
            cc=texts(),
            bcc=texts(),
            subject=text(),
            body=text("Plain text"),
            attachments=texts("File names of attachments of mails in the mailbox"),
        ),
        _send_email,
        writes=True,
    ),
    Verb(
        "forward_email",
        "Forward a mail with its attachments.",
        schema(["email_id", "to"], email_id=EMAIL_ID, to=texts("Addresses"), note=text("Put above the mail")),
        _forward_email,
        writes=True,
    ),
    Verb(
        "delete_email", "Delete a mail for good.", schema(["email_id"], email_id=EMAIL_ID), _delete_email, writes=True
    ),
    Verb(
        "set_forwarding",
        "Forward all mail that comes in to another address.",
        schema(["address"], address=text("An e-mail address"), until=text("The last day", format="date")),
        _set_forwarding,
        writes=True,
    ),
    Verb(
        "create_event",
        "Put an event into the calendar and invite its participants.",
        schema(
            ["title", "start"],
            title=text(),
            start=text(START),
            duration_minutes={**MINUTES, "default": 60},
            participants=texts("E-mail addresses; each gets an invitation"),
            location=text("A room, an address or a meeting link"),
            description=text(),
        ),
        _create_event,
        writes=True,
    ),
    Verb(
        "reschedule_event",
        "Move an event to another time.",
        schema(["event_id", "new_start"], event_id=EVENT_ID, new_start=text(START), new_duration_minutes=MINUTES),
        _reschedule_event,
        writes=True,
    ),
    Verb(
        "add_participants",
        "Invite more people to an event.",
        schema(["event_id", "participants"], event_id=EVENT_ID, participants=texts("E-mail addresses")),
        _add_participants,
        writes=True,
    ),
    Verb(
        "cancel_event",
        "Cancel an event; all participants are told.",
        schema(["event_id"], event_id=EVENT_ID),
        _cancel_event,
        writes=True,
    ),
]


# ── one Monday ───────────────────────────────────────────────────────────────────────────────────

MAILS = [
    ("m-201", "jonas.brandt@nordwind.example", "Jonas Brandt", "Room for the quarterly review",
     "Hi Anna,\n\nthe big room is taken. Could we do the review on 17 June at 10:30 in room Elbe instead? "
     "Liu Wei (liu.wei@chengfeng.example) should join from their side.\n\nJonas"),
    ("m-202", "rechnung@stadtwerke.example", "Stadtwerke Kundenservice", "Ihre Rechnung Juni 2026",
     "Sehr geehrte Frau Keller,\n\nanbei Ihre Rechnung Nr. 2026-88123 über 218,40 EUR, fällig am 22.06.2026."),
    ("m-203", "o'neill@brightpath.example", "Maeve O'Neill", "Contract, second draft",
     "Dear Anna,\n\nplease find the second draft attached. Our counsel is Pat Doyle <pat.doyle@doyle-law.example>; "
     "could you send him your comments directly, with me in copy? Friday would be grand.\n\nMaeve"),
    ("m-204", "sato.yuki@minato.example", "佐藤 由紀", "打ち合わせの件",
     "アンナ様\n\nお世話になっております。次回の打ち合わせは6月18日15時からでいかがでしょうか。"
     "場所は港南ビル4階です。\n\n佐藤"),
    ("m-205", "news@gadgetflash.example", "GadgetFlash", "72 hours only: 40% off everything",
     "Anna, the sale of the year is here. Unsubscribe at https://gadgetflash.example/u/77"),
    ("m-206", "liu.wei@chengfeng.example", "刘伟", "关于样品",
     "安娜您好：\n\n样品已经寄出，单号 SF1380042291。收到后请告诉物流的陈静（chen.jing@chengfeng.example）。\n\n刘伟"),
    ("m-207", "no-reply@trainline.example", "TrainLine", "Your booking ICE 507",
     "Hamburg Hbf 06:34 - München Hbf 12:21, Wednesday, June 24, 2026, coach 7, seat 42. Booking code QX7P9L."),
    ("m-208", "petra.lang@nordwind.example", "Petra Lang", "Team lunch",
     "Hello all,\nlunch on Thursday at 12:15 at Trattoria Da Enzo, Deichstraße 28. Who is in?\nPetra"),
]  # fmt: skip
EVENTS = [
    ("ev-31", "Quarterly review", "2026-06-16T10:00", ["jonas.brandt@nordwind.example"], "Room Alster", "Figures Q2"),
    ("ev-32", "Dentist", "2026-06-11T08:30", [], "Dr. Wolff, Grindelallee 9", ""),
    ("ev-33", "Call with Brightpath", "2026-06-12T16:00", ["o'neill@brightpath.example"], "", "Contract draft"),
    ("ev-34", "和成丰的周会", "2026-06-10T09:00", ["liu.wei@chengfeng.example"], "在线", "样品进度"),
    ("ev-35", "Yoga", "2026-06-09T18:00", [], "Studio Nord", ""),
    ("ev-36", "Budget planning", "2026-06-15T13:00", ["petra.lang@nordwind.example"], "Room Elbe", "Bring laptop"),
]
CONTACTS = [
    ("Jonas Brandt", "jonas.brandt@nordwind.example"),
    ("Petra Lang", "petra.lang@nordwind.example"),
    ("Maeve O'Neill", "o'neill@brightpath.example"),
    ("刘伟 Liu Wei", "liu.wei@chengfeng.example"),
    ("佐藤 由紀 Sato Yuki", "sato.yuki@minato.example"),
    ("Dr. Sven Wolff", "praxis@wolff-zahn.example"),
    ("Mama", "ingrid.keller@posteo.example"),
]
ATTACHED = {"m-202": ["rechnung-2026-88123.pdf"], "m-203": ["contract-v2.docx"]}


def _opening() -> State:
    mails = {
        key: {
            "id": key,
            "folder": "inbox",
            "from": sender,
            "from_name": name,
            "to": [ME],
            "subject": subject,
            "date": f"2026-06-0{5 + number // 3}T{9 + number}:12",
            "body": body,
            "attachments": ATTACHED.get(key, []),
        }
        for number, (key, sender, name, subject, body) in enumerate(MAILS)
    }
    keys = ("title", "start", "participants", "location", "description")
    events = {key: {"id": key, "duration_minutes": 60, **dict(zip(keys, event, strict=True))} for key, *event in EVENTS}
    contacts = {email: {"name": name, "email": email} for name, email in CONTACTS}
    return {"emails": mails, "events": events, "contacts": contacts, "outbox": {}, "settings": {}}


OFFICE = Office("mail_calendar", ABOUT, VERBS, _opening)
