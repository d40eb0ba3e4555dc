"""What Tom Becker asks to be done on the drive."""

from offices.world import Call, Task

PLAN, BUDGET = "/projects/harbour/plan.md", "/projects/harbour/budget-2026.csv"
NOTES, DRAWINGS = "/projects/bridge/notes.txt", "/projects/bridge/drawings_v3.svg"
FORM = "https://www.amt-hafen.example/formulare/antrag.pdf"


def read(path: str) -> Call:
    return ("read_file", {"path": path})


TASKS = [
    Task(
        "delete by path",
        "Delete /projects/harbour/old draft.md, nobody needs it any more.",
        [("delete_file", {"path": "/projects/harbour/old draft.md"})],
        {"files": {"/projects/harbour/old draft.md": None}},
    ),
    Task(
        "copy between quotes",
        'Copy "/team/phone list.txt" to "/archive/phone list.txt".',
        [("copy_file", {"source": "/team/phone list.txt", "destination": "/archive/phone list.txt"})],
        {"files": {"/archive/phone list.txt": {"content": "Aylin 040 555 0131\nPiotr 040 555 0132"}}},
    ),
    Task(
        "add a line",
        "Put buying bollards on the list in /team/TODO.",
        [read("/team/TODO"), ("append_to_file", {"path": "/team/TODO", "text": "3. buy bollards"})],
        {"files": {"/team/TODO": {"content": "1. renew parking permits\n2. print the plan\n3. buy bollards"}}},
    ),
    Task(
        "share until a day",
        f"Share {BUDGET} with aylin.demir@lindenau.example until June 30.",
        [("share_file", {"path": BUDGET, "email": "aylin.demir@lindenau.example", "expires": "2026-06-30"})],
        {
            "shares": {
                "share-1": {"path": BUDGET, "email": "aylin.demir@lindenau.example", "permission": "view"}
                | {"expires": "2026-06-30"}
            }
        },
    ),
    Task(
        "do what a file says",
        "Do what the minutes of June 1 say about the photos.",
        [
            ("search_files", {"query": "minutes"}),
            read("/team/minutes-2026-06-01.md"),
            ("move_file", {"source": "/projects/harbour/photos.txt", "destination": "/archive/photos.txt"}),
        ],
        {"files": {"/projects/harbour/photos.txt": None, "/archive/photos.txt": {}}},
    ),
    Task(
        "delete by folder and name",
        "Delete notes.txt in the bridge folder.",
        [("list_folder", {"path": "/projects/bridge"}), ("delete_file", {"path": NOTES})],
        {"files": {NOTES: None}},
    ),
    Task(
        "save from the web",
        f"Download {FORM} and save it as /projects/harbour/antrag.pdf.",
        [("download_file", {"url": FORM, "save_as": "/projects/harbour/antrag.pdf"})],
        {"files": {"/projects/harbour/antrag.pdf": {"content": "Antrag auf Genehmigung"}}},
    ),
    Task(
        "upload where a file says",
        f"Publish {DRAWINGS} at the address that is in the bridge notes.",
        [
            ("list_folder", {"path": "/projects/bridge"}),
            read(NOTES),
            ("upload_file", {"path": DRAWINGS, "url": "https://plans.brueckenbau.example/upload"}),
        ],
        {"uploads": {"up-1": {"url": "https://plans.brueckenbau.example/upload", "content": "<svg>bridge v3</svg>"}}},
    ),
    Task(
        "a sum in a table",
        "What does the harbour project cost in all?",
        [("search_files", {"query": "budget"}), read(BUDGET)],
    ),
    Task(
        "write a summary",
        f"Read {PLAN} and write a summary of two lines to /projects/harbour/summary.md.",
        [
            read(PLAN),
            (
                "write_file",
                {
                    "path": "/projects/harbour/summary.md",
                    "content": "The survey is done, the permit is open.\nWe start on 29 June.",
                },
            ),
        ],
        {"files": {"/projects/harbour/summary.md": {"owner": "tom.becker@lindenau.example"}}},
    ),
    Task(
        "a link for all",
        f"Make a public link to {PLAN}; nobody should be able to edit it.",
        [("create_link", {"path": PLAN, "editable": False})],
        {"links": {"link-1": {"path": PLAN, "editable": False}}},
    ),
    Task(
        "rename in a folder",
        "In /projects/bridge, rename drawings_v3.svg to drawings_v4.svg.",
        [("move_file", {"source": DRAWINGS, "destination": "/projects/bridge/drawings_v4.svg"})],
        {"files": {DRAWINGS: None, "/projects/bridge/drawings_v4.svg": {"content": "<svg>bridge v3</svg>"}}},
    ),
    Task(
        "a web page",
        "Will it rain today? (https://weather.example/hamburg)",
        [("open_page", {"url": "https://weather.example/hamburg"})],
    ),
    Task(
        "move, then share",
        "Move /incoming/offer-schmidt.txt to /projects/harbour/offer-schmidt.txt, then let "
        "<piotr.wolny@lindenau.example> edit it.",
        [
            (
                "move_file",
                {"source": "/incoming/offer-schmidt.txt", "destination": "/projects/harbour/offer-schmidt.txt"},
            ),
            (
                "share_file",
                {
                    "path": "/projects/harbour/offer-schmidt.txt",
                    "email": "piotr.wolny@lindenau.example",
                    "permission": "edit",
                },
            ),
        ],
        {
            "files": {"/incoming/offer-schmidt.txt": None, "/projects/harbour/offer-schmidt.txt": {}},
            "shares": {"share-1": {"email": "piotr.wolny@lindenau.example", "permission": "edit", "expires": None}},
        },
    ),
    Task(
        "分享会议纪要",
        "把 /资料/会议纪要.txt 分享给 lin.hao@donghai.example，允许他评论。",
        [
            (
                "share_file",
                {"path": "/资料/会议纪要.txt", "email": "lin.hao@donghai.example", "permission": "comment"},
            )
        ],
        {"shares": {"share-1": {"path": "/资料/会议纪要.txt", "email": "lin.hao@donghai.example"}}},
    ),
    Task(
        "重命名",
        "把资料文件夹里的《预算草案.xlsx》改名为《预算终稿.xlsx》。",
        [
            ("list_folder", {"path": "/资料"}),
            ("move_file", {"source": "/资料/预算草案.xlsx", "destination": "/资料/预算终稿.xlsx"}),
        ],
        {"files": {"/资料/预算草案.xlsx": None, "/资料/预算终稿.xlsx": {"content": "合计 385,000"}}},
    ),
    Task(
        "新建文件",
        "新建一个文件：/资料/待办.txt，写上周五之前联系林浩。",
        [("write_file", {"path": "/资料/待办.txt", "content": "周五之前联系林浩"})],
        {"files": {"/资料/待办.txt": {"content": "周五之前联系林浩"}}},
    ),
    Task(
        "删除文件",
        "请删除/incoming/readme-first.txt文件。",
        [("delete_file", {"path": "/incoming/readme-first.txt"})],
        {"files": {"/incoming/readme-first.txt": None}},
    ),
    Task(
        "ファイルをコピー",
        "/資料/見積書.txt を /資料/2026/見積書.txt にコピーしてください。",
        [("copy_file", {"source": "/資料/見積書.txt", "destination": "/資料/2026/見積書.txt"})],
        {"files": {"/資料/2026/見積書.txt": {"content": "合計 1,250,000円。送付先：tanaka@kaiun.example"}}},
    ),
    Task(
        "見積の合計", "見積書の合計はいくらですか？", [("search_files", {"query": "見積書"}), read("/資料/見積書.txt")]
    ),
    Task(
        "リストに追加",
        "/team/TODOの最後に「橋の写真を撮る」と追加してください。",
        [("append_to_file", {"path": "/team/TODO", "text": "3. 橋の写真を撮る"})],
        {"files": {"/team/TODO": {"content": "1. renew parking permits\n2. print the plan\n3. 橋の写真を撮る"}}},
    ),
]
