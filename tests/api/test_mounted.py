"""The API below a path of another program: what it says of where things are holds there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine_shim.api import create_app, create_router
from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from support.served_host import write_host


def include(service: Service) -> TestClient:
    app = FastAPI(lifespan=lambda _: service.running())
    app.include_router(create_router(service), prefix="/of/{whom}")
    return TestClient(app)


def mount(service: Service) -> TestClient:
    app = FastAPI(lifespan=lambda _: service.running())
    app.mount("/of/us", create_app(service, hosts=["testserver"]))
    return TestClient(app)


def proxy(service: Service) -> TestClient:
    return TestClient(create_app(service, hosts=["testserver"]), root_path="/of/us")


@pytest.mark.parametrize("place", [include, mount, proxy])
def test_the_location_of_a_run_is_below_it(place: Callable[[Service], TestClient], tmp_path: Path) -> None:
    service = Service.of_host(read_host_config(write_host(tmp_path)), tmp_path / "runs.db", is_open=True)
    with place(service) as client:
        begun = client.post("/of/us/workflows/buy/runs", json={"external": {"article": "A-17"}})
        called = client.post("/of/us/tools/stock/execute", json={"args": {"article": "A-17"}})
        decided = client.post(f"{begun.headers['location']}/decide", json={"decision": "approve"})
        for answer in (begun, called, decided):
            location = answer.headers["location"]
            assert location == f"/of/us/runs/{answer.json()['run_id']}"
            assert client.get(location).json()["status"] == "completed"
