from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Context(_message.Message):
    __slots__ = ("role",)
    ROLE_FIELD_NUMBER: _ClassVar[int]
    role: str
    def __init__(self, role: _Optional[str] = ...) -> None: ...

class ToolAnswer(_message.Message):
    __slots__ = ("success", "output", "output_json", "data_json", "error", "code", "metadata_json", "size_bytes", "exit_code", "model_text", "images")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_JSON_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    METADATA_JSON_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    success: bool
    output: str
    output_json: str
    data_json: str
    error: str
    code: str
    metadata_json: str
    size_bytes: int
    exit_code: int
    model_text: str
    images: _containers.RepeatedCompositeFieldContainer[ToolImage]
    def __init__(self, success: _Optional[bool] = ..., output: _Optional[str] = ..., output_json: _Optional[str] = ..., data_json: _Optional[str] = ..., error: _Optional[str] = ..., code: _Optional[str] = ..., metadata_json: _Optional[str] = ..., size_bytes: _Optional[int] = ..., exit_code: _Optional[int] = ..., model_text: _Optional[str] = ..., images: _Optional[_Iterable[_Union[ToolImage, _Mapping]]] = ...) -> None: ...

class ToolImage(_message.Message):
    __slots__ = ("path", "media_type", "size_bytes", "width", "height", "data")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    path: str
    media_type: str
    size_bytes: int
    width: int
    height: int
    data: str
    def __init__(self, path: _Optional[str] = ..., media_type: _Optional[str] = ..., size_bytes: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., data: _Optional[str] = ...) -> None: ...

class ToolEvent(_message.Message):
    __slots__ = ("stdout", "stderr", "result")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    result: ToolAnswer
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., result: _Optional[_Union[ToolAnswer, _Mapping]] = ...) -> None: ...

class FileReadRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "encoding", "max_size_mb", "offset", "limit", "cursor")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    MAX_SIZE_MB_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    encoding: str
    max_size_mb: int
    offset: int
    limit: int
    cursor: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., encoding: _Optional[str] = ..., max_size_mb: _Optional[int] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class FileWriteRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "content", "mode", "encoding", "create_dirs", "if_match")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    CREATE_DIRS_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    content: str
    mode: str
    encoding: str
    create_dirs: bool
    if_match: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., content: _Optional[str] = ..., mode: _Optional[str] = ..., encoding: _Optional[str] = ..., create_dirs: _Optional[bool] = ..., if_match: _Optional[str] = ...) -> None: ...

class FileListRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "pattern", "recursive", "include_hidden", "cursor")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    pattern: str
    recursive: bool
    include_hidden: bool
    cursor: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., pattern: _Optional[str] = ..., recursive: _Optional[bool] = ..., include_hidden: _Optional[bool] = ..., cursor: _Optional[str] = ...) -> None: ...

class FileSearchRequest(_message.Message):
    __slots__ = ("session_id", "context", "query", "path", "include", "regex", "case_sensitive", "max_results", "context_lines", "include_hidden", "cursor")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LINES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    query: str
    path: str
    include: str
    regex: bool
    case_sensitive: bool
    max_results: int
    context_lines: int
    include_hidden: bool
    cursor: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., query: _Optional[str] = ..., path: _Optional[str] = ..., include: _Optional[str] = ..., regex: _Optional[bool] = ..., case_sensitive: _Optional[bool] = ..., max_results: _Optional[int] = ..., context_lines: _Optional[int] = ..., include_hidden: _Optional[bool] = ..., cursor: _Optional[str] = ...) -> None: ...

class FileEditRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "old_text", "new_text", "replace_all", "if_match")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OLD_TEXT_FIELD_NUMBER: _ClassVar[int]
    NEW_TEXT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_ALL_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    old_text: str
    new_text: str
    replace_all: bool
    if_match: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., old_text: _Optional[str] = ..., new_text: _Optional[str] = ..., replace_all: _Optional[bool] = ..., if_match: _Optional[str] = ...) -> None: ...

class FileDeleteRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "recursive", "force", "pattern", "if_match")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    recursive: bool
    force: bool
    pattern: str
    if_match: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ..., force: _Optional[bool] = ..., pattern: _Optional[str] = ..., if_match: _Optional[str] = ...) -> None: ...

