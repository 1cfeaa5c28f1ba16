"""Local web server of `kernpool explore`, and the computations that it does for the page.

The server listens on 127.0.0.1 alone. A page of another site can make a browser send requests there, so each
request has to name this host (a rebound name is another one) and to carry a token that only this page knows. Any
program on this machine can connect and then send nothing, so connections without the token are few and short: the
oldest one is closed for a new one, and each after some seconds.

A browser is started with an address on its command line, which other users of the machine can read while it runs.
So that address works once, and redirects to the one with the token. (A file that redirects, readable only by its
owner, does not open in browsers that are confined to a part of the disk.)

`answer` computes what a page asks for: predictions and weights for rows that it does not hold, or that are too many
for it.
"""

import json
import math
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernpool.core import Prepared, fill_empty
from kernpool.data.array_validation import INFINITE, LARGEST
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.fitted_model import fit_of, neighbors_of, pairs_of, recipe_of
from kernpool.estimators.training_rows import mixed
from kernpool.execution.error_messages import abbreviate
from kernpool.explorer.explorer_model import EXACT_ROWS, POLICY, ExplorerModel, json_for_html, render_page, shown_widths
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

LARGEST_REQUEST = 4096  # points of a curve
SHOWN_WEIGHTS = 200  # the heaviest rows of a query
DRAWN_ROWS = 2000  # of a page whose sums an engine has: as many as are drawn as paths


class RequestError(ValueError):
    """Error for an invalid request of the explorer's page, or an invalid setting."""


def model_at(model: Any, settings: Mapping[str, Any]) -> Any:
    """Return a copy of a fitted model with other settings, such as bandwidth or kernel, without fitting again.

    The copy shares the rows of the given model.

    Parameters
    ----------
    model : fitted estimator
        Whose rows are shared.
    settings : mapping
        As in the payload: kernel, bandwidth, composition, degree, smoothing, ridge, widths, neighbors; what is missing
        stays.

    Returns
    -------
    estimator
        Fitted: `bandwidth_` and `smoothing_` are those of the settings. A change of degree is a change of its class.

    Raises
    ------
    RequestError
        If a setting is invalid.
    """
    degree = settings.get("degree", model._degree)
    if degree not in (0, 1):
        raise RequestError(f"degree must be 0 or 1, got {abbreviate(degree)}")
    if degree and hasattr(model, "classes_"):
        raise RequestError("degree must be 0: probabilities of classes are local constant")
    if degree == model._degree:
        new = clone(model)
    else:
        kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
        shared = {name: value for name, value in model.get_params().items() if name in kind().get_params()}
        new = kind(**shared)
    as_sent = np.minimum(model.bandwidth_, INFINITE)  # JSON has no infinity
    bandwidth = _numbers("bandwidth", settings.get("bandwidth", as_sent), len(model.bandwidth_), least=0.0)
    smoothing = _numbers("smoothing", settings.get("smoothing", model.smoothing_), len(model.smoothing_))
    largest = np.asarray(model._categories().largest)
    if np.any((smoothing < 0.0) | (smoothing > largest)):
        raise RequestError(f"smoothing must be from 0 to {largest.tolist()}, got {smoothing.tolist()}")
    neighbors = _neighbors(model, settings)
    new.set_params(
        widths="fixed" if neighbors is None else "nearest",
        n_neighbors=neighbors,
        kernel=settings.get("kernel", model.kernel),
        composition=settings.get("composition", model.composition),
        bandwidth=bandwidth.tolist(),
        smoothing=smoothing.tolist() or None,
    )
    kept = {name: vars(model)[name] for name in (*model._arrays, "encoding_") if name in vars(model)}
    kept |= {name: value for name, value in vars(model).items() if name in ("n_features_in_", "feature_names_in_")}
    kept |= {"bandwidth_": bandwidth, "smoothing_": smoothing}
    kept |= {} if neighbors is None else {"n_neighbors_": neighbors}
    kept |= {name: vars(model)[name] for name in ("prior_share_",) if name in vars(model)}
    if degree:
        kept["ridge_"] = _ridge(settings.get("ridge", vars(model).get("ridge_")))
    new._replace_fit(kept)
    new._prepared = vars(model).get("_prepared", Prepared())  # keys are read once for all settings
    try:
        recipe_of(new)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from None
    return new


