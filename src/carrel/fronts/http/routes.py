"""The table of all routes; router, OpenAPI description and documentation are generated from it."""

from __future__ import annotations

from functools import partial
from typing import Any

from carrel.fronts.http.handlers import (
    archives,
    changes,
    executions,
    files,
    operations,
    sessions,
    status,
    tools,
)
from carrel.fronts.http.handlers.server_sent_events import MEDIA_TYPE
from carrel.fronts.http.router import BodySpec, Handler, HeaderSpec, ResponseSpec, Route
from carrel.service.sessions.info import SessionInfo, SessionPage
from carrel.tools.core.formats import RESULT_SCHEMA
from carrel.values import FileInfo, SearchResult
from carrel.workspace.archive.extract import Extracted

API = "/api/v1"
SESSIONS = f"{API}/sessions"
SESSION = f"{SESSIONS}/{{session_id}}"
FILE = f"{SESSION}/files/{{path*}}"

PATH_ERRORS = (
    "access.outside",
    "path.escape",
    "path.invalid",
    "path.is_directory",
    "path.missing",
    "path.permission",
    "limit.read_bytes",
)
CHANGE_ERRORS = (
    *PATH_ERRORS,
    "access.denied",
    "disk.full",
    "limit.file_bytes",
    "path.busy",
    "path.changed",
    "path.exists",
    "quota.disk_bytes",
)
RUN_ERRORS = ("limit.executions", "path.missing", "runtime.disabled", "runtime.missing")

ANY_BYTES = BodySpec(media_types=("application/octet-stream",))
ANY_TYPE = BodySpec(media_types=("*/*",))
STREAM = BodySpec(schema={"type": "string"}, media_types=(MEDIA_TYPE,))
ANY_JSON = BodySpec(schema={})
TOOL_RESULT = BodySpec(
    schema={"title": "ToolResult", "description": "The result of a tool.", **RESULT_SCHEMA}
)
FLAT_TOOL = BodySpec(
    schema={
        "title": "ToolCallBody",
        "description": "The name of a tool, and its arguments as further fields.",
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "profile": {"type": "string"},
            "context": {"type": "object", "properties": {"role": {"type": ["string", "null"]}}},
        },
        "required": ["tool"],
        "additionalProperties": True,
    }
)
TOOL_LIST = BodySpec(
    schema={
        "title": "ToolList",
        "description": "The definitions of tools, in the requested format.",
        "type": "object",
        "properties": {"tools": {"type": "array", "items": {"type": "object", "additionalProperties": True}}},
        "required": ["tools"],
    }
)

IF_MATCH = HeaderSpec(name="If-Match", meaning="The required version of the file, or `*` for any.")
NEW_ONLY = HeaderSpec(
    name="If-None-Match",
    meaning="`*`: only if the file does not exist yet.",
    schema={"type": "string", "const": "*"},
)
IF_NONE_MATCH = HeaderSpec(name="If-None-Match", meaning="Versions that the client has already.")
RANGE = HeaderSpec(name="Range", meaning="One range of the file, as in `bytes=0-1023`.")
IF_RANGE = HeaderSpec(
    name="If-Range", meaning="The version that the range must be of; otherwise the whole file is sent."
)
DESTINATION = HeaderSpec(
    name="Destination", meaning="The URL of a file of the same session, or a path of its workspace."
)
OVERWRITE = HeaderSpec(
    name="Overwrite",
    meaning="`T` to replace an existing target; `F` by default.",
    schema={"type": "string", "enum": ["T", "F"]},
)
LAST_EVENT = HeaderSpec(
    name="Last-Event-ID", meaning="The last event that was received, to continue after it."
)


def _reply(
    meaning: str,
    *contents: BodySpec | Any,  # Any: a type of JSON documents, which has no type of its own
    status: int = 200,
    headers: tuple[str, ...] = (),
) -> ResponseSpec:
    """Describe a response; a type stands for a JSON document."""
    bodies = tuple(each if isinstance(each, BodySpec) else BodySpec(schema=each) for each in contents)
    return ResponseSpec(status=status, meaning=meaning, contents=bodies, headers=headers)


def _route(
    group: str,
    name: str,
    method: str,
    path: str,
    handler: Handler,
    summary: str,
    *replies: ResponseSpec,
    **options: Any,  # Any: the other fields of a route
) -> Route:
    return Route(
        name=name,
        method=method,
        path=path,
        summary=summary,
        handler=handler,
        replies=replies,
        group=group,
        **options,
    )


NO_CONTENT = _reply("Done.", status=204)
SESSION_REPLY = _reply("The session.", SessionInfo)
FILE_REPLY = _reply("The properties of the file.", FileInfo, headers=("ETag",))
TOOL_REPLIES = (
    _reply(
        "The result of the tool, also if it failed; with `Accept: text/event-stream` the events `stdout` and"
        " `stderr` while commands or code run, and then `result`, whatever the result.",
        TOOL_RESULT,
        STREAM,
    ),
    _reply("The role has no such tool.", TOOL_RESULT, status=404),
)
READ_HEADERS = ("ETag", "Vary", "Accept-Ranges", "Content-Disposition", "Carrel-Info")

