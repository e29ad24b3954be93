"""The table of attacks through HTTP: in addresses, percent-encoded once and twice, in queries and bodies.

Every row is tried in an address and in a body. Its places are tried besides, a third of them in an address
and a third in a query: behind all of these is the same gate, of which everything is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import pytest

from carrel.remote.json_codec import parse_error
from tests.attack.more import MORE
from tests.attack.operations import AWAY, NEW
from tests.attack.row import Row
from tests.attack.served import Served
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.test_every_operation import PARAMETERS
from tests.conformance.http_door import API, Http, Reply

pytestmark = pytest.mark.attack

FILES = f"{API}/sessions/ROOT/files"
OPERATIONS = f"{API}/sessions/ROOT/operations"
UNSPEAKABLE = ("", "\ud800")
"""What no address can name: the address of nothing is another one, and its bytes are not half a character."""


def encoded(path: str) -> str:
    """Each byte of *path* as a percent code, so that nothing on the way can take it for something else."""
    return "".join(f"%{byte:02X}" for byte in path.encode("utf-8", "surrogatepass"))


def spelled(path: str) -> str:
    """*path* as a careless client sends it: dots and slashes as they are."""
    return quote(path.encode("utf-8", "surrogatepass"), safe="/.~")


def _address(path: str) -> str:
    return f"{FILES}/{encoded(path)}"


def _bytes(reply: Reply) -> bytes:
    return _done(reply).body


def _done(reply: Reply) -> Reply:
    if reply.status >= HTTPStatus.BAD_REQUEST:
        raise parse_error(reply.json["error"])
    return reply


def _json(reply: Reply) -> Any:  # Any: whatever JSON can say
    return _done(reply).json if reply.body else None


def _names(entries: Any) -> tuple[str, ...]:
    return tuple(entry["path"] for entry in entries)


BY_ADDRESS: dict[str, Callable[..., object]] = {
    "read": lambda http, path: _bytes(http.request("GET", _address(path))),
    "write": lambda http, path, overwrite=True: _json(
        http.request("PUT", _address(path), NEW, None if overwrite else {"If-None-Match": "*"})
    ),
    "append": lambda http, path: _json(http.request("POST", _address(path), NEW)),
    "unlink": lambda http, path: _json(http.request("DELETE", _address(path))),
    "rmdir": lambda http, path: _json(http.request("DELETE", _address(path))),
    "rmtree": lambda http, path: _json(http.request("DELETE", _address(path) + "?recursive=true")),
    "rename": lambda http, path, target: _json(
        http.request("MOVE", _address(path), None, {"Destination": _address(target), "Overwrite": "F"})
    ),
    "copy": lambda http, path, target: _json(
        http.request("COPY", _address(path), None, {"Destination": _address(target), "Overwrite": "F"})
    ),
}
"""Paths that are part of the address."""


def _asked(name: str) -> Callable[..., Any]:
    return lambda http, **arguments: _json(http.post(f"{OPERATIONS}/{name}", arguments))


IN_A_BODY: dict[str, Callable[..., object]] = {
    "read": lambda http, path: _asked("read_text")(http, path=path, encoding="latin-1"),
    "write": lambda http, path, **options: _asked("write")(http, path=path, data=NEW.decode(), **options),
    "append": lambda http, path: _asked("append")(http, path=path, data=NEW.decode()),
    "stat": lambda http, path: _asked("stat")(http, path=path),
    "lstat": lambda http, path: _asked("stat")(http, path=path, follow_symlinks=False)["kind"],
    "readlink": lambda http, path: _asked("stat")(http, path=path, follow_symlinks=False)["kind"],
    "listdir": lambda http, path: _names(_asked("list")(http, path=path)),
    "mkdir": lambda http, path, **options: _asked("mkdir")(http, path=path, parents=False, **options),
    "mkdir_all": lambda http, path: _asked("mkdir")(http, path=path, exist_ok=True),
    "unlink": lambda http, path: _asked("remove")(http, path=path),
    "rmdir": lambda http, path: _asked("remove")(http, path=path),
    "rmtree": lambda http, path: _asked("remove")(http, path=path, recursive=True),
    "rename": lambda http, path, target: _asked("move")(http, source=path, target=target),
    "copy": lambda http, path, target: _asked("copy")(http, source=path, target=target),
    "copy_all": lambda http, path, target: _asked("copy")(http, source=path, target=target, recursive=True),
    "search": lambda http, path: _asked("search")(http, query="in", path=path)["matches"],
}
"""Paths that are in a document."""

IN_A_QUERY = (
    f"GET {FILES}?path={{}}",
    f"GET {FILES}?path={{}}&recursive=true&hidden=true",
    f"GET {FILES}?pattern={{}}&recursive=true",
    f"GET {API}/sessions/ROOT/search?query=what&path={{}}",
    f"GET {API}/sessions/ROOT/search?query=what&include={{}}",
    f"GET {API}/sessions/ROOT/archive?path={{}}",
    f"GET {API}/sessions/ROOT/archive?path={{}}&format=zip",
)
"""Requests with a path in their query."""
AS_ADDRESS = (
    *("GET", "HEAD", "PUT", "POST", "DELETE", "MOVE", "COPY"),
    "DELETE recursive",
)


def _rows(wanted: Callable[[Row], bool]) -> list[Any]:  # Any: pytest has no name for its parameters
    return [pytest.param(row, id=str(row), marks=marks(row.layout)) for row in (*ROWS, *MORE) if wanted(row)]


def _is_for_an_address(row: Row) -> bool:
    """Whether a request does just that; a file of any size may be read, and a mode cannot be asked for."""
    operation, arguments, options = row.request
    if operation not in BY_ADDRESS or "mode" in options or set(arguments) & set(UNSPEAKABLE):
        return False
    return (operation, row.layout) != ("read", "«sparse»")


def _is_for_a_body(row: Row) -> bool:
    """Whether an operation does just that; half a character is refused as no JSON."""
    return row.request.operation in IN_A_BODY and "\ud800" not in row.request.arguments


@pytest.mark.parametrize("row", _rows(_is_for_an_address))
def test_every_row_ends_as_required_with_the_path_in_the_address(
    row: Row, served: Served, http: Http
) -> None:
    _end_as_required(row, BY_ADDRESS, served, http)


@pytest.mark.parametrize("row", _rows(_is_for_a_body))
def test_every_row_ends_as_required_with_the_path_in_the_body(row: Row, served: Served, http: Http) -> None:
    _end_as_required(row, IN_A_BODY, served, http)


def _end_as_required(
    row: Row, operations: dict[str, Callable[..., object]], served: Served, http: Http
) -> None:
    operation, arguments, options = row.request
    served.lay_out(row.layout)
    before = served.world.contents()
    paths = tuple(served.world.fill(path) for path in arguments)
    outcome = served.attempt(lambda: operations[operation](http, *paths, **options), *paths)
    assert outcome.names & row.endings, f"{row.call} must end in {row.required}, not {outcome}"
    if not outcome.ok:
        assert served.world.contents() == before, "refused, and yet the workspace was changed"
    elif row.leaves is not None:
        assert served.world.contents() == served.world.expected(row.leaves)


@pytest.mark.parametrize("place", PARAMETERS[::3])
def test_no_address_reaches_out_however_it_is_spelled(
    place: tuple[str, str], served: Served, http: Http
) -> None:
    """Encoded once and twice, and with dots and slashes as they are; each method takes turns with these."""
    layout, path = place
    served.lay_out(layout, prepared=True)
    asked = served.world.fill(path)
    before = served.world.contents()
    spellings = (encoded(asked), quote(encoded(asked)), spelled(asked))
    for number, method in enumerate(AS_ADDRESS, len(layout + path)):
        _send(served, http, method, f"{FILES}/{spellings[number % 3]}", asked)
        if served.world.contents() != before:
            served.lay_out(layout, prepared=True)


@pytest.mark.parametrize("place", PARAMETERS[1::3])
def test_no_query_reaches_out(place: tuple[str, str], served: Served, http: Http) -> None:
    """Encoded once; and one request in so many twice."""
    layout, path = place
    served.lay_out(layout)
    asked = served.world.fill(path)
    for number, template in enumerate(IN_A_QUERY, len(layout + path)):
        if layout == "«sparse»" and "archive" in template:
            continue  # all of it would be packed
        spelling = quote(encoded(asked)) if number % len(IN_A_QUERY) == 0 else encoded(asked)
        method, _, target = template.format(spelling).partition(" ")
        _send(served, http, method, target, asked)


def _send(served: Served, http: Http, method: str, target: str, asked: str) -> None:
    """Send a request, and fail if it touches or tells anything outside, or breaks the service."""
    method, _, option = method.partition(" ")
    headers = {"Destination": _address(AWAY)} if method in ("MOVE", "COPY") else {}
    body = NEW if method in ("PUT", "POST") else None
    reply = http.request(method, target + (f"?{option}=true" if option else ""), body, headers)
    try:
        is_busy = reply.status == HTTPStatus.SERVICE_UNAVAILABLE and b'"path.busy"' in reply.body
        assert reply.status < HTTPStatus.INTERNAL_SERVER_ERROR or is_busy, reply.body
        served.require_silence(reply.body, asked)
        served.require_silence(repr(reply.headers), asked)
        served.world.require_untouched()
    except AssertionError as error:
        error.add_note(f"{method} {target[:200]}: {reply.status}")
        raise
