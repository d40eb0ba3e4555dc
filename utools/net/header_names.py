"""Names of headers: how they are written, and which ones nobody but the transport sets. Pure."""

NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}"
_FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive"}
)


def is_of_connection(name: str) -> bool:
    """Return whether a header frames a request, or is the connection's or a proxy's: with these one request could look
    like two."""
    return name.lower() in _FRAMING or name.lower().startswith("proxy-")
