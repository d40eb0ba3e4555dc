"""Secrets that are sent with a request. Errors name the environment variable, never the value."""

from collections.abc import Callable, Mapping

from utools.errors import ToolError

Secret = Callable[[str], str]


def secret_headers(secret: Secret, token_env: str | None, others: Mapping[str, str]) -> dict[str, str]:
    """The headers that carry secrets, with the bearer token; ToolError for a value that no header can carry."""
    headers = {
        name.lower(): checked_secret(secret, env, f"sent in the header {name.lower()}") for name, env in others.items()
    }
    if token_env is not None:
        headers["authorization"] = f"Bearer {checked_secret(secret, token_env, 'sent in the header authorization')}"
    return headers


def checked_secret(secret: Secret, env: str, use: str) -> str:
    """The value of a secret; ToolError if it is not printable ASCII, or has white space around it."""
    value = secret(env)
    if fault := _fault(value):
        problem = f"the secret {env} cannot be {use}: it {fault}"
        raise ToolError(f"{problem}; set the variable {env} to printable ASCII on one line, without spaces around it")
    return value


def _fault(value: str) -> str | None:
    if "\n" in value or "\r" in value:
        return "holds a line break"
    if value != value.strip():
        return "begins or ends with white space"
    if not value.isascii():
        return "holds a character that is not ASCII"
    return None if value.isprintable() else "holds a control character"
