"""A program: renders the template that it reads on stdin, {template, data, longest}, and writes {text} or {error}.

It bounds itself before it looks at the template, since a sandbox does not keep a loop from running for ever.
"""

import json
import resource
import sys

SECONDS, BYTES = 2, 512 * 2**20
LONGEST_ERROR = 1000


def main() -> None:
    """Render, in bounded time and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    given = json.load(sys.stdin.buffer)
    try:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        _tell({"error": "templates need jinja2: pip install 'agent-core[templates]'"})
        return
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text = environment.from_string(given["template"]).render(given["data"])
    except MemoryError:
        raise
    except TemplateError as error:
        _tell({"error": str(error)})
    except Exception as error:  # whatever a template makes Python raise is the template's mistake
        _tell({"error": f"{type(error).__name__}: {error}"})
    else:
        _tell(_judged(text, given["longest"]))


def _judged(text: str, longest: int) -> dict[str, str]:
    if len(text) > longest:
        return {"error": f"it makes {len(text)} characters, of {longest} at most"}
    if any("\ud800" <= char <= "\udfff" for char in text):
        return {"error": "it makes a text with a lone surrogate"}
    return {"text": text}


def _tell(answer: dict[str, str]) -> None:
    """In UTF-8, whatever the locale: escapes would make some texts four times as long."""
    if len(answer.get("error", "")) > LONGEST_ERROR:
        answer = {"error": f"{answer['error'][:LONGEST_ERROR]}…"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
