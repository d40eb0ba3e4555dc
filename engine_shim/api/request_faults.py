"""What is wrong with a request: each fault at the field that it is about, in words for the sender. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from utools.errors import DefinitionError
from utools.problems import Problem
from utools.schema.faults import hint
from utools.schema.model_faults import TEXTS, KnownKeys, Position, explain_fault, keys_of

OF_PARAMETERS = {**TEXTS, "missing": "is required", "string_type": "must be a text"}
UNTAGGED = ("union_tag_invalid", "union_tag_not_found")
"""Faults at the key that says which of several objects one is, which pydantic tells of the object."""


@dataclass(frozen=True, slots=True)
class RequestFields:
    """The fields that a route takes: its body, and its parameters by name.

    A route without query parameters passes over what senders add to its address.
    """

    body: type[BaseModel] | None = None
    path: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    lists: frozenset[str] = frozenset()
    """The query parameters that may be given more than once."""

    @classmethod
    def from_route(cls, route: APIRoute) -> "RequestFields":
        """Return the fields of a route."""
        model = None if route.body_field is None else route.body_field.field_info.annotation
        models = [each for each in (model, *get_args(model)) if isinstance(each, type) and issubclass(each, BaseModel)]
        known = (route.dependant.path_params, route.dependant.query_params, route.dependant.header_params)
        path, query, header = (tuple(each.alias for each in parameters) for parameters in known)
        lists = frozenset(each.alias for each in known[1] if _is_list(each.field_info.annotation))
        return cls(models[0] if models else None, path, query, header, lists)

    def find(self, name: str) -> str:
        """Return the place of a field, as in `body/agent`; empty for one that the route has not."""
        for source, names in (("body", self._keys()), ("path", self.path), ("header", self.header)):
            if name in map(str.lower, names):
                return f"{source}/{name}"
        return ""

    def place(self, where: str) -> str:
        """Return a place in the request: what begins with a field of the body is a place in it."""
        return f"body/{where}" if where.partition("/")[0] in self._keys() else where

    def place_problem(self, problem: Problem) -> Problem:
        """Return a problem at its place in the request."""
        return replace(problem, where=self.place(problem.where))

    def find_faults(self, error: RequestValidationError) -> Iterator[tuple[str, str]]:
        """Yield the faults of a request that does not fit its route: place and message, each once."""
        found = (self._explain(each, error.body) for each in error.errors())
        yield from dict.fromkeys(found)

    def explain_unknown(self, parameters: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with query parameters that a route does not know."""
        for name in sorted(parameters):
            yield f"query/{name}", f"unknown parameter; {hint(name, self.query)}"

    def explain_doubled(self, parameters: Iterable[str]) -> list[tuple[str, str]]:
        """Return what is wrong with query parameters, by the name of each value, that are given twice, and have one
        value."""
        counts = Counter(parameters)
        return [(f"query/{name}", "is given twice") for name in sorted(counts.keys() - self.lists) if counts[name] > 1]

    def _keys(self) -> Sequence[str]:
        return () if self.body is None else tuple(keys_of(self.body)(("",)))

    def _explain(self, fault: Mapping[str, Any], body: Any) -> tuple[str, str]:
        source, *rest = fault["loc"]
        if source != "body":
            return "/".join(map(str, fault["loc"])), explain_fault(fault, _no_keys, OF_PARAMETERS)
        if not rest:
            return "body", self._explain_body(fault)
        keys = keys_of(self.body) if self.body else _no_keys
        position = _find_position(fault, tuple(rest), body, keys)
        return "/".join(map(str, ("body", *position))), explain_fault({**fault, "loc": position}, keys)

    def _explain_body(self, fault: Mapping[str, Any]) -> str:
        value = fault["input"]
        if fault["type"] == "missing":
            return f"is required: a JSON object{self._such_as()}"
        if isinstance(value, bytes):
            return "must be a JSON object, sent with `Content-Type: application/json`"
        return str(DefinitionError(f"must be a JSON object{self._such_as()}", value=value))

    def _such_as(self) -> str:
        about = self.body.model_config.get("json_schema_extra") if self.body else None
        examples = about.get("examples", ()) if isinstance(about, dict) else ()
        first = next((each for each in examples if each), None) if isinstance(examples, list) else None
        return "" if first is None else f", such as {json.dumps(first)}"


def _is_list(annotation: Any) -> bool:
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))


def _find_position(fault: Mapping[str, Any], named: Position, body: Any, keys: KnownKeys) -> Position:
    """Return where a fault is in a body, without the types among which pydantic chose on the way."""
    found: list[str | int] = []
    for part in named:
        is_key = isinstance(body, Mapping) and (part in body or part in tuple(keys((*found, part))))
        is_index = isinstance(body, list) and isinstance(part, int)
        if is_key or is_index:
            found.append(part)
            body = body.get(part) if isinstance(body, Mapping) else body[int(part)]
    tag = str(fault["ctx"]["discriminator"]).strip("'") if fault["type"] in UNTAGGED else ""
    return (*found, tag) if tag.isidentifier() else tuple(found)


def _no_keys(position: Position) -> Sequence[str]:
    return ()
