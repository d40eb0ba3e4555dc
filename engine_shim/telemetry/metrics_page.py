"""serve_metrics(): the metrics of a process that serves nothing else, for Prometheus; by HTTP and without a token."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server

from engine_shim.errors import DefinitionError
from engine_shim.telemetry.run_metrics import RunMetrics


@contextmanager
def serve_metrics(metrics: RunMetrics, address: str) -> Iterator[str]:
    """Serve the metrics at `HOST:PORT`, whatever the path, until the end of the block; yields their URL.

    DefinitionError for an address that cannot be listened at.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():  # without a host every machine could read them
        raise DefinitionError("name it as HOST:PORT, such as 127.0.0.1:9464", where="--metrics", value=address)
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry=metrics.registry)
    except (OSError, OverflowError, UnicodeError) as error:
        told = f"cannot be listened at ({error}); name it as HOST:PORT, such as 127.0.0.1:9464"
        raise DefinitionError(told, where="--metrics", value=address) from None
    try:
        yield f"http://{host}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
