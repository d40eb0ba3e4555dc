"""A program: reads {template, data, longest} from stdin, renders the template and writes {text} or {error, values}.

It bounds its own time and memory first, because a sandbox does not stop an endless loop.
"""

import json
import resource
import sys
from contextlib import suppress
from typing import Any

SECONDS, BYTES = 2, 512 * 2**20
LONGEST_ERROR = 1000


def main() -> None:
    """Render, in bounded time and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    request = json.load(sys.stdin.buffer)
    try:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        _write({"error": "templates need jinja2: pip install 'agent-core[templates]'"})
        return
    with suppress(ValueError):  # macOS takes no bound on memory; there the time alone is bounded
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text = environment.from_string(request["template"]).render(request["data"])
    except MemoryError:
        raise
    except TemplateError as error:
        _write({"error": str(error)})
    except Exception as error:  # any other error of Python is the template's mistake too
        _write({"error": f"{type(error).__name__}: {error}"})
    else:
        _write(_answer(text, request["longest"]))


def _answer(text: str, longest: int) -> dict[str, Any]:
    if len(text) > longest:
        return {
            "error": "it makes {size} characters, of {longest} at most",
            "values": {"size": len(text), "longest": longest},
        }
    if any("\ud800" <= char <= "\udfff" for char in text):
        return {"error": "it makes a text with a lone surrogate"}
    return {"text": text}


def _write(answer: dict[str, Any]) -> None:
    """Write UTF-8 in any locale: escapes would make some texts four times as long."""
    if len(answer.get("error", "")) > LONGEST_ERROR:
        answer = {"error": f"{answer['error'][:LONGEST_ERROR]}…"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
