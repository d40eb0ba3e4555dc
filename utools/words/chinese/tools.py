"""What the built-in tools and their arguments are, in Chinese, by the English description. Pure."""

from collections.abc import Mapping
from typing import Final

DESCRIPTIONS: Final[Mapping[str, str]] = {
    # ── builtin/calculator.py ──
    (
        "Calculate an expression, or else apply an operation to a list of numbers. Give either "
        "{'expression': '(2 + 3) * 4 - mean(1, 2)'} or {'operation': 'mean', 'numbers': [1, 2]}."
    ): (
        "计算一个表达式，或者对一组数做一种运算。请给出 {'expression': '(2 + 3) * 4 - mean(1, 2)'}，"
        "或者 {'operation': 'mean', 'numbers': [1, 2]}。"
    ),
    "Numbers, + - * / // % ** ( ), and mean, max, min, sum, count, median.": (
        "数字、+ - * / // % ** ( )，以及 mean、max、min、sum、count、median。"
    ),
    "Instead: what to do with the numbers.": "或者：对这些数做什么。",
    "For an operation.": "供运算使用。",
    # ── context/manager.py ──
    "Keep conversations: prepare the messages for a model, persist a turn, load or clear a session.": (
        "保存对话：为模型准备消息，存入一轮，读取或清空一个会话。"
    ),
    "prepare, persist, load or clear.": "prepare、persist、load 或 clear。",
    "Which conversation.": "哪一个会话。",
    "prepare, persist: what the user says.": "prepare、persist：用户说的话。",
    "prepare: the system message.": "prepare：系统消息。",
    "prepare, load: how much history, in messages, or {messages, tokens}; null is no limit.": (
        "prepare、load：历史的多少，按消息数，或 {messages, tokens}；null 表示不限。"
    ),
    "prepare, load: vendors' shapes to give beside ours.": "prepare、load：除我们的格式外，还要给出哪些厂商的格式。",
    "prepare: of the summary; en if it is not given.": "prepare：摘要的语言；不给出时为 en。",
    "persist: the conversation, an array of messages or its text; its last turn is stored.": (
        "persist：对话，消息数组或其文本；存入最后一轮。"
    ),
    "persist: the answer, where there are no messages_json.": "persist：没有 messages_json 时的回答。",
    "persist: a turn that is stored already is not stored again.": "persist：已经存入的一轮不会再次存入。",
    "persist: seconds the session is kept.": "persist：会话保存的秒数。",
    # ── builtin/echo.py ──
    "Return the given text unchanged.": "原样返回给出的文本。",
    "The text to return.": "要返回的文本。",
    # ── builtin/email.py ──
    "Send an e-mail to allowed recipients, with files attached if need be.": (
        "向允许的收件人发送电子邮件，需要时附上文件。"
    ),
    "Addresses.": "地址。",
    "One line.": "一行。",
    "Plain text.": "纯文本。",
    "The same as HTML.": "相同内容的 HTML。",
    "Paths of files.": "文件路径。",
    # ── builtin/feishu_bot.py ──
    "Send a message to a Feishu group: a text, a rich post, or an interactive card.": (
        "向飞书群发送消息：文本、富文本或交互卡片。"
    ),
    "A plain text.": "纯文本。",
    "Its title.": "标题。",
    "Its lines.": "各行。",
    "Makes it a link.": "使它成为链接。",
    "A user's id to mention, or all.": "要提及的用户 id，或 all。",
    "A rich text: paragraphs of pieces.": "富文本：由片段组成的段落。",
    "An interactive card, in Feishu's JSON.": "交互卡片，用飞书的 JSON。",
    "Of the post.": "富文本的语言。",
    # ── builtin/file_search.py ──
    (
        "Search text files below a directory for a text, or else for its words, ignoring case. Returns path, line and "
        "snippet."
    ): "在一个目录下的文本文件中查找一段文字，或其中的词，不分大小写。返回路径、行号和片段。",
    "Text to find.": "要查找的文字。",
    "Directory to search.": "要查找的目录。",
    "Matches.": "结果条数。",
    # ── builtin/formatter.py ──
    "Format a number, a date or a table, or render a Jinja template with data. Returns a text.": (
        "格式化数字、日期或表格，或用数据渲染 Jinja 模板。返回文本。"
    ),
    "To be formatted.": "要格式化的数。",
    "Of the number.": "小数位数。",
    "For a number.": "用于数字。",
    "A time in ISO 8601, or `now`.": "ISO 8601 格式的时间，或 `now`。",
    "For a date, as strftime writes it.": "用于日期，按 strftime 的写法。",
    "For a date, such as Asia/Shanghai.": "用于日期，例如 Asia/Shanghai。",
    "The rows of a Markdown table.": "Markdown 表格的各行。",
    "For a table; all by default.": "用于表格；默认全部。",
    "A Jinja template, which may make up to 30000 characters.": "Jinja 模板，结果最多 30000 个字符。",
    "What the template may use, by name.": "模板可用的数据，按名字。",
    # ── builtin/health.py ──
    "Check whether URLs, TCP ports, Redis servers and databases answer.": (
        "检查 URL、TCP 端口、Redis 服务器和数据库是否有应答。"
    ),
    (
        "What to check: https://…, http://…, tcp://HOST:PORT, redis://HOST:PORT, postgresql://HOST:PORT/NAME or "
        "sqlite:PATH."
    ): (
        "检查什么：https://…、http://…、tcp://HOST:PORT、redis://HOST:PORT、"
        "postgresql://HOST:PORT/NAME 或 sqlite:PATH。"
    ),
    "Seconds for each.": "每一项的秒数。",
    # ── builtin/http_request.py ──
    "Make an HTTP request. Returns the status, the body (JSON already parsed) and the main headers.": (
        "发出一个 HTTP 请求。返回状态、正文（JSON 已解析）和主要的头。"
    ),
    "What to do.": "做什么。",
    "http or https.": "http 或 https。",
    "Added to the URL.": "加在 URL 上。",
    "By name.": "按名字。",
    "A JSON body.": "JSON 正文。",
    "A form body.": "表单正文。",
    "A raw body.": "原始正文。",
    # ── builtin/json_transform.py ──
    "Query or reshape JSON data with a JMESPath expression, e.g. people[?age > `30`].name.": (
        "用 JMESPath 表达式查询或重组 JSON 数据，例如 people[?age > `30`].name。"
    ),
    "A JSON value, or its text.": "JSON 值，或其文本。",
    "JMESPath.": "JMESPath。",
    # ── builtin/log_transform.py ──
    "Parse log lines (plain, JSON, key=value, web server), filter them, and count them by a field.": (
        "解析日志行（纯文本、JSON、key=value、网页服务器），加以筛选，并按字段计数。"
    ),
    "A log file.": "日志文件。",
    "Log lines, instead of a file.": "日志行，代替文件。",
    "Only lines of this level or above.": "只要这一级别及以上的行。",
    "Only lines that hold this text, ignoring case.": "只要含有这段文字的行，不分大小写。",
    "Only lines whose fields have these values.": "只要字段为这些值的行。",
    "ISO 8601; only lines from then on.": "ISO 8601；只要从那时起的行。",
    "ISO 8601; only lines before then.": "ISO 8601；只要在那之前的行。",
    "Count the lines by this field.": "按这个字段计数。",
    "Lines to give.": "给出的行数。",
    # ── builtin/read_file.py, write_file.py ──
    "Read a text file, or a part of it: `limit` characters from character `offset` on.": (
        "读取文本文件，或其中一部分：从第 `offset` 个字符起的 `limit` 个字符。"
    ),
    "Path of the file.": "文件路径。",
    "Where to begin.": "从哪里开始。",
    "Characters.": "字符数。",
    "Write a text file, its directories made; the file is there whole or not at all.": (
        "写入文本文件，并建立所需的目录；文件要么完整写成，要么没有。"
    ),
    "What to write.": "写什么。",
    "new: only if there is none.": "new：仅当文件不存在时。",
    # ── builtin/shell_command.py ──
    "Run one of the allowed commands; returns its exit code and what it wrote.": (
        "运行允许的命令之一；返回退出码和它的输出。"
    ),
    "The command and its arguments, each a word of its own.": "命令及其参数，每个单独一项。",
    "The directory to run in.": "运行所在的目录。",
    # ── the agent as a tool ──
    "Let an agent work on a task of its own with the tools it is allowed, and give its answer.": (
        "让一个智能体用它获准的工具完成一项任务，并给出它的回答。"
    ),
    "The task.": "任务。",
    # ── builtin/redis_context.py ──
    "Keep values in Redis: get, set or delete a key, append to a list, list the keys.": (
        "在 Redis 中保存值：读取、设置或删除一个键，向列表追加，列出键。"
    ),
    "get, set, append (to a list), delete or list (the keys).": (
        "get、set、append（向列表）、delete 或 list（列出键）。"
    ),
    "Its name.": "键名。",
    "set, append: a text, stored as it is, or any other JSON value, stored as JSON.": (
        "set、append：文本按原样保存，其他 JSON 值以 JSON 保存。"
    ),
    "set, append: seconds the key is kept.": "set、append：键保存的秒数。",
    "get: read what was stored as JSON; else it comes as text.": "get：按 JSON 读取所存的值；否则为文本。",
    "list: only keys that start so.": "list：只要以此开头的键。",
}