class ExecuteCommandRequest(_message.Message):
    __slots__ = ("session_id", "context", "command", "timeout", "cursor")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    command: str
    timeout: int
    cursor: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., command: _Optional[str] = ..., timeout: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ExecutePythonRequest(_message.Message):
    __slots__ = ("session_id", "context", "code", "timeout", "stdin", "cursor")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    code: str
    timeout: int
    stdin: str
    cursor: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., code: _Optional[str] = ..., timeout: _Optional[int] = ..., stdin: _Optional[str] = ..., cursor: _Optional[str] = ...) -> None: ...

class CallToolRequest(_message.Message):
    __slots__ = ("session_id", "context", "name", "profile", "arguments_json")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    name: str
    profile: str
    arguments_json: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., name: _Optional[str] = ..., profile: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("session_id", "context", "profile", "format")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    profile: str
    format: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., profile: _Optional[str] = ..., format: _Optional[str] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ("tools_json",)
    TOOLS_JSON_FIELD_NUMBER: _ClassVar[int]
    tools_json: str
    def __init__(self, tools_json: _Optional[str] = ...) -> None: ...

class FileReadStreamRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "offset", "length", "any_size", "path_bytes")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    ANY_SIZE_FIELD_NUMBER: _ClassVar[int]
    PATH_BYTES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    offset: int
    length: int
    any_size: bool
    path_bytes: bytes
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., any_size: _Optional[bool] = ..., path_bytes: _Optional[bytes] = ...) -> None: ...

class FileReadStreamResponse(_message.Message):
    __slots__ = ("info_json", "data")
    INFO_JSON_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    info_json: str
    data: bytes
    def __init__(self, info_json: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class FileWriteStreamRequest(_message.Message):
    __slots__ = ("start", "data", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: FileWriteStart
    data: bytes
    end: bool
    def __init__(self, start: _Optional[_Union[FileWriteStart, _Mapping]] = ..., data: _Optional[bytes] = ..., end: _Optional[bool] = ...) -> None: ...

class FileWriteStart(_message.Message):
    __slots__ = ("session_id", "context", "path", "overwrite", "parents", "if_version", "path_bytes")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    PATH_BYTES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    overwrite: bool
    parents: bool
    if_version: str
    path_bytes: bytes
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., overwrite: _Optional[bool] = ..., parents: _Optional[bool] = ..., if_version: _Optional[str] = ..., path_bytes: _Optional[bytes] = ...) -> None: ...

class FileWriteStreamResponse(_message.Message):
    __slots__ = ("info_json",)
    INFO_JSON_FIELD_NUMBER: _ClassVar[int]
    info_json: str
    def __init__(self, info_json: _Optional[str] = ...) -> None: ...

class ExecuteCommandStreamRequest(_message.Message):
    __slots__ = ("session_id", "context", "command", "stdin", "timeout_seconds", "shell")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    command: str
    stdin: bytes
    timeout_seconds: float
    shell: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., command: _Optional[str] = ..., stdin: _Optional[bytes] = ..., timeout_seconds: _Optional[float] = ..., shell: _Optional[str] = ...) -> None: ...

class ExecutePythonStreamRequest(_message.Message):
    __slots__ = ("session_id", "context", "code", "file", "argv", "env", "stdin", "timeout_seconds", "stateful", "cwd", "name")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STATEFUL_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    code: str
    file: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    stdin: bytes
    timeout_seconds: float
    stateful: bool
    cwd: str
    name: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., code: _Optional[str] = ..., file: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ..., stdin: _Optional[bytes] = ..., timeout_seconds: _Optional[float] = ..., stateful: _Optional[bool] = ..., cwd: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ExecutionEvent(_message.Message):
    __slots__ = ("execution_id", "stdout", "stderr", "result_json", "offset")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    stdout: bytes
    stderr: bytes
    result_json: str
    offset: int
    def __init__(self, execution_id: _Optional[str] = ..., stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., result_json: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class CancelExecutionRequest(_message.Message):
    __slots__ = ("session_id", "execution_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    execution_id: str
    def __init__(self, session_id: _Optional[str] = ..., execution_id: _Optional[str] = ...) -> None: ...

class ChangesRequest(_message.Message):
    __slots__ = ("session_id", "context", "since", "follow")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    since: int
    follow: bool
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., since: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class ChangesResponse(_message.Message):
    __slots__ = ("events_json", "next")
    EVENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    events_json: str
    next: int
    def __init__(self, events_json: _Optional[str] = ..., next: _Optional[int] = ...) -> None: ...

class WalkRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "path_bytes")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PATH_BYTES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    path_bytes: bytes
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., path_bytes: _Optional[bytes] = ...) -> None: ...

