"""Keys that are told by how they look: all of them are masked, and ordinary text is left alone; both are counted."""

import base64
import json
import re
import string
from hashlib import sha256
from pathlib import Path
from random import Random
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.growth import growth
from support.masked_keys import mask_keys
from utools.secrets.key_formats import NAMES, unsettled_key
from utools.secrets.redaction import Redactor

CHANCE = Random(7)
WORD = string.ascii_letters + string.digits


def some(count: int, alphabet: str = WORD) -> str:
    return "".join(CHANCE.choice(alphabet) for _ in range(count))


UPPER, LOWER, HEX = string.ascii_uppercase + string.digits, string.ascii_lowercase + string.digits, "0123456789abcdef"
KEYS: dict[str, str] = {
    "aws": "AKIA" + some(16, UPPER),
    "azure_storage_key": "AccountKey=" + some(86) + "==",
    "github_token": "ghp_" + some(36),
    "github_fine_grained": "github_pat_" + some(22) + "_" + some(59),
    "gitlab_token": "glpat-" + some(20),
    "npm": "//registry.example/:_authToken=" + some(36, HEX),
    "npm_token": "npm_" + some(36),
    "pypi_token": "pypi-AgEIcHlwaS5vcmc" + some(80),
    "sendgrid": f"SG.{some(22)}.{some(43)}",
    "slack": f"xoxb-{some(12, string.digits)}-{some(24, LOWER)}",
    "slack_app": f"xapp-1-A{some(9, UPPER)}-{some(12, string.digits)}-{some(64, HEX)}",
    "square_oauth": "sq0csp-" + some(43),
    "stripe": "sk_live_" + some(24),
    "openai": f"sk-{some(20)}T3BlbkFJ{some(20)}",
    "openai_project": "sk-proj-" + some(48),
    "anthropic": "sk-ant-api03-" + some(80),
    "google_api_key": "AIza" + some(35),
    "huggingface": "hf_" + some(34, string.ascii_letters),
    "jwt": f"eyJ{some(30)}.eyJ{some(60)}.{some(43)}",
    "private_key": f"-----BEGIN RSA PRIVATE KEY-----\n{some(64)}\n{some(64)}\n-----END RSA PRIVATE KEY-----",
    "password_in_url": "postgres://ann:" + some(12) + "@db.example/shop",
    "feishu_webhook": "https://open.feishu.cn/open-apis/bot/v2/hook/"
    + "-".join(some(count, HEX) for count in (8, 4, 4, 4, 12)),
}
SECRET = {
    "npm": re.compile(r"[0-9a-f]{36}"),
    "password_in_url": re.compile(r"(?<=ann:)\w+"),
    "feishu_webhook": re.compile(r"[0-9a-f]{8}-.*"),
}
"""What of a key must not be shown, where that is not all of it."""
AROUND = [
    "{}",
    "key={} and more",
    '{{"token":"{}"}}',
    "Schlüssel：{}。",
    "export KEY='{}'\n",
    "Authorization: Bearer {}",
    "密钥{}是",
    '"log": "first line\\n{}\\nlast line"',
    '{{"body": "{{\\"token\\": \\"{}\\"}}"}}',
    "\\u003d{}\\u0026",
    "callback?token%3D{}%26x",
    "callback?to=a%253Ftoken%253D{}%2526x",
    "/hooks/{}/send",
    "\x1b[1;32m{}\x1b[0m",
    "\x1b[01;31m\x1b[K{}\x1b[m",
    "one\n+{}\n",
    "-{}\n+other",
    "<b>{}</b>",
    "`{}`,",
    "a;{};b",
    "({})",
    "text=my+key+is+{}&x=1",
    "key:+{}",
    "_{}_",
    "__{}__",
    "***_{}_***",
    "--{}--",
    '{{"diff": "one\\n-{}\\n+other"}}',
    "mysql -p{} shop",
    '["-p{}"]',
    "key-{}",
    "KEY_{}",
    "\x1b[38;5;208m{}\x1b[0m",
    "\x1b[38;2;10;20;130m{}\x1b[0m",
    "\\u001b[38;5;208m{}\\u001b[0m",
    "key=3D{}",
    "callback?to=a%25253Dtoken%25253D{}%252526x",
    "\\302\\240{}",
    "\\v{}",
    "\\U0000003d{}",
    "...{}",
    "{}_x",
]


