"""The server of `kernpool explore`: for this machine, for who has the token, and alive whatever it is sent."""

import contextlib
import http.client
import json
import socket
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernpool import NadarayaWatsonRegressor, explore
from kernpool.explorer.server import CONNECTIONS_WITHOUT_TOKEN, HOST, LARGEST_BODY, ExplorerServer, RequestError, answer

X = np.linspace(0.0, 1.0, 50)[:, None]
MODEL = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, np.sin(6 * X[:, 0]))
SUBJECT = explore(MODEL).subject
QUESTION = {"kind": "curve", "places": [0.25, 0.5], "query": {"numeric": [0.0]}, "settings": {"bandwidth": [0.05]}}
NO_NUMBERS = json.dumps(QUESTION | {"places": ["x"]})


@pytest.fixture(scope="module")
def server():
    with ExplorerServer(SUBJECT) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def question(server, body, **headers):
    status, answer, _ = ask(server, "POST", "/ask", body, **({"X-Kernpool-Token": server.token} | headers))
    return status, json.loads(answer)


def test_the_page_is_for_who_knows_the_token(server):
    assert server.server_address[0] == "127.0.0.1"
    status, page, headers = ask(server, "GET", f"/?token={server.token}")
    assert (status, headers["Cache-Control"], headers["Referrer-Policy"]) == (200, "no-store", "no-referrer")
    assert b"serverHost(" in page
    for path in ("/", "/?token=", "/?token=wrong", "/other", f"/?token={server.token}x"):
        status, answer, _ = ask(server, "GET", path)
        assert status == 403
        assert server.token.encode() not in answer


def test_the_address_of_a_command_line_works_once(server):
    root = server.address.removeprefix(f"http://{HOST}:{server.server_port}")
    assert server.token not in root
    assert ask(server, "GET", root + "x")[0] == 403
    assert ask(server, "GET", "/?once=")[0] == 403
    assert ask(server, "GET", root, Host="evil.example")[0] == 421
    status, body, headers = ask(server, "GET", root)
    assert (status, body, headers["Location"], headers["Referrer-Policy"]) == (303, b"", server.url, "no-referrer")
    status, answer, headers = ask(server, "GET", root)
    assert (status, headers["Location"]) == (403, None)
    assert server.token.encode() not in answer
    assert b"has been used" in answer
    assert ask(server, "GET", "/?once=None")[0] == 403


def test_a_rebound_name_is_refused(server):
    port = server.server_port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert ask(server, "GET", f"/?token={server.token}", Host=host)[0] == 421
        assert question(server, json.dumps(QUESTION), Host=host)[0] == 421
    assert ask(server, "GET", f"/?token={server.token}", Host=f"localhost:{server.server_port}")[0] == 200


def test_answers_are_those_of_the_engine(server):
    status, answer = question(server, json.dumps(QUESTION))
    fitted = NadarayaWatsonRegressor(bandwidth=0.05).fit(X, np.sin(6 * X[:, 0]))
    assert status == 200
    assert answer["value"][0] == fitted.predict([[0.25], [0.5]]).tolist()


NUMBERS = st.floats() | st.sampled_from([True, 0, -1, 5e-324, 1e200, 10**400, "1", "x", None, [], {}])
ANYTHING = st.recursive(
    NUMBERS | st.text(max_size=3) | st.sampled_from(["curve", "query", "boxcar", "product", 1, 2]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
PARTS = [
    *((name,) for name in ("kind", "settings", "query", "places", "column")),
    *(("settings", name) for name in ("kernel", "bandwidth", "composition", "degree", "smoothing", "ridge")),
    *(("query", name) for name in ("numeric", "codes")),
]


@settings(max_examples=150, deadline=None, database=None)
@given(
    st.sampled_from(["curve", "query"]), st.sampled_from(PARTS), ANYTHING | st.lists(NUMBERS, min_size=1, max_size=1)
)
def test_any_json_is_answered_or_refused(kind, part, anything):
    request = json.loads(json.dumps(QUESTION | {"kind": kind, "column": 0}))
    inner = request
    for name in part[:-1]:
        inner = inner[name]
    inner[part[-1]] = anything
    with contextlib.suppress(RequestError):
        json.dumps(answer(SUBJECT, request), allow_nan=False)


def connect(server, said=b"GET /?token="):
    """Return a connection that stops in the middle of its first line."""
    connection = socket.create_connection((HOST, server.server_port), timeout=20)
    connection.sendall(said)
    return connection


def dribble(connection):
    """Send a first line letter by letter, for at least twenty seconds unless the server closes the connection."""
    for _ in range(10_000):
        connection.sendall(b"x")
        time.sleep(0.002)


def is_open(connection):
    """Whether the server has not closed a connection that it sends nothing on."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_connections_without_the_token_are_few(server, monkeypatch):
    monkeypatch.setattr("kernpool.explorer.server.SECONDS_TO_SHOW_THE_TOKEN", 600.0)  # however busy the machine
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(
            contextlib.closing(http.client.HTTPConnection(HOST, server.server_port, timeout=20))
        )
        owner.request("GET", f"/?token={server.token}")
        owner.getresponse().read()
        strangers = [stack.enter_context(connect(server)) for _ in range(3 * CONNECTIONS_WITHOUT_TOKEN)]
        assert question(server, json.dumps(QUESTION))[0] == 200  # newer ones are let in
        for old in strangers[:-CONNECTIONS_WITHOUT_TOKEN]:
            old.settimeout(20)
            with contextlib.suppress(ConnectionError):
                assert old.recv(1) == b""  # waits until it is closed
        assert sum(map(is_open, strangers)) in (CONNECTIONS_WITHOUT_TOKEN - 1, CONNECTIONS_WITHOUT_TOKEN)
        owner.request("GET", f"/?token={server.token}")  # on the connection of before, which is older than all of them
        assert owner.getresponse().status == 200


def test_a_token_that_takes_long_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr("kernpool.explorer.server.SECONDS_TO_SHOW_THE_TOKEN", 0.2)
    with connect(server) as silent, connect(server) as slow:
        with pytest.raises(ConnectionError):
            dribble(slow)
        with contextlib.suppress(ConnectionError):
            assert silent.recv(1) == b""  # waits until it is closed


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", "\xff", '{"kind": []}', "[" * 100_000, '{"kind": "curve"}', NO_NUMBERS]
)
def test_what_is_no_question_gets_a_reason(server, body):
    status, answer = question(server, body.encode("latin-1"))
    assert status == 400
    assert answer["error"]
    assert question(server, json.dumps(QUESTION))[0] == 200


def test_other_addresses_are_refused(server):
    assert question(server, json.dumps(QUESTION), **{"X-Kernpool-Token": "wrong"})[0] == 403
    token = {"X-Kernpool-Token": server.token}
    assert ask(server, "POST", "/other", "{}", **token)[0] == 400
    assert ask(server, "POST", "/ask", "{}", **token, **{"Content-Length": str(LARGEST_BODY + 1)})[0] == 400
    for length in ("-1", "+2", "2.0", "\u00b2", "0x2", "7" * 5000):
        assert ask(server, "POST", "/ask", "{}", **token, **{"Content-Length": length})[0] == 400
    assert ask(server, "PUT", "/ask", "{}", **token)[0] == 501


def test_a_fault_of_the_engine_is_told_and_survived(server, monkeypatch):
    import kernpool.explorer.server as module

    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(module, "answer", fail)
    status, answer = question(server, json.dumps(QUESTION))
    assert (status, answer["error"]) == (500, "MemoryError: no room")
    monkeypatch.undo()
    assert question(server, json.dumps(QUESTION))[0] == 200
