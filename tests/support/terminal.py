"""Terminal: a command on a real terminal, which the test types on and reads."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("agent-core"))


class Terminal:
    """A command on a terminal of its own, and what it has written there so far."""

    def __init__(self, *words: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        without = {name: value for name, value in os.environ.items() if name not in ("EDITOR", "VISUAL")}
        environment = {**without, "TERM": "xterm-256color", "COLUMNS": "200", **environment}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen(
            [COMMAND, *words], **streams, env=environment, start_new_session=True, preexec_fn=_take_terminal
        )
        os.close(theirs)
        self.shown = self._new = ""

    def expect(self, text: str) -> "Terminal":
        """Read on until this text has come."""
        while text not in self._new:
            chunk = self._read()
            assert chunk, f"{text!r} did not come: {self.shown}"
        self._new = self._new.partition(text)[2]
        return self

    def type(self, text: str) -> "Terminal":
        os.write(self._ours, text.encode())
        return self

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait()

    def _read(self) -> str:
        try:
            chunk = os.read(self._ours, 2**16).decode("utf-8", "replace")
        except OSError:  # nobody has it open any more
            return ""
        self.shown, self._new = self.shown + chunk, self._new + chunk
        return chunk


def _take_terminal() -> None:
    """Let what is typed there signal this process, whatever the tests' own process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
