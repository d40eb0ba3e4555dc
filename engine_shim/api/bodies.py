"""JsonRequest: a request whose body is JSON as RFC 8259 has it."""

from typing import Any

from fastapi import Request

from engine_shim.api.refusal import Refusal, Refused
from engine_shim.service.json_bodies import read_json


class JsonRequest(Request):
    """A request whose body is read so. What is no JSON is refused, with what is wrong with it."""

    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except ValueError as error:
            fault = ("body", str(error))
            raise Refused(Refusal(422, "invalid", ": ".join(fault), (fault,))) from None
