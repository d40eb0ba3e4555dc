"""Keys that are told by how they look: all of them are masked, and ordinary text is left alone; both are counted."""

import re
import string
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utools.secrets.key_formats import NAMES, mask_keys, unsettled_key
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
AROUND = ["{}", "key={} and more", '{{"token":"{}"}}', "Schlüssel：{}。", "export KEY='{}'\n"]


def test_every_format_has_its_key() -> None:
    assert set(KEYS) == set(NAMES)


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


@given(st.text(max_size=300))
def test_any_text_may_be_looked_through(text: str) -> None:
    assert len(mask_keys(text)) >= 0
    assert 0 <= unsettled_key(text) <= len(text)


def test_a_redactor_masks_formats_only_where_it_is_told_to() -> None:
    text = f"a {KEYS['aws']} b"
    assert Redactor({}).text(text) == text
    told = Redactor({}, formats=True)
    assert told.value({"k": [text]}) == {"k": ["a [redacted:aws] b"]}
    assert [("aws" in rule["formats"], rule["replacement"]) for rule in told.rules] == [(True, "[redacted:FORMAT]")]
    value = {"k": ["nothing here", 1]}
    assert told.value(value) is value


@pytest.mark.parametrize("text", ["/" * 200_000 + "\n:_authToken=", "sk-" * 70_000 + " T3BlbkFJ", "eyJ" * 70_000 + "."])
def test_a_hostile_text_is_looked_through_in_a_moment(text: str) -> None:
    assert "[redacted" not in mask_keys(text)


def test_words_about_a_private_key_do_not_take_the_rest_of_a_text_along() -> None:
    text = "Grep for -----BEGIN RSA PRIVATE KEY----- in the repo. Then go on."
    assert mask_keys(text) == text


@pytest.mark.parametrize("password", ["hunter22", "$ecret9", "{a}b", "x-1", "*a", "%sa", "<a>b"])
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
