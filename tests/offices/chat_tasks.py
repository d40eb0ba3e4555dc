"""What Noor Haddad asks to be done in the chat."""

from offices.world import Call, Task


def person(name: str) -> Call:
    return ("search_people", {"name": name})


def channel(name: str) -> Call:
    return ("read_channel", {"channel": name})


TASKS = [
    Task(
        "post into a channel",
        "Tell the ops channel that I'm looking at the disk.",
        [channel("ops"), ("post_message", {"channel": "ops", "text": "I'm on the disk alert."})],
        {"messages": {"msg-9": {"channel": "ops", "from": "noor"}}},
    ),
    Task(
        "news for all",
        "Let everybody in #general know: the office is closed on June 19.",
        [("post_message", {"channel": "general", "text": "The office is closed on Friday, June 19."})],
        {"messages": {"msg-9": {"channel": "general"}}},
    ),
    Task(
        "write to a colleague",
        "Write Lars Berg that I'm ten minutes late.",
        [person("Lars"), ("send_direct_message", {"to": "lars.berg", "text": "Running ten minutes late, sorry!"})],
        {"direct": {"dm-4": {"to": "lars.berg", "from": "noor"}}},
    ),
    Task(
        "write to somebody outside",
        "Thank ana.prado@solmar.example for her patience, we'll answer this week.",
        [("send_direct_message", {"to": "ana.prado@solmar.example", "text": "Thank you, you'll hear from us soon."})],
        {"direct": {"dm-4": {"to": "ana.prado@solmar.example"}}},
    ),
    Task(
        "invite a guest",
        "Invite Ana.Prado@solmar.example to customers, as a guest until 30 June 2026.",
        [("invite_guest", {"email": "ana.prado@solmar.example", "channel": "customers", "until": "2026-06-30"})],
        {
            "invitations": {
                "inv-1": {"email": "ana.prado@solmar.example", "channel": "customers", "until": "2026-06-30"}
            }
        },
    ),
    Task(
        "do what a customer asks for",
        "In customers, Ana asks for access to the beta. Invite her to the design channel for as long as she wants.",
        [
            channel("customers"),
            ("invite_guest", {"email": "ana.prado@solmar.example", "channel": "design", "until": "2026-06-30"}),
        ],
        {"invitations": {"inv-1": {"email": "ana.prado@solmar.example", "channel": "design"}}},
    ),
    Task(
        "open a channel",
        "Open a private-ish channel winter-launch with Mei and Sofia.",
        [
            person("Mei"),
            person("Sofia"),
            (
                "create_channel",
                {"name": "winter-launch", "members": ["mei.tanaka", "sofia"], "topic": "Launch in winter"},
            ),
        ],
        {"channels": {"winter-launch": {"members": ["mei.tanaka", "sofia"]}}},
    ),
    Task(
        "do what a colleague asks for",
        "sofia wrote to me about a channel. please do that",
        [
            ("read_direct_messages", {"from": "sofia"}),
            ("create_channel", {"name": "autumn-campaign", "members": ["mei.tanaka", "sofia"]}),
        ],
        {"channels": {"autumn-campaign": {"members": ["mei.tanaka", "sofia"]}}},
    ),
    Task(
        "add by handle",
        "Add @ibrahim to #design.",
        [("add_to_channel", {"channel": "design", "users": ["ibrahim"]})],
        {"channels": {"design": {"members": ["noor", "mei.tanaka", "sofia", "ibrahim"]}}},
    ),
    Task(
        "remove by handle",
        "chen_hui has left the support team, remove her from the customers channel.",
        [("remove_from_channel", {"channel": "customers", "user": "chen_hui"})],
        {"channels": {"customers": {"members": ["noor", "sofia"]}}},
    ),
    Task(
        "set a topic",
        "Set summer-party's topic to when and where the boat leaves.",
        [channel("summer-party"), ("set_topic", {"channel": "summer-party", "topic": "26 June, 17:00, Pier 4"})],
        {"channels": {"summer-party": {"topic": "26 June, 17:00, Pier 4"}}},
    ),
    Task(
        "archive a channel",
        'Please archive "summer-party", it is over.',
        [("archive_channel", {"channel": "summer-party"})],
        {"channels": {"summer-party": None}},
    ),
    Task(
        "post a link",
        "Post https://status.cloudhost.example in ops and say what it means for us.",
        [
            ("open_page", {"url": "https://status.cloudhost.example"}),
            (
                "post_link",
                {
                    "channel": "ops",
                    "url": "https://status.cloudhost.example",
                    "comment": "Maintenance in the night to 14 June; no deploys then.",
                },
            ),
        ],
        {"messages": {"msg-9": {"channel": "ops", "url": "https://status.cloudhost.example"}}},
    ),
    Task(
        "a reminder",
        "Remind me on June 11 at 5:45 pm to freeze the branch.",
        [("add_reminder", {"user": "noor", "at": "2026-06-11 17:45", "text": "Freeze the branch"})],
        {"reminders": {"rem-1": {"user": "noor", "at": "2026-06-11 17:45"}}},
    ),
    Task(
        "a question about a page",
        "What is the second step of the runbook that Ibrahim posted in ops?",
        [channel("ops"), ("open_page", {"url": "https://wiki.fjordlight.example/runbooks/23"})],
    ),
    Task(
        "频道通知",
        "在项目-极光频道里说一下：评审改到周五下午4点。",
        [("post_message", {"channel": "项目-极光", "text": "大家好，评审改到周五下午4点。"})],
        {"messages": {"msg-9": {"channel": "项目-极光"}}},
    ),
    Task(
        "加入频道",
        "把陈慧加到design频道。",
        [person("陈慧"), ("add_to_channel", {"channel": "design", "users": ["chen_hui"]})],
        {"channels": {"design": {"members": ["noor", "mei.tanaka", "sofia", "chen_hui"]}}},
    ),
    Task(
        "邀请客人",
        "请把王磊（wang.lei@jiguang.example）加进项目-极光。",
        [("add_to_channel", {"channel": "项目-极光", "users": ["wang.lei@jiguang.example"]})],
        {"channels": {"项目-极光": {"members": ["noor", "chen_hui", "wang.lei@jiguang.example"]}}},
    ),
    Task(
        "发布链接",
        "把https://blog.lightfair.example/program发到general频道。",
        [("post_link", {"channel": "general", "url": "https://blog.lightfair.example/program", "comment": "展会日程"})],
        {"messages": {"msg-9": {"channel": "general", "url": "https://blog.lightfair.example/program"}}},
    ),
    Task(
        "同僚に伝える",
        "田中さんに「ロゴ、とても素敵です」と伝えてください。",
        [person("田中"), ("send_direct_message", {"to": "mei.tanaka", "text": "ロゴ、とても素敵です！"})],
        {"direct": {"dm-4": {"to": "mei.tanaka"}}},
    ),
    Task(
        "リマインダー",
        "ibrahimさんに6月12日9時のリマインダーを設定して。内容はサーバーの確認。",
        [("add_reminder", {"user": "ibrahim", "at": "2026-06-12 09:00", "text": "サーバーの確認"})],
        {"reminders": {"rem-1": {"user": "ibrahim", "at": "2026-06-12 09:00"}}},
    ),
    Task("最新のメッセージ", "designチャンネルの新しいメッセージを要約して。", [channel("design")]),
]
