"""`agent-core doctor --shared`: the checklist of a host that tenants share, line by line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine_shim.cli.doctor.command import examine_sharing
from engine_shim.cli.main import main
from engine_shim.cli.output import Options
from engine_shim.service.tokens import Tokens
from engine_shim.store.open import open_store
from support.optional import needs

pytestmark = pytest.mark.exhaustive

PAGE = Path(__file__).parents[3] / "engine_shim" / "SECURITY.md"
KEYS = "k1:0123456789abcdef0123456789abcdef"
HOST: dict[str, Any] = {
    "root": "files",
    "model_endpoints": {"https://api.example.com/v1": "KEY"},
    "secret_env": ["SHARED"],
    "tenants": {
        name: {
            "root": f"{name}/files",
            "workflows": f"{name}/workflows",
            "agents": f"{name}/agents",
            "triggers": f"{name}/triggers",
            "secret_env": [],
        }
        for name in ("acme", "globex")
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host on which nothing is wrong."""
    for name in ("files", "acme/files", "globex/files"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", KEYS)
    monkeypatch.delenv("AGENT_CORE_SECRET_ENV", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write(tmp_path)
    store = open_store(tmp_path / "runs.db")
    store.database.prepare()
    Tokens(store.database).issue("x", ["admin"])
    store.close()
    (tmp_path / "runs.db").chmod(0o600)
    return tmp_path


def write(folder: Path, tenant: Any = None, **keys: Any) -> None:
    host = json.loads(json.dumps({**HOST, **keys}))
    host["tenants"]["acme"] |= tenant or {}
    for keys in (host, host["tenants"]["acme"]):
        for name in [name for name, each in keys.items() if each is None]:
            del keys[name]
    (folder / "agent-core.yaml").write_text(json.dumps(host))
    (folder / "agent-core.yaml").chmod(0o600)


def faults(folder: Path) -> dict[str, str]:
    found = examine_sharing(Options(folder / "runs.db", folder / "agent-core.yaml", False))
    return {each.name.removeprefix("shared: "): each.message for each in found if each.status != "ok"}


def test_checklist_is_the_one_of_the_page(folder: Path) -> None:
    found = examine_sharing(Options(folder / "runs.db", folder / "agent-core.yaml", False))
    names = [each.name.removeprefix("shared: ") for each in found]
    listed = re.findall(r"^\| (\w+) \|", PAGE.read_text("utf-8").partition("## A checklist")[2], re.MULTILINE)
    assert names == listed
    assert len(names) == 10


def test_sound_host_has_no_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(folder) == {}
    options = ["--store", str(folder / "runs.db"), "--config", str(folder / "agent-core.yaml")]
    with pytest.raises(SystemExit, match="0"):
        main(["doctor", "--shared", *options])
    write(folder, {"workflows": "workflows"})
    with pytest.raises(SystemExit, match="1"):
        main(["doctor", "--shared", *options])
    assert "acme and the host share the directory of their workflows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "tenant", "keys", "told"),
    [
        ("directories", {"agents": "globex/agents"}, {}, "globex and acme share the directory of their agents"),
        ("directories", {"triggers": "triggers"}, {}, "acme and the host share the directory of their triggers"),
        ("roots", {"root": "globex"}, {}, "the roots of acme and globex overlap"),
        ("roots", {"root": "acme"}, {}, "the root of acme holds workflows of acme"),
        ("variables", {"env": ["PGPASSWORD"]}, {}, "env of acme lists PGPASSWORD, which is the host's own"),
        ("variables", {}, {"secret_env": ["AGENT_CORE_JOURNAL_KEYS"]}, "secret_env lists AGENT_CORE_JOURNAL_KEYS"),
        ("secrets", {"secret_env": None}, {}, "acme has every secret of the host"),
        ("models", {}, {"model_endpoints": None}, "the configuration does not say which models acme may ask"),
        ("commands", {"presets": {"shell_command": {"allow": ["ls"]}}}, {}, "acme has shell_command"),
        ("stores", {}, {"root": "."}, "runs.db lies in the root of the host"),
    ],
)
def test_fault_is_told(folder: Path, name: str, tenant: Any, keys: Any, told: str) -> None:
    write(folder, tenant, **keys)
    assert told in faults(folder)[name]


def test_host_without_token_or_keys_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_CORE_JOURNAL_KEYS")
    assert "no key seals runs" in faults(folder)["seals"]
    (folder / "runs.db").unlink()
    assert "there is no token" in faults(folder)["tokens"]


@needs("cryptography")
def test_key_that_cannot_be_read_is_told_and_the_rest_is_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_SIGNING_KEY", "nope.key")
    assert "AGENT_CORE_SIGNING_KEY: nope.key: cannot be read" in faults(folder)["seals"]


def test_files_that_others_read_are_told(folder: Path) -> None:
    (folder / ".env").write_text("X=1")
    (folder / ".env").chmod(0o644)
    (folder / "runs.db").chmod(0o640)
    (folder / "agent-core.yaml").chmod(0o666)
    told = faults(folder)["files"]
    assert all(name in told for name in (".env", "runs.db", "agent-core.yaml"))
