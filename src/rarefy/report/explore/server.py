"""The server of the page, for this machine alone.

It listens on 127.0.0.1. Every address begins with a random token, so that no other user and no
other page in the browser can ask for anything; a request that names another host is refused too,
since a foreign name may have been made to point here.
"""

from __future__ import annotations

import errno
import json
import secrets
import sys
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from rarefy.core.errors import RarefyError, UsageError, bad_value
from rarefy.report.explore.live import check_known, check_stops
from rarefy.report.explore.page import Explorer
from rarefy.report.explore.sources import Source, Stops

HERE = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Answers for one explorer until it is closed."""

    daemon_threads = True  # (a browser keeps connections open that it never uses)

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        if not 0 <= port < 65536:
            raise bad_value("port", port, "must be between 0 (any that is free) and 65535")
        self.explorer, self.token = explorer, secrets.token_urlsafe(24)
        try:
            super().__init__((HERE, port), Handler)
        except OSError as error:
            why = {errno.EADDRINUSE: "is in use", errno.EACCES: "is not for everybody"}
            said = why.get(error.errno or 0, error.strerror)
            raise bad_value("port", port, f"{said}; name another, or 0 for any") from error

    @property
    def address(self) -> str:
        return f"http://{HERE}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> set[str]:
        """How a browser may name this server: it leaves out the usual port."""
        names = {HERE, "localhost"}
        usual = names if self.server_port == HTTP_PORT else set()
        return {f"{name}:{self.server_port}" for name in names} | usual

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):  # (a connection that ended is no news)
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """One request. What it names is checked before anything is done."""

    server: Server
    timeout = 30
    server_version, sys_version = "rarefy", ""

    def do_GET(self) -> None:
        self._answer({"": self._page, "data": self._data, "figure": self._figure,
                      "progress": self._progress, "save": self._save})  # fmt: skip

    def do_POST(self) -> None:
        self._answer({"compute": self._compute, "stop": self._stop})

    def _answer(self, known: dict[str, object]) -> None:
        try:
            asked = urlsplit(self.path)
        except ValueError:
            return self._send(400, "text/plain", b"this is no address\n")
        _, _, after = asked.path.partition("/")
        token, slash, verb = after.partition("/")
        right = secrets.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host") not in self.server.hosts or not right or not slash:
            return self._send(403, "text/plain", b"this address is not for you\n")
        action = known.get(verb)
        if not callable(action):
            return self._send(404, "text/plain", b"there is nothing here\n")
        try:
            action(dict(parse_qsl(asked.query)))
        except RarefyError as error:
            self._json({"problem": str(error)}, 400)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed meanwhile
        except Exception as error:  # of a study's simulation: the page says so and goes on
            self._json({"problem": f"{type(error).__name__}: {error}"}, 500)

    # What can be asked

    def _page(self, query: dict[str, str]) -> None:
        self._send(200, "text/html; charset=utf-8", self.server.explorer.page().encode())

    def _data(self, query: dict[str, str]) -> None:
        self._json(self._source(query).numbers())

    def _figure(self, query: dict[str, str]) -> None:
        source = self._source(query)
        self._json(source.pictures(self._stops(source, query)))

    def _compute(self, query: dict[str, str]) -> None:
        source, live = self._source(query), self.server.explorer.live
        if live is None or source.key not in live.sources:
            raise bad_value("source", source.key, "is stored; nothing is computed there")
        self._json({"computed": live.compute(source, self._stops(source, query))})

    def _progress(self, query: dict[str, str]) -> None:
        live = self.server.explorer.live
        self._json({"done": live.done, "total": live.total} if live else {})

    def _stop(self, query: dict[str, str]) -> None:
        if self.server.explorer.live is not None:
            self.server.explorer.live.stop()
        self._json({})

    def _save(self, query: dict[str, str]) -> None:
        page = self.server.explorer.page(served=False).encode()
        name = f"{self.server.explorer.kind.name}.html"
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        self._send(200, "text/html; charset=utf-8", page, disposition)

    def _source(self, query: dict[str, str]) -> Source:
        explorer = self.server.explorer
        places = check_known(explorer.live, _named(query, "p."))
        key, computed = query.get("source", ""), explorer.live.key(places) if explorer.live else ""
        if key not in explorer.stored and (not computed or key != computed):
            known = ", ".join([*explorer.stored, *filter(None, [computed])])
            raise UsageError(f"source={key!r}: must be one of {known}")
        return explorer.find(key, places)

    def _stops(self, source: Source, query: dict[str, str]) -> Stops:
        return check_stops(source, _named(query, "a."))

    # How it is answered

    def _json(self, content: object, code: int = 200) -> None:
        text = json.dumps(content, separators=(",", ":"), allow_nan=False)
        self._send(code, "application/json", text.encode())

    def _send(
        self, code: int, kind: str, content: bytes, further: dict[str, str] | None = None
    ) -> None:
        self.send_response(code)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",  # the token is in the address
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            **(further or {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a terminal shows the address, and no token in a log."""


def _named(query: dict[str, str], prefix: str) -> dict[str, str]:
    found = {name: text for name, text in query.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): text for name, text in found.items()}
