"""What tools from elsewhere say to a model, in Chinese, as far as the sentence is ours. Pure."""

from collections.abc import Mapping
from typing import Final

TEXTS: Final[Mapping[str, str]] = {
    # ── sources/http_call.py ──
    "the answer of {server} is larger than {most} bytes (max_bytes)": "{server} 的应答超过 {most} 个字节（max_bytes）",
    "{text}; the call was made, and whether it succeeded is not known": "{text}；调用已经执行，但不知道是否成功",
    "{text}; ask for less": "{text}；请减少请求的内容",
    # ── sources/manifest_command.py ──
    "[cut: the command wrote more]": "[已截断：命令还有更多输出]",
    "the command ended with exit code {code}": "命令结束，退出码为 {code}",
    "the command ended with exit code {code}: {output}": "命令结束，退出码为 {code}：{output}",
    "an argument of a command cannot hold a NUL character": "命令的参数不能含有 NUL 字符",
    "{text!r} would be taken for an option of the command; it must not begin with -": (
        "{text!r} 会被当作命令的选项；它不能以 - 开头"
    ),
    "a path must be a text, got {value!r:.80}": "路径必须是文本（当前值：{value!r:.80}）",
    "the command wrote no JSON: {cut}": "命令的输出不是 JSON：{cut}",
    "the command did not end within {seconds:g} seconds": "命令在 {seconds:g} 秒内没有结束",
    "its output was too long and has been cut": "输出过长，已被截断",
    # ── sources/mcp/connection.py ──
    "the MCP server {name} refused: {text}": "MCP 服务器 {name} 拒绝了请求：{text}",
    "the arguments hold a lone surrogate, which is not text": "参数中含有单独的代理码元，不是文本",
    "{found}{words}": "{found}{words}",
    "the MCP server {server} was not ready in the time of this call, which has not been sent": (
        "MCP 服务器 {server} 未能在这次调用的时限内就绪，调用没有发出"
    ),
    "the MCP server {server} cannot be used: its host is closing it": "MCP 服务器 {server} 无法使用：主机正在关闭它",
    "the MCP server {server} gave no answer within {seconds:g} seconds": (
        "MCP 服务器 {server} 在 {seconds:g} 秒内没有应答"
    ),
    "the answer of the MCP server {server} is not sound: {text}": "MCP 服务器 {server} 的应答有误：{text}",
    # ── sources/mcp/connection_monitor.py ──
    "{ended}{last}": "{ended}{last}",
    ": it was ended, since {reason}": "：它已被终止，因为{reason}",
    "; its last words: {line}": "；它最后的输出：{line}",
    "it sent more than {most} messages that nobody asked for": "它发来的未经请求的消息超过 {most} 条",
    "it sent more than {most} requests, and does not take the answers": "它发来的请求超过 {most} 个，却不接收应答",
    # ── sources/mcp/documents.py ──
    "it holds something that is no text": "其中含有不是文本的内容",
    # ── sources/mcp/failure.py ──
    (
        "this is no endpoint of streamable HTTP, whose URL often ends in /mcp. A server that speaks only the older "
        "HTTP+SSE is reached by a bridge, such as command: [npx, -y, mcp-remote, URL]"
    ): (
        "这不是 streamable HTTP 端点（这种端点的网址常以 /mcp 结尾）。只支持旧式 HTTP+SSE 的服务器须通过桥接访问，例如 "
        "command: [npx, -y, mcp-remote, URL]"
    ),
    "it answered with the HTTP status {status}{hint}": "它的应答是 HTTP 状态 {status}{hint}",
    ": it does not accept the secrets {secrets}": "：它不接受密钥 {secrets}",
    "and did not say why": "没有说明原因",
    ": {endpoint}": "：{endpoint}",
    "{answered}; it says: {text}": "{answered}；它说：{text}",
    ": it wants a bearer token by token_env, or a key by secret_headers": (
        "：它要求用 token_env 提供令牌，或用 secret_headers 提供密钥"
    ),
    ": it does not accept the secret {secret}": "：它不接受密钥 {secret}",
    "its tool has an output schema, and the answer holds no structured content that fits it{beside}": (
        "该工具有输出模式，但回答中没有符合它的结构化内容{beside}"
    ),
    "its structured content breaks the tool's output schema: {faults} It is {structured}{beside}": (
        "其结构化内容不符合该工具的输出模式：{faults}内容为 {structured}{beside}"
    ),
    "; it says: {text}": "；它说：{text}",
    "the MCP server {name} cannot be reached": "无法连接 MCP 服务器 {name}",
    "the MCP server {name} ended in mid-call": "MCP 服务器 {name} 在调用途中结束了",
    "the MCP server {name} answered with the HTTP status {status}{hint}": (
        "MCP 服务器 {name} 的应答是 HTTP 状态 {status}{hint}"
    ),
    "{text}; {endpoint}": "{text}；{endpoint}",
    "the MCP server {name} took the call, and its answer cannot be read: {why}": (
        "MCP 服务器 {name} 收到了调用，但它的应答无法读取：{why}"
    ),
    "the MCP server {name} took the call and gave no answer that can be read: {text}": (
        "MCP 服务器 {name} 收到了调用，但没有给出可以读取的应答：{text}"
    ),
    # ── sources/mcp/listing.py ──
    "it offers more than {most} tools": "它提供的工具超过 {most} 个",
    # ── sources/mcp/process.py ──
    "there is no directory {directory!r} to start it in": "启动它的目录 {directory!r} 不存在",
    "there is no program {name!r}; is it installed?": "没有程序 {name!r}；安装了吗？",
    # ── sources/mcp/result.py ──
    "the server says that it failed, and not why": "服务器说调用失败，但没有说明原因",
    # ── sources/mcp/session.py ──
    "the MCP server {server} cannot be used: {why}{words}": "MCP 服务器 {server} 无法使用：{why}{words}",
    "it was not ready within {seconds:g} seconds": "它在 {seconds:g} 秒内没有就绪",
    "the MCP server {server} is busy, and did not say within {seconds:g} seconds which tools it has": (
        "MCP 服务器 {server} 正忙，在 {seconds:g} 秒内没有说明它有哪些工具"
    ),
    "it ended while it was starting": "它在启动过程中结束了",
    # ── sources/openapi_operation.py ──
    "the body must be an object: it is sent as a form": "正文必须是对象：它以表单形式发送",
    # ── sources/pinned_source.py ──
    "{source} no longer offers the tool {tool}": "{source} 不再提供工具 {tool}",
    (
        "the tool {tool} is not called: its {parts} changed after the operator had approved it; the operator approves "
        "it anew by `agent-core tools approve {source}`"
    ): (
        "没有调用工具 {tool}：在运维人员批准之后，它的 {parts} 发生了变化；运维人员可以用 `agent-core tools approve "
        "{source}` 重新批准"
    ),
    # ── sources/served_run.py ──
    "the run {run} of this call was cancelled at {name}": "本次调用的运行 {run} 在 {name} 被取消了",
    "the run {run} failed at {name}": "运行 {run} 在 {name} 失败了",
    "{name} answered {status}: {said}": "{name} 的应答是 {status}：{said}",
    "{name} answered something else than a run": "{name} 的应答不是一次运行",
    "the run {run} of this call cannot be followed at {name}: {why}": ("无法在 {name} 跟踪本次调用的运行 {run}：{why}"),
    "the run {run} of this call is paused at {name}: resume it there": (
        "本次调用的运行 {run} 在 {name} 被暂停：请在那里恢复它"
    ),
    (
        "{name} did not end the run {run} of this call within {seconds:g} seconds; it goes on there, and another "
        "attempt of the call finds it"
    ): "{name} 没有在 {seconds:g} 秒内结束本次调用的运行 {run}；它在那里继续，再次尝试本次调用时会找到它",
    (
        "the call waits for a person at {name}: decide it there, by `agent-core decide {run}` on that host or by "
        "POST {url}/runs/{run}/decide; another attempt of the call then finds what came of it"
    ): (
        "调用在 {name} 等待人工决定：请在那里决定，在该主机上用 `agent-core decide {run}`，或用 POST "
        "{url}/runs/{run}/decide；再次尝试本次调用时会得到结果"
    ),
    # ── sources/remote.py ──
    "{name}: it executes no tool by itself: its operator lists them in execute_tools, in its agent-core.yaml": (
        "{name}：它不单独执行任何工具：其运维人员在它的 agent-core.yaml 的 execute_tools 中列出这些工具"
    ),
    "{name}: {error}": "{name}：{error}",
    "{name}: the list of its tools is larger than {most} bytes (max_bytes)": (
        "{name}：工具列表超过 {most} 个字节（max_bytes）"
    ),
    "{name} answered something else than a result: {fault}": "{name} 的应答不是调用结果：{fault}",
    "{name}: its answer is no list of tools: {fault}": "{name}：应答不是工具列表：{fault}",
    "{name} cannot be asked for its tools: {error}": "无法向 {name} 查询它的工具：{error}",
    # ── sources/request.py ──
    "{value!r} cannot be part of a URL's path: it is empty, or leads to another one": (
        "{value!r} 不能作为网址路径的一部分：它是空的，或会通向别的路径"
    ),
    "the header {name} must be printable ASCII, got {value!r}": (
        "请求头 {name} 必须是可打印的 ASCII 字符（当前值：{value!r}）"
    ),
    "{path!r} leads to another path than the tool's own": "{path!r} 通向的不是这个工具自己的路径",
}
