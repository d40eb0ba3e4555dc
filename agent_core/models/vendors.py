"""The vendors: each one's endpoint for OpenAI's chat completions, its variables, its capabilities. A table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from agent_core.models.client import ModelInfo
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.prices import context_window, output_limit


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `urls` are its own base URLs, the default first; `keys` the variables that may hold its key.

    `url_env` is the variable with which the operator gives another URL, in the vendor's own convention: without
    `path`, perhaps without `port`. `prices` is the vendor's name in the price lists. `functions` says whether its
    models call functions; None: some do. `start` is the command that starts it on one's own machine.
    """

    urls: tuple[str, ...]
    keys: tuple[str, ...] = ()
    url_env: str = ""
    path: str = ""
    port: int | None = None
    needs_key: bool = True
    capabilities: EndpointCapabilities = field(default_factory=EndpointCapabilities)
    prices: str = ""
    functions: bool | None = True
    start: str = ""


SCHEMA = EndpointCapabilities()
DASHSCOPE = ("dashscope", "dashscope-intl", "dashscope-us", "cn-hongkong.dashscope")
"""The hosts of Alibaba's regions; a key is of one region."""

VENDORS: Mapping[str, Vendor] = {
    # strict mode wants no anyOf at the root and every property required; without it a schema is only a hint
    "openai": Vendor(
        ("https://api.openai.com/v1",),
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        capabilities=EndpointCapabilities(format="json_object", tokens="max_completion_tokens"),
        prices="openai",
    ),
    "gemini": Vendor(
        ("https://generativelanguage.googleapis.com/v1beta/openai",),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "/v1beta/openai",
        capabilities=SCHEMA,
        prices="google",
    ),
    # takes strict schemas only, whose objects are all closed; refuses json_object
    "anthropic": Vendor(
        ("https://api.anthropic.com/v1",),
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        "/v1",
        capabilities=EndpointCapabilities(format="text", strict=True, thinking="budget"),
        prices="anthropic",
    ),
    # schemas in some models only; a model that thinks takes no response format at all
    "qwen": Vendor(
        tuple(f"https://{host}.aliyuncs.com/compatible-mode/v1" for host in DASHSCOPE),
        ("DASHSCOPE_API_KEY",),
        "DASHSCOPE_BASE_URL",
        capabilities=EndpointCapabilities(format="json_object", strict=True, thinking="switch"),
        prices="qwen",
    ),
    "deepseek": Vendor(
        ("https://api.deepseek.com", "https://api.deepseek.com/v1", "https://api.deepseek.com/beta"),
        ("DEEPSEEK_API_KEY",),
        "DEEPSEEK_BASE_URL",
        capabilities=EndpointCapabilities(format="json_object", thinking="kind"),
        prices="deepseek",
    ),
    "openrouter": Vendor(
        ("https://openrouter.ai/api/v1",),
        ("OPENROUTER_API_KEY",),
        "OPENROUTER_BASE_URL",
        capabilities=EndpointCapabilities(thinking="routed effort"),
        prices="openrouter",
        functions=None,
    ),
    "ollama": Vendor(
        ("http://127.0.0.1:11434/v1", "http://localhost:11434/v1", "https://ollama.com/v1"),
        ("OLLAMA_API_KEY",),
        "OLLAMA_HOST",
        "/v1",
        11434,
        needs_key=False,
        prices="ollama",
        functions=None,
        start="ollama serve",
    ),
    "vllm": Vendor(
        ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1"),
        ("VLLM_API_KEY",),
        "VLLM_BASE_URL",
        needs_key=False,
        functions=None,
        start="vllm serve NAME",
    ),
}


def vendor_url(vendor: Vendor, environment: Mapping[str, str]) -> str:
    """Return the vendor's base URL: the operator's, else the default."""
    url = normalize_url(environment.get(vendor.url_env, "").strip())
    if not url:
        return vendor.urls[0]
    if "://" not in url:
        url = f"http://{_add_port(url, vendor.port)}"
    url = url.replace("://0.0.0.0", "://127.0.0.1", 1)  # a server listens there, but is not reached by it
    return url if url.endswith(vendor.path) else url + vendor.path


def model_info(vendor: Vendor | None, model: str) -> ModelInfo:
    """Return what the table and the price list know of a model; nothing without a vendor."""
    if vendor is None:
        return ModelInfo(model)
    schema = vendor.capabilities.format == "json_schema"
    window, reply = context_window(vendor.prices, model), output_limit(vendor.prices, model)
    return ModelInfo(model, window, reply, function_calling=vendor.functions, json_schema=schema, streaming=True)


def normalize_url(url: str) -> str:
    """Return a base URL in the form in which URLs are compared."""
    return url.rstrip("/")


def is_vendor_url(vendor: Vendor, url: str, environment: Mapping[str, str]) -> bool:
    """Return whether a base URL is the vendor's, by the table or by the operator's setting."""
    return normalize_url(url) in vendor.urls or normalize_url(url) == normalize_url(vendor_url(vendor, environment))


def is_near(url: str) -> bool:
    """Return whether a base URL is of this machine, or of one's own network, by its address or a name without a dot."""
    host = urlsplit(url).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))


def _add_port(host: str, port: int | None) -> str:
    return host if port is None or ":" in host.rpartition("]")[2] else f"{host}:{port}"
