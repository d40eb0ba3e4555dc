"""main(): runs the command line, and reports whatever goes wrong in it."""

import gc
import os
import sys

TYPE_CHECKING = False  # that of `typing`, which is imported where Ctrl-C is heard, as most of the standard library is
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

NO_COMMAND = 2
"""The exit code without any words, as for other mistakes in usage; the help is written all the same."""
SELDOM = (20_000, 20, 20)
"""How seldom memory is searched for garbage: modules that load make none. It is a fortieth of a command's time."""
INTERRUPTED = 130
"""The exit code of Ctrl-C, also while modules still load: they are imported in `main`."""


def main(args: "Sequence[str] | None" = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = _main(args)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if args is None and "temporalio" in sys.modules:
        _end_at_once(code)
    sys.exit(code)


def _main(args: "Sequence[str] | None") -> int:
    if args is None:
        _open_closed()
    try:
        from engine_shim import _open_menu

        _open_menu()
    except ImportError as error:  # such as for a module of the user's own that hides utools
        sys.stderr.write(f"agent-core: {error}\n")
        return 1
    from engine_shim.cli import terminal

    if args is None:
        gc.set_threshold(*SELDOM)
    code = _run(list(sys.argv[1:] if args is None else args))
    if args is None:
        gc.freeze()  # memory goes with the process: it need not be searched for garbage, an eighth of a command's time
        if fault := terminal.flush():
            lost = _tell_lost(fault)
            code = code or lost
    else:
        terminal.release()  # the caller goes on
    return code


def _open_closed() -> None:
    """Open the standard streams that the process was started without, as by `>&-`: the next file to be opened, such as
    a store, would take the place of one. stdin is empty; stdout cannot be written, which a command tells like any other
    loss."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            how = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            descriptor = os.open(os.devnull, how)  # the lowest that is free
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, "r" if name == "stdin" else "w"))  # noqa: SIM115 - to the end


def _tell_lost(fault: OSError) -> int:
    """Say why stdout cannot be written; the exit code."""
    sys.stderr.write(f"agent-core: stdout cannot be written: {fault.strerror}\n")
    return 1


def _end_at_once(code: int) -> "NoReturn":
    """End the process as `sys.exit` does, but leave the interpreter as it is.

    Temporal's threads cannot be stopped. One that hands an answer to the event loop while the interpreter is taken down
    kills the process: `PyGILState_Release: thread state must be current when releasing`.
    """
    import atexit
    import threading

    from engine_shim.cli import terminal

    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads of tools
        atexit._run_exitfuncs()
    finally:
        terminal.flush()
        os._exit(code)


def _run(words: list[str]) -> int:
    from engine_shim.cli import terminal
    from engine_shim.cli.app import choose_commands, make_app

    try:
        _check_directory()
        _check_text(words)
        code = make_app(choose_commands(words))(words or ["--help"], prog_name="agent-core", standalone_mode=False)
        return (code if isinstance(code, int) else 0) if words else NO_COMMAND
    except terminal.Interrupted:
        from engine_shim.cli import output

        output.error("interrupted", kind="interrupted", where="", as_json=True)
        return INTERRUPTED
    except Exception as error:  # the outermost edge: whatever happens is reported, and with --json as one document
        if isinstance(error, OSError) and terminal.is_of_stdout(error):
            terminal.flush()  # what is left of it goes nowhere
            return _tell_lost(error)
        from engine_shim.cli.failures import report

        return report(error, as_json="--json" in words)


def _check_directory() -> None:
    """BadParameter where the working directory is gone, from which configuration and paths are looked for."""
    try:
        os.getcwd()
    except OSError as error:
        from typer import BadParameter

        raise BadParameter(f"the working directory cannot be used: {error.strerror}; change to another one") from None


def _check_text(words: "Sequence[str]") -> None:
    """BadParameter for an argument whose bytes are no text under this locale: nothing could record it."""
    for number, word in enumerate(words, 1):
        if any("\ud800" <= each <= "\udfff" for each in word):
            from typer import BadParameter

            shown, encoding = os.fsencode(word).decode("utf-8", "backslashreplace"), sys.getfilesystemencoding()
            raise BadParameter(f"argument {number} is not {encoding} text: {shown}; write it in {encoding}")
