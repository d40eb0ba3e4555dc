"""A program: renders the template that it reads on stdin, {template, data}, and writes {text} or {error}.

It bounds itself before it looks at the template, since a sandbox does not keep a loop from running for ever.
"""

import json
import resource
import sys

SECONDS, BYTES, LONGEST = 2, 512 * 2**20, 30_000


def main() -> None:
    """Render, in bounded time and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    given = json.load(sys.stdin)
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
        _tell({"text": text} if len(text) <= LONGEST else {"error": f"it makes a text of {len(text)} characters"})


def _tell(answer: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