def _neighbors(model: Any, settings: Mapping[str, Any]) -> int | None:
    """Return the number of neighbors to which windows reach; None for windows of fixed width."""
    widths = settings.get("widths", shown_widths(model))
    if widths not in ("fixed", "nearest"):
        raise RequestError(f"widths must be 'fixed' or 'nearest', got {abbreviate(widths)}")
    neighbors = settings.get("neighbors", neighbors_of(model))
    is_number = len(model.bandwidth_) == 1 and type(neighbors) is int and neighbors > 0
    if not is_number and (widths == "nearest" or neighbors is not None):
        raise RequestError(
            "neighbors must be a number of rows from 1 on, of a model of one numeric column, got "
            f"{abbreviate(neighbors)}"
        )
    return neighbors if widths == "nearest" else None


def _ridge(given: Any) -> float:
    ridge = 0.0 if given is None else float(_numbers("ridge", [given], 1)[0])
    if ridge < 0.0:
        raise RequestError(f"ridge must not be negative, got {abbreviate(given)}")
    return ridge


def answer(subject: ExplorerModel, request: Any) -> dict[str, Any]:
    """Compute the response to a request of the page: a curve along a column, or the weights of a query.

    Parameters
    ----------
    subject : ExplorerModel
        What is explored.
    request : dict
        ``{"kind": "curve" | "query", "settings": ..., ...}``: the curve along a column at places, or the weights of a
        query.

    Returns
    -------
    dict
        JSON; None stands for NaN. Values are what ``predict`` and ``predict_proba`` say, but None where the model
        raises.

    Raises
    ------
    RequestError
        If the request is invalid.

    Examples
    --------
    >>> from kernpool.explorer.explorer_model import subject_of_generator
    >>> subject = subject_of_generator("make_sine_power", 0, None)
    >>> place = {"numeric": [2.5], "codes": []}
    >>> found = answer(subject, {"kind": "query", "query": place, "settings": {"bandwidth": [0.1]}})
    >>> found["reach"], round(found["effectiveSize"], 1)
    (50, 2.5)
    """
    kind = request.get("kind") if isinstance(request, Mapping) else None
    if not isinstance(kind, str) or kind not in ANSWERS:
        raise RequestError(f"a request must be of kind {' or '.join(ANSWERS)}, got {abbreviate(kind)}")
    settings = request.get("settings", {})
    if not isinstance(settings, Mapping):
        raise RequestError(f"settings must be a mapping, got {abbreviate(settings)}")
    model = model_at(subject.model, settings)
    if neighbors_of(model) is not None:
        raise RequestError("widths must be 'fixed' in a request: the page finds windows to the nearest rows itself")
    return ANSWERS[kind](subject, model, request)


