"""Secrets that are sent with a request. Errors name the environment variable, never the value."""

from collections.abc import Callable, Mapping

from utools.errors import ToolError
from utools.words.text import Text

Secret = Callable[[str], str]


def secret_headers(secret: Secret, token_env: str | None, others: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that carry secrets, with the bearer token; ToolError for a value that no header can carry."""
    headers = {name.lower(): checked_secret(secret, env, _sent_in(name.lower())) for name, env in others.items()}
    if token_env is not None:
        headers["authorization"] = f"Bearer {checked_secret(secret, token_env, _sent_in('authorization'))}"
    return headers


def checked_secret(secret: Secret, env: str, use: Text) -> str:
    """Return the value of a secret; ToolError if it is not printable ASCII, or has white space around it."""
    value = secret(env)
    if fault := _fault(value):
        raise ToolError(
            "the secret {env} cannot be {use}: it {fault}; "
            "set the variable {env} to printable ASCII on one line, without spaces around it",
            env=env,
            use=use,
            fault=fault,
        )
    return value


def _sent_in(header: str) -> Text:
    return Text("sent in the header {header}", header=header)


def _fault(value: str) -> Text | None:
    if "\n" in value or "\r" in value:
        return Text("holds a line break")
    if value != value.strip():
        return Text("begins or ends with white space")
    if not value.isascii():
        return Text("holds a character that is not ASCII")
    return None if value.isprintable() else Text("holds a control character")
