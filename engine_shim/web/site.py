"""serve_page(): the page of a server, at /ui/, beside the HTTP API that it asks."""

import html
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC: Final = Path(__file__).parent / "static"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
"""The page runs its own scripts alone, and speaks with its own server alone, whatever stands in a run."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class _Files(StaticFiles):
    """The page's files, asked for anew after an upgrade of the server."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def serve_page(app: FastAPI) -> None:
    """Serve the page. It holds no data: what it shows it asks of the API, with the token of its user."""
    app.mount("/ui/static", _Files(directory=STATIC), name="static")

    @app.get("/ui/{path:path}", include_in_schema=False)
    async def show_page(request: Request, path: str) -> Response:
        base = f"{request.scope.get('root_path', '')}/ui/"
        text = (STATIC / "index.html").read_text("utf-8").replace("{base}", html.escape(base))
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/", include_in_schema=False)
    @app.get("/ui", include_in_schema=False)
    async def find_page(request: Request) -> Response:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/ui/", 307)
