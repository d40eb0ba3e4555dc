"""What the API says of a run that was erased, and of one whose key is not here."""

import asyncio
from pathlib import Path

import pytest

from agent_core.encryption.operator_key import make_operator_file
from engine_shim.store import content_keys
from engine_shim.store.erase import ErasureRequest, erase_runs
from support.optional import needs
from support.served_host import served
from utools.defaults import host_context_store

pytestmark = [needs("cryptography"), pytest.mark.exhaustive]
VARIABLE = "AGENT_CORE_ENCRYPTION_KEY"


def test_what_cannot_be_read_is_a_conflict_and_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_operator_file(key := tmp_path / "store.key")
    monkeypatch.setenv(VARIABLE, str(key))
    with served(tmp_path, encrypt=True) as host:
        gone, stays = (host.submit("desk", message="MARIGOLD")["run_id"] for _ in range(2))
        erase_runs(host.store, [gone], ErasureRequest("desk", "2026-11-29T12:00:00+00:00"), None)

        def check(run: str, why: str, contents: str, outcome: str) -> None:
            for path in ("journal", "events"):
                answer = host.client.get(f"/runs/{run}/{path}")
                assert (answer.status_code, answer.json()["kind"]) == (409, "unreadable"), path
                assert why in answer.json()["detail"]
            verdict = host.client.get(f"/runs/{run}/verify").json()
            assert (verdict["ok"], verdict["contents"]) == (True, contents)
            assert host.client.post(f"/runs/{run}/replay", json={}).json()["outcome"] == outcome
            assert run in [each["run_id"] for each in host.client.get("/runs").json()["runs"]]

        check(gone, "it was erased", "erased", "erased")
        assert host.client.get(f"/runs/{stays}/verify").json()["contents"] == "read"
        monkeypatch.delenv(VARIABLE)
        content_keys._OPENED.clear()
        check(stays, "it is encrypted", "encrypted", "unreadable")


def test_conversation_and_records_are_not_shown_as_empty_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_operator_file(key := tmp_path / "store.key")
    monkeypatch.setenv(VARIABLE, str(key))
    with served(tmp_path, encrypt=True) as host:
        host.submit("desk", message="MARIGOLD")
        store = host_context_store(cipher=host.store.contents)
        asyncio.run(store.append("anna", "1", [{"role": "user", "content": "MARIGOLD"}]))
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "agent-core.yaml").unlink()
    with served(tmp_path) as host:
        for path, what in (("/agent/conversations/anna", "conversation 'anna'"), ("/runs?text=MARIGOLD", "the store")):
            answer = host.client.get(path)
            assert (answer.status_code, answer.json()["kind"]) == (409, "unreadable"), path
            assert answer.json()["detail"].startswith(f"{what}")
            assert f"set {VARIABLE}" in answer.json()["detail"]
