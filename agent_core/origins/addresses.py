"""Addresses in a text: e-mail, URL, host. Each is read whole, in one form for all that mean the same. Pure."""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urlsplit

import idna

from agent_core.origins.whole import CJK, compose, is_cjk, is_extended, lower
from utools.lazy_pattern import lazy_compile

Url = tuple[str, str, str, int | None, str, str]
"""Scheme, user, host, port, path, and what is behind it with its `?` or `#`."""
Found = Iterator[tuple[int, object]]
"""Where a value begins in a text, and its canonical form."""

_LOCAL = lazy_compile(r"[^\s@<>()\[\],;:\"“”‘’«»「」『』《》（）【】、，。；：！？…|\\\x00]+")
_AT = lazy_compile(r"(?<=[^\s@])@(?=[^\W_])")
_DOMAIN = lazy_compile(r"[^\W_](?:[\w-]*[^\W_])?(?:\.[^\W_](?:[\w-]*[^\W_])?)*")
_ENDS_URL = '\\s<>"`|\\\\^“”‘’«»「」『』《》（）【】、，。；：！？…'
_URL = lazy_compile(rf"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://(?:(?!\]\()[^{_ENDS_URL}])+")
_BARE_URL = lazy_compile(
    r"(?<![\w@./\\:-])_{0,2}(?P<bare>(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}(?!-?[^\W_])"
    rf"(?::\d+)?(?:[/?#](?:(?!\]\()[^{_ENDS_URL}])*)?)"
)
_KEY = lazy_compile(r"[A-Za-z_][A-Za-z_-]*=(?=[^=]+\Z)")
"""The name before a value: `to=ann@example.org`."""
_CHINESE_AFTER = lazy_compile(rf"(?!{CJK})[^\W_](?={CJK})")
_PORT = lazy_compile(r":\d*\Z")
_TRAILING = ".,;:!?'"
_EMPHASIS = "*_~"
_FILES_TOO = ("md", "mov", "py", "rs", "sh", "zip")
"""Domains that are endings of files, too: a name alone does not say which it is."""
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
LONGEST_ADDRESS = 320


# ── e-mail ───────────────────────────────────────────────────────────────────────────────────────


def find_emails(text: str) -> Found:
    """Return every e-mail address: (mailbox, domain). A bullet, a mention's sign, a key before it do not belong to
    it."""
    text = _without_urls(text)
    for at in _AT.finditer(text):
        found = _email_at(text, at.start())
        if found is not None:
            yield found


def read_email(text: str) -> tuple[str, str] | None:
    """Return a text that is one e-mail address."""
    local, at, domain = text.rpartition("@")
    whole = bool(at) and _LOCAL.fullmatch(local) is not None and _DOMAIN.fullmatch(domain) is not None
    return _email(local, domain) if whole and _is_mailbox(local) else None


def _email_at(text: str, at: int) -> tuple[int, tuple[str, str]] | None:
    local = _local_before(text, at)
    domain = _DOMAIN.match(text, at + 1)
    if not local or domain is None:
        return None
    name = _without_other_script(domain[0])
    end = at + 1 + len(name)
    bare = _KEY.sub("", local.lstrip("!#$%&'*+/=?^`{|}~.-"))
    marks = len(bare) - len(bare.lstrip("_"))
    if marks and text.startswith("_" * marks, end):
        bare, end = bare[marks:], end + marks
    address = _email(bare, name) if _is_mailbox(bare) and not _goes_on(text, end) else None
    return None if address is None else (at - len(bare), address)


def _local_before(text: str, at: int) -> str:
    """Return what is before the @, within one script: in Chinese, no blank parts it from the sentence."""
    found = _LOCAL.match(text[max(0, at - LONGEST_ADDRESS) : at][::-1])
    if found is None or len(found[0]) == LONGEST_ADDRESS:
        return ""
    start = at - len(found[0])
    if text[start - 1 : start] == "@" or (text[start - 1 : start] == "’" and text[start - 2 : start - 1].isalpha()):
        return ""
    local = text[start:at]
    return local if is_cjk(local[-1]) else local[_last_cjk(local) :]


def _last_cjk(text: str) -> int:
    """Return where what is behind the last Chinese character begins."""
    return max((index for index, char in enumerate(text, 1) if is_cjk(char)), default=0)


def _is_mailbox(local: str) -> bool:
    return bool(local) and not local.endswith(".") and ".." not in local


