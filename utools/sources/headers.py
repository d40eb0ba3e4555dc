"""Headers: those that a configuration gives a request, checked. Pure."""

from typing import Annotated

from pydantic import AfterValidator, Field

from utools.net.header_names import NAME, is_of_connection

HeaderName = Annotated[str, Field(pattern=f"^{NAME}$")]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return the same headers; ValueError for one that frames the request, or speaks to a proxy."""
    for name in headers:
        if is_of_connection(name):
            raise ValueError(f"the header {name} is not yours to set")
    return headers


Headers = Annotated[dict[HeaderName, str], AfterValidator(_check_headers)]
