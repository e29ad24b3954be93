"""The table of all routes; router, OpenAPI description and documentation are made from it."""

from __future__ import annotations

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
from carrel.fronts.http.router import BodySpec, HeaderSpec, ResponseSpec, Route
from carrel.service.sessions.info import SessionInfo, SessionPage
from carrel.tools.core.formats import RESULT_SCHEMA
from carrel.values import FileInfo, SearchResult
from carrel.workspace.archive.extract import Extracted

API = "/api/v1"
SESSION = f"{API}/sessions/{{session_id}}"
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
STREAM = BodySpec(schema={"type": "string"}, media_types=(MEDIA_TYPE,))
ANY_JSON = BodySpec(schema={})
TOOL_RESULT = BodySpec(schema=RESULT_SCHEMA)
FLAT_TOOL = BodySpec(
    schema={
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
        "type": "object",
        "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
        "required": ["tools"],
    }
)

IF_MATCH = HeaderSpec(name="If-Match", meaning="The version that is to be changed, or `*` for any.")
NEW_ONLY = HeaderSpec(
    name="If-None-Match",
    meaning="`*`: only if there is nothing yet.",
    schema={"type": "string", "const": "*"},
)
SEEN = HeaderSpec(name="If-None-Match", meaning="Versions that the client has already.")
RANGE = HeaderSpec(name="Range", meaning="One part of the file, as in `bytes=0-1023`.")
IF_RANGE = HeaderSpec(name="If-Range", meaning="The version that the part must be of; else all is sent.")
DESTINATION = HeaderSpec(
    name="Destination", meaning="The URL of a file of the same session, or a path of its workspace."
)
OVERWRITE = HeaderSpec(
    name="Overwrite",
    meaning="`T` if what is there may be replaced; it is not by default.",
    schema={"type": "string", "enum": ["T", "F"]},
)
LAST_EVENT = HeaderSpec(name="Last-Event-ID", meaning="The last event that was seen, to go on after it.")


def _json(kind: Any) -> tuple[BodySpec, ...]:  # Any: a type, which has no type of its own
    return (BodySpec(schema=kind),)


SESSION_REPLY = (ResponseSpec(status=200, meaning="The session.", contents=_json(SessionInfo)),)
FILE_REPLY = ResponseSpec(
    status=200, meaning="The file as it is now.", contents=_json(FileInfo), headers=("ETag",)
)
DONE = (ResponseSpec(status=204, meaning="Done."),)
READ_HEADERS = ("ETag", "Vary", "Accept-Ranges", "Content-Disposition", "Carrel-Info")

