"""What Anna Keller asks of her assistant."""

from offices.world import Call, Task

LIST: Call = ("list_emails", {})
JONAS, PETRA, MAEVE = "jonas.brandt@nordwind.example", "petra.lang@nordwind.example", "o'neill@brightpath.example"
LIU, SATO, MAMA = "liu.wei@chengfeng.example", "sato.yuki@minato.example", "ingrid.keller@posteo.example"
PAT, CHEN = "pat.doyle@doyle-law.example", "chen.jing@chengfeng.example"


def read(key: str) -> Call:
    return ("read_email", {"email_id": key})


def contact(name: str) -> Call:
    return ("search_contacts", {"name": name})


def events(query: str) -> Call:
    return ("search_events", {"query": query})


def send(to: str, subject: str, body: str, **more: object) -> Call:
    return ("send_email", {"to": [to], "subject": subject, "body": body, **more})


TASKS = [
    Task(
        "mail to an address",
        f"Write to {JONAS} that room Elbe is fine with me.",
        [send(JONAS, "Room for the review", "Hi Jonas,\n\nElbe works for me.\n\nAnna")],
        {"outbox": {"out-1": {"to": [JONAS], "cc": [], "bcc": []}}},
    ),
    Task(
        "answer a mail",
        "Answer Jonas's mail about the quarterly review: the new slot suits me, and he should invite Liu Wei.",
        [LIST, read("m-201"), send(JONAS, "Re: Room for the quarterly review", "Agreed. Please invite Liu Wei, too.")],
        {"outbox": {"out-1": {"to": [JONAS]}}},
    ),
    Task(
        "mail to somebody in the address book",
        "tell petra i'm in for thursday",
        [LIST, read("m-208"), contact("Petra"), send(PETRA, "Re: Team lunch", "Count me in!")],
        {"outbox": {"out-1": {"to": [PETRA]}}},
    ),
    Task(
        "two recipients in a sentence",
        f"Send Pat Doyle, {PAT}, my comments: clause 4 needs a cap, the rest is fine. Copy Maeve ({MAEVE}).",
        [send(PAT, "Comments on the draft", "Dear Pat,\n\nclause 4 needs a cap on liability.", cc=[MAEVE])],
        {"outbox": {"out-1": {"to": [PAT], "cc": [MAEVE]}}},
    ),
    Task(
        "an attachment by its name",
        f'Please send contract-v2.docx to "{PAT}" with the subject "Draft 2".',
        [send(PAT, "Draft 2", "Please find the draft attached.", attachments=["contract-v2.docx"])],
        {"outbox": {"out-1": {"to": [PAT], "subject": "Draft 2", "attachments": ["contract-v2.docx"]}}},
    ),
    Task(
        "forward a bill",
        "Forward the Stadtwerke bill to Mama, she pays this one.",
        [
            ("search_emails", {"query": "Stadtwerke"}),
            contact("Mama"),
            ("forward_email", {"email_id": "m-202", "to": [MAMA], "note": "Could you take this one? Thanks!"}),
        ],
        {"outbox": {"out-1": {"forwarded": "m-202", "to": [MAMA]}}},
    ),
    Task(
        "delete a newsletter",
        "Get rid of that GadgetFlash newsletter.",
        [("search_emails", {"query": "GadgetFlash"}), ("delete_email", {"email_id": "m-205"})],
        {"emails": {"m-205": None}},
    ),
    Task(
        "forwarding while away",
        f"I'm on leave: forward all my mail to {PETRA} until 3 July 2026.",
        [("set_forwarding", {"address": PETRA, "until": "2026-07-03"})],
        {"settings": {"forwarding": {"address": PETRA, "until": "2026-07-03"}}},
    ),
    Task(
        "move an event",
        "Can you move the dentist to June 18 at 2 pm?",
        [events("Dentist"), ("reschedule_event", {"event_id": "ev-32", "new_start": "2026-06-18T14:00"})],
        {"events": {"ev-32": {"start": "2026-06-18T14:00", "title": "Dentist", "duration_minutes": 60}}},
    ),
    Task(
        "invite two people to an event",
        "Invite Liu Wei and Jonas to the budget planning.",
        [
            events("budget"),
            contact("Liu Wei"),
            contact("Jonas"),
            ("add_participants", {"event_id": "ev-36", "participants": [LIU, JONAS]}),
        ],
        {"events": {"ev-36": {"participants": [PETRA, LIU, JONAS], "start": "2026-06-15T13:00"}}},
    ),
    Task(
        "an event with a list of participants",
        f'Book room Elbe for "Offsite prep", Wednesday the 17th of June, 9:00-11:30, with\n- {JONAS}\n- {PETRA}',
        [
            (
                "create_event",
                {
                    "title": "Offsite prep",
                    "start": "2026-06-17T09:00",
                    "duration_minutes": 150,
                    "participants": [JONAS, PETRA],
                    "location": "Room Elbe",
                },
            )
        ],
        {"events": {"ev-37": {"start": "2026-06-17T09:00", "participants": [JONAS, PETRA], "duration_minutes": 150}}},
    ),
    Task(
        "an event from a mail",
        "Put my train to Munich into the calendar.",
        [
            ("search_emails", {"query": "München"}),
            read("m-207"),
            (
                "create_event",
                {
                    "title": "ICE 507 to Munich",
                    "start": "2026-06-24T06:34",
                    "duration_minutes": 347,
                    "location": "Hamburg Hbf",
                    "description": "Coach 7, seat 42",
                },
            ),
        ],
        {"events": {"ev-37": {"start": "2026-06-24T06:34", "participants": []}}},
    ),
    Task(
        "an event tomorrow",
        "Lunch with Mama tomorrow at 12:30 at Café Leonar, just a note for me.",
        [("create_event", {"title": "Lunch with Mama", "start": "2026-06-09T12:30", "location": "Café Leonar"})],
        {"events": {"ev-37": {"start": "2026-06-09T12:30", "location": "Café Leonar", "participants": []}}},
    ),
    Task("a question about a mail", "When does my train leave?", [("search_emails", {"query": "ICE"}), read("m-207")]),
    Task(
        "移动周会",
        "把和成丰的周会改到6月11日下午3点半。",
        [events("成丰"), ("reschedule_event", {"event_id": "ev-34", "new_start": "2026-06-11T15:30"})],
        {"events": {"ev-34": {"start": "2026-06-11T15:30"}}},
    ),
    Task(
        "回信并抄送",
        f"给刘伟回信，说样品已经收到了，抄送{CHEN}。",
        [contact("刘伟"), send(LIU, "回复：关于样品", "刘总您好，样品已收到，谢谢！", cc=[CHEN])],
        {"outbox": {"out-1": {"to": [LIU], "cc": [CHEN]}}},
    ),
    Task(
        "取消瑜伽课",
        "取消周二晚上的瑜伽课。",
        [("list_events", {"from_day": "2026-06-09"}), ("cancel_event", {"event_id": "ev-35"})],
        {"events": {"ev-35": None}},
    ),
    Task(
        "查看日程",
        "下周一我有什么安排？",
        [("list_events", {"from_day": "2026-06-15", "to_day": "2026-06-15"})],
    ),
    Task(
        "メールに返信",
        "佐藤さんのメールに、6月18日15時で大丈夫ですと返事してください。",
        [
            ("search_emails", {"query": "佐藤"}),
            read("m-204"),
            send(SATO, "Re: 打ち合わせの件", "佐藤様\n\n6月18日15時からで問題ございません。よろしくお願いいたします。"),
        ],
        {"outbox": {"out-1": {"to": [SATO]}}},
    ),
    Task(
        "打ち合わせを入れる",
        "6月18日の15時から2時間、港南ビル4階で打ち合わせを入れて。佐藤さんも招待して。",
        [
            contact("佐藤"),
            (
                "create_event",
                {
                    "title": "佐藤様との打ち合わせ",
                    "start": "2026-06-18T15:00",
                    "duration_minutes": 120,
                    "participants": [SATO],
                    "location": "港南ビル4階",
                },
            ),
        ],
        {"events": {"ev-37": {"start": "2026-06-18T15:00", "participants": [SATO], "location": "港南ビル4階"}}},
    ),
    Task(
        "ヨガの変更",
        "6月9日のヨガを19時半に変更してください。",
        [
            ("list_events", {"from_day": "2026-06-09"}),
            ("reschedule_event", {"event_id": "ev-35", "new_start": "2026-06-09T19:30"}),
        ],
        {"events": {"ev-35": {"start": "2026-06-09T19:30"}}},
    ),
]
