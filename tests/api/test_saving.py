"""Workflows that are saved over HTTP: a file of its own for each version, whole or not at all."""

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from threading import Thread

import httpx2
import pytest

from support.served_host import Served, served


def write(version: str = "1", identity: str = "hello", text: str = "hi") -> str:
    head = f"# of Ann\nid: {identity}\nversion: '{version}'\n"
    return f"{head}nodes:\n  - {{id: say, tool: echo, config: {{text: {text}}}}}\n"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


def save(
    host: Served, text: str, expects: str | None = None, *, name: str = "hello", form: str = "yaml"
) -> httpx2.Response:
    body = {"text": text, "format": form, "expects": expects}
    return host.client.put(f"/workflows/{name}", json=body)


def files(host: Served) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (host.folder / "workflows").iterdir()}


def test_saved_version_is_a_file_and_can_be_run_at_once(host: Served) -> None:
    answer = save(host, write())
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["version"]) == ("hello", "1")
    assert answer.json()["definition"]["nodes"][0]["tool"] == "echo"
    path = host.folder / "workflows" / "hello@1.yaml"
    assert path.read_text() == write()
    assert path.stat().st_mode & 0o777 == 0o644
    assert host.submit("hello")["outputs"] == {"say": "hi"}
    source = host.client.get("/workflows/hello/source").json()
    assert source == {"id": "hello", "version": "1", "format": "yaml", "text": write(), "file": "hello@1.yaml"}


def test_new_version_is_the_newest_and_old_ones_stay(host: Served) -> None:
    assert save(host, write("1", "twice"), name="twice").status_code == 201
    assert save(host, write("2", "twice", "two"), "1", name="twice").status_code == 201
    assert host.submit("twice")["outputs"] == {"say": "two"}
    assert host.submit("twice@1")["outputs"] == {"say": "hi"}
    assert host.client.get("/workflows/twice@1/source").json()["file"] == "twice@1.yaml"


def test_same_text_again_is_no_other_version_and_another_text_is_refused(host: Served) -> None:
    assert save(host, write("1", "same"), name="same").status_code == 201
    again = save(host, write("1", "same"), name="same")
    assert (again.status_code, again.json()["version"]) == (200, "1")
    for text, expects in ((write("1", "same", "other"), "1"), (write("1", "same", "other"), None)):
        problem = save(host, text, expects, name="same")
        assert (problem.status_code, problem.json()["kind"]) == (409, "version_exists")
    assert files(host)["same@1.yaml"] == write("1", "same").encode()


@pytest.mark.parametrize("expects", ["1", None, "7"])
def test_version_that_somebody_saved_meanwhile_is_not_passed_over(host: Served, expects: str | None) -> None:
    save(host, write("1", "race"), name="race")
    save(host, write("2", "race"), "1", name="race")
    problem = save(host, write("3", "race"), expects, name="race")
    assert (problem.status_code, problem.json()["kind"]) == (409, "edited_meanwhile")
    assert "'2'" in problem.json()["detail"]
    assert "race@3.yaml" not in files(host)


def test_of_two_who_save_at_once_one_is_told(host: Served) -> None:
    save(host, write("1", "both"), name="both")
    answers: list[httpx2.Response] = []

    def edit(text: str) -> None:
        answers.append(save(host, write("2", "both", text), "1", name="both"))

    threads = [Thread(target=edit, args=[f"t{number}"]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    (won,) = [answer.json() for answer in answers if answer.status_code == 201]
    assert won["definition"]["nodes"][0]["config"]["text"] in files(host)["both@2.yaml"].decode()


@pytest.mark.parametrize(
    ("text", "name", "where"),
    [
        (write(), "other", "id"),
        (write("../2"), "hello", "version"),
        (write("a/b"), "hello", "version"),
        (write(".."), "hello", "version"),
        (write(""), "hello", "version"),
        (write("x" * 65), "hello", "version"),
        (write("1\\n"), "hello", "version"),
        (write(identity="../up"), "../up", "id"),
        (write(identity="a.b"), "a.b", "id"),
        (write().replace("echo", "ecko"), "hello", "nodes/0/tool"),
        ("[", "hello", "hello.yaml:1:2"),
        ("x" * 1_000_001, "hello", "body/text"),
        (
            "id: hello\nnodes:\n - {tool: invoke_workflow, config: {workflow: ../x.yaml}}",
            "hello",
            "nodes/0/config/workflow",
        ),
    ],
    ids=range(13),
)
def test_text_that_cannot_be_saved_is_refused_at_its_field(host: Served, text: str, name: str, where: str) -> None:
    before = files(host)
    body = {"text": text, "format": "yaml"}
    answer = host.client.put(f"/workflows/{name.replace('/', '%2F')}", json=body)
    if "/" in name:  # such a path leads elsewhere
        assert answer.status_code in (404, 405, 422)
    else:
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")
        assert where in [each["where"] for each in answer.json()["errors"]]
    assert files(host) == before
    assert str(host.folder) not in answer.text


def test_directory_that_does_not_load_afterwards_stays_as_it_was(host: Served) -> None:
    broken = host.folder / "workflows" / "broken.yaml"
    broken.write_text("id: broken\nnodes: [{tool: ecko}]")
    try:
        answer = save(host, write("1", "late"), name="late")
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")
        assert "broken.yaml" in answer.text
        assert str(host.folder) not in answer.text
        assert "late@1.yaml" not in files(host)
    finally:
        broken.unlink()
    assert save(host, write("1", "late"), name="late").status_code == 201


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_file_that_is_there_is_never_written_over(host: Served, kind: str) -> None:
    path, other = host.folder / "workflows" / f"kept-{kind}@1.yaml", host.folder / "precious.txt"
    other.write_text("precious")
    if kind == "file":
        path.write_text("# no definition")
    else:
        path.symlink_to(other if kind == "link" else host.folder / "nowhere")
    try:
        answer = save(host, write("1", f"kept-{kind}"), name=f"kept-{kind}")
        assert (answer.status_code, answer.json()["kind"]) == (409, "version_exists"), answer.text
        assert other.read_text() == "precious"
        assert not (host.folder / "nowhere").exists()
    finally:
        path.unlink()


def test_no_half_written_file_is_left(host: Served) -> None:
    save(host, write("1", "tidy"), name="tidy")
    assert not [name for name in files(host) if name.endswith(".part")]


def test_json_is_saved_as_json_and_its_text_comes_back(host: Served) -> None:
    text = json.dumps({"id": "plain", "nodes": [{"tool": "echo", "config": {"text": "ü"}}]}, ensure_ascii=False)
    assert save(host, text, name="plain", form="json").status_code == 201
    source = host.client.get("/workflows/plain/source").json()
    assert (source["file"], source["format"], source["text"]) == ("plain@1.json", "json", text)
    assert host.client.get("/workflows/desk@1/source").json()["file"] == "desk.json"


def test_source_of_no_workflow_is_not_found(host: Served) -> None:
    for name in ("nobody", "desk@9", "..%2Fagent-core", "desk@1%2F..", "%00"):
        answer = host.client.get(f"/workflows/{name}/source")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_directory_that_cannot_be_written_is_told_without_its_place(
    host: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(host.folder / "workflows"))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    answer = save(host, write("1", "sealed"), name="sealed")
    assert answer.status_code == 503
    assert str(host.folder) not in answer.text