_session = partial(_route, "sessions")
_file = partial(_route, "files")
_tool = partial(_route, "tools")
_execution = partial(_route, "execution")
_service = partial(_route, "service")

ROUTES: tuple[Route, ...] = (
    _session(
        "create_session",
        "POST",
        SESSIONS,
        sessions.create,
        "Create a session",
        _reply("The new session.", SessionInfo, status=201, headers=("Location",)),
        body=BodySpec(schema=sessions.NewSessionBody, is_required=False),
        errors=("limit.sessions", "session.exists", "session.invalid_id"),
    ),
    _session(
        "list_sessions",
        "GET",
        SESSIONS,
        sessions.list_page,
        "List the caller's sessions",
        _reply("A page of sessions.", SessionPage),
        query=sessions.PageQuery,
        errors=("session.invalid_id",),
    ),
    _session("get_session", "GET", SESSION, sessions.show, "Inspect a session", SESSION_REPLY),
    _session(
        "ensure_session",
        "PUT",
        SESSION,
        sessions.ensure,
        "Create a session unless it exists",
        SESSION_REPLY,
        errors=("limit.sessions",),
    ),
    _session(
        "delete_session", "DELETE", SESSION, sessions.delete, "Delete a session with its files", NO_CONTENT
    ),
    _session(
        "extend_session",
        "POST",
        f"{SESSION}/extend",
        sessions.extend,
        "Set the idle lifetime of a session",
        SESSION_REPLY,
        body=BodySpec(schema=sessions.ExtendBody),
    ),
    _session(
        "reset_session",
        "POST",
        f"{SESSION}/reset",
        sessions.reset,
        "Delete all files of a session",
        NO_CONTENT,
        errors=("path.busy",),
    ),
    _file(
        "read_file",
        "GET",
        FILE,
        files.read,
        "Read a file, or a range of it",
        _reply(
            "The content of the file; an envelope for a client that prefers `application/json` to"
            " `application/octet-stream` and to the type of the file.",
            ANY_TYPE,
            files.Envelope,
            headers=READ_HEADERS,
        ),
        _reply("The requested range.", ANY_TYPE, status=206, headers=(*READ_HEADERS, "Content-Range")),
        _reply("The client has this version already.", status=304, headers=("ETag",)),
        query=files.ReadQuery,
        headers=(IF_NONE_MATCH, RANGE, IF_RANGE),
        errors=(*PATH_ERRORS, "path.changed"),
        is_lasting=True,
    ),
    _file(
        "write_file",
        "PUT",
        FILE,
        files.write,
        "Write a file atomically",
        FILE_REPLY,
        _reply("The new file, if it had to be new.", FileInfo, status=201, headers=("ETag",)),
        query=files.WriteQuery,
        headers=(IF_MATCH, NEW_ONLY),
        body=ANY_BYTES,
        errors=CHANGE_ERRORS,
        is_lasting=True,
    ),
    _file(
        "append_file",
        "POST",
        FILE,
        files.append,
        "Append to a file",
        FILE_REPLY,
        headers=(IF_MATCH,),
        body=ANY_BYTES,
        errors=CHANGE_ERRORS,
        is_lasting=True,
    ),
    _file(
        "remove_file",
        "DELETE",
        FILE,
        files.remove,
        "Remove a file, a link or a directory",
        NO_CONTENT,
        query=files.RemoveQuery,
        headers=(IF_MATCH,),
        errors=(*CHANGE_ERRORS, "path.not_empty"),
    ),
    _file(
        "move_file",
        "MOVE",
        FILE,
        files.move,
        "Move a file or a directory",
        NO_CONTENT,
        headers=(DESTINATION, OVERWRITE, IF_MATCH),
        errors=CHANGE_ERRORS,
    ),
    _file(
        "copy_file",
        "COPY",
        FILE,
        files.copy,
        "Copy a file or a directory",
        NO_CONTENT,
        query=files.CopyQuery,
        headers=(DESTINATION, OVERWRITE),
        errors=CHANGE_ERRORS,
    ),
    _file(
        "list_files",
        "GET",
        f"{SESSION}/files",
        files.list_entries,
        "List a directory",
        _reply("The entries of the directory.", files.Entries),
        query=files.ListQuery,
        errors=(*PATH_ERRORS, "path.not_directory", "pattern.invalid"),
    ),
    _file(
        "search_files",
        "GET",
        f"{SESSION}/search",
        operations.search,
        "Find lines in files",
        _reply("The matches.", SearchResult),
        query=operations.SearchQuery,
        errors=(*PATH_ERRORS, "pattern.invalid"),
    ),
    _route(
        "operations",
        "operation",
        "POST",
        f"{SESSION}/operations/{{operation}}",
        operations.run,
        "Run one operation of a workspace",
        _reply("The result of the operation.", ANY_JSON),
        body=ANY_JSON,
        errors=(*CHANGE_ERRORS, "edit.missing", "path.not_empty", "text.encoding", "request.unknown"),
    ),
    _route(
        "archives",
        "pack",
        "GET",
        f"{SESSION}/archive",
        archives.pack,
        "Download a directory as an archive",
        _reply(
            "The archive.",
            BodySpec(media_types=tuple(archives.MEDIA_TYPES.values())),
            headers=("Content-Disposition",),
        ),
        query=archives.PackQuery,
        errors=PATH_ERRORS,
        is_lasting=True,
    ),
    *(
        _route(
            "archives",
            name,
            method,
            f"{SESSION}/archive",
            archives.extract,
            "Extract an archive, all of it or nothing",
            _reply("The extracted members.", Extracted),
            query=archives.ExtractQuery,
            body=ANY_BYTES,
            errors=(*CHANGE_ERRORS, "archive.invalid", "limit.uploads"),
            is_lasting=True,
        )
        for name, method in (("extract", "POST"), ("put_archive", "PUT"))
    ),
    *(
        _tool(
            name,
            "GET",
            path,
            tools.list_tools,
            summary,
            _reply("The tools.", TOOL_LIST),
            query=tools.ToolsQuery,
        )
        for name, path, summary in (
            ("list_tools", f"{API}/tools", "List the tools of a role"),
            ("list_session_tools", f"{SESSION}/tools", "List the caller's tools in a session"),
        )
    ),
    *(
        _tool(
            name,
            "POST",
            path,
            handler,
            summary,
            *TOOL_REPLIES,
            query=tools.ProfileQuery,
            body=body,
            errors=("limit.executions",),
            is_lasting=True,
        )
        for name, path, handler, summary, body in (
            (
                "call_tool_by_body",
                f"{SESSION}/tools",
                tools.run_flat,
                "Call the tool named in the body, whose other fields are the arguments",
                FLAT_TOOL,
            ),
            (
                "call_tool",
                f"{SESSION}/tools/{{tool}}",
                tools.run,
                "Call a tool; creates the session if it is missing",
                BodySpec(schema=tools.ToolBody, is_required=False),
            ),
        )
    ),
    _execution(
        "execute",
        "POST",
        f"{SESSION}/exec",
        executions.start,
        "Run a command line or Python code",
        _reply(
            "The result; with `Accept: text/event-stream` the events `start`, `stdout`, `stderr` and `exit`"
            " while it runs.",
            executions.ExecutionState,
            STREAM,
        ),
        body=BodySpec(schema=executions.ExecuteBody),
        errors=RUN_ERRORS,
        is_lasting=True,
    ),
    _execution(
        "watch_execution",
        "GET",
        f"{SESSION}/exec/{{execution_id}}",
        executions.watch,
        "Get the state of an execution, or resume its output",
        _reply("The state; with `Accept: text/event-stream` the events.", executions.ExecutionState, STREAM),
        headers=(LAST_EVENT,),
        errors=("request.unknown", *RUN_ERRORS),
        is_lasting=True,
    ),
    _execution(
        "cancel_execution",
        "DELETE",
        f"{SESSION}/exec/{{execution_id}}",
        executions.cancel,
        "Cancel an execution",
        NO_CONTENT,
        errors=("request.unknown",),
    ),
    _route(
        "changes",
        "list_changes",
        "GET",
        f"{SESSION}/changes",
        changes.changes,
        "Read the journal: changes and refused operations",
        _reply(
            "Records; with `Accept: text/event-stream` also new ones, as events `change`.",
            changes.Changes,
            STREAM,
        ),
        query=changes.ChangesQuery,
        headers=(LAST_EVENT,),
        errors=("journal.rotated",),
        is_lasting=True,
    ),
    _service(
        "health",
        "GET",
        "/healthz",
        status.healthy,
        "Check that the service runs",
        _reply("The service runs.", status.Status),
        is_open=True,
    ),
    _service(
        "readiness",
        "GET",
        "/readyz",
        status.ready,
        "Check that the service accepts requests",
        _reply("The service accepts requests.", status.Status),
        is_open=True,
    ),
    _service(
        "metrics",
        "GET",
        "/metrics",
        status.metrics,
        "Get the metrics of all tenants for Prometheus; for the operator and keys with the role `metrics`",
        _reply("The metrics.", BodySpec(schema={"type": "string"}, media_types=("text/plain",))),
        errors=("access.role", "request.unknown"),
    ),
    _service(
        "openapi",
        "GET",
        "/openapi.json",
        status.openapi,
        "Get the OpenAPI description",
        _reply("The OpenAPI document.", BodySpec(schema={"type": "object", "additionalProperties": True})),
        is_open=True,
    ),
)
