"""An exported page with a byte flipped: it is never blank, and never says that the run is whole."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_shim.cli.main import main
from engine_shim.web.run_page import NO_SCRIPT, UNCHECKED, write_run_page
from support.browser import needs_browser, open_tab

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "fixtures/transcripts/approval_approved.jsonl"
PAGE = write_run_page("r", SOURCE.read_bytes()).encode()
JOURNAL = b'<script type="application/json" id="journal">'


def flip(at: int, mask: int = 1) -> bytes:
    return PAGE[:at] + bytes([PAGE[at] ^ mask]) + PAGE[at + 1 :]


def places() -> Iterator[tuple[int, int]]:
    """Bytes to flip: each tag's, the first and last of each part, and some of all that is between them."""
    start = PAGE.index(JOURNAL)
    end = PAGE.index(b"</script>", start)
    for tag in (
        b"<!doctype",
        b"<html",
        b"<p id",
        b"</p>",
        b"<script id",
        b"<title",
        b"</title>",
        b"<style",
        b"</style>",
    ):
        at = PAGE.index(tag)
        yield from ((each, 1) for each in range(at, at + len(tag)))
    yield from ((each, 1) for each in (*range(start, start + len(JOURNAL) + 2), *range(end - 2, end + 12)))
    yield from ((each, 1) for each in range(start + len(JOURNAL), end, 97))
    yield from ((each, 4) for each in range(0, len(PAGE), 4999))
    yield from ((each, 1) for each in range(len(PAGE) - 30, len(PAGE)))


@pytest.mark.parametrize("part", [UNCHECKED, NO_SCRIPT])
def test_page_says_that_nothing_is_checked_before_its_script_has_run(part: str) -> None:
    assert part.encode() in PAGE[: PAGE.index(b"<script")]


@pytest.mark.parametrize("content", ['"a\\x"', '"a', "17"], ids=["escape", "end", "number"])
def test_journal_that_cannot_be_read_any_more_is_damage_on_the_command_line(
    tmp_path: Path, capsys: Any, content: str
) -> None:
    start = PAGE.index(JOURNAL) + len(JOURNAL)
    path = tmp_path / "run.html"
    path.write_bytes(PAGE[:start] + content.encode() + PAGE[PAGE.index(b"</script>", start) :])
    for command in ("verify", "replay"):
        with pytest.raises(SystemExit) as ended:
            main([command, str(path)])
        assert ended.value.code == 5
        assert "run.html is damaged" in capsys.readouterr().err


def test_byte_that_is_no_text_is_damage_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "run.html"
    path.write_bytes(flip(PAGE.index(b"order", PAGE.index(JOURNAL)), 0x80))
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(path)])
    assert ended.value.code == 5


class TestInABrowser:
    """The same in a real browser."""

    pytestmark = needs_browser

    @pytest.mark.long
    def test_flipped_byte_is_told_wherever_it_is(self, browser: Any, tmp_path: Path) -> None:
        path = tmp_path / "run.html"
        path.write_bytes(PAGE)
        with open_tab(browser, "") as tab:
            tab.page.goto(path.as_uri())
            assert "Whole: each of" in tab.page.inner_text("body")
            for at, mask in places():
                path.write_bytes(flip(at, mask))
                tab.page.goto(path.as_uri())
                text = tab.page.inner_text("body")
                assert "Damaged" in text or "Not checked yet" in text, (at, PAGE[at - 20 : at + 20], text)
                assert not re.search(r"Whole: each of \d", text), (at, PAGE[at - 20 : at + 20])
            tab.errors.clear()

    def test_whole_lines_of_a_damaged_page_are_still_shown(self, browser: Any, tmp_path: Path) -> None:
        path = tmp_path / "run.html"
        path.write_bytes(PAGE[: PAGE.index(JOURNAL)] + PAGE[PAGE.index(JOURNAL) :].replace(b"\\n", b"\\!", 1))
        with open_tab(browser, "") as tab:
            tab.page.goto(path.as_uri())
            tab.page.get_by_text("Damaged. Not whole").wait_for()
            tab.page.get_by_text("this page is not as it was written").first.wait_for()
            answer = json.loads(SOURCE.read_text("utf-8").splitlines()[-1])["record"]["final_answer"]
            tab.page.get_by_text(answer).first.wait_for()

    def test_page_whose_script_may_not_run_says_so(self, browser: Any, tmp_path: Path) -> None:
        path = tmp_path / "run.html"
        path.write_bytes(PAGE)
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(path.as_uri())
        assert UNCHECKED in page.inner_text("body")
        assert NO_SCRIPT in page.inner_text("body")
        context.close()
