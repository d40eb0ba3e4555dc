"""The page where things go wrong: names that scripts own, large numbers, a server that goes and comes back."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from engine_shim.web.run_page import write_run_page
from support.browser import needs_browser, open_tab
from support.served_host import TOOLS, served, write_host

pytestmark = needs_browser
LARGE = 9007199254740993
OWN_NAMES = {
    "id": "own",
    "nodes": [
        {"id": "__proto__", "tool": "echo", "config": {"text": "a"}},
        {"id": "constructor", "tool": "echo", "config": {"text": "{{nodes.__proto__}}"}},
        {"id": "toString", "tool": "order", "config": {"article": "A", "pieces": LARGE}, "approval": "always"},
    ],
    "edges": [{"from": "__proto__", "to": "constructor"}, {"from": "constructor", "to": "toString"}],
}


def test_names_of_a_script_are_names_and_large_numbers_keep_their_digits(browser: Any, tmp_path: Path) -> None:
    write_host(tmp_path)
    (tmp_path / "shop.py").write_text(TOOLS.replace("How many pieces of an article there are.", "constructor"))
    (tmp_path / "workflows" / "own.json").write_text(json.dumps(OWN_NAMES))
    with served(tmp_path, with_page=True) as host, open_tab(browser, host.url) as tab:
        run = host.submit("own", wait=False)["run_id"]
        host.await_status(run, "waiting")
        page = tab.open("runs?since=constructor")
        page.get_by_role("link", name="own@1").wait_for()
        page = tab.open("workflows/own?view=graph&node=constructor")
        page.locator(".graph-node").nth(2).wait_for()
        page = tab.open("workflows/desk?node=agent_core")
        page.get_by_label("stock", exact=False).first.wait_for()
        page = tab.open(f"runs/{run}")
        page.locator(".graph-node").nth(2).wait_for()
        page.get_by_role("button", name="Edit…").click()
        field = page.get_by_label("Arguments")
        assert str(LARGE) in field.input_value()
        field.fill(field.input_value().replace('"A"', '"B"'))
        page.get_by_role("button", name="Approve as edited").click()
        host.await_status(run, "completed")
        assert (tmp_path / "orders.txt").read_text() == f"B {LARGE}\n"


def test_open_page_of_a_run_goes_on_when_its_server_comes_back(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, with_page=True) as host, open_tab(browser, host.url) as tab:
        run = host.submit("wait", wait=False, until="go")["run_id"]
        host.await_file("go.begun")
        page = tab.open(f"runs/{run}")
        page.get_by_text("running").first.wait_for()
        is_away = True
        page.route("**/runs/**", lambda route: route.abort() if is_away else route.fallback())
        (tmp_path / "go").touch()
        page.get_by_text("The connection is lost; reconnecting…").wait_for()
        assert page.get_by_role("alert").count() == 0
        is_away = False
        page.locator(".run-head .badge", has_text="completed").wait_for(timeout=20_000)
        assert page.get_by_text("The connection is lost").count() == 0
        tab.errors.clear()  # what the browser says of requests that were cut


def test_token_that_is_revoked_is_asked_for_again_and_nothing_is_lost(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, with_page=True, is_open=False) as host, open_tab(browser, host.url) as tab:
        first = host.service.tokens.issue("first", ("read", "run", "admin"), None)
        page = tab.open("workflows/new")
        for wrong in ("wrong", "act_…", first):  # the second one, cut by a terminal, is in no header
            page.get_by_label("Token").fill(wrong)
            page.get_by_role("button", name="Sign in").click()
            if wrong != first:
                page.get_by_role("alert").get_by_text("The server does not know this token.").wait_for()
        page.get_by_label("id", exact=False).first.fill("half-written")
        (known,) = host.service.tokens.all()
        host.service.tokens.revoke(known.principal.id)
        page.get_by_role("textbox", name="description").first.fill("It does something.")
        dialog = page.get_by_role("dialog", name="Sign in again")
        dialog.wait_for()
        tab.check_accessible()
        page.keyboard.press("Escape")
        script = """async () => {
          const { ask } = await import(new URL("static/kit/api.js", document.baseURI));
          return ask("workflows").catch((error) => error.message);
        }"""
        assert "sign in, and try again" in page.evaluate(script)
        dialog.get_by_label("Token").fill(host.service.tokens.issue("second", ("read", "admin"), None))
        dialog.get_by_role("button", name="Sign in").click()
        dialog.wait_for(state="detached")
        assert page.get_by_role("textbox", name="description").first.input_value() == "It does something."
        tab.errors.clear()  # what the browser says of the refused requests


def test_file_of_a_run_that_cannot_be_read_still_gives_its_verdict(browser: Any, tmp_path: Path) -> None:
    strange: tuple[dict[str, Any], ...] = (
        {"kind": "run_started", "loop": "agent", "tools": None, "config": None, "messages": 5},
        {"kind": "answered", "reply": "said", "usage": None, "closes": [[1, 2, 3]]},
        {"kind": "decided", "calls": 7, "plan": "none"},
        {"kind": "__proto__"},
    )
    line = '{{"run":"r","strand":"agent","n":{n},"hash":"{hash}","record":{record}}}\n'
    lines = [line.format(n=n, hash="0" * 64, record=json.dumps(record)) for n, record in enumerate(strange)]
    path = tmp_path / "strange.html"
    path.write_text(write_run_page("r", "".join(lines).encode()), "utf-8")
    with open_tab(browser, "") as tab:
        tab.page.goto(path.as_uri())
        tab.page.get_by_text("Not whole: 2 faults.").wait_for()
        tab.page.get_by_text("These records cannot be read as a run.").wait_for()


def test_damaged_runs_are_shown_with_what_is_wrong(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, with_page=True) as host, open_tab(browser, host.url) as tab:
        runs = [host.submit("count", sum="1+1")["run_id"] for _ in range(3)]
        with closing(sqlite3.connect(tmp_path / "runs.db")) as db, db:
            db.execute("UPDATE rows SET data = X'7b22ff22' WHERE n = 1 AND run = ?", (runs[0],))
            db.execute("UPDATE rows SET data = 'text' WHERE n = 1 AND run = ?", (runs[1],))
            db.execute("DELETE FROM rows WHERE run = ?", (runs[2],))
        page = tab.open(f"runs/{runs[0]}?view=proof")
        page.get_by_text("Some of these records differ from what was written").wait_for()
        page.get_by_role("button", name="Verify").click()
        page.get_by_text("The records are not whole.").wait_for()
        (tmp_path / "page.html").write_text(host.client.get(f"/runs/{runs[0]}/page").text)
        page.goto((tmp_path / "page.html").as_uri())
        page.get_by_text("Not whole:").wait_for()
        tab.open(f"runs/{runs[1]}").get_by_text("no journal wrote such values").wait_for()
        assert host.client.get(f"/runs/{runs[1]}/page").status_code == 409
        tab.open(f"runs/{runs[2]}").get_by_text("There are no records of this run.").wait_for()
        tab.errors.clear()  # what the browser says of the refused requests
