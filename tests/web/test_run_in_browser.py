"""A run in a real browser: watched live, decided, steered, judged again, proved, and taken along as a file."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from engine_shim.web.run_page import write_run_page
from support.browser import NARROW, Tab, needs_browser, open_tab
from support.by_hand import action, final
from support.served_host import Served, served

pytestmark = needs_browser
EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>\u202etxet\x1b[31m \u200b"
SHOP = {
    "shop.json": {
        "id": "shop",
        "nodes": [
            {
                "tool": "agent_core",
                "config": {
                    "model": "scripted:shop-replies.json",
                    "max_steps": 6,
                    "allowed_tools": ["stock", {"tool": "order", "approval": "on_write"}],
                    "prompt": "Order three A-17.",
                },
            }
        ],
    },
    "shop-replies.json": [
        "I would say that there are twelve.",
        action("stock", article="A-17"),
        action("order", article="A-17", pieces=3),
        final("Three A-17 are on their way."),
    ],
    "pay.json": {
        "id": "pay",
        "nodes": [
            {"id": "paid", "tool": "wait", "config": {"signal": "paid", "seconds": 86400}},
            {"id": "thanks", "tool": "echo", "config": {"text": "{{nodes.paid.data.amount}} were paid"}},
        ],
    },
    "many.json": {
        "id": "many",
        "nodes": [
            {"id": "each", "tool": "echo", "foreach": list(range(100)), "config": {"text": "n"}},
            {"id": "sum", "tool": "calculator", "config": {"expression": "{{external.sum}}"}},
        ],
        "edges": [{"from": "each", "to": "sum"}],
    },
    "evil.json": {
        "id": "evil",
        "nodes": [
            {
                "tool": "agent_core",
                "config": {
                    "model": "scripted:evil-replies.json",
                    "max_steps": 4,
                    "allowed_tools": ["stock"],
                    "prompt": EVIL,
                },
            }
        ],
    },
    "evil-replies.json": [
        json.dumps({**json.loads(action("stock", article=EVIL)), "thought": EVIL}),
        final(EVIL + "x" * 1_000_000),
    ],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with served(folder, with_page=True) as found:
        for name, content in SHOP.items():
            (folder / "workflows" / name).write_text(json.dumps(content))
        yield found


@pytest.fixture
def tab(browser: Any, host: Served) -> Iterator[Tab]:
    with open_tab(browser, host.url) as found:
        yield found


def read_orders(host: Served) -> int:
    book = host.folder / "orders.txt"
    return len(book.read_text().splitlines()) if book.exists() else 0


def test_steps_say_what_was_thought_called_refused_and_repaired(host: Served, tab: Tab) -> None:
    run = host.submit("shop")["run_id"]
    page = tab.open(f"runs/{run}")
    page.get_by_role("heading", name="Step 1: the reply cannot be read").wait_for()
    assert "sent back for repair" in page.locator(".card.repair").inner_text()
    stock = page.locator(".card", has=page.get_by_role("heading", name="Step 2: stock"))
    assert '"pieces":12' in stock.inner_text()
    stock.get_by_role("button", name="records").click()
    assert '"kind": "asked"' in stock.inner_text()
    page.get_by_role("group", name="Graph of the workflow").get_by_role(
        "button", name="agent_core, agent_core, waiting"
    ).wait_for()
    tab.check_accessible()


def test_run_is_watched_live_and_each_step_has_an_address(host: Served, tab: Tab) -> None:
    run = host.submit("wait", wait=False, until="live")["run_id"]
    page = tab.open(f"runs/{run}")
    page.get_by_label("linger", exact=True).get_by_text("running").wait_for()
    (host.folder / "live").touch()
    page.get_by_role("heading", name="Ends: completed").wait_for()
    page.get_by_label("Address of flow/after.1:0").click()
    page.wait_for_url("**/runs/*?at=*")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert "after" in page.locator(".card.chosen").inner_text()


def test_call_is_denied_edited_and_approved_in_place(host: Served, tab: Tab) -> None:
    before = read_orders(host)
    page = tab.open(f"runs/{host.submit('shop')['run_id']}")
    waiting = page.get_by_role("region", name="Waiting for a decision")
    waiting.get_by_role("button", name="Deny…").click()
    waiting.get_by_label("Why not?").fill("Not this month.")
    waiting.get_by_role("button", name="Deny", exact=True).click()
    page.get_by_text("“Not this month.”").first.wait_for()
    assert read_orders(host) == before

    page = tab.open(f"runs/{host.submit('shop')['run_id']}")
    waiting.get_by_role("button", name="Edit…").click()
    waiting.get_by_label("Arguments").fill('{"article": "B-4"')
    waiting.get_by_role("button", name="Approve as edited").click()
    assert waiting.get_by_role("alert").inner_text().startswith("This is not JSON: ")
    waiting.get_by_label("Arguments").fill('{"article": "B-4", "pieces": 1}')
    waiting.get_by_role("button", name="Approve as edited").click()
    waiting.wait_for(state="detached")
    page.get_by_role("heading", name="Ends: completed").wait_for()
    assert (host.folder / "orders.txt").read_text().splitlines()[-1] == "B-4 1"
    page.get_by_role("tab", name="Decisions").click()
    assert "edit" in page.locator("table").inner_text()


def test_filter_of_the_steps_is_that_of_the_address_after_going_back(host: Served, tab: Tab) -> None:
    page = tab.open(f"runs/{host.submit('desk@1', message='How many A-17?')['run_id']}?text=pieces")
    field, count = page.get_by_role("searchbox", name="Text in the steps"), page.locator(".filter [role=status]")
    page.locator(".card-link").first.click()
    field.fill("")
    page.get_by_text("6 steps", exact=True).wait_for()
    page.go_back()
    count.get_by_text("of 6 steps").wait_for()
    assert field.input_value() == "pieces"
    page.get_by_role("tab", name="Time").click()
    page.locator(".span.model").last.click()  # a step that the filter hides
    page.locator(".card.chosen").wait_for()


def test_run_that_failed_says_where_and_its_list_is_printed_whole(host: Served, tab: Tab) -> None:
    run = host.submit("many", sum="1 / 0")["run_id"]
    page = tab.open(f"runs/{run}")
    error = page.get_by_role("alert").first
    error.wait_for()
    assert error.inner_text().split() == ["tool_error", "sum:", *error.inner_text().split()[2:]]
    cards = page.locator(".card")
    assert cards.count() < 100
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert cards.count() > 100
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert cards.count() < 100


def test_signal_is_sent_in_place(host: Served, tab: Tab) -> None:
    page = tab.open(f"runs/{host.submit('pay')['run_id']}")
    page.get_by_text("waits for the signal paid").first.wait_for()
    tab.check_accessible()
    tab.check_fits()
    page.get_by_label("Data of the signal").fill("{")
    page.get_by_role("button", name="Send paid").click()
    assert page.get_by_role("alert").count() == 1
    page.get_by_label("Data of the signal").fill('{"amount": 12}')
    page.get_by_role("button", name="Send paid").click()
    page.get_by_role("heading", name="Ends: completed").wait_for()
    assert "local sends the signal paid" in page.locator(".timeline").inner_text()
    assert "12 were paid" in page.locator(".timeline").inner_text()
    assert page.get_by_role("button", name="Send paid").count() == 0

    run = host.submit("pay")["run_id"]
    page = tab.open(f"runs/{run}")
    page.get_by_role("button", name="Send paid").wait_for()
    page.route("**/journal?*", lambda route: route.abort())  # it does not hear of the other signal
    host.client.post(f"/runs/{run}/signals/paid", json={"data": {"amount": 7}})
    host.await_status(run, "completed")
    page.get_by_role("button", name="Send paid").click()
    page.get_by_role("alert").get_by_text("has ended as completed").wait_for()
    page.unroute("**/journal?*")
    page.get_by_role("heading", name="Ends: completed").wait_for(timeout=20_000)
    assert "The signal paid was not sent." in page.get_by_role("alert").inner_text()
    tab.errors[:] = [told for told in tab.errors if "409" not in told and "ERR_FAILED" not in told]


def test_two_people_who_decide_at_once_see_one_decision(host: Served, browser: Any, tab: Tab) -> None:
    before, run = read_orders(host), host.submit("buy", article="C-1")["run_id"]
    with open_tab(browser, host.url) as other:
        tabs = [tab, other]
        for each in tabs:
            each.open(f"runs/{run}").get_by_role("button", name="Approve").wait_for()
        for each in tabs:
            each.page.evaluate(
                "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Approve')?.click()"
            )
        for each in tabs:
            each.page.get_by_role("heading", name="Ends: completed").wait_for()
            each.page.get_by_role("tab", name="Decisions").click()
            each.page.get_by_role("row", name="approve").wait_for()
            assert each.page.get_by_role("row", name="approve").count() == 1
            each.errors[:] = [told for told in each.errors if "409" not in told]
    assert read_orders(host) == before + 1


def test_run_is_paused_gone_on_with_cancelled_and_forked(host: Served, tab: Tab) -> None:
    run = host.submit("buy", article="D-1")["run_id"]
    page = tab.open(f"runs/{run}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    page.get_by_role("heading", name="Ends: cancelled").wait_for()

    done = host.submit("desk@1", message="How many A-17?")["run_id"]
    page = tab.open(f"runs/{done}")
    page.get_by_role("button", name="Fork from flow/agent_core.1:6").click()
    page.get_by_role("dialog").get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda url: done not in url)
    page.get_by_text("forked from").first.wait_for()
    page.get_by_role("link", name=done).click()
    page.wait_for_url(f"**/runs/{done}")


def test_run_is_verified_replayed_and_judged_by_another_policy(host: Served, tab: Tab) -> None:
    run = host.submit("desk@1", message="How many A-17?")["run_id"]
    page = tab.open(f"runs/{run}?view=proof")
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("The records are whole.").wait_for()
    page.get_by_text("Whole: each of").wait_for()
    page.get_by_role("button", name="Replay").click()
    page.get_by_text("The replay is identical").wait_for()
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("stock").uncheck()
    page.get_by_role("button", name="Judge again").click()
    row = page.locator("tr.changed").first
    row.wait_for()
    assert re.search(r"run\s+refuse.*deny_tools", row.inner_text(), re.DOTALL)
    page.get_by_label("stock").check()
    page.get_by_label("Steps").fill("1")
    page.get_by_role("button", name="Judge again").click()
    page.get_by_text("would have changed").wait_for()
    tab.check_accessible()


def test_strings_of_a_hostile_model_are_text(host: Served, tab: Tab) -> None:
    run = host.submit("evil")["run_id"]
    tab.page.on("dialog", lambda dialog: tab.errors.append(f"dialog: {dialog.message}"))
    page = tab.open(f"runs/{run}")
    page.get_by_role("heading", name="Ends: completed").wait_for()
    text = page.locator("main").inner_text()
    assert "<script>alert(1)</script>" in text
    assert "\\u{202e}txet\\u{1b}[31m" in text
    assert not {"\u202e", "\x1b", "\u200b"} & set(text)
    assert page.locator("main img, main script").count() == 0
    assert len(text) < 100_000
    tab.check_fits()
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print", color_scheme="dark")  # paper is white, and does not scroll
    assert page.evaluate("getComputedStyle(document.documentElement).color") == "rgb(29, 36, 48)"
    assert page.locator(".answer pre").evaluate("(block) => block.scrollHeight <= block.clientHeight")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_run_page_fits_a_narrow_window_and_is_accessible(host: Served, browser: Any, scheme: str) -> None:
    run = host.submit("shop")["run_id"]
    with open_tab(browser, host.url, size=NARROW, scheme=scheme) as tab:
        page = tab.open(f"runs/{run}")
        for name in ("Steps", "Graph", "Time", "Decisions", "Result", "Proof", "What if"):
            page.get_by_role("tab", name=name).click()
            tab.check_fits()
            tab.check_accessible()


def test_run_is_decided_by_keyboard_alone(host: Served, tab: Tab) -> None:
    page = tab.open(f"runs/{host.submit('buy', article='K-1')['run_id']}")
    page.get_by_role("button", name="Approve").wait_for()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Approve":
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ends: completed").wait_for()
    page.get_by_role("tab", name="Steps").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Graph").get_attribute("aria-selected") == "true"


def test_exported_file_proves_the_run_without_a_server(host: Served, browser: Any, tab: Tab, tmp_path: Path) -> None:
    run = host.submit("buy", article="E-1")["run_id"]
    host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    page = tab.open(f"runs/{run}")
    with page.expect_download() as told:
        page.get_by_role("button", name="Export as HTML").click()
    path = tmp_path / told.value.suggested_filename
    told.value.save_as(path)
    damaged = tmp_path / "damaged.html"
    damaged.write_text(path.read_text("utf-8").replace("ordered 3 of E-1", "ordered 4 of E-1"), "utf-8")
    for file, verdict in ((path, "Whole: each of"), (damaged, "Not whole: 1 fault.")):
        with open_tab(browser, "") as alone:
            alone.page.route(
                "**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort()
            )
            alone.page.goto(file.as_uri())
            alone.page.get_by_text(verdict).wait_for()
            alone.page.get_by_role("tab", name="Decisions").click()
            assert "local" in alone.page.locator("table").inner_text()
            alone.check_accessible()


def test_thousands_of_steps_scroll(browser: Any, tmp_path: Path) -> None:
    line = '{{"run":"r","strand":"agent","n":{n},"hash":"{hash}","record":{record}}}\n'
    lines = []
    for n in range(0, 20_000, 4):
        step = n // 4 + 1
        records = (
            {"kind": "asked", "ask": "model", "step": step, "model": "m", "messages": 2},
            {
                "kind": "answered",
                "reply": "said",
                "content": "{}",
                "usage": {"input_tokens": 1, "output_tokens": 1, "cost": None},
                "at": "2026-11-22T02:09:11.823Z",
                "seconds": 0.1,
            },
            {
                "kind": "decided",
                "step": step,
                "calls": [{"id": f"c{step}", "tool": "stock", "args": {"q": step}, "effect": "read", "verdict": "run"}],
            },
            {"kind": "cancelled", "at": "2026-11-22T02:09:11.823Z"},
        )
        lines += [line.format(n=n + k, hash="0" * 64, record=json.dumps(each)) for k, each in enumerate(records)]
    path = tmp_path / "long.html"
    path.write_text(write_run_page("r", "".join(lines).encode()), "utf-8")
    with open_tab(browser, "") as tab:
        tab.page.goto(path.as_uri())
        tab.page.get_by_role("heading", name="Step 1: stock").wait_for()
        assert tab.page.locator(".card").count() < 400
        tab.page.goto(f"{path.as_uri()}#{'agent%3A' + str(4 * 4321)}")
        tab.page.get_by_role("heading", name="Step 4322: stock").wait_for()
        tab.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        tab.page.get_by_role("heading", name="Step 5000: stock").wait_for()
        assert tab.page.locator(".card").count() < 400


class SlowModel(BaseHTTPRequestHandler):
    """A model that writes an answer in two halves, the second one when it is told to."""

    go_on = Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        text = final("The first half, and then the second half.")
        half = text.index(", and")
        for part in (text[:half], text[half:]):
            choice = {"index": 0, "delta": {"role": "assistant", "content": part}, "finish_reason": None}
            self._send({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
            self.go_on.wait(20)
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._send({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [last], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *args: Any) -> None:
        pass


def test_answer_streams_in(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    SlowModel.go_on.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
    Thread(target=server.serve_forever, daemon=True).start()
    config = {"model": "openai:m", "max_steps": 2, "allowed_tools": [], "prompt": "Say it."}
    try:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        with served(tmp_path, with_page=True) as host:
            (tmp_path / "workflows" / "slow.json").write_text(
                json.dumps({"id": "slow", "nodes": [{"tool": "agent_core", "config": config}]})
            )
            run = host.submit("slow", wait=False)["run_id"]
            with open_tab(browser, host.url) as tab:
                page = tab.open(f"runs/{run}")
                page.locator(".delta").get_by_text("The first").wait_for()
                assert "second half" not in page.locator("main").inner_text()
                SlowModel.go_on.set()
                page.get_by_role("heading", name="Ends: completed").wait_for()
                assert page.locator(".answer").inner_text().endswith("and then the second half.")
                assert page.locator(".delta").count() == 0
    finally:
        SlowModel.go_on.set()
        server.shutdown()
        server.server_close()


SLOW_TOOL = '''
import asyncio
from pathlib import Path

from utools import tool

QUICK = Path(__file__).parent / "quick"


@tool(effect="write")
async def book(article: str) -> str:
    """Book an article, which takes too long unless a file says otherwise."""
    await asyncio.sleep(0 if QUICK.exists() else 30)
    return f"booked {article}"
'''


def test_write_in_doubt_is_tried_again_skipped_or_failed_in_place(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "slow.py").write_text(SLOW_TOOL)
    (tmp_path / "agent-core.yaml").write_text('{tools: ["slow.py:book"], workflows: workflows}')
    nodes = [{"id": "book", "tool": "book", "config": {"article": "A-17"}, "timeout": 0.2}]
    (tmp_path / "workflows" / "doubt.json").write_text(json.dumps({"id": "doubt", "nodes": nodes}))
    with served(tmp_path, with_page=True) as host, open_tab(browser, host.url) as tab:
        for decision, end in {"Skip": "completed", "Fail": "failed", "Try again": "completed"}.items():
            page = tab.open(f"runs/{host.submit('doubt')['run_id']}")
            waiting = page.get_by_role("region", name="Waiting for a decision")
            waiting.get_by_text("in doubt").wait_for()
            if decision == "Try again":
                (tmp_path / "quick").touch()
            waiting.get_by_role("button", name=decision).click()
            page.get_by_role("heading", name=f"Ends: {end}").wait_for()
        (tmp_path / "quick").unlink()
        page = tab.open(f"runs/{host.submit('doubt')['run_id']}")
        waiting.get_by_role("button", name="It happened…").click()
        waiting.get_by_label("What did it give?").fill("booked")
        waiting.get_by_role("button", name="It happened", exact=True).click()
        assert waiting.get_by_role("alert").count() == 1
        waiting.get_by_label("What did it give?").fill('"booked by phone"')
        waiting.get_by_role("button", name="It happened", exact=True).click()
        page.get_by_role("heading", name="Ends: completed").wait_for()
        assert "booked by phone" in page.locator(".timeline").inner_text()