def _without_other_script(domain: str) -> str:
    """Return the domain up to where Chinese goes on without a blank."""
    if is_cjk(domain[0]):
        return domain
    cut = next((index for index, char in enumerate(domain) if is_cjk(char)), len(domain))
    return domain if domain[cut - 1] in ".-" or "." in domain[cut:] else domain[:cut]


def _goes_on(text: str, end: int) -> bool:
    """Return whether an address or a name is a part of a longer one, which continues here."""
    after, beyond = text[end : end + 1], text[end + 1 : end + 2]
    return after in ("@", "_", "+", "=") or (after == "-" and beyond.isalnum()) or is_extended(after)


def _email(local: str, domain: str) -> tuple[str, str] | None:
    """Return the mailbox in small letters, as mail systems compare it, and the host."""
    host = read_host(domain)
    return None if host is None else (lower(local), host)


# ── hosts and URLs ───────────────────────────────────────────────────────────────────────────────


def read_host(text: str) -> str | None:
    """Return a host's name as DNS has it, by IDNA 2008: of two names that look alike, each keeps its own."""
    name = compose(text)
    if not name or len(name) > 253:
        return None
    if name.isascii():
        return name.lower() if re.fullmatch(r"[A-Za-z0-9_.\-:\[\]]+", name) else None
    try:
        labels = [label if label.isascii() else idna.alabel(lower(label)).decode() for label in name.split(".")]
    except idna.IDNAError:
        return None
    return ".".join(labels).lower()


def find_hosts(text: str) -> Found:
    """Return every host that stands alone, outside of URLs and addresses."""
    for start, name in _find_bare(text):
        host = read_host(name) if not set("/:?#").intersection(name) else None
        if host is not None and text[start + len(name) :][:1] not in ("/", ":"):
            yield start, host


def find_url_spans(text: str) -> list[tuple[int, int]]:
    """Return where every URL with a scheme is, perhaps with the end of the sentence around it."""
    return [found.span() for found in _URL.finditer(text)]


def read_url_at(text: str, start: int, end: int) -> Url | None:
    """Return the URL that is there."""
    return read_url(_trim_url(text[start:end], text[start - 1 : start]))


def find_bare_urls(text: str) -> Iterator[tuple[int, Url]]:
    """Return every URL that is written without a scheme: it is of https."""
    for start, bare in _find_bare(_without_urls(text)):
        url = read_url(f"https://{bare}")
        if url is not None:
            yield start, url


@lru_cache(4096)
def read_url(text: str) -> Url | None:
    """Return a URL as `Url` has it; of a `mailto:` or a broken one None."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) or re.search(r"[\s\\\x00-\x1f\x7f]", text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    user, _, address = parts.netloc.rpartition("@")
    host = read_host(_PORT.sub("", address))
    if host is None:
        return None
    scheme = parts.scheme.lower()
    rest = re.search(r"[?#].*", text)
    port = _PORTS.get(scheme) if port is None else port
    return scheme, user, host, port, parts.path or "/", rest[0] if rest else ""


def _without_urls(text: str) -> str:
    return _URL.sub(lambda url: " " * len(url[0]), text) if "://" in text else text


def _find_bare(text: str) -> Iterator[tuple[int, str]]:
    """Yield every host outside of an address, with the path that follows it."""
    for found in _BARE_URL.finditer(text):
        start = found.start("bare")
        bare = _trim_url(found["bare"], text[start - 1 : start])
        end = start + len(bare)
        marks = text[found.start() : start]
        name = bare.partition(".")[0]
        if not is_cjk(name[-1]) and not is_cjk(bare.rpartition(".")[2][:1]):
            start, bare = start + _last_cjk(name), bare[_last_cjk(name) :]
        is_ended = not _goes_on(text, end + len(marks) if marks and text.startswith(marks, end) else end)
        if is_ended and bare.rpartition(".")[2].lower() not in _FILES_TOO:
            yield start, bare


def _trim_url(text: str, before: str) -> str:
    """Without the sentence around it: its last punctuation, a bracket that it does not open, Chinese after a word."""
    marks = _TRAILING + before if before and before in _EMPHASIS else _TRAILING
    chinese = None if text.isascii() else _CHINESE_AFTER.search(text)
    trimmed = (text[: chinese.start() + 1] if chinese else text).rstrip(marks)
    for opening, closing in ("()", "[]", "{}"):
        over = trimmed.count(closing) - trimmed.count(opening) if trimmed.endswith(closing) else 0
        while over > 0 and trimmed.endswith(closing):
            trimmed, over = trimmed[:-1].rstrip(marks), over - 1
    return trimmed
