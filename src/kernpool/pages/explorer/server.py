"""`kernpool explore`: the page and the engine behind it, on this machine and for nobody else.

The server listens on 127.0.0.1 alone. A page of another site can make a browser send requests there, so each request
has to name this host (a rebound name is another one) and to carry a token that only the page from here knows. Anything
on this machine can connect and then send nothing, so connections that have not shown the token are few and short: the
oldest one is closed for a new one, and each after some seconds.

A browser is started with an address on its command line, which other users of the machine can read for as long as it
runs. So that address works once, and leads to the one with the token. (A file that redirects, which only its owner can
read, does not open in browsers that are confined to a part of the disk.)
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kernpool.pages.explorer.engine import RequestError, answer, thinned
from kernpool.pages.explorer.page import POLICY, json_for_html, render_page
from kernpool.pages.explorer.payload import payload_of
from kernpool.pages.explorer.subject import Subject

HOST = "127.0.0.1"
LARGEST_BODY = 1 << 20
SECONDS = 30.0  # that a silent connection is kept
SECONDS_TO_SHOW_THE_TOKEN = 5.0  # in all, however slowly a request is sent
CONNECTIONS_WITHOUT_TOKEN = 32  # at once; a browser opens six


class ExplorerServer(ThreadingHTTPServer):
    """Serves one explorer.

    Parameters
    ----------
    subject : Subject
        What is explored.
    port : int, default=0
        0 lets the system choose.
    language : {"en", "zh"} or None
        None follows the browser.

    Examples
    --------
    >>> from kernpool.pages.explorer.subject import subject_of_generator
    >>> with ExplorerServer(subject_of_generator("make_sine_power", 0, None)) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, subject: Subject, port: int = 0, language: str | None = None) -> None:
        self.subject = subject
        self.token = secrets.token_urlsafe(24)
        self._ticket: str | None = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._without_token: dict[socket.socket, float] = {}  # when each is to be closed; the oldest first
        super().__init__((HOST, port), _Handler)
        payload = payload_of(subject, language=language, kept=thinned(subject.rows))
        host = f"serverHost({json_for_html(self.token)})"
        self.page = render_page(payload, host=host, policy=POLICY + "; connect-src 'self'").encode()

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def door(self) -> str:
        """An address for a command line: it leads to the page once, and then nowhere."""
        return f"http://{HOST}:{self.server_port}/?once={self._ticket}"

    def takes(self, ticket: str) -> bool:
        """Tell whether this is the ticket of `door`, which is used up by that."""
        with self._lock:
            is_it = self._ticket is not None and secrets.compare_digest(ticket.encode(), self._ticket.encode())
            self._ticket = None if is_it else self._ticket
        return is_it

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, and close the oldest ones without the token beyond the limit."""
        with self._lock:
            self._without_token[request] = time.monotonic() + SECONDS_TO_SHOW_THE_TOKEN
            extra = len(self._without_token) - CONNECTIONS_WITHOUT_TOKEN
            self._hang_up([*self._without_token][: max(0, extra)])
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close the connections that have taken too long to show the token."""
        super().service_actions()
        now = time.monotonic()
        with self._lock:
            self._hang_up([request for request, end in self._without_token.items() if end < now])

    def has_shown_token(self, request: Any) -> None:
        """Keep a connection open whatever else connects."""
        with self._lock:
            self._without_token.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.has_shown_token(request)  # it no longer counts towards the limit
        super().shutdown_request(request)

    def _hang_up(self, requests: list[socket.socket]) -> None:
        for request in requests:
            del self._without_token[request]
            with suppress(OSError):  # it may have been closed at the other end
                request.shutdown(socket.SHUT_RDWR)  # the thread that reads from it ends, and closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that the browser closed."""
        import sys

        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One request: the page, or a question to the engine."""

    server: ExplorerServer
    timeout = SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the page to who knows the token, and who comes with the ticket to that address."""
        if self.path.startswith("/?once="):
            if not self._is_elsewhere():
                self._let_in(self.path.removeprefix("/?once="))
            return
        if self._is_refused(given=self.path.removeprefix("/?token=")):
            return
        self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a question."""
        if self._is_refused(given=self.headers.get("X-Kernpool-Token", "")):
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/ask" or not re.fullmatch("[0-9]{1,9}", length) or int(length) > LARGEST_BODY:
            self._fail(HTTPStatus.BAD_REQUEST, f"ask with up to {LARGEST_BODY} bytes of JSON")
            return
        try:
            request = json.loads(self.rfile.read(int(length)))
            found = answer(self.server.subject, request)
        except (RequestError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
            return
        except Exception as error:  # the page shows it, and the server lives
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
            return
        self._send(HTTPStatus.OK, json.dumps(found).encode(), "application/json")

    def _let_in(self, ticket: str) -> None:
        if self.server.takes(ticket):
            self.server.has_shown_token(self.connection)
            self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", Location=self.server.url)
            return
        why = "this address has been used; open the one that kernpool explore printed, and if it was not you, end it"
        self._fail(HTTPStatus.FORBIDDEN, why)

    def _is_elsewhere(self) -> bool:
        """Refuse who names another host."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") in hosts:
            return False
        self._fail(HTTPStatus.MISDIRECTED_REQUEST, f"this is {HOST}:{self.server.server_port}")
        return True

    def _is_refused(self, given: str) -> bool:
        """Refuse who names another host, or does not know the token."""
        if self._is_elsewhere():
            return True
        if not secrets.compare_digest(given.encode(), self.server.token.encode()):
            self._fail(HTTPStatus.FORBIDDEN, "open the address that kernpool explore printed: it carries a token")
            return True
        self.server.has_shown_token(self.connection)
        return False

    def _fail(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what is left of the body is not read
        self._send(status, json.dumps({"error": why}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")  # the token is in the address
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        for name, value in more.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""


def serve(
    subject: Subject,
    *,
    port: int = 0,
    language: str | None = None,
    started: Callable[[ExplorerServer], None] | None = None,
) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    subject : Subject
        What is explored.
    port : int, default=0
        0 lets the system choose.
    language : {"en", "zh"} or None
        None follows the browser.
    started : callable, optional
        Called with the server once it listens.

    Raises
    ------
    OSError
        If the port is taken.
    """
    with ExplorerServer(subject, port, language) as server:
        if started is not None:
            started(server)
        server.serve_forever(poll_interval=0.1)
