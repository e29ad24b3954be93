"""Structured events over stdlib logging and structlog, which stay as they were."""

from __future__ import annotations

import ast
import inspect
import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from carrel import SandboxLogger
from carrel.audit import logger as module
from carrel.audit.logger import printable
from tests.requirements import requirement

NASTY = [
    "new\nline",
    "\r",
    "\x1b[31mred",
    "\u202eevil",
    "\u2066x",
    "caf\udce9",
    "\0",
    "\u2028",
    "\x85",
    "\x9b1m",
    "\x07",
]


class Lines(logging.Handler):
    """Keeps what a plain handler would print."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What the logger `tests.carrel` prints."""
    handler = Lines()
    logger = logging.getLogger("tests.carrel")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


@pytest.fixture
def logger(lines: Lines) -> SandboxLogger:
    """Ours, around the logger that `lines` listens to."""
    return SandboxLogger(logging.getLogger("tests.carrel"))


# stdlib


@requirement("LOG-11")
def test_an_event_is_one_line_for_people_and_fields_for_handlers(logger: SandboxLogger, lines: Lines) -> None:
    logger.log_event(
        "session.file.read", session_id="s", path="a b", size_bytes=5, recursive=True, nothing=None
    )
    (record,) = lines.records
    assert lines.lines == ['session.file.read session_id=s path="a b" size_bytes=5 recursive=True']
    assert (record.levelname, record.name) == ("INFO", "tests.carrel")
    fields = record.__dict__
    assert (fields["event"], fields["session_id"], fields["path"]) == ("session.file.read", "s", "a b")
    assert (fields["size_bytes"], fields["recursive"]) == (5, True)
    assert "nothing" not in fields


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a b", '"a b"'),
        ("x operation=write", '"x operation=write"'),
        ("a=b", '"a=b"'),
        ('x" operation="write', r'"x\" operation=\"write"'),
        ('x\\" operation=write', r'"x\\\" operation=write"'),
        ("new\nline", r'"new\nline"'),
        (r"new\nline", r'"new\\nline"'),
        ("", '""'),
        (["a b", "c"], "\"['a b', 'c']\""),
        (["a"], "['a']"),
        ("plain/ümlaut.txt", "plain/ümlaut.txt"),
    ],
)
def test_no_value_can_pass_for_another_field(
    logger: SandboxLogger, lines: Lines, path: object, shown: str
) -> None:
    logger.log_event("a.b", path=path, operation="read")
    assert lines.lines == [f"a.b path={shown} operation=read"]


@requirement("LOG-10")
def test_a_security_event_is_a_warning(logger: SandboxLogger, lines: Lines) -> None:
    logger.log_security_event("path_escape", session_id="s", path="../x", operation="read")
    assert lines.lines == ["security.path_escape session_id=s path=../x operation=read"]
    assert lines.records[0].levelname == "WARNING"


def test_an_event_tells_who_logged_it_not_the_logger_itself(logger: SandboxLogger, lines: Lines) -> None:
    logger.log_event("a.b")
    logger.log_security_event("c")
    assert [Path(record.pathname).name for record in lines.records] == [Path(__file__).name] * 2


@requirement("LOG-11")
def test_without_a_logger_events_go_to_carrel(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="carrel"):
        SandboxLogger().log_event("a.b", field=1)
        SandboxLogger(None).log_security_event("c")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("carrel", "a.b field=1"),
        ("carrel", "security.c"),
    ]


def test_what_is_below_the_level_is_not_logged(logger: SandboxLogger, lines: Lines) -> None:
    assert logger.wants_events()
    logging.getLogger("tests.carrel").setLevel(logging.WARNING)
    assert not logger.wants_events()
    logger.log_event("a.b")
    logger.log_security_event("c")
    assert lines.lines == ["security.c"]


def test_a_logger_of_ours_is_not_wrapped_again(logger: SandboxLogger) -> None:
    assert SandboxLogger.of(logger) is logger
    assert isinstance(SandboxLogger.of(logging.getLogger("tests.carrel")), SandboxLogger)
    assert isinstance(SandboxLogger.of(None), SandboxLogger)


# structlog


