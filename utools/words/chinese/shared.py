"""What all tools share in saying to a model, in Chinese: files, hosts, secrets, commands, Redis. Pure."""

from collections.abc import Mapping
from typing import Final

TEXTS: Final[Mapping[str, str]] = {
    # ── calls/database_threads.py ──
    "the database of this host cannot be used: {error}": "这台主机的数据库无法使用：{error}",
    # ── calls/deadline.py ──
    "not done within {seconds:g} seconds; ask for less": "{seconds:g} 秒内没有完成；请减少要做的事",
    # ── threads.py ──
    "the tool ended its thread with {kind}": "工具以 {kind} 结束了它的线程",
    # ── command.py ──
    "the command {program!r} cannot be started: {why}": "命令 {program!r} 无法启动：{why}",
    # ── error_text.py ──
    "it called sys.exit({code})": "工具调用了 sys.exit({code})",
    # ── errors.py ──
    "{message} (got {value})": "{message}（当前值：{value}）",
    "{where}: {message}": "{where}：{message}",
    # ── files/protected_paths.py ──
    "says what this host does": "决定这台主机的行为",
    "would stand beside Python that this host loads": "与这台主机加载的 Python 代码相邻",
    "is a program": "是程序",
    # ── files/sandbox.py ──
    "is a directory": "是目录",
    "is not a regular file": "不是普通文件",
    "has other names (hard links), which may lie outside the root": "另有其他名称（硬链接），可能位于根目录之外",
    "{path!r} is a store of this host, and not for tools": "{path!r} 是这台主机的存储，不供工具使用",
    "{path!r} is hidden: {hidden!r} begins with a dot": "{path!r} 是隐藏的：{hidden!r} 以点开头",
    "a symlink leads to the directory {path!r}; name the directory itself": (
        "目录 {path!r} 是经由符号链接到达的；请直接指定目录本身"
    ),
    "{path!r} is not a path": "{path!r} 不是路径",
    "{path!r} {flaw}": "{path!r} {flaw}",
    "there is no directory {path!r}": "没有目录 {path!r}",
    "{path!r} is a directory": "{path!r} 是目录",
    "{path!r} {refusal}, and is not written by tools": "{path!r} {refusal}，不能由工具写入",
    "the path has {count} parts, and at most {most} are made": "路径有 {count} 级，最多创建 {most} 级",
    "there is no directory {directory!r}": "没有目录 {directory!r}",
    "it holds more than {mib} MiB, and is not added to": "它超过 {mib} MiB，不能再追加",
    "what is there is no regular file": "该位置上的不是普通文件",
    "{path!r} lies outside of what this definition may read": "{path!r} 不在此定义可以读取的范围内",
    "{path!r} does not lie inside the root directory of this tool": "{path!r} 不在这个工具的根目录之内",
    "there is no file {path!r}": "没有文件 {path!r}",
    "{path!r} cannot be opened: {reason}": "{path!r} 无法打开：{reason}",
    "there is a file {path!r} already": "文件 {path!r} 已经存在",
    "{path!r} cannot be written: {reason}": "{path!r} 无法写入：{reason}",
    "it {flaw}": "它{flaw}",
    # ── net/decompress.py ──
    "it is packed as {encoding}, which is not read here, and gzip was asked for": (
        "它以 {encoding} 压缩，这里无法读取（请求的是 gzip）"
    ),
    "it is packed {count} times": "它被压缩了 {count} 次",
    "it ends too early": "它过早结束",
    "it goes on after its end": "它在结尾之后还有内容",
    # ── net/guard.py ──
    "a request with a token goes over https to port 443 or one of allowed_ports, or to allow_cidrs": (
        "带令牌的请求只能经 https 发往 443 端口或 allowed_ports 中的端口，或者发往 allow_cidrs"
    ),
    "only the author or the operator can allow it, by allow_cidrs": "只有工作流作者或运维人员可以用 allow_cidrs 允许它",
    "{host} leads to {address}, which is no public address; {rule}": "{host} 指向 {address}，它不是公网地址；{rule}",
    "{host} leads to {address}, outside of allow_cidrs: {rule}": "{host} 指向 {address}，在 allow_cidrs 之外：{rule}",
    "{host} is no public address; {rule}": "{host} 不是公网地址；{rule}",
    "{host} is outside of allow_cidrs: {rule}": "{host} 在 allow_cidrs 之外：{rule}",
    "{url} is no URL: it is too long, or holds characters that no URL holds": (
        "{url} 不是网址：它过长，或含有网址中不能有的字符"
    ),
    "{url} is no URL of http or https": "{url} 不是 http 或 https 网址",
    "a URL must not carry a user or a password": "网址中不能带有用户名或密码",
    "{url} has no proper host": "{url} 中的主机无效",
    "{url} has no proper port": "{url} 中的端口无效",
    "{host} is no host name": "{host} 不是主机名",
    "[{host}] is no IPv6 address that can be reached from everywhere": "[{host}] 不是从任何地方都能访问的 IPv6 地址",
    "the host {host} is not among the allowed domains": "主机 {host} 不在允许的域名之中",
    "the port {port} is not allowed": "不允许使用端口 {port}",
    "{scheme}://{host}:{port} is not asked: {rule}": "没有请求 {scheme}://{host}:{port} ：{rule}",
    "the host {host} cannot be found": "找不到主机 {host}",
    "{url} is no URL: {error}": "{url} 不是网址：{error}",
    "[{host}] is no IPv6 address": "[{host}] 不是 IPv6 地址",
    "{error}; write example.com or *.example.com": "{error}；请写成 example.com 或 *.example.com",
    "not a network such as 10.2.0.0/16: {error}": "不是 10.2.0.0/16 这样的网络：{error}",
    "the host {host} leads to an address of this machine alone": "主机 {host} 指向只属于本机的地址",
    "{host} is no address; write it as four decimal numbers": "{host} 不是地址；请写成四个十进制数",
    # ── net/outgoing_secrets.py ──
    "sent in the header {header}": "放在请求头 {header} 中发送",
    (
        "the secret {env} cannot be {use}: it {fault}; set the variable {env} to printable ASCII on one line, without "
        "spaces around it"
    ): "密钥 {env} 不能{use}：它{fault}；请把变量 {env} 设为一行可打印的 ASCII 字符，前后不要有空格",
    "holds a line break": "含有换行",
    "begins or ends with white space": "以空白开头或结尾",
    "holds a character that is not ASCII": "含有非 ASCII 字符",
    "holds a control character": "含有控制字符",
    # ── net/transport.py ──
    "a socket of this machine may not be reached": "不能访问本机的套接字",
    "more than {redirects} redirects were followed": "重定向超过 {redirects} 次",
    "{host} cannot be reached: {reason}{proxy}": "无法连接 {host}：{reason}{proxy}",
    "; {variable} names a proxy, which is not used for this": "；{variable} 指定了代理，但此处不使用代理",
    "the request cannot be sent: {error}": "请求无法发送：{error}",
    "the answer of {host} is damaged: {error}": "{host} 的应答已损坏：{error}",
    "this is no URL: {error}": "这不是网址：{error}",
    "{host} gave no answer: {reason}": "{host} 没有应答：{reason}",
    "{host} broke off its answer: {reason}": "{host} 中断了应答：{reason}",
    "the request was answered, but not to its end: {error}": "请求得到了应答，但应答不完整：{error}",
    # ── query.py ──
    "{kind}: {error}": "{kind}：{error}",
    "the expression or the data is nested too deeply": "表达式或数据嵌套过深",
    "the expression does not fit its data: {error}": "表达式与数据不相符：{error}",
    "this expression yields too much on this data; make it or the data smaller": (
        "这个表达式用在这些数据上结果过多；请缩小表达式或数据"
    ),
    "this expression took longer than {seconds:g} s": "这个表达式用时超过 {seconds:g} 秒",
    # ── redis_server.py ──
    "refuses the login; check the user and the password in its URL": "拒绝登录；请检查网址中的用户名和密码",
    "{server} {reason}": "{server} {reason}",
    "{server} cannot be reached: {reason}": "无法连接 {server}：{reason}",
    "is out of memory, so nothing was written; its operator must free some, or raise its maxmemory": (
        "内存已满，因此没有写入任何内容；须由运维人员释放内存，或提高 maxmemory"
    ),
    "does not permit this to its user: {error}": "不允许它的用户这样做：{error}",
    "is a replica that only reads; name the server that it copies": "是只读副本；请改为指定它所复制的服务器",
    "{server} is still loading its data": "{server} 仍在加载数据",
    "{server}: the key holds another type of value than this is for": "{server}：键的值的类型不适用于这个操作",
    "refused it: {error}": "拒绝了请求：{error}",
    "{server}: its URL cannot be used; write redis://HOST:6379/0, rediss://… or unix:///PATH ({kind})": (
        "{server}：网址无法使用（{kind}）；请写成 redis://HOST:6379/0、rediss://… 或 unix:///PATH"
    ),
    "{server} gave no answer in time": "{server} 没有按时应答",
    "{server} broke off before its answer: {reason}": "{server} 在应答之前中断了连接：{reason}",
    "{server} gave an answer that cannot be read: {error}": "{server} 的应答无法读取：{error}",
    # ── tool.py ──
    (
        "the secret {name} is not allowed by the operator; to allow it, add {name} to the environment variable "
        "AGENT_CORE_SECRET_ENV"
    ): "运维人员没有允许使用密钥 {name}；要允许它，请把 {name} 加入环境变量 AGENT_CORE_SECRET_ENV",
    # ── words/text.py ──
    "none": "无",
    "{first} and {second}": "{first} 和 {second}",
    # ── agent_core/models/summary.py ──
    "the earlier conversation could not be summarised: the model said nothing": "无法概括此前的对话：模型没有给出内容",
    "the earlier conversation could not be summarised: {error}": "无法概括此前的对话：{error}",
    # ── agent_core/run/node.py ──
    "ended by {reason}": "以 {reason} 结束",
    # ── agent_core/run/secrets.py ──
    (
        "the secret {name} is not allowed; the operator lists allowed names in {variable}, or in secret_env of "
        "agent-core.yaml"
    ): "不允许使用密钥 {name}；允许的名称由运维人员列在 {variable} 中，或 agent-core.yaml 的 secret_env 中",
    "the secret {name} is the host's own, and no tool gets it": "密钥 {name} 属于主机自身，任何工具都不能得到",
    "the secret {name} is not set in the environment of the host": "主机的环境中没有设置密钥 {name}",
}