ROUTES: tuple[Route, ...] = (
    # Sessions
    Route(
        name="create_session",
        method="POST",
        path=f"{API}/sessions",
        group="sessions",
        summary="Make a session",
        handler=sessions.create,
        body=BodySpec(schema=sessions.NewSessionBody, is_required=False),
        replies=(
            ResponseSpec(
                status=201, meaning="The new session.", contents=_json(SessionInfo), headers=("Location",)
            ),
        ),
        errors=("limit.sessions", "session.exists", "session.invalid_id"),
    ),
    Route(
        name="list_sessions",
        method="GET",
        path=f"{API}/sessions",
        group="sessions",
        summary="List the caller's sessions",
        handler=sessions.list_page,
        query=sessions.PageQuery,
        replies=(ResponseSpec(status=200, meaning="A page of sessions.", contents=_json(SessionPage)),),
        errors=("session.invalid_id",),
    ),
    Route(
        name="get_session",
        method="GET",
        path=SESSION,
        group="sessions",
        summary="Look at a session",
        handler=sessions.show,
        replies=SESSION_REPLY,
    ),
    Route(
        name="ensure_session",
        method="PUT",
        path=SESSION,
        group="sessions",
        summary="Make a session unless it is there",
        handler=sessions.ensure,
        replies=SESSION_REPLY,
        errors=("limit.sessions",),
    ),
    Route(
        name="delete_session",
        method="DELETE",
        path=SESSION,
        group="sessions",
        summary="Remove a session with its files",
        handler=sessions.delete,
        replies=DONE,
    ),
    Route(
        name="extend_session",
        method="POST",
        path=f"{SESSION}/extend",
        group="sessions",
        summary="Let a session be idle for another time",
        handler=sessions.extend,
        body=BodySpec(schema=sessions.ExtendBody),
        replies=SESSION_REPLY,
    ),
    Route(
        name="reset_session",
        method="POST",
        path=f"{SESSION}/reset",
        group="sessions",
        summary="Remove all files of a session",
        handler=sessions.reset,
        replies=DONE,
        errors=("path.busy",),
    ),
    # Files
    Route(
        name="read_file",
        method="GET",
        path=FILE,
        group="files",
        summary="Read a file, or a part of it",
        handler=files.read,
        query=files.ReadQuery,
        headers=(SEEN, RANGE, IF_RANGE),
        replies=(
            ResponseSpec(
                status=200,
                meaning="The bytes of the file; an envelope for a client that prefers `application/json` to"
                " `application/octet-stream` and to the type of the file.",
                contents=(BodySpec(media_types=("*/*",)), BodySpec(schema=files.Envelope)),
                headers=READ_HEADERS,
            ),
            ResponseSpec(
                status=206,
                meaning="The part that was asked for.",
                contents=(BodySpec(media_types=("*/*",)),),
                headers=(*READ_HEADERS, "Content-Range"),
            ),
            ResponseSpec(status=304, meaning="The client has this version already.", headers=("ETag",)),
        ),
        errors=(*PATH_ERRORS, "path.changed"),
        is_lasting=True,
    ),
    Route(
        name="write_file",
        method="PUT",
        path=FILE,
        group="files",
        summary="Store a file, at once or not at all",
        handler=files.write,
        query=files.WriteQuery,
        headers=(IF_MATCH, NEW_ONLY),
        body=ANY_BYTES,
        replies=(
            FILE_REPLY,
            ResponseSpec(
                status=201,
                meaning="The new file, where there was to be nothing yet.",
                contents=_json(FileInfo),
                headers=("ETag",),
            ),
        ),
        errors=CHANGE_ERRORS,
        is_lasting=True,
    ),
    Route(
        name="append_file",
        method="POST",
        path=FILE,
        group="files",
        summary="Add to the end of a file",
        handler=files.append,
        headers=(IF_MATCH,),
        body=ANY_BYTES,
        replies=(FILE_REPLY,),
        errors=CHANGE_ERRORS,
        is_lasting=True,
    ),
    Route(
        name="remove_file",
        method="DELETE",
        path=FILE,
        group="files",
        summary="Remove a file, a link or a directory",
        handler=files.remove,
        query=files.RemoveQuery,
        headers=(IF_MATCH,),
        replies=DONE,
        errors=(*CHANGE_ERRORS, "path.not_empty"),
    ),
    Route(
        name="move_file",
        method="MOVE",
        path=FILE,
        group="files",
        summary="Give a file or a directory another name",
        handler=files.move,
        headers=(DESTINATION, OVERWRITE, IF_MATCH),
        replies=DONE,
        errors=CHANGE_ERRORS,
    ),
    Route(
        name="copy_file",
        method="COPY",
        path=FILE,
        group="files",
        summary="Copy a file or a directory",
        handler=files.copy,
        query=files.CopyQuery,
        headers=(DESTINATION, OVERWRITE),
        replies=DONE,
        errors=CHANGE_ERRORS,
    ),
    Route(
        name="list_files",
        method="GET",
        path=f"{SESSION}/files",
        group="files",
        summary="List a directory",
        handler=files.list_entries,
        query=files.ListQuery,
        replies=(ResponseSpec(status=200, meaning="What is in it.", contents=_json(files.Entries)),),
        errors=(*PATH_ERRORS, "path.not_directory", "pattern.invalid"),
    ),
    Route(
        name="search_files",
        method="GET",
        path=f"{SESSION}/search",
        group="files",
        summary="Find lines in files",
        handler=operations.search,
        query=operations.SearchQuery,
        replies=(ResponseSpec(status=200, meaning="What was found.", contents=_json(SearchResult)),),
        errors=(*PATH_ERRORS, "pattern.invalid"),
    ),
    Route(
        name="operation",
        method="POST",
        path=f"{SESSION}/operations/{{operation}}",
        group="operations",
        summary="Do one operation of a workspace",
        handler=operations.run,
        body=ANY_JSON,
        replies=(ResponseSpec(status=200, meaning="What the operation gives.", contents=(ANY_JSON,)),),
        errors=(*CHANGE_ERRORS, "edit.missing", "path.not_empty", "text.encoding", "request.unknown"),
    ),
    # Archives
    Route(
        name="pack",
        method="GET",
        path=f"{SESSION}/archive",
        group="archives",
        summary="Get a directory as an archive",
        handler=archives.pack,
        query=archives.PackQuery,
        replies=(
            ResponseSpec(
                status=200,
                meaning="The archive.",
                contents=(BodySpec(media_types=tuple(archives.MEDIA_TYPES.values())),),
                headers=("Content-Disposition",),
            ),
        ),
        errors=PATH_ERRORS,
        is_lasting=True,
    ),
    *(
        Route(
            name=name,
            method=method,
            path=f"{SESSION}/archive",
            group="archives",
            summary="Extract an archive, all of it or nothing",
            handler=archives.extract,
            query=archives.ExtractQuery,
            body=ANY_BYTES,
            replies=(ResponseSpec(status=200, meaning="What was made.", contents=_json(Extracted)),),
            errors=(*CHANGE_ERRORS, "archive.invalid", "limit.uploads"),
            is_lasting=True,
        )
        for name, method in (("extract", "POST"), ("put_archive", "PUT"))
    ),
    # Tools
    Route(
        name="list_tools",
        method="GET",
        path=f"{API}/tools",
        group="tools",
        summary="List the tools of a role",
        handler=tools.list_tools,
        query=tools.ToolsQuery,
        replies=(ResponseSpec(status=200, meaning="The tools.", contents=(TOOL_LIST,)),),
    ),
    Route(
        name="list_session_tools",
        method="GET",
        path=f"{SESSION}/tools",
        group="tools",
        summary="List the tools that the caller has in a session",
        handler=tools.list_tools,
        query=tools.ToolsQuery,
        replies=(ResponseSpec(status=200, meaning="The tools.", contents=(TOOL_LIST,)),),
    ),
    Route(
        name="call_tool_by_body",
        method="POST",
        path=f"{SESSION}/tools",
        group="tools",
        summary="Call the tool that the body names; its arguments stand beside the name",
        handler=tools.run_flat,
        query=tools.ProfileQuery,
        body=FLAT_TOOL,
        replies=(
            ResponseSpec(
                status=200, meaning="What the tool answers, be it a failure.", contents=(TOOL_RESULT,)
            ),
            ResponseSpec(status=404, meaning="There is no such tool for the role.", contents=(TOOL_RESULT,)),
        ),
        errors=("limit.executions",),
        is_lasting=True,
    ),
    Route(
        name="call_tool",
        method="POST",
        path=f"{SESSION}/tools/{{tool}}",
        group="tools",
        summary="Call a tool; the session is made if it is missing",
        handler=tools.run,
        query=tools.ProfileQuery,
        body=BodySpec(schema=tools.ToolBody, is_required=False),
        replies=(
            ResponseSpec(
                status=200, meaning="What the tool answers, be it a failure.", contents=(TOOL_RESULT,)
            ),
            ResponseSpec(status=404, meaning="There is no such tool for the role.", contents=(TOOL_RESULT,)),
        ),
        errors=("limit.executions",),
        is_lasting=True,
    ),
    # Commands and code
    Route(
        name="execute",
        method="POST",
        path=f"{SESSION}/exec",
        group="execution",
        summary="Run a command line or Python",
        handler=executions.start,
        body=BodySpec(schema=executions.ExecuteBody),
        replies=(
            ResponseSpec(
                status=200,
                meaning="How it ended; with `Accept: text/event-stream` the events `start`, `stdout`,"
                " `stderr` and `exit` while it runs.",
                contents=(BodySpec(schema=executions.ExecutionState), STREAM),
            ),
        ),
        errors=RUN_ERRORS,
        is_lasting=True,
    ),
    Route(
        name="watch_execution",
        method="GET",
        path=f"{SESSION}/exec/{{execution_id}}",
        group="execution",
        summary="Look at what runs, or go on with its output",
        handler=executions.watch,
        headers=(LAST_EVENT,),
        replies=(
            ResponseSpec(
                status=200,
                meaning="Whether it still runs; with `Accept: text/event-stream` its events.",
                contents=(BodySpec(schema=executions.ExecutionState), STREAM),
            ),
        ),
        errors=("request.unknown", *RUN_ERRORS),
        is_lasting=True,
    ),
    Route(
        name="cancel_execution",
        method="DELETE",
        path=f"{SESSION}/exec/{{execution_id}}",
        group="execution",
        summary="Stop what runs",
        handler=executions.cancel,
        replies=DONE,
        errors=("request.unknown",),
    ),
    # The journal
    Route(
        name="list_changes",
        method="GET",
        path=f"{SESSION}/changes",
        group="changes",
        summary="Read what was changed or refused",
        handler=changes.changes,
        query=changes.ChangesQuery,
        headers=(LAST_EVENT,),
        replies=(
            ResponseSpec(
                status=200,
                meaning="Records; with `Accept: text/event-stream` also those to come, as events `change`.",
                contents=(BodySpec(schema=changes.Changes), STREAM),
            ),
        ),
        errors=("journal.rotated",),
        is_lasting=True,
    ),
    # The service itself
    Route(
        name="health",
        method="GET",
        path="/healthz",
        group="service",
        summary="Ask whether the service runs",
        handler=status.healthy,
        replies=(ResponseSpec(status=200, meaning="It runs.", contents=_json(status.Status)),),
        is_open=True,
    ),
    Route(
        name="readiness",
        method="GET",
        path="/readyz",
        group="service",
        summary="Ask whether the service takes calls",
        handler=status.ready,
        replies=(ResponseSpec(status=200, meaning="It does.", contents=_json(status.Status)),),
        is_open=True,
    ),
    Route(
        name="metrics",
        method="GET",
        path="/metrics",
        group="service",
        summary="Read what was done so far for all tenants, as Prometheus does; for the operator and keys"
        " with the role `metrics`",
        handler=status.metrics,
        replies=(
            ResponseSpec(
                status=200,
                meaning="The metrics.",
                contents=(BodySpec(schema={"type": "string"}, media_types=("text/plain",)),),
            ),
        ),
        errors=("access.role", "request.unknown"),
    ),
    Route(
        name="openapi",
        method="GET",
        path="/openapi.json",
        group="service",
        summary="Read this description",
        handler=status.openapi,
        replies=(ResponseSpec(status=200, meaning="It.", contents=(BodySpec(schema={"type": "object"}),)),),
        is_open=True,
    ),
)
