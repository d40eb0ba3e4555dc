"""Key formats: keys of clouds, code hosts, chats and the like, recognised by their form.

The forms are those that vendors document for the scanners of code hosts. A pattern is used only if a text holds one of
its hints, so that ordinary text costs a handful of substring searches.

A key is masked where it is a text of its own. Within a longer run of letters and digits, such as an id or base64, the
same characters are data. No format but a private key continues across a quote, a brace, a comma or a line end: what is
before and after them are values of their own.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from string import ascii_letters, digits

from utools.lazy_pattern import lazy_compile
from utools.secrets.encodings import any_of
from utools.secrets.finds import Find, blank_finds

ARMOUR = r"A-Za-z0-9+/=\s\\:,-"
"""The characters of a private key, with its headers and with escaped line breaks."""
KEY_ITSELF = "[A-Za-z0-9+/=]{24}"
"""A part that every private key has, and no text about one."""
GAP = r"(?<![A-Za-z0-9_\-])"
"""A place that is within no word and no base64url; a `+` may be a space of a form, as a `/` may be one of a path."""
ESCAPES = (
    r"\\[abefnrtv0]",
    r"\\[0-3][0-7]{2}",
    r"\\x[0-9A-Fa-f]{2}",
    r"\\u[0-9A-Fa-f]{4}",
    r"\\U[0-9A-Fa-f]{8}",
    *(f"%{'25' * count}[0-9A-Fa-f]{{2}}" for count in range(3)),
    "=[0-9A-F]{2}",  # quoted-printable
    r"\[[mK]",
    *(rf"[\[;:]\d{{{count}}}m" for count in (1, 2, 3)),  # the colours of a terminal
)
"""The ends of escape sequences, each of one length, as a look behind needs it."""
MARKS = (
    *(rf"(?:{GAP}|(?<=\\n))[_\-]{{{count}}}" for count in (1, 2, 3)),  # Markdown, a line of a diff
    r"(?<![^\s\"'])-[A-Za-z]",  # an option of one letter
    rf"{GAP}(?i:key)[_\-]",
)
"""What may stand directly before a key, and hardly ever stands before the same characters in base64url."""
START = "(?=[AGSeghnprsx])"
"""The first characters of the keys: a look at one is cheaper than all looks behind."""
LEFT = f"{START}(?:{GAP}|{'|'.join(f'(?<={each})' for each in (*ESCAPES, *MARKS))})"
"""What is before a key that is a text of its own."""
RIGHT = "(?![A-Za-z0-9])"
"""What is after a key of a fixed length."""
FIXED_LENGTH = lazy_compile(r"\{\d+,?\}\Z")
"""The end of a pattern for keys of a fixed length, or of letters only."""
CONTEXT = lazy_compile(r"\(\?<=|-----BEGIN")
"""The pattern of a format that is recognised by what is around the key."""
PLACEHOLDER = r"(?:<[^>\s@]*>|\$?\{[^}\s@]*\}|\$[A-Z_][A-Z0-9_]*|\$\([^)\s@]*\)|%s|\*+|[xX]+|\.{3})"
"""What is written instead of a password in examples and templates."""
USER = r"[\w.~%+$-]{1,256}"
PASSWORD_CHARACTERS = r"[\w.~%!$&()*+;=<>^|`:-]"
PASSWORD = rf"(?!{PLACEHOLDER}@)(?!\d{{1,5}}[.!:]*[&;()<>|`]){PASSWORD_CHARACTERS}{{1,256}}"
"""The characters that a URL has there (RFC 3986), and some that people leave in. What follows a port is no password."""
HOST_NEXT = r"(?=@(?!sha\d{3}:)(?:\[|(?u:\w)))"
LOGIN_SO_FAR = lazy_compile(rf"(?<=://){USER}(?::{PASSWORD_CHARACTERS}{{0,256}}@?)?\Z", re.ASCII)
"""What may become a password in a URL."""
AWS_SECRET = (
    r"(?i:aws[^'\"{},\r\n]{0,20}?(?:key|pwd|pw|password|pass|token)['\"]?[^'\"{},\r\n]{0,20}?)"
    r"['\"](?P<key>[0-9a-zA-Z/+]{40})(?=['\"])"
)
"""A secret without a form of its own, told by the name before the quoted text."""
CUT_LINES = r"(?:[A-Za-z0-9+/=]++[ \t]*+(?:(?:\\[rn]|[\r\n])++|(?=-----END)))++"
"""The lines of a private key whose beginning was cut off."""
CUT_SO_FAR = lazy_compile(
    r"\s*+(?:[A-Za-z0-9+/=]++[ \t]*+(?:\\[rn]|[\r\n])++)*+(?:[A-Za-z0-9+/=]++[ \t]*+)?\\?(?:-[-A-Z0-9 ]*+)?\Z"
)
"""What may become these lines, with what ends them."""
FORMATS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "aws": (("AKIA", "ASIA", "ABIA", "ACCA", "A3T"), r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}"),
    "azure_storage_key": (("AccountKey=",), r"AccountKey=[A-Za-z0-9+/=]{88}"),
    "gitlab_token": (
        (
            "glpat-",
            "gldt-",
            "glft-",
            "glsoat-",
            "glrt-",
            "glcbt-",
            "glimt-",
            "glptt-",
            "glagent-",
            "gloas-",
            "GR1348941",
        ),
        r"(?:(?:gl(?:pat|dt|ft|soat|rt)-|GR1348941|glcbt-(?:[0-9a-fA-F]{2}_)?)[\w-]{20,50}"
        r"|glimt-[\w-]{25}|glptt-[\w-]{40}|gloas-[\w-]{64}|glagent-[\w-]{50,1024})(?!\w)",
    ),
    "pypi_token": (("pypi-AgE",), r"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)[\w-]{70,}"),
    "sendgrid": (("SG.",), r"SG\.[\w-]{22}\.[\w-]{43}"),
    "slack": (
        ("xox", "hooks.slack.com/"),
        r"xox[abopsr]-(?:\d+-)+[A-Za-z0-9]+|https://hooks\.slack\.com/services/T\w+/B\w+/\w+",
    ),
    "square_oauth": (("sq0csp-",), r"sq0csp-[\w\\-]{43}"),
    "npm": ((":_authToken=",), r"(?<=:_authToken=)[ \t]*(?P<key>npm_[\w.~+/=-]{1,256}|[A-Fa-f0-9-]{36})"),
    "openai": (("T3BlbkFJ",), r"sk-(?!proj-|svcacct-|admin-)[\w-]{20,256}?T3BlbkFJ[A-Za-z0-9]{20}"),
    "private_key": (
        ("-----BEGIN ", "-----END "),
        rf"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        rf"(?=(?:(?!-----END )[{ARMOUR}]){{0,400}}?{KEY_ITSELF})[{ARMOUR}]*?"
        rf"(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|(?=[^{ARMOUR}])|\Z)"
        rf"|\A\s*+(?P<key>(?=[^-]*?{KEY_ITSELF}){CUT_LINES}-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)",
    ),
    "github_token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_\w{36,}(?:\.[\w-]{8,}){0,2}"),
    "stripe": (("sk_live_", "rk_live_"), r"[rs]k_live_[0-9A-Za-z]{24,}\w*"),
    "jwt": (("eyJ",), r"(?<![\w=-]\.)eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?(?:\.[\w-]{8,}){0,2}"),
    "github_fine_grained": (("github_pat_",), r"github_pat_\w{22,255}"),
    "google_api_key": (("AIza",), r"AIza[\w-]{35}"),
    "anthropic": (("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    "openai_project": (("sk-proj-", "sk-svcacct-", "sk-admin-"), r"sk-(?:proj|svcacct|admin)-[\w-]{20,}"),
    "huggingface": (("hf_",), r"hf_(?:(?!hf_)[A-Za-z]){30,}"),
    "slack_app": (("xapp-", "xoxe"), r"xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+|xoxe(?:\.xox[bp])?-\d-[\w-]{20,}"),
    "npm_token": (("npm_",), r"npm_[A-Za-z0-9]{36}"),
    "feishu_webhook": (("/bot/v2/hook/", "/bot/hook/"), r"(?<=hook/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "password_in_url": (
        ("://",),
        rf"(?<=://)(?!\$\w+:\$\w+@){USER}:{PASSWORD}{HOST_NEXT}",
    ),
}
"""By name: texts of which every key of the format holds one, and the pattern."""
NAMES = sorted(FORMATS)
LOGIN = rf"://{USER}:{PASSWORD_CHARACTERS}{{1,256}}@"
"""A URL with a password, or nearly: most have none, and a URL is no reason to look at each text of a value."""
HINTS = [hint for hints, _ in FORMATS.values() for hint in hints if hint != "://"]
HINT = lazy_compile(f"{any_of(HINTS)}|{LOGIN}")
"""Finds any hint that a text, or the JSON of it, may hold a key of any format: nothing of a hint is escaped in JSON.
One search takes a third of the time of one for each."""
TOKEN_CHARACTERS = ascii_letters + digits + "_-.~+/=:%@\\"
"""The characters at the end of a text that continues, where a key may have begun."""
ARMOUR_BEGIN, ARMOUR_END = "-----BEGIN ", "-----END "
ARMOUR_ENDED = lazy_compile("-----END [^-]*-----")
NO_ARMOUR = lazy_compile(f"[^{ARMOUR}]")


def find_keys(text: str, formats: Collection[str]) -> list[Find]:
    """Return each key of these formats, in the order of the text."""
    if not HINT.search(text):
        return []
    found: list[Find] = []
    for name in _hinted_formats(text):
        if name in formats:
            for pattern in _patterns(name):
                new = [Find(*_span_of(each), name) for each in pattern.finditer(text)]
                text, found = blank_finds(text, new), found + new
    return sorted(found)


def _span_of(found: re.Match[str]) -> tuple[int, int]:
    """Return where the key is in what was found: the group `key`, where a pattern has one that took part."""
    return found.span("key") if found.groupdict().get("key") is not None else found.span()


def check_format(name: str) -> str:
    """Return the name of a format; ValueError if there is none of that name."""
    if name not in NAMES:
        raise ValueError(f"there is no key format {name!r}; there are {', '.join(NAMES)}")
    return name


def unsettled_key(text: str) -> int:
    """Return how many characters at the end of a text that continues may be the beginning of a key."""
    token = len(text) - len(text.rstrip(TOKEN_CHARACTERS))
    login = LOGIN_SO_FAR.search(text, max(0, len(text) - 516))
    begin = _find_open_armour(text)
    lines = CUT_SO_FAR.match(text)
    armour = 0 if begin is None else len(text) - begin
    return max(token, *(len(each[0]) for each in (login, lines) if each), armour)


def _find_open_armour(text: str) -> int | None:
    """Return where the first armour begins that nothing has ended yet: a key below a second beginning is masked from
    there."""
    begin = text.find(ARMOUR_BEGIN)
    while begin >= 0:
        ended = [found.end() for each in (ARMOUR_ENDED, NO_ARMOUR) if (found := each.search(text, begin))]
        if not ended:
            return begin
        begin = text.find(ARMOUR_BEGIN, min(ended))
    return None


def _hinted_formats(text: str) -> Iterator[str]:
    for name, (hints, _) in FORMATS.items():
        if any(hint in text for hint in hints):
            yield name


@lru_cache
def _patterns(name: str) -> tuple[re.Pattern[str], ...]:
    by_form = _alone(re.compile(FORMATS[name][1], re.ASCII))
    return (by_form, re.compile(AWS_SECRET)) if name == "aws" else (by_form,)


def _alone(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return the pattern for keys in a row that are a text of their own. Words are ASCII: Chinese has no space before a
    key.

    The repetition keeps what it took (`++`): the ways to part a row into keys may be exponentially many.
    """
    if CONTEXT.match(pattern.pattern):
        return pattern
    right = RIGHT if FIXED_LENGTH.search(pattern.pattern) else ""
    return re.compile(f"{LEFT}(?:{pattern.pattern})++{right}", pattern.flags & ~re.UNICODE | re.ASCII)
