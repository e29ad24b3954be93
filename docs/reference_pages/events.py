"""The page about log events and records of the journal."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from carrel.audit.event import UNDONE, Event, digest_of
from carrel.audit.logger import PATH_CHARACTERS, PATHS, complete_fields, start_fields
from carrel.errors import (
    AccessError,
    CommandDeniedError,
    IntoItselfError,
    PathError,
    QuotaError,
    ShellSyntaxError,
)
from carrel.fronts.grpc.call_log import CallLog
from carrel.fronts.http.access_log import _AccessLogRecord
from carrel.fronts.request_log import LOGGER
from carrel.fs.api import Cause
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import SandboxResult
from carrel.shell.runtime.execution import CODE_USAGE
from docs.reference_pages.errors import coded, quota_cases
from docs.reference_pages.log_calls import LogEvent, log_events
from docs.reference_pages.markdown import codes, page, table
from docs.reference_pages.source import field_words, first_arguments, sources

MEANINGS = {
    "certificate.failed": "The certificate of the service or its key (`serve.tls_cert`, `serve.tls_key`)"
    " cannot be used; the old ones stay.",
    "certificate.reloaded": "The certificate and its key were read again, on SIGHUP.",
    "execution.complete": f"Guest code has ended. Of each list of paths the first {PATHS}"
    f" are logged, each truncated to {PATH_CHARACTERS} characters.",
    "execution.start": "Guest code starts; the fields are the limits of its policy. Values of variables are"
    " not logged.",
    "execution.tool": "Guest code called a function of the program; `error` is the type of the exception, or"
    " `CancelledError` if the run was stopped in the meantime. Arguments and results are not logged.",
    "grpc.failed": "A bug in carrel in a call over gRPC.",
    "http.failed": "A bug in carrel in a request over HTTP; `request_id` is the one that the client got.",
    "issuer.failed": "The keys of the issuer of tokens (`serve.jwt_jwks`) could not be read; the old ones"
    " stay.",
    "mcp.failed": "A bug in carrel in a request over MCP.",
    "runtime.compiling": "A call has to wait until the guest is compiled.",
    "runtime.confined": "Guest code is about to run for the first time: the version of Landlock (0: none)"
    " and whether there is seccomp, which confine its processes.",
    "security.*": "An operation was refused; see [refusals](#refusals).",
    "security.caller": "The service rejected an unknown caller; `reason` says why.",
    "security.journal_lost": "An operation succeeded, but could not be recorded in the journal.",
    "service.upkeep_failed": "A bug in carrel in periodic work of the service; the service continues.",
    "session.container.left": "A container could not be removed; the next sweep tries again. `detail` is"
    " the message of the engine.",
    "session.container.removed": "The container of a deleted session was removed.",
    "session.created": "A session was created.",
    "session.deleted": "A session was deleted with its files.",
    "session.file.append": "Data was appended to a file; the size is that of the whole file.",
    "session.file.archive": "A directory or a file is exported as an archive.",
    "session.file.copy": "A file or a directory was copied.",
    "session.file.delete": "A file, a link or a directory was removed.",
    "session.file.edit": "A text in a file was replaced; the size is that of the whole file.",
    "session.file.extract": "An archive was extracted; its members have events of their own.",
    "session.file.link": "A link was created, by an extraction.",
    "session.file.list": "A directory was listed or walked, or files were found by a pattern.",
    "session.file.mkdir": "A directory was created.",
    "session.file.move": "An entry was moved or renamed.",
    "session.file.read": "A file was read; the size is that of the data, or of the file if it is read in"
    " pieces.",
    "session.file.search": "Files were searched.",
    "session.file.touch": "The time of a file or a directory was set.",
    "session.file.write": "A file was written.",
    "session.prune.candidate": "A sweep found an expired session.",
    "session.prune.completed": "A sweep has ended, with its totals.",
    "session.prune.deleted": "A sweep deleted a session.",
    "session.prune.error": "A sweep could not delete a session.",
    "session.prune.skipped": "A sweep kept a session: `in_use`, `no_metadata`, or the problem of its record.",
    "session.prune.started": "A sweep starts.",
    "session.recounted": "The files of a session were counted again, after a crash or on request.",
    "session.retrieved": "An existing session was opened.",
    "shell.failed": "A bug in carrel in a command line that ran in a worker process; `place` is where.",
    "shell.rejected": "A command line has a syntax error, names an unknown command, or gives a command"
    " invalid arguments; see [refusals](#refusals). `path` is the line, or the name of the command.",
    "tool.failed": "A bug in carrel in a tool; the agent got an answer that says that it failed.",
}
"""When each event is written."""

OPERATIONS = {
    "append": ("Data was appended to a file.", ""),
    "copy": ("A file was copied from `path`.", "the new file"),
    "edit": ("A text in a file was replaced.", ""),
    "link": ("A link was created.", "the text of the link"),
    "mkdir": ("A directory was created, also as a parent of the requested one.", ""),
    "move": ("An entry was moved or renamed.", "the new name"),
    "remove": ("A file, a link, or a directory with its content was removed.", ""),
    "touch": ("The time of a file or a directory was set.", ""),
    "write": ("A file was written, or replaced.", ""),
}
"""What each operation in a journal means, and what its other path is."""


def make() -> str:
    """The page."""
    return page(
        "Events",
        """
        Log events are for the operator; [logging](../how-to/logging.md) shows how to receive them. Records of
        the journal list the changes and refusals of one session, and are stored with it;
        [the journal](../explanation/journal.md) explains how.
        """,
        "## Log events",
        """
        They go to the stdlib logger `carrel`, or to the logger that was passed. The name is `record.event`,
        each field an attribute of the record; with structlog they are the event and its values. A field
        without a value is omitted. `path` is the path as the caller wrote it. For a bug in carrel, `error`
        and `place` are the class of the exception and where it was raised, never its message.
        """,
        table(("event", "level", "fields", "when"), [event_row(event) for event in all_events()]),
        "## Refusals",
        f"""
        An operation refused by the rules, the quota or confinement is logged as the warning `security.`
        with the code of the [error](errors.md), with `_` for its dot: {codes(refusals())}. A command line
        that is refused or stopped is logged in the same way with the operation `shell`, and a command that
        may not change the rules with `workspace`. The same refusal within ten seconds is logged once, and
        then once more with the number of `repeats`.

        Mistakes are no security events. They are logged as `shell.rejected` at level info, with a `code`:
        `{ShellSyntaxError.code}` for a line that cannot be parsed, `{CommandDeniedError.code}` for a command
        that does not exist, and `{CODE_USAGE}` for invalid options or arguments. The first two are also in
        the journal. A rejected shell operator and a command that exists but is not allowed are refusals:
        `security.shell_metacharacter`, `security.shell_command`.

        A service counts both since its start, also those that are not logged: `carrel_refusals_total` and
        `carrel_mistakes_total` in `/metrics`, with the label `code`. Refusals in a worker process that was
        killed are not counted.
        """,
        "## Requests",
        f"""
        A service writes one line of JSON for each request to the logger `{LOGGER}`. The content of queries,
        headers and bodies is not logged.
        """,
        table(("event", "fields"), [(f"`{name}`", codes(names)) for name, names in requests()]),
        "## Records of the journal",
        "`Workspace.changes`, `carrel session show --journal` and the service return these fields:",
        table(("field", "type", "meaning"), list(record_rows())),
        table(
            ("operation", "meaning", "`other_path`"),
            [(f"`{name}`", *OPERATIONS[name]) for name in operations()],
        ),
        f"""
        The record of a refusal has the code of the error, and its operation may also be one that is not
        recorded on success: {codes(sorted(refused_operations() - set(operations())))}. A change that did
        not happen is followed by the same record with the error `{UNDONE}`.

        In a file of the journal a record is one line, a JSON array in ASCII: the format version, 2, its
        `sequence`, the sequence number and the digest of the previous record of the same kind (change or
        refusal), the fields from `time_ns` to `error` in the order above, then `repeats` if there are any.
        """,
        f"```json\n{example().render(214, 213, digest_of(b'')).decode()}\n```",
    )


def all_events() -> list[LogEvent]:
    """All events: those logged by a literal name, and those of an execution."""
    result = SandboxResult(
        success=True,
        stdout="",
        stderr="",
        exit_code=0,
        fuel_consumed=None,
        memory_used_bytes=None,
        duration_ms=0,
        files_created=[],
        files_modified=[],
        files_deleted=[],
        workspace_path="",
        metadata={},
    )
    both = ("session_id", "runtime")
    executions = [
        LogEvent(name="execution.complete", level="info", fields=(*both, *complete_fields(result))),
        LogEvent(name="execution.start", level="info", fields=(*both, *start_fields(ExecutionPolicy()))),
    ]
    return sorted([*executions, *log_events().values()], key=lambda event: event.name)


def event_row(event: LogEvent) -> tuple[str, ...]:
    """A row for one event."""
    return f"`{event.name}`", event.level, codes(event.fields), MEANINGS[event.name]


def refusals() -> Iterator[str]:
    """The events of what the gate refuses."""
    for code, kind in coded():
        if issubclass(kind, PathError | AccessError | QuotaError) and kind is not IntoItselfError:
            area, _, case = code.partition(".")
            cases = quota_cases() if case == "*" else [case]
            yield from (f"security.{area}_{each}" for each in cases)


def requests() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The fields of the access log for a request over HTTP and a call over gRPC."""
    yield str(_AccessLogRecord.__struct_config__.tag), _AccessLogRecord.__struct_fields__
    call = CallLog(method="", peer=None)._line()
    yield str(call.pop("event")), tuple(call)


def record_rows() -> Iterator[tuple[str, ...]]:
    """A row for each field of a record."""
    types = inspect.get_annotations(Event)
    for name, words in field_words(Event).items():
        yield f"`{name}`", f"`{types[name]}`", words


def operations() -> list[str]:
    """The operations of changes in a journal."""
    found = {Cause().operation}
    for text in sources():
        found.update(first_arguments(text, Cause.__name__))
        found.update(first_arguments(text, "account.record"))
    return sorted(found)


def refused_operations() -> set[str]:
    """The operations of refusals in a journal."""
    found: set[str] = set()
    for text in sources():
        found.update(first_arguments(text, "gated"))
        found.update(first_arguments(text, "refused"))
    return found


def example() -> Event:
    """An example of a record."""
    return Event(
        time_ns=1_767_225_600_000_000_000,
        session_id="s1",
        actor="host",
        operation="write",
        path="notes/today.txt",
        before_bytes=None,
        after_bytes=5,
    )