class WalkResponse(_message.Message):
    __slots__ = ("entries_json",)
    ENTRIES_JSON_FIELD_NUMBER: _ClassVar[int]
    entries_json: str
    def __init__(self, entries_json: _Optional[str] = ...) -> None: ...

class ArchiveRequest(_message.Message):
    __slots__ = ("session_id", "context", "path", "format", "path_bytes")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PATH_BYTES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    format: str
    path_bytes: bytes
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., format: _Optional[str] = ..., path_bytes: _Optional[bytes] = ...) -> None: ...

class ArchiveResponse(_message.Message):
    __slots__ = ("data", "left_out_json")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_JSON_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    left_out_json: str
    def __init__(self, data: _Optional[bytes] = ..., left_out_json: _Optional[str] = ...) -> None: ...

class ExtractRequest(_message.Message):
    __slots__ = ("start", "data", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: ExtractStart
    data: bytes
    end: bool
    def __init__(self, start: _Optional[_Union[ExtractStart, _Mapping]] = ..., data: _Optional[bytes] = ..., end: _Optional[bool] = ...) -> None: ...

class ExtractStart(_message.Message):
    __slots__ = ("session_id", "context", "path", "format", "overwrite", "limits_json", "path_bytes")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_JSON_FIELD_NUMBER: _ClassVar[int]
    PATH_BYTES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    path: str
    format: str
    overwrite: bool
    limits_json: str
    path_bytes: bytes
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., path: _Optional[str] = ..., format: _Optional[str] = ..., overwrite: _Optional[bool] = ..., limits_json: _Optional[str] = ..., path_bytes: _Optional[bytes] = ...) -> None: ...

class ExtractResponse(_message.Message):
    __slots__ = ("result_json",)
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    result_json: str
    def __init__(self, result_json: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("session_json",)
    SESSION_JSON_FIELD_NUMBER: _ClassVar[int]
    session_json: str
    def __init__(self, session_json: _Optional[str] = ...) -> None: ...

class EmptyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ("session_id", "ttl_seconds", "for_ever", "limits_json", "role", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FOR_EVER_FIELD_NUMBER: _ClassVar[int]
    LIMITS_JSON_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ttl_seconds: float
    for_ever: bool
    limits_json: str
    role: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, session_id: _Optional[str] = ..., ttl_seconds: _Optional[float] = ..., for_ever: _Optional[bool] = ..., limits_json: _Optional[str] = ..., role: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("after", "count")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    after: str
    count: int
    def __init__(self, after: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions_json", "next")
    SESSIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    sessions_json: str
    next: str
    def __init__(self, sessions_json: _Optional[str] = ..., next: _Optional[str] = ...) -> None: ...

class ExtendSessionRequest(_message.Message):
    __slots__ = ("session_id", "ttl_seconds", "for_ever")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FOR_EVER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    ttl_seconds: float
    for_ever: bool
    def __init__(self, session_id: _Optional[str] = ..., ttl_seconds: _Optional[float] = ..., for_ever: _Optional[bool] = ...) -> None: ...

class CallRequest(_message.Message):
    __slots__ = ("session_id", "context", "operation", "arguments_json")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    context: Context
    operation: str
    arguments_json: str
    def __init__(self, session_id: _Optional[str] = ..., context: _Optional[_Union[Context, _Mapping]] = ..., operation: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class CallResponse(_message.Message):
    __slots__ = ("result_json",)
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    result_json: str
    def __init__(self, result_json: _Optional[str] = ...) -> None: ...
