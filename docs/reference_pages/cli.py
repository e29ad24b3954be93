"""The page about the command line."""

from __future__ import annotations

from collections.abc import Iterator

import click

from carrel.fronts.cli.main import cli
from docs.reference_pages.markdown import page, table

WIDTH = 100


def make() -> str:
    """The page about the command line."""
    top = click.Context(
        cli, info_name="carrel", terminal_width=WIDTH, max_content_width=WIDTH, **cli.context_settings
    )
    return page(
        "Command line",
        """
        `carrel` and `python -m carrel` are the same program. An error is one line on standard error, or
        with `--json` one document `{"error": {"code": ..., "message": ..., "path": ...}}`. The exit
        statuses are in the [table of errors](errors.md#exit-statuses).

        With `--json` a command prints one document on one line of ASCII, or one per journal record. A byte of
        a name that is not UTF-8 is then a lone surrogate, `\\udc80` to `\\udcff`. Without it, a name with
        non-printable characters is quoted.

        `--debug` before the command, or `CARREL_DEBUG=1`, prints an error with its traceback; with `--json`
        the document then also has `debug`. Colours are for terminals; `NO_COLOR` and `TERM=dumb` turn them
        off. `carrel completion` prints a script with which bash, zsh and fish complete commands, options,
        sessions and files. Manual pages: `man carrel`, `man carrel-session`.
        """,
        *(
            f"## {context.command_path}\n\n```text\n{context.command.get_help(context)}\n```"
            for context in contexts(top)
        ),
        "## JSON",
        table(
            ("command", "document"),
            [
                ("`session create`, `session show`, `session extend`", "a session, see below"),
                (
                    "`session list`",
                    '`{"sessions": [{"session_id", "created_ns", "used_ns", "expires_ns", "size_bytes",'
                    ' "in_use", "problem"}], "next_after"}`; unknown values are null, and a session that'
                    " never expires has no `expires_ns`; pass `next_after` to `--after`; null is the end",
                ),
                (
                    "`session show --journal`",
                    'each line `{"time_ns", "session_id", "actor", "operation", "path", "other_path",'
                    ' "before_bytes", "after_bytes", "error", "repeats", "sequence"}`',
                ),
                (
                    "`session verify`",
                    '`{"is_whole", "records", "unchained", "changes": head, "refusals": head, "broken",'
                    ' "problem"}`; a head is `{"sequence", "digest"}`, `broken` the sequence number of the'
                    " first broken record or null, and `unchained` counts records of older versions",
                ),
                (
                    "`session delete`",
                    '`{"deleted": [id], "missing": [id]}`; one error document for each that was not deleted',
                ),
                (
                    "`session sweep`",
                    '`{"dry_run", "deleted": [id], "skipped": [{"session_id", "reason"}], "errors":'
                    ' [{"session_id", "problem"}], "reclaimed_bytes", "containers"}`',
                ),
                (
                    "`files ls`",
                    '`{"path", "entries": [entry], "complete"}`; not complete when a limit ended it',
                ),
                (
                    "`files put`",
                    'an entry; of an archive `{"path", "files", "directories", "links", "size_bytes"}`, of a'
                    ' directory also `"left_out": [{"path", "reason"}]`',
                ),
                (
                    "`sh`",
                    '`{"success", "exit_code", "stdout", "stderr", "encoding", "error_code", "message",'
                    ' "cwd", "duration_ms", "ended", "truncated"}`; the encoding is `utf-8`, or `base64` if'
                    " the streams are not; `ended` is true after `exit`",
                ),
                (
                    "`run`",
                    "the fields of a [`SandboxResult`](api.md#sandboxresult) without `workspace_path`",
                ),
                (
                    "`tools`",
                    '`{"role", "profile", "tools": [{"name", "effect", "summary", "schema"}]}`; with'
                    " `--format` the list in the client's format",
                ),
                ("`tool`", "the [answer](tools.md#the-answer) of the tool, also without `--json`"),
                ("`setup`", '`{"directory", "compiled": {name: seconds}, "already_there": [name]}`'),
                (
                    "`key create`, `key revoke`",
                    '`{"id", "name", "tenant", "role", "roles", "session", "rate_per_minute", "created_ns",'
                    ' "expires_ns", "used_ns", "revoked_ns", "state"}`, of a new one also `"key"`, its text;'
                    " the state is `in force`, `expired` or `revoked`",
                ),
                ("`key list`", '`{"keys": [key]}`, each as above'),
                (
                    "`files get`",
                    '`{"path", "local", "left_out": [{"path", "reason"}]}`; not if the content itself is'
                    " printed",
                ),
                ("`files rm`", '`{"path", "removed"}`; false if there was nothing and `--force` is on'),
                (
                    "`policy explain`",
                    '`{"session_id", "path", "decisions": [{"access", "allowed", "reason", "rule"}]}`;'
                    ' a rule is `{"index", "root", "mode"}` or null',
                ),
                (
                    "`doctor`",
                    '`{"carrel", "python", "platform", "config": {"file", "is_there", "problem"}, "settings":'
                    ' [{"key", "value", "origin", "is_used"}], "sessions", "store", "limits", "durability",'
                    ' "quota", "confinement", "parts", "sandbox", "guest", "service", "containers":'
                    ' {"image", "tools", "engine", "has_image", "limits_missing", "loosened", "problem"},'
                    ' "notes", "findings": [{"area", "subject", "state", "found", "remedy"}], "problems":'
                    ' [{"problem", "remedy"}]}`; an origin is `{"source", "name", "line", "is_alias"}`,'
                    " a state `ok`, `off`, `note` or `problem`",
                ),
                ("`serve`", '`{"http", "grpc", "has_callers"}`, once it listens; `grpc` may be null'),
            ],
        ),
        """
        A session is `{"session_id", "created_ns", "used_ns", "expires_ns", "expired", "ttl_seconds",
        "in_use", "role", "labels", "limits", "usage": {"disk_bytes", "disk_percent", "entries",
        "entries_percent"}}`. Times are nanoseconds since the epoch; `limits` are the effective ones, null
        for no limit, and have the names of the [limits](limits.md); `usage` is null until it is counted.

        An entry is `{"path", "kind", "size_bytes", "modified_ns", "mode"}`. The kind is `file`, `directory`,
        `link` or `other`; the mode is text in octal, like `"0644"`.
        """,
    )


def contexts(parent: click.Context) -> Iterator[click.Context]:
    """The program itself, and every command below it that does something."""
    yield parent
    assert isinstance(parent.command, click.Group)  # noqa: S101  # for the type checker
    for name, command in parent.command.commands.items():
        if command.hidden:
            continue
        context = click.Context(
            command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
        )
        if isinstance(command, click.Group):
            yield from list(contexts(context))[1:]
        else:
            yield context
