"""The endpoints on the page of models, as they stand there: the host is found sound, and each is asked as it says."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from agent_core.models import ModelClient, ModelError, Question
from engine_shim.host.config import read_host_config
from engine_shim.host.providers import open_providers
from support.command import Cli, Write
from support.loopback import Loopback, Request, chat, serving
from support.optional import needs

pytestmark = pytest.mark.exhaustive

PAGE = (Path(__file__).parents[3] / "agent_core/models/README.md").read_text("utf-8")
VARIABLES = ("GATEWAY_KEY", "GATEWAY_TOKEN", "AZURE_OPENAI_KEY", "OUTSIDE_KEY", "OPENAI_API_KEY")
CERTIFICATES = ("corp-ca.pem", "agent-core.pem", "agent-core.key")
QUESTION = Question("m", (b'{"role":"user","content":"hi"}',), {}, "agent", 0, within=20.0)


def file_of(name: str) -> str:
    """A file of the page."""
    return PAGE.partition(f"```yaml file={name}\n")[2].partition("```")[0]


@pytest.fixture
def certificates(home: Path) -> Path:
    """Where one certificate of 127.0.0.1, which signs itself, is the gateway's, its signer's and ours."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "corp")])
    own, now = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    made = made.add_extension(own, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    pem = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (home / "certs").mkdir()
    for file, content in zip(CERTIFICATES, (pem, pem, key.private_bytes(*form)), strict=True):
        (home / "certs" / file).write_bytes(content)
    return home / "certs"


@pytest.fixture(autouse=True)
def variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, f"value-of-{name}")


@asynccontextmanager
async def serving_tls(certificates: Path) -> AsyncIterator[Loopback]:
    """An endpoint that wants a certificate of whoever asks it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates / "corp-ca.pem")
    context.load_cert_chain(certificates / "agent-core.pem", certificates / "agent-core.key")
    context.verify_mode = ssl.CERT_REQUIRED
    loopback = Loopback((chat("ok"),))
    server = await asyncio.start_server(loopback.serve, "127.0.0.1", 0, ssl=context)
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
        await loopback.stop()


def open_client(write: Write, model: str, **replaced: str) -> ModelClient:
    """The client of a model on the page's host, with other hosts in its URLs."""
    text = file_of("agent-core.yaml")
    for old, new in replaced.values():
        assert old in text
        text = text.replace(old, new)
    return open_providers(read_host_config(write("agent-core.yaml", text)))(model, {})


async def ask(client: ModelClient, server: Loopback) -> Request:
    """The request that comes to the server."""
    await client.complete(QUESTION)
    await client.close()
    return server.requests[-1]


@needs("cryptography")
@pytest.mark.usefixtures("certificates")
def test_the_host_of_the_page_is_sound(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", file_of("agent-core.yaml"))
    flow = write("thinks.yaml", file_of("thinks.yaml"))
    assert cli("validate", str(flow)).out == "ok\n"
    for name in ("gateway:gpt-4.1", "azure-next:my-gpt", "azure-dated:my-gpt", "outside:m", "claude:claude-haiku-4-5"):
        assert cli("validate", str(flow), "--model", name, "--json").json == {"ok": True, "problems": []}
    assert "only for gpt-*, claude-*" in cli("validate", str(flow), "--model", "gateway:llama").out


@needs("cryptography")
async def test_a_gateway_gets_its_headers_and_our_certificate(certificates: Path, write: Write) -> None:
    async with serving_tls(certificates) as server:
        there = ("https://llm.corp.example/v1", f"https://127.0.0.1:{server.port}/v1")
        request = await ask(open_client(write, "gateway:gpt-4.1", there=there), server)
        own = ("    client_cert: certs/agent-core.pem", ""), ("    client_key: certs/agent-core.key", "")
        with pytest.raises(ModelError):
            await ask(open_client(write, "gateway:gpt-4.1", there=there, cert=own[0], key=own[1]), server)
        assert server.requests == [request]
    assert request.target == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer value-of-GATEWAY_KEY"
    assert (request.headers["x-team"], request.headers["x-gateway-token"]) == ("support", "value-of-GATEWAY_TOKEN")


AZURE = {
    "azure-next": "/openai/v1/chat/completions",
    "azure-dated": "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
}


@pytest.mark.parametrize("name", AZURE)
async def test_azure_is_asked_in_both_of_its_shapes(name: str, write: Write) -> None:
    async with serving(chat("ok")) as server:
        there = ("https://corp.openai.azure.com", server.url.removesuffix("/v1"))
        request = await ask(open_client(write, f"{name}:my-gpt", there=there), server)
    assert (request.target, request.json()["model"]) == (AZURE[name], "my-gpt")
    assert request.headers["api-key"] == "value-of-AZURE_OPENAI_KEY"
    assert "authorization" not in request.headers


async def test_what_is_outside_is_reached_through_its_proxy(write: Write) -> None:
    async with serving(chat("ok")) as proxy:
        plain = ("https://models.example.com", "http://models.example.com")
        there = ("http://proxy.corp.example:3128", proxy.url.removesuffix("/v1"))
        request = await ask(open_client(write, "outside:m", plain=plain, there=there), proxy)
    assert request.target == "http://models.example.com/v1/chat/completions"


@needs("anthropic", extra="anthropic")
async def test_another_vendors_api_is_asked_at_a_gateway(write: Write) -> None:
    async with serving(chat("this is no message")) as server:
        there = ("https://llm.corp.example/anthropic", f"{server.url.removesuffix('/v1')}/anthropic")
        with pytest.raises(ModelError):
            await ask(open_client(write, "claude:claude-haiku-4-5", there=there), server)
    assert (server.requests[-1].target, server.requests[-1].headers["x-api-key"]) == (
        "/anthropic/v1/messages",
        "value-of-GATEWAY_KEY",
    )
