"""Some records of a run as one page: ticked and saved, read again by commands, shown and checked by its own script."""

import asyncio
import json
import re
import sqlite3
import subprocess
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent_core.audit.excerpt import make_excerpt, verify_excerpt
from agent_core.evidence.key_files import public_file
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.record import Tape
from agent_core.journal.signature import VARIABLE
from engine_shim.cli.main import main
from engine_shim.errors import PageDamaged
from engine_shim.web.bundle import STATIC, join_modules
from engine_shim.web.run_page import EXCERPT_ENTRY, POLICY, read_excerpt_page, read_run_page, write_excerpt_page
from support.browser import needs_browser, open_tab
from support.excerpts import SECRET, log_of, make_key, run_one, trusting
from support.optional import NODE, needs, needs_node
from support.served_host import Served, served

pytestmark = needs("cryptography")
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--\u2028\u202eevil]]>&lt;" + "long " * 2_000
ITEMS = """
import { readFileSync } from "fs";
import { readRows } from "STATIC/proof/excerpt.js";
import { readSteps } from "STATIC/run/steps.js";
const tell = ({ kind, refs, hidden }) => ({ kind, refs: refs.map(({ n }) => n), hidden });
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((text) => readSteps(readRows(text)).map(tell))));
"""
Made = TypeVar("Made")
EXCERPT = b'<script type="application/json" id="excerpt">'
BITS = range(3, 1 << 10, 5)
"""Some of all choices of ten records; the last is all of them."""
STEPS = [("agent", n) for n in (0, 1, 2, 3, 5)]