@requirement("LOG-11")
def test_structlog_gets_the_event_and_its_fields() -> None:
    with structlog.testing.capture_logs() as captured:
        logger = SandboxLogger(structlog.get_logger())
        assert logger.wants_events()
        logger.log_event("session.file.read", session_id="s", path="new\nline", size_bytes=5, nothing=None)
        logger.log_security_event("path_escape", path="../x")
    assert captured == [
        {
            "event": "session.file.read",
            "log_level": "info",
            "session_id": "s",
            "path": "new\\nline",
            "size_bytes": 5,
        },
        {"event": "security.path_escape", "log_level": "warning", "path": "../x"},
    ]


def test_what_structlog_prints_is_one_line_per_event() -> None:
    out = StringIO()
    logger = SandboxLogger(
        structlog.wrap_logger(
            structlog.PrintLogger(out), processors=[structlog.processors.KeyValueRenderer()]
        )
    )
    for value in NASTY:
        logger.log_event("a.b", path=value)
    assert len(out.getvalue().splitlines()) == len(NASTY)


# Nothing is set up


@requirement("LOG-11")
def test_nothing_of_stdlib_logging_is_changed() -> None:
    root, own = logging.getLogger(), logging.getLogger("carrel")

    def state() -> list[object]:
        return [
            (found.level, list(found.handlers), list(found.filters), found.propagate, found.disabled)
            for found in (root, own)
        ] + [logging.getLogRecordFactory(), logging.getLoggerClass(), logging.root.manager.disable]

    before = state()
    logger = SandboxLogger()
    logger.log_event("a.b", path="x")
    logger.log_security_event("c", path="x")
    assert state() == before


@requirement("LOG-11")
def test_nothing_of_structlog_is_changed() -> None:
    before = structlog.get_config()
    configured = structlog.is_configured()
    with structlog.testing.capture_logs():
        SandboxLogger(structlog.get_logger()).log_event("a.b")
    assert structlog.get_config() == before
    assert structlog.is_configured() == configured


def test_the_logger_calls_nothing_that_sets_logging_up() -> None:
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert called.isdisjoint(
        {"basicConfig", "addHandler", "setLevel", "configure", "dictConfig", "captureWarnings"}
    )


# Whatever the values hold


@pytest.mark.parametrize("value", NASTY)
def test_a_name_cannot_forge_a_line_or_move_the_cursor(
    logger: SandboxLogger, lines: Lines, value: str
) -> None:
    logger.log_event("a.b", path=f"before{value}after")
    logger.log_security_event("c", path=f"before{value}after")
    for line in lines.lines:
        assert line.isprintable()
        assert line.isascii()
        assert re.search(r"before\w*\\.*after", line)
    assert all(record.__dict__["path"].isprintable() for record in lines.records)


@pytest.mark.parametrize(
    "value",
    [
        Path("new\nline"),
        ["new\nline", "x"],
        ("new\nline",),
        ValueError("new\nline"),
        b"new\nline",
        {"new\nline": 1},
    ],
)
def test_a_value_that_is_no_text_is_one_line_too(logger: SandboxLogger, lines: Lines, value: object) -> None:
    logger.log_event("a.b", value=value)
    (line,) = lines.lines
    assert line.isprintable()
    assert "new" in line


@pytest.mark.parametrize(
    "name", ["name", "message", "args", "asctime", "event", "levelname", "exc_info", "msg"]
)
def test_a_field_of_any_name_is_logged(logger: SandboxLogger, lines: Lines, name: str) -> None:
    logger.log_event("a.b", **{name: "value"})
    logger.log_security_event("c", **{name: "value"})
    assert [line.split()[0] for line in lines.lines] == ["a.b", "security.c"]
    assert all("value" in line for line in lines.lines)
    with structlog.testing.capture_logs() as captured:
        SandboxLogger(structlog.get_logger()).log_event("a.b", **{name: "value"})
    assert captured[0]["event"] == "a.b"
    assert "value" in captured[0].values()


@pytest.mark.parametrize("text", ["%s%d", "{0}", "100%", "%(name)s"])
def test_a_value_is_never_a_format(logger: SandboxLogger, lines: Lines, text: str) -> None:
    logger.log_event("a.b", path=text)
    assert lines.lines == [f"a.b path={text}"]


@given(st.text())
def test_anything_becomes_printable_on_one_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert text.isprintable() == (shown == text)
