"""What the packages log, on stderr: warnings, and with --verbose what is otherwise silent."""

import logging
import sys

PACKAGES = ("agent_core", "engine_shim", "utools")


class StderrHandler(logging.Handler):
    """Writes each message as a line of this command, to whatever stderr is then."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"agent-core: {record.getMessage()}\n")


def configure_log(*, verbose: bool) -> None:
    """Let the packages log to stderr."""
    for package in PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(logging.INFO if verbose else logging.WARNING)
        logger.handlers = [StderrHandler()]