def test_every_format_has_its_key() -> None:
    assert set(KEYS) == set(NAMES)


@pytest.mark.sampled
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_masked_wherever_it_stands(name: str, around: str) -> None:
    key = KEYS[name]
    found = SECRET[name].search(key) if name in SECRET else None
    secret = found[0] if found else key
    text = mask_keys(around.format(key))
    assert secret not in text
    assert secret[8:] not in text
    assert f"[redacted:{name}]" in text


LONGER = {
    "stripe": "sk_live_" + some(99),
    "github_token": f"ghs_1234567_eyJ{some(60)}.eyJ{some(200)}.{some(86)}",
    "openai_project": f"sk-proj-{some(74)}T3BlbkFJ{some(74)}",
}


@pytest.mark.parametrize("name", LONGER)
def test_of_a_key_of_a_newer_and_longer_form_nothing_is_shown(name: str) -> None:
    assert mask_keys(f"key={LONGER[name]}\n") == f"key=[redacted:{name}]\n"


GLUED = ["aws", "npm_token", "openai", "openai_project", "anthropic", "sendgrid", "square_oauth", "stripe", "jwt"]


@pytest.mark.parametrize("name", [*GLUED, "github_token", "huggingface"])
def test_of_two_keys_without_a_gap_nothing_is_shown(name: str) -> None:
    assert mask_keys(f"key={KEYS[name] * 2}\n") == f"key=[redacted:{name}]\n"


WITHIN = sorted(KEYS.keys() - {"private_key", "password_in_url", "npm", "feishu_webhook"})
"""The formats that are a key and nothing else; the others are told by what is before the key."""
FIXED = ["aws", "sendgrid", "square_oauth", "google_api_key", "npm_token", "openai", "huggingface"]


@pytest.mark.parametrize("before", ["x", "7", "_", "-", "__", "-p", "Qk9PS0lORw"])
@pytest.mark.parametrize("name", WITHIN)
def test_what_only_looks_like_a_key_within_a_longer_text_is_data(name: str, before: str) -> None:
    text = f'{{"offer": "{some(40)}{before}{KEYS[name]}{some(40)}"}}'
    assert mask_keys(text) == text


@pytest.mark.parametrize("name", FIXED)
def test_a_text_that_goes_on_where_a_key_of_fixed_length_ends_is_data(name: str) -> None:
    text = f"offer={KEYS[name]}{some(40)}9"
    assert mask_keys(text) == text


def some_token(chance: Random) -> str:
    """A token as data hold it: an id, a hash, a piece of base64, a signed value, a URL."""
    raw = chance.randbytes(chance.randrange(6, 300))
    match chance.randrange(10):
        case 0:
            return raw.hex()
        case 1:
            return base64.b64encode(raw).decode()
        case 2:
            return base64.urlsafe_b64encode(raw).decode().rstrip("=")
        case 3:
            return base64.b32encode(raw).decode()
        case 4:
            return "".join(chance.choice(WORD) for _ in raw)
        case 5:
            return str(UUID(bytes=chance.randbytes(16)))
        case 6:
            return ".".join(base64.urlsafe_b64encode(chance.randbytes(size)).decode() for size in (20, 60, 32))
        case 7:
            return f"sha256:{sha256(raw).hexdigest()} md5-{raw[:16].hex()}"
        case 8:
            path, query = base64.urlsafe_b64encode(raw).decode(), quote(base64.b64encode(raw).decode(), safe="")
            return f"https://{raw[:4].hex()}.example:8443/{path}/x?next={query}&n={len(raw)}#at"
    return f"{chance.choice(['task', 'desk', 'ghs', 'SG', 'xox', 'AKIA', 'hf'])}-{raw[:12].hex()}_{len(raw)}"


