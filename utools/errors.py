"""The errors of utools, and who is to blame. Pure.

UtoolsError
├── DefinitionError    the author of a definition: a bad schema, a bad or doubled code, a bad config
├── UnknownTool        the caller: no tool has this code (also a KeyError)
├── DatabaseError      the machine: a database that is closed to us, or of a newer version
│   └── DatabaseAway   the network: it cannot be reached now, or is busy; another try may help
└── ToolError          the tool: it could not do what it was asked; the message is for the model
    ├── ResultError    nobody: the call was made, and its result cannot be kept
    ├── SandboxError   the arguments: a path that is not inside the tool's root
    └── NetworkError   the arguments: a URL that cannot be read, or a host that the tool may not reach
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from utools.near_names import near_names
from utools.words.text import Text

ABSENT: Final = object()


def revive(kind: type[BaseException], args: tuple[Any, ...], fields: Mapping[str, Any]) -> BaseException:
    """Return an error of another process again, as pickle asks for it. Its message is made: it is not made anew of
    what it says."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class UtoolsError(Exception):
    """The root of the tree; never raised itself.

    What to do: catch it for every error of utools.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return revive, (type(self), self.args, self.__dict__)


class DefinitionError(UtoolsError):
    """A definition that cannot be used; `where` says which, e.g. `tools.x.config_schema/properties/q`.

    What to do: correct the definition at `where`; the message says what is expected.
    """

    def __init__(self, message: str, *, where: str = "", value: object = ABSENT) -> None:
        self.message = message
        self.where = where
        self.value = None if value is ABSENT else value
        text = message
        if value is not ABSENT:
            text = Text("{message} (got {value})", message=message, value=_shorten(_repr(value)))
        super().__init__(Text("{where}: {message}", where=where, message=text) if where else text)


class UnknownTool(UtoolsError, KeyError):
    """No tool has this code; the message names the codes that come near, or says why the host does not offer it.

    What to do: correct the code, or register the tool.
    """

    def __init__(self, code: str, known: Iterable[str] = (), refusal: str | None = None) -> None:
        codes = sorted(known)
        self.near = near_names(code, codes, most=3, cutoff=0.5)
        hint = f"did you mean {', '.join(self.near)}?" if self.near else f"there are: {', '.join(codes) or 'none'}"
        self.code, self.refusal = code, refusal
        self.message = refusal or f"no tool is called {_shorten(repr(code))}; {_shorten(hint, 400)}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message  # KeyError would show its repr


class DatabaseError(UtoolsError):
    """A database that cannot be used; the message says which, why, and what to do.

    What to do: do what the message says, such as installing a newer version.
    """


class DatabaseAway(DatabaseError):
    """A database that cannot be reached now, or is busy. `in_doubt`: a transaction that it may have committed.

    What to do: try again later; look first whether a transaction in doubt was committed.
    """

    in_doubt: str | None = None


class ToolError(UtoolsError):
    """Raised by a tool to say that it failed; `transient` means that another try may help.

    `message` is a template of its values, `ToolError("there is no file {path!r}", path=path)`, so that the model can
    read it in its own language.

    What to do: in a tool, raise it with what the model should know. A host gets it as a failed result.

    Args:
        message: The template.
        transient: Whether another try may help.
        values: The values of the template.
    """

    def __init__(self, message: str, /, *, transient: bool = False, **values: object) -> None:
        self.transient = transient
        super().__init__(message if isinstance(message, Text) else Text(message, **values))


class ResultError(ToolError):
    """Raised by a tool whose call was made, when its result cannot be kept. A read has failed then, a write has not.

    What to do: do not repeat a write; mend what makes the result.
    """


class SandboxError(ToolError):
    """A path that is not inside the tool's root, named as the caller gave it.

    What to do: give a path below the root that the host configures.
    """


class NetworkError(ToolError):
    """A URL that cannot be read, or a host that may not be reached.

    What to do: correct the URL, or let the operator allow the host.
    """


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # the author's own code runs here
        return f"a {type(value).__name__}"


def _shorten(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
