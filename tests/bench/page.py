"""How the page does on long runs and long lists, in a real Chromium.

    python tests/bench/page.py

Opens a run of 200 steps and one of 5,000 (times until the first step can be read, and until the last one is reached),
and scrolls through a list of 10,000 runs; tasks of the page that hold up the window for over 50 ms are counted.
"""

import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.browser import open_browser, open_tab
from support.by_hand import action, final
from support.served_host import Served, served

RUNS = 10_000
OBSERVE = """
window.held = [];
const watcher = new PerformanceObserver((list) => held.push(...list.getEntries().map((each) => each.duration)));
watcher.observe({ type: "longtask" });
"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder), with_page=True) as host,
        open_browser() as browser,
    ):
        for steps in (200, 5000):
            measure_run(browser, host, submit_long_run(host, steps), steps)
        copy_runs(host, host.submit("desk@1", message="How many A-17?")["run_id"])
        measure_list(browser, host)


def submit_long_run(host: Served, steps: int) -> str:
    """A run of an agent that calls a tool in each step."""
    replies = [action("stock", article=f"A-{n}") for n in range(steps - 1)] + [final("There are 12.")]
    (host.folder / "workflows" / f"long-{steps}-replies.json").write_text(json.dumps(replies))
    config = {
        "model": f"scripted:long-{steps}-replies.json",
        "max_steps": steps,
        "max_tool_calls": steps,
        "timeout": 600,
        "allowed_tools": ["stock"],
        "prompt": "How many are there?",
    }
    definition = {"id": f"long-{steps}", "nodes": [{"tool": "agent_core", "config": config}]}
    (host.folder / "workflows" / f"long-{steps}.json").write_text(json.dumps(definition))
    run: str = host.submit(f"long-{steps}", wait=False)["run_id"]
    host.await_status(run, "completed", "failed")
    return run


def measure_run(browser: Any, host: Served, run: str, steps: int) -> None:
    with open_tab(browser, host.url) as tab:
        page = tab.page
        page.add_init_script(OBSERVE)
        tab.open(f"runs/{run}")
        page.get_by_role("heading", name="Step 1: stock").wait_for()
        opened = page.evaluate("performance.now()")
        held = page.evaluate("held.reduce((sum, each) => sum + each, 0)")
        last = page.get_by_role("heading", name=f"Step {steps}: answers")
        begun = page.evaluate("performance.now()")
        while not last.count():
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            page.wait_for_timeout(20)
        reached = page.evaluate("performance.now()") - begun
        nodes = page.evaluate("document.querySelectorAll('*').length")
        print(
            f"{steps:6,} steps: open after {opened:5.0f} ms, of which tasks over 50 ms {held:5.0f} ms; "
            f"the last step is reached after {reached:4.0f} ms; {nodes:,} elements"
        )


def copy_runs(host: Served, run: str) -> None:
    """Fill the store with copies of a run, each a second older than the one before."""
    with closing(sqlite3.connect(host.folder / "runs.db", isolation_level=None)) as db:
        columns = [name for _, name, *_ in db.execute("PRAGMA table_info(rows)") if name not in ("run", "seq")]
        names = ", ".join(columns)
        for n in range(RUNS):
            copy = f"copy-{n:05}"
            db.execute(f"INSERT INTO rows (run, {names}) SELECT ?, {names} FROM rows WHERE run = ?", (copy, run))
            db.execute(
                "INSERT INTO workflow_runs SELECT ?, workflow, version, status, "
                "strftime('%Y-%m-%dT%H:%M:%fZ', started_at, ?), base FROM workflow_runs WHERE run = ?",
                (copy, f"-{n} seconds", run),
            )
            db.execute("INSERT INTO run_hosts SELECT ?, records, host FROM run_hosts WHERE run = ?", (copy, run))


def measure_list(browser: Any, host: Served) -> None:
    with open_tab(browser, host.url) as tab:
        page = tab.page
        page.add_init_script(OBSERVE)
        tab.open("runs")
        page.get_by_role("link", name="desk").first.wait_for()
        opened = page.evaluate("performance.now()")
        page.evaluate("held.length = 0")
        begun = page.evaluate("performance.now()")
        while page.evaluate("performance.now()") - begun < 60_000:
            page.mouse.wheel(0, 4000)
            page.wait_for_timeout(30)
            if page.evaluate("scrollY + innerHeight >= document.body.scrollHeight - 2"):
                page.wait_for_timeout(300)
                if page.evaluate("scrollY + innerHeight >= document.body.scrollHeight - 2"):
                    break
        held = page.evaluate("held")
        took = (page.evaluate("performance.now()") - begun) / 1000
        nodes = page.evaluate("document.querySelectorAll('*').length")
        print(
            f"{RUNS:6,} runs: open after {opened:5.0f} ms; scrolled to the end in {took:.1f} s, "
            f"{len(held)} tasks over 50 ms, the longest {max(held, default=0):.0f} ms; {nodes:,} elements"
        )


if __name__ == "__main__":
    main()
