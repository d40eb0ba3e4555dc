"""What goes in and out of the routes about decision links."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from agent_core.decisions import WITHOUT_FIELDS, Decision, Deny
from agent_core.outputs import FinishReason, Json
from engine_shim.api.models import RequestBody, Text, read_whole
from engine_shim.api.run_models import At, only_with
from engine_shim.host.notifications import DAY_S
from engine_shim.service.linked_calls import ByLink

Seconds = Annotated[int, Field(ge=60, le=30 * DAY_S), BeforeValidator(read_whole)]
Person = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class LinkRequest(RequestBody):
    """For which waiting call a link is made; `at` may be left out when one waits. It holds `expires_in` seconds, and
    never longer than the host allows. Records say `for` whom it was."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{}, {"expires_in": 3600, "for": "ada@example.com"}, {"at": "flow/order.1:1"}]}
    )

    at: At = None
    expires_in: Seconds | None = None
    person: Person | None = Field(default=None, alias="for")


class LinkedCall(BaseModel):
    """The call that a link is about: why it waits, and the `decisions` that the link allows."""

    tool: str
    args: Json
    reason: FinishReason
    message: str | None
    decisions: list[ByLink]
    expires_at: str


class LinkDecision(RequestBody):
    """A decision by a link, one of the `decisions` of its call. `message` is that of `deny`."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"decision": {"const": "deny"}}},
            "else": {"properties": {"message": {"type": "null"}}},
            "examples": [{"decision": "approve"}, {"decision": "deny", "message": "Not this month."}],
        }
    )

    decision: ByLink
    message: Text | None = None

    @field_validator("message")
    @classmethod
    def _check_message(cls, message: str | None, info: ValidationInfo) -> str | None:
        return only_with("deny", message, info)

    def read(self) -> Decision:
        """Return the decision."""
        return Deny(self.message or "") if self.decision == "deny" else WITHOUT_FIELDS[self.decision]()


class Decided(BaseModel):
    """That the decision was recorded. The run continues."""

    decision: ByLink
