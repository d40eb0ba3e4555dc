"""The models of one host: who answers for a name, what is known of it, and whether a workflow's can be asked at all."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_core.journal.record import Tape
from agent_core.models.client import ClientOf, ModelClient, ModelInfoOf
from agent_core.models.providers import Providers
from engine_shim.definition.errors import Problem, told
from engine_shim.definition.model import Workflow
from engine_shim.definition.model_refs import asked
from engine_shim.errors import DefinitionError


class HostModels:
    """`model` answers for every name, else each provider does; paths start from the directory of the definition."""

    def __init__(
        self,
        model: ModelClient | None = None,
        *,
        base_urls: Mapping[str, str] | None = None,
        default_provider: str = "openai",
        tape_of: Callable[[str], Tape] | None = None,
    ) -> None:
        self._model, self._base_urls, self._default = model, base_urls or {}, default_provider
        self._tape_of = tape_of
        self._providers: dict[Path, Providers] = {}

    def at(self, base: Path) -> ClientOf:
        """The clients, for a workflow that stands in this directory."""
        model = self._model
        return self._at(base) if model is None else lambda *_: model

    def info(self, base: Path) -> ModelInfoOf:
        """What is known of a model, without a key."""
        model = self._model
        return self._at(base).info if model is None else lambda *_: model.info()

    def check(self, workflow: Workflow) -> None:
        """DefinitionError for the first model that cannot be asked, for want of a key too."""
        models = self.at(workflow.base)
        for where, name, options in asked(workflow):
            try:
                models(name, options)
            except DefinitionError as error:
                raise DefinitionError(told(error), where=where) from None

    def problems(self, workflow: Workflow) -> Iterator[Problem]:
        """What is wrong with the models that a workflow names, on a host that may lack their keys."""
        for where, name, options in asked(workflow):
            try:
                self._at(workflow.base).check(name, options)
            except DefinitionError as error:
                yield Problem(where, told(error))

    def priced(self, base: Path) -> Callable[[str, Mapping[str, Any]], bool]:
        """Whether the price list has a model, by its name and the options it is reached by."""
        return self._at(base).priced

    async def close(self) -> None:
        """Let go of all connections in this event loop."""
        for providers in self._providers.values():
            await providers.close()

    def _at(self, base: Path) -> Providers:
        if base not in self._providers:
            self._providers[base] = Providers(base, self._base_urls, self._default, tape_of=self._tape_of)
        return self._providers[base]