def test_tokens_of_all_kinds_are_left_alone() -> None:
    chance = Random(20261122)
    for _ in range(30_000):
        text = some_token(chance)
        assert mask_keys(text) == text


@pytest.mark.parametrize("name", KEYS)
def test_a_format_that_is_switched_off_is_left_alone(name: str) -> None:
    text = f"key={KEYS[name]} and more"
    assert mask_keys(text, [name]) == mask_keys(text)
    assert f"[redacted:{name}]" not in mask_keys(text, [each for each in NAMES if each != name])
    assert mask_keys(text, []) == text


@pytest.mark.parametrize("name", KEYS)
def test_no_piece_of_a_key_is_shown_while_it_is_being_written(name: str) -> None:
    text = f"The key is {KEYS[name]}"
    for end in range(len(text)):
        shown = text[: end - unsettled_key(text[:end])]
        assert "The key is ".startswith(shown)


ORDINARY = [
    "It is 4 degrees in Oslo, and sk- is no key, nor is AKIA.",
    "eyJ is how base64 of a JSON object begins; SG. is Singapore.",
    "see https://example.com/a:b@c/d and http://user@example.com and git@github.com:a/b.git",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b, uuid 123e4567-e89b-12d3-a456-426614174000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "call_fc30ad4f_1_0 20261122-045411-c9246d74 npm_config_cache hf_transfer ghp_ github_pat_ xoxo",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "北京 8 路车 5 分钟后到；订单 1003 已发出。",
    'MARKERS = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----")',
    "socks5h://<username>:<password>@proxy-host postgres://${USER}:${PASSWORD}@db postgres://{user}:{password}@db",
    "https://ann:***@host https://ann:$SECRET@host https://%s:%s@host https://me:xxxx@host https://me:...@host",
    "3:45 pm, 10:30:00, ratio 4:3, 1234567890:short",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask_keys(text) == text


def test_of_this_projects_own_files_hardly_a_word_is_masked() -> None:
    """Some half a million words of code, prose and data, of which none is a key but what tests made up."""
    root = Path(__file__).parents[2]
    kinds = ("*.py", "*.md", "*.json", "*.yaml", "*.jsonl", "*.csv", "*.toml")
    folders = [root / name for name in ("utools", "agent_core", "engine_shim", "fixtures", "tests")]
    files = [path for folder in folders for kind in kinds for path in sorted(folder.rglob(kind))]
    texts = [path.read_text("utf-8") for path in files if path.name != Path(__file__).name]
    assert sum(len(text.split()) for text in texts) > 100_000
    hits = sum(mask_keys(text).count("[redacted:") - text.count("[redacted:") for text in texts)
    assert hits < 40


def test_the_end_of_a_long_token_is_found_in_linear_time() -> None:
    small, large = (f"a {'x' * size}!" for size in (50_000, 200_000))
    assert growth(unsettled_key, small, large) < 10
    assert unsettled_key(small) == 0


@given(st.text(max_size=300))
def test_any_text_may_be_looked_through(text: str) -> None:
    assert len(mask_keys(text)) >= 0
    assert 0 <= unsettled_key(text) <= len(text)


def test_a_redactor_masks_formats_only_where_it_is_told_to() -> None:
    text = f"a {KEYS['aws']} b"
    assert Redactor({}).text(text) == text
    told = Redactor({}, formats=NAMES)
    assert told.value({"k": [text]}) == {"k": ["a [redacted:aws] b"]}
    assert [("aws" in rule["formats"], rule["replacement"]) for rule in told.rules] == [(True, "[redacted:FORMAT]")]
    value = {"k": ["nothing here", 1]}
    assert told.value(value) is value


def test_addresses_without_a_password_are_no_reason_to_look_at_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    told, looked = Redactor({}, formats=NAMES), list[str]()
    monkeypatch.setattr(Redactor, "text", lambda _, text: looked.append(text) or text)
    value = {"found": ["http://127.0.0.1:8080/v1?a=b@c", "https://example.com/a:b@c/d"], "by": "http://user@host:80/"}
    assert told.value(value) is value
    assert looked == []


LOGINS = st.tuples(
    st.sampled_from(["", "see https", '{"u": "', "\n"]),
    st.sampled_from(["://", ":\\/\\/", ":\\u002f/"]),
    st.sampled_from(["ann", "a.b~c", "%41nn"]),
    st.sampled_from([":", "\\u003a", "/"]),
    st.sampled_from(["p.w-1", "$(x)", "8080", "p\\u0061ss", "<pw>"]),
    st.sampled_from(["@", "\\u0040", "/@"]),
    st.sampled_from(["host", "[::1]", '"']),
).map("".join)


@given(LOGINS, st.integers(0, 2))
def test_a_look_at_all_of_a_value_misses_nothing_that_is_in_its_texts(text: str, depth: int) -> None:
    for _ in range(depth):
        text = json.dumps([text])
    told = Redactor({}, formats=NAMES)
    assert told.value({"k": [text]}) == {"k": [told.text(text)]}


@pytest.mark.parametrize("text", ["/" * 200_000 + "\n:_authToken=", "sk-" * 70_000 + " T3BlbkFJ", "eyJ" * 70_000 + "."])
def test_a_hostile_text_is_looked_through_in_a_moment(text: str) -> None:
    assert "[redacted" not in mask_keys(text)


@pytest.mark.parametrize("part", ["key_eyJaaaaaaaa", "-p_eyJaaaaaaaa", "+eyJaaaaaaaa", "__eyJaaaaaaaa"])
def test_beginnings_of_keys_in_a_row_are_looked_through_in_linear_time(part: str) -> None:
    small, large = (part * count for count in (1000, 4000))
    assert growth(mask_keys, small, large) < 10


@pytest.mark.parametrize("name", FIXED)
def test_keys_in_a_row_that_end_in_other_text_are_looked_through_in_linear_time(name: str) -> None:
    small, large = (KEYS[name] * count + some(41) for count in (500, 2000))
    assert growth(mask_keys, small, large) < 10


def test_words_about_a_private_key_do_not_take_the_rest_of_a_text_along() -> None:
    text = "Grep for -----BEGIN RSA PRIVATE KEY----- in the repo. Then go on."
    assert mask_keys(text) == text


@pytest.mark.parametrize("password", ["hunter22", "$ecret9", "x-1", "*a", "%sa", "<a>b"])
def test_what_only_begins_like_a_placeholder_is_a_password(password: str) -> None:
    assert mask_keys(f"https://ann:{password}@host") == "https://[redacted:password_in_url]@host"


def test_a_private_key_with_headers_or_in_one_line_is_masked() -> None:
    body = some(64)
    for between in ("\n", "\\n", " ", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,1234567890ABCDEF\n\n"):
        for end in (f"{between}-----END RSA PRIVATE KEY-----", ""):
            text = mask_keys(f"-----BEGIN RSA PRIVATE KEY-----{between}{body}{end}")
            assert body[:8] not in text


def test_the_end_of_a_private_key_whose_beginning_was_cut_off_is_masked() -> None:
    body = "\n".join(some(64) for _ in range(3))
    assert mask_keys(f"{body[10:]}\n-----END PRIVATE KEY-----\nhello") == "[redacted:private_key]\nhello"
    whole = f"one\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    assert mask_keys(whole) == "one\n[redacted:private_key]"
    words = "How it ends: -----END PRIVATE KEY-----"
    assert mask_keys(words) == words
