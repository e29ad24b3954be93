"""What a client is told of an error."""

from __future__ import annotations

import logging

import pytest
from mcp.shared.exceptions import MCPError

from carrel.audit.logger import SandboxLogger
from carrel.errors import BusyError, CarrelError, DiskError, MissingError
from carrel.fronts.mcp.responses import mcp_error


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        (MissingError("no such file: 'a'", path="a"), -32602, False),
        (DiskError("the disk failed"), -32603, False),
        (BusyError("later", path="a"), -32603, True),
    ],
)
def test_our_errors_say_what_they_say_everywhere(error: CarrelError, code: int, retry: bool) -> None:
    told = mcp_error(error, "tools/list", SandboxLogger())
    assert (told.code, told.message) == (code, error.message)
    assert told.data == {"code": error.code, "message": error.message, "path": error.path, "retry": retry}


def test_errors_of_the_protocol_stay_as_they_are() -> None:
    error = MCPError(-32601, "no such method")
    assert mcp_error(error, "x", SandboxLogger()) is error


def test_a_mistake_of_ours_is_logged_without_its_words_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "carrel"):
        try:
            raise OSError("/home/somebody/secret")
        except OSError as error:
            told = mcp_error(error, "resources/read", SandboxLogger())
    assert (told.code, told.message, told.data) == (-32603, "Internal server error", None)
    assert "request=resources/read error=OSError place=tests.fronts.mcp.test_errors" in caplog.text
    assert "secret" not in caplog.text