@pytest.fixture(name="key")
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_key(tmp_path / "desk.key")
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def made(work: Coroutine[Any, Any, Made]) -> Made:
    """What comes of it in another thread, since a browser's loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work)).result()


async def make_page(key: Path, **options: Any) -> tuple[str, str, Tape]:
    """A page, the excerpt that it holds, and the run."""
    tape = await run_one("r", **options)
    text = make_excerpt("r", tape, STEPS, log_of(key, "r", tape))
    return write_excerpt_page("r", text), text, tape


async def test_page_holds_the_excerpt_as_it_is_and_no_element_of_its_records(key: Path) -> None:
    page, text, _ = await make_page(key)
    hostile, evil, _ = await make_page(key, prompt=EVIL)
    assert (read_excerpt_page(page), read_excerpt_page(hostile)) == (text, evil)
    assert verify_excerpt(evil, trusting(key)).ok
    assert re.findall(r"<(/?[a-z!][^ >]*)", page) == re.findall(r"<(/?[a-z!][^ >]*)", hostile)
    assert "alert(1)" in hostile
    assert "alert(1)</script>" not in hostile
    assert SECRET in page  # record 5, which is shown
    assert f'content="{POLICY}"' in page
    script = page.partition('<script type="application/json"')[2]
    assert not re.search(r"\bimport\b\s*[({*\"']|\bfetch\(|XMLHttpRequest|new WebSocket|sendBeacon", script)
    assert "</script" not in join_modules(EXCERPT_ENTRY).lower()
    assert read_run_page(page) is None
    with pytest.raises(PageDamaged, match="in place of its excerpt cannot be read"):
        read_excerpt_page(page.replace('id="excerpt">"', 'id="excerpt">x"'))


async def test_commands_take_the_page_as_they_take_its_excerpt(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, text, _ = await make_page(key)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE)
    for name, content in (("a.json", text), ("a.html", page), ("b.html", page.replace("4711", "4712"))):
        (tmp_path / name).write_text(content)
    said = []
    for name in ("a.json", "a.html", "b.html"):
        with pytest.raises(SystemExit) as ended:
            main(["verify", name, "--key", str(public_file(key))])
        said.append((ended.value.code, capsys.readouterr().out))
    assert said[0] == said[1]
    assert (said[0][0], said[0][1].startswith("ok: 5 of 10 records of the run r, sealed by ed25519:")) == (0, True)
    assert said[2] == (5, "NOT ok: record 5 of strand 'agent' does not stand in the run that was sealed\n")


@needs_node
def test_each_record_of_an_excerpt_is_shown_and_what_is_missing_is_counted(key: Path, tmp_path: Path) -> None:
    tape = made(run_one("r"))
    count = len(tape["agent"])
    assert count == 10
    texts = [make_excerpt("r", tape, [("agent", n) for n in range(count) if bits >> n & 1], None) for bits in BITS]
    script = tmp_path / "items.mjs"
    script.write_text(ITEMS.replace("STATIC", str(STATIC)))
    assert NODE is not None
    done = subprocess.run([NODE, str(script)], input=json.dumps(texts), capture_output=True, text=True, check=True)
    for bits, items in zip(BITS, json.loads(done.stdout), strict=True):
        shown = [n for n in range(count) if bits >> n & 1]
        assert [n for item in items for n in item["refs"]] == shown
        last = max(shown)
        assert sum(item["hidden"] for item in items) == last + 1 - len(shown)
        for item in items:  # only what follows on each other is one step
            assert item["refs"] == [*range(item["refs"][0], item["refs"][-1] + 1)], items
    assert {item["kind"] for item in json.loads(done.stdout)[-1]} == {"begin", "step", "end"}


@pytest.fixture(name="host")
def _host(tmp_path: Path, key: Path) -> Iterator[Served]:
    with served(tmp_path / "host", with_page=True, is_open=False) as found:
        yield found


def test_server_gives_excerpts_to_those_who_may_read(host: Served, key: Path, tmp_path: Path) -> None:
    reader, runner = host.issue("reader", "read"), host.issue("runner", "run")
    submitted = host.client.post("/workflows/count/runs", json={"external": {"sum": "1+1"}}, headers=runner)
    address = f"/runs/{submitted.json()['run_id']}/excerpt"
    wanted: dict[str, Any] = {"records": ["flow:0-1", "flow/calculator.1:0"]}
    assert host.client.get(address, params=wanted).status_code == 401
    assert host.client.get(address, params=wanted, headers=host.issue("other", "decide")).status_code == 403
    answer = host.client.get(address, params={**wanted, "format": "json"}, headers=reader)
    found = verify_excerpt(answer.text, trusting(key))
    assert (found.ok, found.status, found.shown < found.count) == (True, "completed", True), found.why
    assert answer.headers["content-disposition"].endswith(".json")
    page = host.client.get(address, params=wanted, headers=reader)
    assert page.headers["content-disposition"].endswith(".excerpt.html")
    assert read_excerpt_page(page.text) == answer.text
    for records, said in ((["x"], "write STRAND"), (["flow:99"], "the strand has the records 0 to"), ([], "records")):
        refused = host.client.get(address, params={"records": records}, headers=reader)
        assert (refused.status_code, said in refused.text) == (422, True), refused.text
        assert refused.json()["errors"][0]["where"] == "query/records"
    assert host.client.get("/runs/x/excerpt", params=wanted, headers=reader).status_code == 404


def test_no_excerpt_is_given_of_a_run_that_is_damaged(host: Served, tmp_path: Path) -> None:
    both = host.issue("both", "read", "run")
    submitted = host.client.post("/workflows/count/runs", json={"external": {"sum": "1+1"}}, headers=both)
    run = submitted.json()["run_id"]
    with closing(sqlite3.connect(tmp_path / "host" / "runs.db")) as db, db:
        db.execute("UPDATE rows SET data = CAST('{}' AS BLOB) WHERE run = ? AND n = 1", (run,))
    answer = host.client.get(f"/runs/{run}/excerpt?records=flow:0", headers=both)
    assert (answer.status_code, answer.json()["kind"]) == (409, "damaged")


def test_no_excerpt_is_given_of_a_run_whose_seal_no_stranger_can_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "k1:a-key-of-this-very-host")
    with served(tmp_path, with_page=True) as host:
        run = host.submit("count", sum="1+1")["run_id"]
        answer = host.client.get(f"/runs/{run}/excerpt?records=flow:0")
    assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")
    assert "its seal names no tree over its records" in answer.text


class TestInABrowser:
    """The same in a real browser."""

    pytestmark = needs_browser

    def test_page_proves_itself_by_a_key_that_its_reader_gives(self, browser: Any, key: Path, tmp_path: Path) -> None:
        page, text, _ = made(make_page(key))
        other = public_file(make_key(tmp_path / "other.key"))
        file = tmp_path / "shown.html"
        file.write_text(page)
        with open_tab(browser, "") as tab:
            tab.page.goto(file.as_uri())
            status, alert = tab.page.get_by_role("status").first, tab.page.get_by_role("alert").first
            assert "Consistent; signed by ed25519:" in status.inner_text()
            assert "not checked against a key you trust" in status.inner_text()
            given = tab.page.get_by_label("A file of public keys")
            given.set_input_files(public_file(key))
            tab.page.get_by_text("Proven: these records stand in this run, in this place, in this log").wait_for()
            assert "5 of 10 records" in status.inner_text()
            tab.check_accessible()
            given.set_input_files(other)
            tab.page.get_by_text("Not proven: do not rely on anything below.").wait_for()
            assert "which is not given" in alert.inner_text()
            tab.page.get_by_role("button", name="Forget them").click()
            tab.page.get_by_text("Consistent; signed by").wait_for()
            pasted = tab.page.get_by_label("Or as a text")
            pasted.fill("-----BEGIN PUBLIC KEY-----AAAA-----END PUBLIC KEY-----")
            tab.page.get_by_text("the file has a key that is not Ed25519").wait_for()
            pasted.fill(public_file(key).read_text())
            tab.page.get_by_text("Proven: these records").wait_for()
            assert SECRET in tab.page.inner_text("main")
            with tab.page.expect_download() as saved:
                tab.page.get_by_role("link", name="The excerpt").click()
            assert Path(saved.value.path()).read_text() == text
            tab.page.set_viewport_size({"width": 360, "height": 740})
            tab.check_fits()

    def test_what_was_changed_is_never_said_to_be_proven(self, browser: Any, key: Path, tmp_path: Path) -> None:
        page, *_ = made(make_page(key))
        forged = json.loads(str(read_excerpt_page(page)))
        forged["seal"]["at"] = "2020-01-01T00:00:00.000Z"
        stamped = json.loads(str(read_excerpt_page(page)))
        stamped["seal"]["timestamp"] = "AAAA"
        pages = {
            "record": page.replace("4711", "4712"),
            "script": page.replace("const FORMAT", "const  FORMAT", 1),
            "text": page.replace("euros.", "Euros."),
            "seal": write_excerpt_page("r", json.dumps(forged)),
            "stamped": write_excerpt_page("r", json.dumps(stamped)),
        }
        said = {}
        file = tmp_path / "shown.html"
        with open_tab(browser, "") as tab:
            for name, content in pages.items():
                file.write_text(content)
                tab.page.goto(file.as_uri())
                tab.page.get_by_label("A file of public keys").set_input_files(public_file(key))
                tab.page.get_by_text("Keys given").wait_for()
                said[name] = tab.page.inner_text("body")
        assert "Proven: these records" in said["stamped"]
        assert "There is a timestamp of an authority (RFC 3161), which this page does not check" in said.pop("stamped")
        for name, told in said.items():
            assert "Not proven: do not rely on anything below." in told, name
            assert "Proven: these records" not in told, name
        assert "its signature was not made with the key" in said["seal"]
        assert "this page is not as it was written" in said["script"]

    @pytest.mark.long
    def test_flipped_byte_is_told_wherever_it_is(self, browser: Any, key: Path, tmp_path: Path) -> None:
        page, file = made(make_page(key))[0].encode(), tmp_path / "shown.html"
        tags = [page.index(tag) for tag in (b"<!doctype", b"<html", b"<p id", b"<title", b"<style", EXCERPT)]
        start = page.index(EXCERPT)
        held = range(start, page.index(b"</script>", start) + 9, 151)
        with open_tab(browser, "") as tab:
            for at in [*tags, *(each + 1 for each in tags), *held, *range(0, len(page), 4999), len(page) - 1]:
                file.write_bytes(page[:at] + bytes([page[at] ^ 1]) + page[at + 1 :])
                tab.page.goto(file.as_uri())
                given = tab.page.get_by_label("A file of public keys")
                if given.count():
                    given.set_input_files(public_file(key))
                text = tab.page.inner_text("body")
                near = (at, page[at - 20 : at + 20], text)
                assert any(each in text for each in ("Damaged", "Not checked yet", "Not proven")), near
                assert not re.search("Proven: these records", text), near
            tab.errors.clear()

    def test_hostile_records_are_texts(self, browser: Any, key: Path, tmp_path: Path) -> None:
        page, *_ = made(make_page(key, prompt=EVIL))
        file = tmp_path / "shown.html"
        file.write_text(page)
        with open_tab(browser, "", size=(360, 740)) as tab:
            tab.page.goto(file.as_uri())
            tab.page.get_by_text("Consistent; signed by").wait_for()
            assert tab.page.locator("img, main script").count() == 0
            assert "\\u{202e}evil" in tab.page.inner_text("main")
            tab.check_fits()

    def test_steps_that_are_ticked_become_a_file(
        self, browser: Any, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with served(tmp_path / "open", with_page=True) as host, open_tab(browser, host.url) as tab:
            run = host.submit("desk", message="How many?")["run_id"]
            page = tab.open(f"runs/{run}")
            assert page.get_by_role("button", name="Save as HTML").count() == 0
            page.get_by_role("button", name="Excerpt…").click()
            assert page.get_by_role("button", name="Save as HTML").is_disabled()
            boxes = page.get_by_role("checkbox", name=re.compile("Show .* in the excerpt"))
            boxes.nth(0).check()
            boxes.nth(2).check()
            assert page.get_by_text("6 records are chosen").is_visible()
            tab.check_accessible()
            for name, read in (("Save as HTML", read_excerpt_page), ("Save as JSON", str)):
                with page.expect_download() as saved:
                    page.get_by_role("button", name=name).click()
                text = str(read(Path(saved.value.path()).read_text()))
                found = verify_excerpt(text, trusting(key))
                assert (found.ok, found.status, 2 <= found.shown < found.count) == (True, "completed", True), found.why
                assert {each["strand"] for each in json.loads(text)["records"]} == {"flow", "flow/agent_core.1"}
            page.get_by_role("button", name="Leave it").click()
            assert boxes.count() == 0
            monkeypatch.delenv(KEY_VARIABLE)
        with served(tmp_path / "unsigned", with_page=True) as host, open_tab(browser, host.url) as tab:
            page = tab.open(f"runs/{host.submit('desk', message='How many?')['run_id']}")
            page.get_by_text("8 steps").or_(page.get_by_text("7 steps")).wait_for()
            assert page.get_by_role("button", name="Excerpt…").count() == 0
