"""A real browser for tests of the page: Chromium of the system, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
needs_browser = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs the packages of the extra test-all"),
]
"""The marks of a module whose tests use a browser; one process has them all, so that one browser starts."""
WIDE, NARROW = (1440, 900), (360, 740)


@contextmanager
def open_browser() -> Iterator[Any]:
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A page of a browser, and what went wrong in it. `page` is Playwright's."""

    page: Any
    root: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> Any:
        """Go to a place of the page: "runs", "runs/ID?at=…"."""
        self.page.goto(f"{self.root}/ui/{path}")
        return self.page

    def check_accessible(self, context: Any = None) -> None:
        """Fail for what axe-core finds serious or critical."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, context=context).response["violations"]
        serious = [
            f"{each['id']}: {each['help']}: " + "; ".join(str(node["target"]) for node in each["nodes"][:4])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert not serious, "\n".join(serious)

    def check_fits(self) -> None:
        """Fail for a page that has to be scrolled sideways."""
        wide = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{self.page.url} is {wide[0]} pixels wide in a window of {wide[1]}"


@contextmanager
def open_tab(
    browser: Any, root: str, *, size: tuple[int, int] = WIDE, scheme: str = "light", language: str = "en-GB"
) -> Iterator[Tab]:
    """A tab of its own, with no past; it fails at its end for errors of the page's scripts and refused requests."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale=language, reduced_motion="reduce"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(10_000)
    tab = Tab(page, root)
    page.on("pageerror", lambda error: tab.errors.append(f"error: {error}"))
    page.on("console", lambda told: tab.errors.append(f"console: {told.text}") if told.type == "error" else None)
    try:
        yield tab
        assert not tab.errors, "\n".join(tab.errors)
    finally:
        context.close()
