"""write_decision_page(): the page of a decision link, in English or Chinese, without a script: the call, and its
buttons; or why nothing can be decided."""

import html
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, assert_never

from fastapi.responses import HTMLResponse

from engine_shim.api.decision_links import Shown
from engine_shim.api.link_models import Decided, LinkedCall
from engine_shim.api.refusal import Refusal
from engine_shim.web.bundle import STATIC, read_style
from engine_shim.web.shown_text import show

Say = Callable[[str], str]
STYLES: Final = ("css/base.css", "css/decide.css")
LONGEST_ARGUMENTS: Final = 100_000
"""Characters of a call's arguments that are shown. Who cannot see all of them gets no button that lets the call run."""
TITLES: Final[Mapping[str, str]] = {
    "not_found": "There is no such link",
    "link_expired": "This link has expired",
    "link_used": "This call waits no longer",
    "run_deleted": "The run was deleted",
    "decision": "It cannot be decided now",
    "run_busy": "It cannot be decided now",
}
ADVICE: Final[Mapping[str, str]] = {
    "not_found": "A part of it may be missing: copy all of it from the message.",
    "link_expired": "Ask the person or the program that sent it for a new one.",
    "link_used": "Somebody has decided already, or its run has ended. Nothing was done now.",
    "run_deleted": "There is nothing left to decide.",
}
REASONS: Final[Mapping[str, str]] = {
    "awaiting_approval": "It runs only if a person approves it.",
    "in_doubt": "It may have happened or not: its process ended before it was answered.",
}
LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "approve": ("Approve", "main"),
    "deny": ("Deny", "bad"),
    "retry": ("Try again", "main"),
    "skip": ("Skip", "plain"),
    "fail": ("Fail", "bad"),
}


def write_decision_page(shown: Shown, token: str, language: str) -> HTMLResponse:
    """Return the page of what a link shows, in the language of an Accept-Language header. All texts of the call are
    escaped; the page runs no script, loads nothing, and sends its form to its own server alone."""
    chosen = "zh" if language.strip().lower().startswith("zh") else "en"
    t = _speak(chosen)
    status, title, body = 200, "", ""
    match shown:
        case LinkedCall():
            title, body = t("A call waits for your decision"), _write_call(shown, token, t)
        case Decided():
            title, body = t("Your decision is recorded"), _paragraph(t("The run continues. You can close this page."))
        case Refusal():
            status, title = shown.status, t(TITLES.get(shown.kind, "It could not be decided"))
            body = _paragraph(t(ADVICE[shown.kind]) if shown.kind in ADVICE else show(shown.detail))
        case _:
            assert_never(shown)
    style, source = read_style(*STYLES)
    policy = f"default-src 'none'; style-src {source}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex">'
    )
    page = (
        f'<!doctype html>\n<html lang="{chosen}"><head>{head}<title>{html.escape(title)}</title>'
        f"<style>{style}</style></head><body><main><h1>{html.escape(title)}</h1>{body}</main></body></html>\n"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Vary": "Accept, Accept-Language",
    }
    return HTMLResponse(page, status, headers)


def _write_call(call: LinkedCall, token: str, t: Say) -> str:
    args = show(json.dumps(call.args, ensure_ascii=False, indent=2))
    is_whole = len(args) <= LONGEST_ARGUMENTS
    decisions = [each for each in call.decisions if is_whole or each not in ("approve", "retry")]
    parts = [
        f"<h2>{html.escape(show(call.tool))}</h2>",
        _paragraph(t(REASONS[call.reason])) if call.reason in REASONS else "",
        _paragraph(show(call.message)) if call.message else "",
        f"<h3>{html.escape(t('Arguments'))}</h3><pre>{html.escape(args[:LONGEST_ARGUMENTS])}</pre>",
        "" if is_whole else _paragraph(t("The arguments are too long for this page: approve the call elsewhere.")),
        f'<form method="post" action="{html.escape(token)}/form">',
        _write_reason(t) if "deny" in decisions else "",
        '<div class="row">',
        *(_write_button(each, t) for each in decisions),
        "</div></form>",
        f'<p class="help">{html.escape(t("This link decides once, until {time}.").format(time=_say_time(call)))}</p>',
    ]
    return "".join(parts)


def _say_time(call: LinkedCall) -> str:
    return f"{call.expires_at[:16].replace('T', ' ')} UTC"


def _write_reason(t: Say) -> str:
    return (
        f'<div class="field"><label for="message">{html.escape(t("If you deny it: why not?"))}</label>'
        f'<input id="message" name="message" maxlength="10000" autocomplete="off">'
        f'<p class="help">{html.escape(t("The model reads it."))}</p></div>'
    )


def _write_button(decision: str, t: Say) -> str:
    label, kind = LABELS[decision]
    return (
        f'<button class="button {kind}" type="submit" name="decision" value="{decision}">'
        f"{html.escape(t(label))}</button>"
    )


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _speak(language: str) -> Say:
    """Return what gives a text in a language; texts are in English, and their own keys."""
    table = _read_chinese() if language == "zh" else {}
    return lambda text: table.get(text, text)


@cache
def _read_chinese() -> Mapping[str, str]:
    table: dict[str, Any] = json.loads((STATIC / "kit/zh.json").read_text("utf-8"))
    return table