def _curve(_: ExplorerModel, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    places = _numbers("places", request.get("places"), None)
    column = request.get("column", 0)
    numeric, codes = _query(model, request)
    if not isinstance(column, int) or not 0 <= column < numeric.shape[1]:
        raise RequestError(
            f"column must be an index of the {numeric.shape[1]} numeric columns, from 0, got {abbreviate(column)}"
        )
    queries = np.repeat(numeric, len(places), axis=0)
    queries[:, column] = places
    values = _pooled(model, queries, np.repeat(codes, len(places), axis=0))
    return {"value": [[_json(value) for value in output] for output in values.T]}


def _query(model: Any, request: Mapping[str, Any]) -> tuple[Array, Codes]:
    query = request.get("query")
    if not isinstance(query, Mapping):
        raise RequestError(f"query must have numbers and codes, got {abbreviate(query)}")
    return query_of(model, query.get("numeric"), query.get("codes", []))


def query_of(model: Any, numeric: Any, codes: Any) -> tuple[Array, Codes]:
    """Validate a query sent by the page, and return its numbers and category codes as arrays of one row.

    Parameters
    ----------
    model : fitted estimator
        Whose query.
    numeric : list of float
        One number per numeric column.
    codes : list of int
        One category code per categorical column; -1 for an unseen category, if the model accepts those.

    Returns
    -------
    numeric, codes : ndarray
        Of one row each.

    Raises
    ------
    RequestError
        If they are invalid.
    """
    numbers = _numbers("query", numeric, model.key_.shape[1])
    counts = [len(levels) for levels in model.encoding_.levels] if model.encoding_ is not None else []
    first = -1 if model.unseen == "unlike" else 0
    is_known = isinstance(codes, list) and len(codes) == len(counts) and all(isinstance(code, int) for code in codes)
    if not is_known or any(not first <= code < count for code, count in zip(codes, counts, strict=True)):
        raise RequestError(
            f"codes must be one category code per categorical column, of {counts} categories, got {abbreviate(codes)}"
        )
    return numbers[None, :], np.array(codes, dtype=np.int64).reshape(1, -1)


def _pooled(model: Any, queries: Array, codes: Codes) -> Array:
    """Return predictions at m queries, of shape (m, c); class probabilities for a classifier.

    NaN in empty windows that the model does not fill.
    """
    recipe = recipe_of(model)
    sums = pairs_of(model, codes if codes.shape[1] else None).reduce(recipe, queries)
    fit = sums.fit(recipe.ridge_weight(queries.shape[1]))
    values = fit.intercept
    if recipe.empty_value is None:
        values = fill_empty(values, fit.occupied, recipe.empty, sums.fill)
    else:  # without a warning: the page shows where
        values = np.where(fit.occupied[:, None], values, recipe.empty_value)
    if not hasattr(model, "classes_"):
        return values
    return mixed(np.clip(values, 0.0, 1.0), model.class_prior_, model.prior_share_)


def _one(subject: ExplorerModel, model: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    numeric, codes = _query(model, request)
    problem = pairs_of(model, codes if codes.shape[1] else None).problem(recipe_of(model), numeric)
    [(_, (weight,))] = weight_rows(problem)
    times = np.ones(subject.rows) if model.key_weight_ is None else model.key_weight_
    squares = np.sum(weight[times > 0] ** 2 / times[times > 0])
    heaviest = np.argsort(-weight, kind="stable")[:SHOWN_WEIGHTS]
    heaviest = heaviest[weight[heaviest] > 0]
    nearest = _nearest(model, numeric, times)
    slopes = fit_of(model, problem).slope[0] / model.bandwidth_[:, None] if model._degree else []
    return {
        "value": [_json(value) for value in _pooled(model, numeric, codes)[0]],
        "slope": [[_json(slope) for slope in column] for column in slopes] if model._degree else None,
        "effectiveSize": float(1.0 / squares) if squares else 0.0,
        "reach": int(np.count_nonzero(weight)),
        "nearest": {"row": nearest, "key": model.key_[nearest].tolist()},
        "rows": heaviest.tolist(),
        "weight": weight[heaviest].tolist(),
        "key": model.key_[heaviest].tolist(),
        "target": np.asarray(model.value_, dtype=np.float64).reshape(subject.rows, -1)[heaviest].tolist(),
    }


def _nearest(model: Any, query: Array, times: Array) -> int:
    """Return the index of the nearest row to the query, in units of bandwidths, among rows of positive weight."""
    square = np.zeros(len(model.key_))
    for a, h in enumerate(model.bandwidth_):
        square += ((model.key_[:, a] - query[0, a]) / h) ** 2
    return int(np.argmin(np.where(times > 0, square, np.inf)))


ANSWERS = {"curve": _curve, "query": _one}


def _numbers(name: str, given: Any, count: int | None, least: float = -math.inf) -> Array:
    """Validate a list of finite numbers above `least` sent by the page, and return it as an array.

    There must be `count` of them, or 1 to `LARGEST_REQUEST` if it is None.
    """
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise RequestError(f"{name} must be numbers, got {abbreviate(given)}") from None
    fits = numbers.ndim == 1 and (1 <= len(numbers) <= LARGEST_REQUEST if count is None else len(numbers) == count)
    if not fits:
        raise RequestError(
            f"{name} must be {f'1 to {LARGEST_REQUEST}' if count is None else count} numbers, got {abbreviate(given)}"
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers <= least):
        raise RequestError(f"{name} must be finite{' and positive' if least == 0.0 else ''}, got {abbreviate(given)}")
    if np.any(np.abs(numbers) > LARGEST):
        raise RequestError(f"{name} must be at most {LARGEST:g} in magnitude, got {abbreviate(given)}")
    return numbers


def _json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def thinned(rows: int) -> NDArray[np.intp] | None:
    """Return evenly spaced indices of the rows that a page draws; None if they are few, so that it draws all."""
    return None if rows <= EXACT_ROWS else np.linspace(0, rows - 1, DRAWN_ROWS).round().astype(np.intp)


HOST = "127.0.0.1"
LARGEST_BODY = 1 << 20
SECONDS = 30.0  # that a silent connection is kept
SECONDS_TO_SHOW_THE_TOKEN = 5.0  # in all, however slowly a request is sent
CONNECTIONS_WITHOUT_TOKEN = 32  # at once; a browser opens six


class ExplorerServer(ThreadingHTTPServer):
    """Local HTTP server of the page of one explorer and of the computations that it requests.

    Parameters
    ----------
    subject : ExplorerModel
        What is explored.
    port : int, default=0
        0 lets the system choose.
    language : {"en", "zh"} or None
        None follows the browser.

    Examples
    --------
    >>> from kernpool.explorer.explorer_model import subject_of_generator
    >>> with ExplorerServer(subject_of_generator("make_sine_power", 0, None)) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, subject: ExplorerModel, port: int = 0, language: str | None = None) -> None:
        self.subject = subject
        self.token = secrets.token_urlsafe(24)
        self._ticket: str | None = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._without_token: dict[socket.socket, float] = {}  # when each is to be closed; the oldest first
        super().__init__((HOST, port), _Handler)
        host, policy = f"serverHost({json_for_html(self.token)})", POLICY + "; connect-src 'self'"
        self.page = render_page(subject, language, thinned(subject.rows), host=host, policy=policy).encode()

    @property
    def url(self) -> str:
        """Address of the page, with the access token."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def address(self) -> str:
        """Address to open a browser with: it works once, and redirects to `url`."""
        return f"http://{HOST}:{self.server_port}/?once={self._ticket}"

    def redeem_ticket(self, ticket: str) -> bool:
        """Return whether a ticket (the secret in the one-time address) is valid, and invalidate it if so."""
        with self._lock:
            is_it = self._ticket is not None and secrets.compare_digest(ticket.encode(), self._ticket.encode())
            self._ticket = None if is_it else self._ticket
        return is_it

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection; if too many have not shown the access token, close the oldest of them."""
        with self._lock:
            self._without_token[request] = time.monotonic() + SECONDS_TO_SHOW_THE_TOKEN
            extra = len(self._without_token) - CONNECTIONS_WITHOUT_TOKEN
            self._hang_up([*self._without_token][: max(0, extra)])
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close connections that have not shown the access token in time."""
        super().service_actions()
        now = time.monotonic()
        with self._lock:
            self._hang_up([request for request, end in self._without_token.items() if end < now])

    def exempt_from_limits(self, request: Any) -> None:
        """Exempt a connection from the limits on connections that have not shown the access token."""
        with self._lock:
            self._without_token.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and no longer count it among those that have not shown the access token."""
        self.exempt_from_limits(request)  # it no longer counts towards the limit
        super().shutdown_request(request)

    def _hang_up(self, requests: list[socket.socket]) -> None:
        for request in requests:
            del self._without_token[request]
            with suppress(OSError):  # it may have been closed at the other end
                request.shutdown(socket.SHUT_RDWR)  # the thread that reads from it ends, and closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections that were closed or timed out; report others."""
        import sys

        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Request handler of `ExplorerServer`: sends the page, and the results of computations."""

    server: ExplorerServer
    timeout = SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the page to a client with the access token; redirect a client with the one-time ticket to the page."""
        if self.path.startswith("/?once="):
            if not self._is_elsewhere():
                self._let_in(self.path.removeprefix("/?once="))
            return
        if self._is_refused(given=self.path.removeprefix("/?token=")):
            return
        self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a request for a computation with JSON."""
        if self._is_refused(given=self.headers.get("X-Kernpool-Token", "")):
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/ask" or not re.fullmatch("[0-9]{1,9}", length) or int(length) > LARGEST_BODY:
            self._fail(HTTPStatus.BAD_REQUEST, f"a request must go to /ask, with up to {LARGEST_BODY} bytes of JSON")
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
        if self.server.redeem_ticket(ticket):
            self.server.exempt_from_limits(self.connection)
            self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", Location=self.server.url)
            return
        why = (
            "this address works once and has been used; open the one that kernpool explore printed, and if it was not "
            "you who used it, stop kernpool explore"
        )
        self._fail(HTTPStatus.FORBIDDEN, why)

    def _is_elsewhere(self) -> bool:
        """Return whether a request is for another host name, and reject it if so."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") in hosts:
            return False
        self._fail(HTTPStatus.MISDIRECTED_REQUEST, f"this is {HOST}:{self.server.server_port}")
        return True

    def _is_refused(self, given: str) -> bool:
        """Return whether a request is for another host name or has no valid access token, and reject it if so."""
        if self._is_elsewhere():
            return True
        if not secrets.compare_digest(given.encode(), self.server.token.encode()):
            self._fail(HTTPStatus.FORBIDDEN, "open the address that kernpool explore printed: it carries a token")
            return True
        self.server.exempt_from_limits(self.connection)
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
        """Log nothing, while the base class prints a line per request."""


def serve(
    subject: ExplorerModel,
    *,
    port: int = 0,
    language: str | None = None,
    started: Callable[[ExplorerServer], None] | None = None,
) -> None:
    """Serve the explorer's page on this machine until Ctrl-C.

    Parameters
    ----------
    subject : ExplorerModel
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
