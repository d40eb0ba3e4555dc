"""Tools of other libraries as tools of this one, in a line each: LangChain, pydantic-ai, OpenAI's functions."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from utools.adapters.foreign import ForeignOptions as ForeignOptions
    from utools.adapters.langchain import from_langchain as from_langchain
    from utools.adapters.openai import from_openai as from_openai
    from utools.adapters.pydantic_ai import from_toolset as from_toolset

HOMES = {
    "utools.adapters.foreign": "ForeignOptions",
    "utools.adapters.langchain": "from_langchain",
    "utools.adapters.openai": "from_openai",
    "utools.adapters.pydantic_ai": "from_toolset",
}
"""The public names by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
