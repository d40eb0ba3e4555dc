"""What the built-in tools say to a model, in Chinese. Pure."""

from collections.abc import Mapping
from typing import Final

TEXTS: Final[Mapping[str, str]] = {
    # ── builtin/calculator.py ──
    (
        "an expression may hold only numbers, + - * / // % ** ( ), where ** is the power, and mean, max, min, sum, "
        "count and median"
    ): "表达式只能包含数字、+ - * / // % ** ( )（其中 ** 是乘方），以及 mean、max、min、sum、count 和 median",
    "give an 'expression', or else both 'operation' and 'numbers'": (
        "请给出 'expression'，或者同时给出 'operation' 和 'numbers'"
    ),
    "an expression may be at most {most} characters long": "表达式最多 {most} 个字符",
    "an exponent may be at most {most}": "指数最大为 {most}",
    "a negative number has no such root among the real numbers": "负数在实数范围内没有这样的根",
    "the result is too large": "结果过大",
    "this operation needs at least one number": "这个运算至少需要一个数",
    "division by zero": "除数为零",
    "the expression is nested too deeply": "表达式嵌套过深",
    "not an arithmetic expression: {reason}": "不是算术表达式：{reason}",
    # ── builtin/email.py ──
    "the subject holds a line break or another control character; nothing was sent": (
        "主题中有换行或其他控制字符；什么都没有发送"
    ),
    "{address} is not among allowed_recipients; nothing was sent": (
        "{address} 不在 allowed_recipients 之中；什么都没有发送"
    ),
    "the workflow's author has to set {name}; nothing was sent": "{name} 须由工作流作者设定；什么都没有发送",
    "the attachments are larger than {mib} MiB; nothing was sent": "附件超过 {mib} MiB；什么都没有发送",
    "sending e-mail needs an extra: pip install 'agent-core[email]'": (
        "发送邮件需要另外安装：pip install 'agent-core[email]'"
    ),
    "every recipient was refused: {replies}; nothing was sent": "所有收件人都被拒绝，什么都没有发送：{replies}",
    "{host} refused the message: {reply}": "{host} 拒绝了这封邮件：{reply}",
    "the server {host} refused the user or the password": "服务器 {host} 拒绝了用户名或密码",
    "the server {host} cannot be used: it was not done in time": "服务器 {host} 无法使用：未能按时完成",
    "the server {host} cannot be used: {reason}": "服务器 {host} 无法使用：{reason}",
    "{host} broke off while the message was sent": "发送邮件时 {host} 中断了连接",
    # ── builtin/feishu_bot.py ──
    "give one of text, post and card; you gave {kinds}": "text、post 和 card 请给出其中一个；你给出的是：{kinds}",
    "used as the URL of a webhook": "用作 webhook 的网址",
    "no reason was given": "没有说明原因",
    "the message has {size} bytes, and Feishu takes at most {most}; send a shorter one": (
        "消息有 {size} 个字节，飞书最多接受 {most} 个；请发送更短的消息"
    ),
    "Feishu answered {status} with what is not JSON": "飞书的应答（状态 {status}）不是 JSON",
    "Feishu refused the message: {reason} (code {code})": "飞书拒绝了这条消息（代码 {code}）：{reason}",
    "the webhook in {variable} is no URL of a host that may be reached": (
        "{variable} 中的 webhook 不是允许访问的主机的网址"
    ),
    "used to sign a message": "用于给消息签名",
    # ── builtin/file_search.py ──
    "{directory!r} holds more than {most} files; search a directory below it": (
        "{directory!r} 中的文件超过 {most} 个；请在它下面的某个目录中搜索"
    ),
    "{error}; say by root_dir where to search": "{error}；请用 root_dir 指明搜索的位置",
    # ── builtin/files.py ──
    "{path!r} is larger than {mib} MiB": "{path!r} 超过 {mib} MiB",
    "the text is larger than {mib} MiB": "文本超过 {mib} MiB",
    # ── builtin/formatter.py ──
    "give one of number, date, rows and template; you gave {kinds}": (
        "number、date、rows 和 template 请给出其中一个；你给出的是：{kinds}"
    ),
    "the template cannot be rendered: {reason}": "模板无法渲染：{reason}",
    "{value!r} is no time in ISO 8601, such as 2026-01-31T08:00:00Z": (
        "{value!r} 不是 ISO 8601 格式的时间，例如 2026-01-31T08:00:00Z"
    ),
    "there is no time zone {timezone!r}; write Europe/Berlin, Asia/Shanghai or UTC": (
        "没有时区 {timezone!r}；请写成 Europe/Berlin、Asia/Shanghai 或 UTC"
    ),
    "the date cannot be written so: {error}": "日期无法这样写出：{error}",
    "the template takes too much time or memory; let it do less": "模板耗费的时间或内存过多；请让它少做一些",
    "the table has more than {most} characters; give fewer rows or columns": "表格超过 {most} 个字符；请减少行或列",
    # ── builtin/health.py ──
    "https://…, http://…, tcp://HOST:PORT, redis://HOST:PORT, postgresql://HOST:PORT/NAME or sqlite:PATH": (
        "https://…、http://…、tcp://HOST:PORT、redis://HOST:PORT、postgresql://HOST:PORT/NAME 或 sqlite:PATH"
    ),
    "{target!r} cannot be checked; write {kinds}": "{target!r} 无法检查；请写成 {kinds}",
    "{target!r} has no host or no port; write {kind}://HOST:PORT": (
        "{target!r} 缺少主机或端口；请写成 {kind}://HOST:PORT"
    ),
    "a target must not carry a user or a password; name a secret instead (preset redis_env)": (
        "目标中不能带有用户名或密码；请改为指定密钥的名称（预设 redis_env）"
    ),
    "{target!r} has a database's name with a NUL character; write postgresql://HOST:PORT/NAME": (
        "{target!r} 的数据库名含有 NUL 字符；请写成 postgresql://HOST:PORT/NAME"
    ),
    "there is nothing to check; give targets: {kinds}": "没有要检查的目标；请给出 targets：{kinds}",
    "no answer within {seconds:g} seconds": "{seconds:g} 秒内没有应答",
    # ── builtin/health_checks.py ──
    "the port is open; to check PostgreSQL itself: pip install 'agent-core[postgres]'": (
        "端口是开放的；要检查 PostgreSQL 本身，请运行 pip install 'agent-core[postgres]'"
    ),
    "not as Redis answers: {line!r}": "不是 Redis 的应答：{line!r}",
    "the host has no address": "该主机没有地址",
    "status {status}": "状态 {status}",
    "not as PostgreSQL answers": "不是 PostgreSQL 的应答",
    "not as Redis answers: a line without end": "不是 Redis 的应答：一行没有结尾",
    # ── builtin/http_request.py ──
    "the server answered {status}": "服务器的应答是 {status}",
    "the method {method} is not allowed here; allowed are {allowed}": (
        "这里不允许使用方法 {method}；允许的有：{allowed}"
    ),
    "the server answered {status}: {text}": "服务器的应答是 {status}：{text}",
    "a token is sent only where allowed_domains says which hosts may have it": (
        "只有在 allowed_domains 指明哪些主机可以得到令牌时，才会发送令牌"
    ),
    "a request with a body needs its method: POST, PUT or PATCH": "带正文的请求需要写明 method：POST、PUT 或 PATCH",
    "give one of json, form and body, not {kinds}": "json、form 和 body 请只给出其中一个，不要同时给出 {kinds}",
    "only the first {limit} bytes of the body were read": "正文只读取了前 {limit} 个字节",
    "the header {name} is not yours to set": "请求头 {name} 不能由你设定",
    "the header {name} holds a line break or another control character": "请求头 {name} 中有换行或其他控制字符",
    # ── builtin/json_transform.py ──
    "the result is larger than {mib} MiB; select less": "结果超过 {mib} MiB；请少选取一些",
    "the data is larger than {mib} MiB": "数据超过 {mib} MiB",
    "JMESPath: {error}": "JMESPath：{error}",
    "'data' is a text that is not JSON: {error}": "'data' 是一段不是 JSON 的文本：{error}",
    # ── builtin/log_transform.py ──
    "{name} must be a time in ISO 8601, such as 2026-01-31T08:00:00Z; you gave {value!r}": (
        "{name} 必须是 ISO 8601 格式的时间，例如 2026-01-31T08:00:00Z；你给出的是 {value!r}"
    ),
    "give either the path of a log file, or the text of its lines": (
        "请给出日志文件的 path，或者日志各行的 text，只能给出其中一个"
    ),
    (
        "the field {field!r} has more than {most} different values; count by one that has fewer, or choose fewer "
        "lines, by level, contains, where, since or until"
    ): (
        "字段 {field!r} 的不同取值超过 {most} 个；请按取值更少的字段计数，或者用 level、contains、where、since 或 "
        "until 选取更少的行"
    ),
    "{path!r} has {size} bytes, and at most {most} are read; give a smaller file": (
        "{path!r} 有 {size} 个字节，最多读取 {most} 个；请给出更小的文件"
    ),
    # ── builtin/redis_context.py ──
    "the key {key!r} holds a {kind}; only texts and lists can be read here": (
        "键 {key!r} 的值的类型是 {kind}；这里只能读取文本和列表"
    ),
    "this host has no Redis: set {variable}, or name a secret with a URL in the preset url_env": (
        "这台主机没有 Redis：请设置 {variable}，或者在预设 url_env 中指定存有网址的密钥"
    ),
    "the list {key!r} has {count} items, and may have no more": "列表 {key!r} 已有 {count} 项，不能再增加",
    "{op} needs {names}": "{op} 需要 {names}",
    "{op} takes no {names}": "{op} 没有参数 {names}",
    "the prefix is empty": "前缀是空的",
    "the prefix {prefix!r} is the host's own; take one that does not start with {own}": (
        "前缀 {prefix!r} 由这台主机自己使用；请换一个不以 {own} 开头的前缀"
    ),
    "the {what} {name!r} holds a control or an invisible character": "{what} {name!r} 中有控制字符或不可见字符",
    "the value takes {size} bytes; at most {limit} are stored": "值有 {size} 个字节；最多存储 {limit} 个",
    "the value of {key!r} takes {size} bytes; at most {limit} are read": (
        "{key!r} 的值有 {size} 个字节；最多读取 {limit} 个"
    ),
    "the value holds a lone surrogate, which is not text": "值中含有单独的代理码元，不是文本",
    "the key {key!r} holds bytes that are no text": "键 {key!r} 的值是字节，不是文本",
    "the key {key!r} holds a text that is not JSON; get it without json": (
        "键 {key!r} 的值是一段不是 JSON 的文本；读取时请不要给出 json"
    ),
    "the key {key!r} holds another type of value than {op} is for; delete it first": (
        "键 {key!r} 的值的类型不适用于 {op}；请先删除它"
    ),
    # ── builtin/shell_command.py ──
    "allowed are: {allowed}; what stands for {names} is no option, and no path that leads out": (
        "允许的有：{allowed}；代替 {names} 的内容不能是选项，也不能是通向外部的路径"
    ),
    "the workflow's author allows none, by `allow`": "工作流作者没有用 `allow` 允许任何命令",
    "allowed are: {allowed}": "允许的有：{allowed}",
    "the command {command!r} is not allowed; {rule}": "不允许使用命令 {command!r}；{rule}",
    "{word!r} leads out of the root directory of this tool, through a link; name a file inside it": (
        "{word!r} 通过链接通向这个工具的根目录之外；请指定根目录之内的文件"
    ),
    "{word!r} leads to what is hidden, or a store of this host; neither is for tools": (
        "{word!r} 通向隐藏的内容，或这台主机的存储；两者都不供工具使用"
    ),
    # ── context/manager.py ──
    "persist needs a turn_id when it is called outside a run": "在运行之外调用 persist 时需要 turn_id",
    "persist needs messages_json, or user_message and final_answer": (
        "persist 需要 messages_json，或者 user_message 和 final_answer"
    ),
    "persist takes either messages_json, or user_message and final_answer": (
        "persist 只能给出 messages_json，或者 user_message 和 final_answer，不能同时给出"
    ),
    # ── context/store_redis.py ──
    "{server}: the session {session!r} holds something that is no turn; clear it, or give it another session_id": (
        "{server}：会话 {session!r} 中有不是对话轮次的内容；请清除它，或换一个 session_id"
    ),
    "{server}: another program keeps something under the key of the session {session!r}; use another session_id": (
        "{server}：会话 {session!r} 的键正被其他程序使用；请换一个 session_id"
    ),
    # ── context/turns.py ──
    "messages_json must be an array of messages {role, content, …}": (
        "messages_json 必须是由消息 {role, content, …} 组成的数组"
    ),
    "messages_json has no user message, so there is no turn to store": (
        "messages_json 中没有用户消息，因此没有可存储的轮次"
    ),
    "the tool call {call!r} has no answer": "工具调用 {call!r} 没有答复",
    "message {at} has the role {role!r}, which may stand only at the start, in the prompt": (
        "消息 {at} 的角色是 {role!r}，这个角色只能出现在开头的提示词中"
    ),
    "message {at} has the role {role!r}; allowed are: {roles}": "消息 {at} 的角色是 {role!r}；允许的有：{roles}",
    "message {at} has tool_calls that are not [{{id, function: {{name, arguments}}}}, …]": (
        "消息 {at} 的 tool_calls 不符合 [{{id, function: {{name, arguments}}}}, …]"
    ),
    "message {at} has a content that is not a text": "消息 {at} 的 content 不是文本",
    "message {at} has a trace_id that is not a text": "消息 {at} 的 trace_id 不是文本",
    "the turn cannot be stored: {error}": "这一轮对话无法存储：{error}",
    "the tool call {call!r} has no answer before message {at}": "工具调用 {call!r} 在消息 {at} 之前没有答复",
    "message {at} has two tool calls with the same id": "消息 {at} 中有两个 id 相同的工具调用",
    "messages_json is a text that is not JSON: {error}": "messages_json 是一段不是 JSON 的文本：{error}",
    "message {at} answers a tool call that was not made: {call!r}": "消息 {at} 答复的工具调用并不存在：{call!r}",
    # ── builtin/render_template.py ──
    "templates need jinja2: pip install 'agent-core[templates]'": (
        "模板需要 jinja2：pip install 'agent-core[templates]'"
    ),
    "it makes {size} characters, of {longest} at most": "它生成了 {size} 个字符，最多 {longest} 个",
    "it makes a text with a lone surrogate": "它生成的文本含有单独的代理码元",
}
