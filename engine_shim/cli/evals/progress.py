"""How far a measurement is, on stderr: one line that is written anew on a terminal, else a line for each run."""

import shutil
from collections.abc import Sequence

from engine_shim.cli import terminal
from engine_shim.cli.terminal import visible
from engine_shim.evals.cases import Case
from engine_shim.evals.score import Scored


class Progress:
    """The runs of one model that have ended, and how many of them were right. `side` is A or B of two models."""

    def __init__(self, total: int, side: str = "") -> None:
        self._total, self._side = total, f"{side} " if side else ""
        self._done = self._right = 0
        self._running: list[str] = []

    def start_loading(self, model: str) -> None:
        """A local model is loaded, before any case begins."""
        self._write(f"{self._side}loading {model}", lasts=True)

    def start_case(self, case: Case) -> None:
        self._running.append(case.name)
        self._rewrite()

    def end_case(self, scored: Scored) -> None:
        self._done, self._right = self._done + 1, self._right + scored.scores.right.right
        self._running.remove(scored.case.name)
        outcome = "right" if scored.scores.right.right else "not right" if scored.has_reply else "no answer"
        self._write(f"{self._side}{self._done}/{self._total} {scored.case.name}: {outcome}", lasts=True)
        self._rewrite()

    def close(self) -> None:
        """Clear the line of a terminal."""
        if terminal.err().isatty():
            _write_err("\r\033[K")

    def _rewrite(self) -> None:
        count = f"{self._side}{self._done}/{self._total} done, {self._right} right"
        self._write(f"{count}: {_join(self._running)}" if self._running else count, lasts=False)

    def _write(self, text: str, *, lasts: bool) -> None:
        """A terminal shows the newest text alone; elsewhere the texts that last have a line each."""
        if terminal.err().isatty():
            from rich.cells import set_cell_size

            columns = shutil.get_terminal_size().columns - 1
            _write_err("\r\033[K" + set_cell_size(visible(text), columns).rstrip())
        elif lasts:
            _write_err(visible(text) + "\n")


def _join(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _write_err(text: str) -> None:
    stderr = terminal.err()
    stderr.write(text)
    stderr.flush()
