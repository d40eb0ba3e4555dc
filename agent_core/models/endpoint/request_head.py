"""RequestHead: the URL and the headers of each request to an endpoint, and what a route adds to them."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from agent_core.models.endpoint.address import take_key
from agent_core.models.endpoint.route import Pairs, Route

ENCODINGS: Final = "gzip, deflate"
OF_BODY: Final = ("content-length", "transfer-encoding", "content-encoding")
OF_CONNECTION: Final = ("host", "connection", "accept-encoding")


class RequestHead(NamedTuple):
    """Where a request goes, and its headers, with names in lower case. Those of the body and the connection are left
    to the transport."""

    url: str
    headers: Pairs

    def with_route(self, route: Route) -> "RequestHead":
        """Return the head with the headers and the query of a route, and the key in the header that it names."""
        headers = {name: value for name, value in self.headers if name not in (*OF_BODY, *OF_CONNECTION)}
        if route.key_header and (key := take_key(headers)):
            headers[route.key_header.lower()] = key
        for name, value in (*route.headers, *route.secret_headers):
            headers[name.lower()] = value
        headers["accept-encoding"] = ENCODINGS
        return RequestHead(add_query(self.url, route.query), tuple(headers.items()))


def add_query(url: str, query: Iterable[tuple[str, str]]) -> str:
    """Return a URL with parameters, which replace those of the same name."""
    added = dict(query)
    if not added:
        return url
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in added]
    return urlunsplit(parts._replace(query=urlencode([*kept, *added.items()])))
