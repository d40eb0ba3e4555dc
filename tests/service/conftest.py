"""The desks of a test, whose data are its own, and a server that has them."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import httpx2
import pytest

from agent_core import ModelClient
from service.serving import OpenDesk, Serve, open_desk, serve_desks


@pytest.fixture(name="open_desk")
def open_own_desk(tmp_path: Path) -> OpenDesk:
    return partial(open_desk, tmp_path)


@pytest.fixture
def serve(open_desk: OpenDesk) -> Serve:
    def serve(model: ModelClient, *tenants: str) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        return serve_desks({tenant: open_desk(model, tenant) for tenant in tenants or ("acme",)})

    return serve
