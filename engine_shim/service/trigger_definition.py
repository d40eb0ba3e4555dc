"""Triggers: what starts a workflow without a caller, by the clock or by a signed webhook, as files define it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from engine_shim.definition.template import placeholders
from engine_shim.errors import DefinitionError
from utools.document import read_document
from utools.schema.model_faults import keys_of

FIELDS = 5
"""Those of a cron line: minute, hour, day of the month, month, day of the week."""


CLOCK_CHANGE = timedelta(hours=3)
"""More than any change of the clock: so much later, no hour is passed for the second time."""


class WebhookSource(BaseModel):
    """Callers that sign with the secret in this variable, as Standard Webhooks says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret_env: str = Field(min_length=1)


class Trigger(BaseModel):
    """A file's keys. `workflow` is `id` or `id@version`; `inputs` are those of its runs.

    A webhook's body is its runs' inputs, or what their `{{external.…}}` are filled from. A time that passed while no
    server ran is made up for by one run (`missed: once`), or not at all. A run that continues when the next one is due
    lets that one fall out, unless `overlap`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workflow: str = Field(min_length=1)
    inputs: dict[str, Any] | None = None
    cron: str | None = None
    timezone: str = "UTC"
    missed: Literal["once", "skip"] = "once"
    overlap: bool = False
    webhook: WebhookSource | None = None

    @field_validator("cron")
    @classmethod
    def _check_cron(cls, line: str | None) -> str | None:
        if line is not None:
            if len(line.split()) != FIELDS:
                raise ValueError("has minute, hour, day, month and weekday, as in 0 6 * * MON-FRI")
            try:
                CronSim(line.upper(), datetime(2026, 1, 1))
            except CronSimError as error:
                raise ValueError(f"is no cron line: {error}") from None
        return line

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("is no time zone that this machine knows, such as Europe/Berlin") from None
        return name

    @model_validator(mode="after")
    def _check_source(self) -> "Trigger":
        if (self.cron is None) == (self.webhook is None):
            raise ValueError("needs cron or webhook, and not both")
        return self

    @property
    def times(self) -> str:
        """What says at which times the clock starts it, as the lines of a crontab do; empty where none does."""
        return "" if self.cron is None else f"CRON_TZ={self.timezone} {self.cron}"

    def next_time(self, after: datetime) -> datetime:
        """Return when the clock starts it next, after a time with a zone.

        In the hour that a clock change repeats, the times of a day begin with those of its first pass.
        """
        return next(time for time in self._times(after) if time.astimezone(UTC) > after)

    def last_time(self, until: datetime) -> datetime:
        """Return when the clock started it last, at a time with a zone or before."""
        times = self._times(until + CLOCK_CHANGE, reverse=True)
        return next(time for time in times if time.astimezone(UTC) <= until)

    def _times(self, at: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        assert self.cron is not None
        return CronSim(self.cron.upper(), at.astimezone(ZoneInfo(self.timezone)), reverse=reverse)


def read_trigger(path: Path) -> Trigger:
    """Return the trigger of a file. DefinitionError with the line of each fault."""
    document = read_document(path, "the trigger")
    try:
        trigger = Trigger.model_validate(document.data)
    except ValidationError as error:
        raise document.explain(error, (), keys_of(Trigger)) from None
    for where, each in placeholders(trigger.inputs or {}, "inputs"):
        if trigger.webhook is None or each.path[0] != "external":
            message = f"{each} is not known here; a webhook's inputs may take {{{{external.…}}}}"
            raise document.error(message, document.position(where))
    return trigger


def file_error(path: Path, message: str, key: str) -> DefinitionError:
    """Return what is wrong with a key of a trigger's file."""
    document = read_document(path, "the trigger")
    return document.error(message, document.position(key))
