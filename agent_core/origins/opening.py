"""The sources that a run begins with: its prompts, its conversation, and what its parent hands down. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from agent_core.config import AgentConfig, Document
from agent_core.inherited import Inherited, OriginKind, SourceRecord
from agent_core.outputs import Json, Placed
from agent_core.tool_policy import Policies


def opening_sources(
    config: AgentConfig,
    tools: Policies,
    conversation: Sequence[Placed],
    shown: Sequence[Json],
    inherited: Inherited,
) -> list[SourceRecord]:
    """Return what `run_started` holds of them. `conversation` is the whole one, each message with its place in the
    config, `shown` the messages that the record has.

    Under another agent the user's turn is that agent's own text, so what the parent has read replaces it. Where the
    config has `trusted_text`, the author vouches for that alone. Assistants' text is the source of nothing. What a
    prompt took from a workflow's node is that node's answer.
    """
    return list(_Opening(config, tools, shown, inherited).records(conversation))


class _Opening:
    """How the texts of one run are told apart."""

    def __init__(self, config: AgentConfig, tools: Policies, shown: Sequence[Json], inherited: Inherited) -> None:
        self._config, self._tools, self._inherited = config, tools, inherited
        self._places = {id(message): index for index, message in enumerate(shown)}
        self._filled = inherited.get("filled", {})
        self._is_limited = config.trusted_text is not None
        self._is_nested = "sources" in inherited or "trusted" in inherited

    def records(self, conversation: Sequence[Placed]) -> Iterator[SourceRecord]:
        """Yield all of them, in order."""
        yield from (_record("vouched", "trusted_text", text) for text in self._config.trusted_text or ())
        for key in ("system_prompt", "developer_prompt"):
            if text := getattr(self._config, key):
                yield from self._split(self._written("author", "author", text), key)
        yield from (_record("other", each.label, shown_text(each)) for each in self._config.documents)
        yield from self._list_messages(conversation)
        if not self._is_limited:
            trusted = self._inherited.get("trusted", ())
            yield from (_record("vouched", "parent's trusted text", text) for text in trusted)
            yield from self._inherited.get("sources", ())

    def _list_messages(self, messages: Iterable[Placed]) -> Iterator[SourceRecord]:
        user = 0
        for place, message in messages:
            key = place if place == "prompt" else f"{place}/content"
            match message["role"]:
                case "system":
                    yield from self._split(self._written("author", "author", message), key)
                case "user":
                    user += 1
                    if not self._is_nested:
                        yield from self._split(self._written("user", f"user message {user}", message), key)
                case "tool":
                    yield self._answer(message)
                case "assistant" if "quotes" in message:
                    quotes = ((f"{key}/quotes/{index}", quoted) for index, quoted in enumerate(message["quotes"]))
                    for record in self._list_messages(quotes):
                        record["label"] += ", summarised"
                        yield record

    def _split(self, record: SourceRecord, key: str) -> Iterator[SourceRecord]:
        """Yield a text, or where it took something from nodes, each of its parts."""
        given = self._filled.get("messages_json") if key.startswith("messages_json") else None
        if given is not None:
            one = given[0] if len(given) == 1 else None
            from_node = (
                {"kind": "tool", "label": one["label"], "tool": one.get("tool", "")} if one else {"kind": "other"}
            )
            yield cast(SourceRecord, {**record, **from_node})
            return
        if key not in self._filled:
            yield record
            return
        for part in self._filled[key]:
            yield part if part["kind"] == "tool" else _record(record["kind"], record["label"], part.get("value"))

    def _written(self, kind: OriginKind, label: str, message: Json | str) -> SourceRecord:
        """Return a text of the author or the user; where the config vouches for other texts, it is not trusted."""
        if self._is_limited:
            label = f"unvouched {label if kind == 'user' else 'prompt'}"
            kind = "other"
        index = None if isinstance(message, str) else self._places.get(id(message))
        if index is not None:
            return {"kind": kind, "label": label, "message": index}
        return _record(kind, label, message if isinstance(message, str) else message["content"])

    def _answer(self, message: Json) -> SourceRecord:
        """Return the answer of a tool in an earlier turn."""
        name, index = str(message.get("name") or "a tool"), self._places.get(id(message))
        record: SourceRecord = {"kind": "tool", "label": f"{name} earlier", "tool": name}
        if name in self._tools and self._tools[name]["trusted"]:
            record["trusted"] = True
        if index is None:
            return {**record, "value": message["content"]}
        return {**record, "message": index}


def shown_text(document: Document) -> str:
    """Return what the model reads of a document."""
    return (document.text or "")[: document.max_len]


def _record(kind: OriginKind, label: str, value: Any) -> SourceRecord:
    return {"kind": kind, "label": label, "value": value}
