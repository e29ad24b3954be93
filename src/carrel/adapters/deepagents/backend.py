"""`CarrelBackend`: the files and the shell of a session for LangChain's deepagents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Unpack
from uuid import uuid4

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from carrel.adapters.deepagents.errors import error_message, protocol_error
from carrel.adapters.deepagents.page import read_page
from carrel.adapters.deepagents.paths import AgentPaths, FileGlob
from carrel.errors import CarrelError, LimitError
from carrel.policy.execution import ExecutionPolicy
from carrel.sandbox.shell import Shell
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import ShellOptions
from carrel.tools.core.deadline import Deadline
from carrel.values import FileInfo as Found
from carrel.values import FileKind, Match
from carrel.workspace.search import SearchBudget, below
from carrel.workspace.workspace import Workspace

TIMEOUT_SECONDS = 120
"""Default time limit of a command."""
MAX_SECONDS = 3600
"""Longest time limit that a command may request."""
MAX_MATCHES = 10_000
"""Maximum number of results of `grep` and `glob`."""
SEARCH_SECONDS = 10.0
"""Time limit of `grep` and `glob`."""
LINE_CHARACTERS = 5000
"""Length at which lines in results of `grep` are cut."""


class CarrelBackend(SandboxBackendProtocol):
    """A carrel workspace as a deepagents backend.

    >>> create_deep_agent(model, backend=CarrelBackend(workspace))

    Every operation goes through the gate of the workspace, so its rules, quota and journal apply; a view made
    by `Workspace.narrowed` returns `permission_denied` for what it does not allow. Commands run in carrel's
    shell, each starting at the top of the workspace. Errors that an agent can fix are returned, not raised.

    Not covered: rules of deepagents (`FilesystemPermission`) compare paths as text, and a file can have
    several paths, through links and with or without the mount. Put restrictions into the rules of the
    workspace instead.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        root: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        policy: ExecutionPolicy | None = None,
        **options: Unpack[ShellOptions],
    ) -> None:
        """Use *workspace*, which the caller has to close.

        Args:
            workspace: The files.
            root: Name of the top of the workspace in results: its mount, `/workspace`, or `/`. Arguments may
                have either form.
            timeout_seconds: Default time limit of a command.
            policy: Limits of guest code.
            options: Budget, commands, variables and so on; see `ShellOptions`. The seconds of the budget are
                the longest time that a command may request. Pipelines are on by default.

        Raises:
            ValueError: The root is neither `/` nor the mount of the workspace.
        """
        self._workspace = workspace
        self._names = AgentPaths(workspace, root)
        self._timeout_seconds = timeout_seconds
        self._budget = options.pop("budget", None) or Budget(seconds=MAX_SECONDS)
        self._policy = policy
        options.setdefault("pipelines", True)
        self._options = options
        self._id = workspace.session_id or f"workspace-{uuid4()}"

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._id

    # Files

    def ls(self, path: str) -> LsResult:
        try:
            found = self._workspace.list(self._names.parse(path))
            return LsResult(entries=[self._entry(info) for info in found])
        except CarrelError as error:
            return LsResult(error=error_message(path, error))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        try:
            path = self._names.parse(file_path)
            return read_page(self._workspace, path, file_path, offset=int(offset), limit=int(limit))
        except CarrelError as error:
            return ReadResult(error=error_message(file_path, error))

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            info = self._workspace.write(self._names.parse(file_path), content)
        except CarrelError as error:
            return WriteResult(error=error_message(file_path, error))
        return WriteResult(path=self._names.render(info.path))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        try:
            path = self._names.parse(file_path)
            edited = self._workspace.edit(path, old_string, new_string, replace_all=replace_all)
        except CarrelError as error:
            return EditResult(error=error_message(file_path, error))
        return EditResult(path=self._names.render(edited.info.path), occurrences=edited.replacements)

    def delete(self, file_path: str) -> DeleteResult:
        try:
            self._workspace.remove(self._names.parse(file_path), recursive=True)
            return DeleteResult(path=self._names.display(file_path))
        except CarrelError as error:
            return DeleteResult(error=error_message(file_path, error))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._upload(path, data)) for path, data in files]

    def _upload(self, path: str, data: bytes) -> str | None:
        try:
            self._workspace.write(self._names.parse(path), data)
        except CarrelError as error:
            return protocol_error(error)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self._workspace.read(self._names.parse(path)))
        except CarrelError as error:
            return FileDownloadResponse(path=path, error=protocol_error(error))

    # Searching

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        top = self._names.root if path is None else path
        max_matches = MAX_MATCHES if max_count is None else max(0, max_count)
        try:
            file_glob = None if glob is None else FileGlob(glob)
            search_root = self._names.parse(top)
            directory = self._workspace.stat(search_root)
            result = self._workspace.search(
                pattern,
                search_root,
                regex=False,
                include=() if file_glob is None else file_glob.parts,
                hidden=file_glob is None or file_glob.enters_hidden,
                budget=SearchBudget(
                    matches=max_matches, seconds=SEARCH_SECONDS, line_characters=LINE_CHARACTERS
                ),
            )
        except CarrelError as error:
            return GrepResult(error=error_message(top, error))
        return GrepResult(
            matches=[
                GrepMatch(path=self._names.render(match.path), line=match.line, text=match.text)
                for match in result.matches
                if file_glob is None
                or not directory.is_directory
                or file_glob.matches(_below(directory, match))
            ],
            truncated=result.truncated,
        )

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        top = self._names.root if path is None else path
        matches: list[FileInfo] = []
        try:
            for info in self._matching(FileGlob(pattern), self._names.parse(top)):
                if len(matches) == MAX_MATCHES:
                    return GlobResult(matches=matches, truncated=True, truncation_reason="budget")
                matches.append(self._entry(info))
        except LimitError:
            return GlobResult(matches=matches, truncated=True, truncation_reason="budget")
        except CarrelError as error:
            return GlobResult(error=error_message(top, error))
        return GlobResult(matches=matches)

    def _matching(self, file_glob: FileGlob, search_root: str) -> Iterator[Found]:
        """The regular files below *search_root* that match.

        Raises:
            LimitError: The time limit of a search is reached.
        """
        view = self._workspace.narrowed(check=Deadline(SEARCH_SECONDS).check)
        directory = view.stat(search_root)

        def is_entered(info: Found) -> bool:
            return file_glob.enters_hidden or not info.name.startswith(".")

        for info in view.walk(search_root, enter=is_entered):
            if info.is_file and file_glob.matches(below(directory, info)):
                yield info

    def _entry(self, info: Found) -> FileInfo:
        modified = datetime.fromtimestamp(info.modified_ns // 10**9, UTC)
        return FileInfo(
            path=self._names.render(info.path),
            is_dir=info.is_directory or (info.kind is FileKind.LINK and self._points_to_directory(info)),
            size=info.size_bytes,
            modified_at=modified.isoformat(),
        )

    def _points_to_directory(self, info: Found) -> bool:
        try:
            return self._workspace.stat(self._absolute_path(info)).is_directory
        except CarrelError:
            return False

    def _absolute_path(self, info: Found) -> str:
        return info.path if info.path.startswith("/") else f"{self._workspace.mount}/{info.path}"

    # Commands

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        output = _Output()
        try:
            result = self._shell().run(command, budget=self._budget_of(timeout), on_output=output)
        except CarrelError as error:
            return ExecuteResponse(output=error.message)
        return output.response(result)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command as `execute` does; cancelling the task stops the command first."""
        output = _Output()
        try:
            result = await self._shell().arun(command, budget=self._budget_of(timeout), on_output=output)
        except CarrelError as error:
            return ExecuteResponse(output=error.message)
        return output.response(result)

    def _shell(self) -> Shell:
        """A new shell for each command, so that commands neither wait for nor affect each other."""
        return Shell(self._workspace, policy=self._policy, **self._options)

    def _budget_of(self, timeout: int | None) -> Budget:
        """The budget of a command that requests *timeout* seconds; 0 requests the longest time."""
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout must be at least 0 seconds, not {timeout}")
        longest = self._budget.seconds
        seconds = self._timeout_seconds if timeout is None else timeout or longest
        if longest is not None and seconds is not None:
            seconds = min(seconds, longest)
        return replace(self._budget, seconds=seconds)


class _Output:
    """Collects both streams of a command in the order of writing."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def __call__(self, stream: str, data: bytes) -> None:
        self._chunks.append(data)

    def response(self, result: ShellResult) -> ExecuteResponse:
        """The response with the collected output."""
        return ExecuteResponse(
            output=b"".join(self._chunks).decode("utf-8", "replace"),
            exit_code=result.exit_code,
            truncated=result.truncated,
        )


def _below(directory: Found, match: Match) -> str:
    skip = 0 if directory.path == "." else len(directory.path.rstrip("/")) + 1
    return match.path[skip:]
