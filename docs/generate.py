"""Write the reference pages that follow from the code: `python docs/generate.py`.

A test fails when a page is not what this makes of it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

import carrel.audit.event
import carrel.errors
import carrel.remote.proto
import carrel.service.session_info
import carrel.tools
import carrel.values
import carrel.workspace._archive_spool
import carrel.workspace._registry_rules
import carrel.workspace.edit
import carrel.workspace.extract
import carrel.workspace.extract_limits
import carrel.workspace.quota
from carrel.config.file import NAME as FILE_NAME
from carrel.config.key import Key
from carrel.config.kind import NONE
from carrel.config.table import CONFIG_VARIABLE, DEFAULT_ROLES, KEYS, ROLE_TOOLS, TIMEOUT_MS
from carrel.errors import (
    CarrelError,
    ContainerError,
    EditError,
    EngineError,
    LimitError,
    QuotaError,
    ToolError,
)
from carrel.fronts.cli.failure import BUG_STATUS
from carrel.fronts.cli.main import BROKEN_PIPE, INTERRUPTED, cli
from carrel.fronts.cli.report import BUG, LOCAL, MISSING, USAGE
from carrel.paths.match import PATTERN_CHARACTERS
from carrel.paths.names import ID_CHARACTERS
from carrel.paths.rel import NAME_BYTES, PATH_BYTES
from carrel.service.wire import TABLE, ExitStatus
from carrel.shell.budget import Budget
from carrel.shell.help import help_text
from carrel.shell.lexer import COMMAND_CHARACTERS
from carrel.shell.table import COMMANDS
from carrel.tools.kind import Schema
from carrel.tools.options import ANSWER_BYTES, ToolOptions
from carrel.tools.spec import Profile, Tool, Where
from carrel.tools.table import TOOLS
from carrel.values import Limits
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.quota import Quota
from carrel.workspace.search import QUERY_CHARACTERS, SearchBudget

if TYPE_CHECKING:
    from carrel.fronts.http.route import Route
    from carrel.fronts.mcp.session_tools import SessionTool

DOCS = Path(__file__).parent
WIDTH = 100
NOTICE = "<!-- Made by docs/generate.py; do not edit. -->"


def errors_page() -> str:
    """The page about error codes."""
    rows = [
        (
            f"`{code}`",
            f"`{kind.__name__}`",
            ", ".join(f"`{name}`" for name in builtins_of(kind)),
            str(int(TABLE[code].exit_status)),
            str(TABLE[code].http_status),
            f"`{TABLE[code].grpc_status}`",
            "yes" if TABLE[code].retry else "",
            first_line(kind),
        )
        for code, kind in coded()
    ]
    return page(
        "Errors",
        """
        Every error that an operation raises derives from `CarrelError` and from a builtin that people already
        catch. It has `code`, which is a promise, `message`, whose wording is not, and `path`: what the caller
        asked for, or `None`. No message holds a path of the host that the caller did not write.

        "Exit" is the exit status of the command line, "HTTP" and "gRPC" are what the service answers; "retry"
        says that the same call may work later.
        """,
        table(("code", "class", "also a", "exit", "HTTP", "gRPC", "retry", "meaning"), rows),
        "## Codes with several cases",
        f"`container.*` is one of {', '.join(f'`container.{case}`' for case in container_cases())};"
        f" `engine.*` is one of {', '.join(f'`engine.{case}`' for case in engine_cases())}.",
        f"`edit.*` is one of {', '.join(f'`edit.{case}`' for case in edit_cases())}.",
        f"`limit.*` is one of {', '.join(f'`limit.{case}`' for case in limit_cases())}; of an"
        f" archive, {', '.join(f'`limit.{case}`' for case in archive_cases())}; of all sessions together,"
        f" {', '.join(f'`limit.{case}`' for case in registry_cases())}.",
        f"`quota.*` is one of {', '.join(f'`quota.{case}`' for case in quota_cases())}.",
        f"`tool.*` is one of {', '.join(f'`tool.{case}`' for case in tool_cases())}. A tool does not raise:"
        " its [answer](tools.md#the-answer) has the code in its metadata. Where a command or code was"
        f" stopped, that is also one of {', '.join(f'`limit.{case}`' for case in run_cases())}.",
        "Errors of `limit.*` and `quota.*` also have `limit` and `asked`. The ceilings are listed in"
        " [limits](limits.md).",
        "## Exit statuses",
        table(
            ("status", "meaning"),
            [
                ("0", "Done."),
                *((str(int(status)), text) for status, text in statuses()),
                (str(BUG_STATUS), "A bug in carrel: something that nobody foresaw."),
                (str(INTERRUPTED), "Ended by Ctrl-C."),
                (str(BROKEN_PIPE), "The reader of the output went away."),
            ],
        ),
        f"The command line has four codes of its own: `{USAGE}` (exit status 2) for words that make no sense"
        f" together, `{LOCAL}` (exit status 1) for a local file or stream that cannot be used, `{MISSING}`"
        " (exit status 5) for a package that is not installed and that the command needs, and"
        f" `{BUG}` (exit status {BUG_STATUS}) for a bug in carrel.",
    )


def cli_page() -> str:
    """The page about the command line."""
    top = click.Context(
        cli, info_name="carrel", terminal_width=WIDTH, max_content_width=WIDTH, **cli.context_settings
    )
    return page(
        "Command line",
        """
        `carrel` and `python -m carrel` are the same program. Errors are one line on standard error, or with
        `--json` one document `{"error": {"code": ..., "message": ..., "path": ...}}`. The exit status is in
        the [table of errors](errors.md#exit-statuses).

        With `--json` a command prints one document on one line of ASCII, or one a record of a journal. A byte
        of a name that is not UTF-8 is then a lone surrogate, `\\udc80` to `\\udcff`. Without it, a name that
        does not print is quoted.

        `--debug` before the command, or `CARREL_DEBUG=1`, tells an error with its traceback; with `--json`
        the document then also has `debug`. Colours are for terminals; `NO_COLOR` and `TERM=dumb` switch them
        off. `carrel completion` prints what lets bash, zsh and fish complete commands, options, sessions and
        files. The same pages are manual pages: `man carrel`, `man carrel-session`.
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
                    ' "in_use", "problem"}], "next_after"}`; what is not known is null, and a session that'
                    " never expires has no `expires_ns`; give `next_after` to `--after`, null is the end",
                ),
                (
                    "`session show --journal`",
                    'each line `{"time_ns", "session_id", "actor", "operation", "path", "other_path",'
                    ' "before_bytes", "after_bytes", "error", "sequence"}`',
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
                    ' "cwd", "duration_ms", "truncated"}`; the encoding is `utf-8`, or `base64` if the'
                    " streams are not",
                ),
                (
                    "`tools`",
                    '`{"role", "profile", "tools": [{"name", "effect", "summary", "schema"}]}`; with'
                    " `--format` the list that a client takes",
                ),
                ("`tool`", "the [answer](tools.md#the-answer) of the tool, also without `--json`"),
                (
                    "`key create`, `key revoke`",
                    '`{"id", "name", "tenant", "role", "roles", "session", "rate_per_minute", "created_ns",'
                    ' "expires_ns", "used_ns", "revoked_ns", "state"}`, of a new one also `"key"`, its text;'
                    " the state is `in force`, `expired` or `revoked`",
                ),
                ("`key list`", '`{"keys": [key]}`, each as above'),
                (
                    "`files get`",
                    '`{"path", "local", "left_out": [{"path", "reason"}]}`; not where the content itself is'
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
                    ' [{"key", "value", "origin", "is_used"}], "sessions", "store", "limits", "quota",'
                    ' "confinement", "parts", "sandbox", "guest", "service", "containers": {"image", "tools",'
                    ' "engine", "has_image", "limits_missing", "loosened", "problem"}, "notes", "findings":'
                    ' [{"area", "subject", "state", "found", "remedy"}], "problems": [{"problem",'
                    ' "remedy"}]}`; an origin is `{"source", "name", "line", "is_alias"}`, a state `ok`,'
                    " `off`, `note` or `problem`",
                ),
                ("`serve`", '`{"http", "grpc", "has_callers"}`, once it listens; `grpc` may be null'),
            ],
        ),
        """
        A session is `{"session_id", "created_ns", "used_ns", "expires_ns", "expired", "ttl_seconds",
        "in_use", "role", "labels", "limits", "usage": {"disk_bytes", "disk_percent", "entries",
        "entries_percent"}}`.
        Times are nanoseconds since the epoch; `limits` are those in force, null for no ceiling, and have the
        names of the [limits](limits.md); `usage` is null until it is counted.

        An entry is `{"path", "kind", "size_bytes", "modified_ns", "mode"}`. The kind is `file`, `directory`,
        `link` or `other`; the mode is text in octal, like `"0644"`.
        """,
    )


def commands_page() -> str:
    """The page about the commands of the shell."""
    loaded = [(command, command.load()) for command in COMMANDS.values()]
    return page(
        "Commands of the shell",
        """
        What `Shell.run` and `carrel sh` understand; [use the shell](../how-to/use-the-shell.md) tells how.
        `NAME --help` prints the same. `--` ends the options. Long options may be shortened as far as they are
        unambiguous, and options may follow operands unless the usage says otherwise.
        """,
        table(
            ("command", "does", "effect"),
            [
                (f"[`{command.name}`](#{_anchor(command.name)})", command.summary, command.effect)
                for command, _ in loaded
            ],
        ),
        """
        The effect is the most that a command does: it touches no file (`none`), reads files (`read`), changes
        them (`write`), changes the shell itself (`shell`) or runs guest code (`run`).
        """,
        *(
            f"## {_anchor(command.name)}\n\n```text\n{help_text(command, module).rstrip()}\n```"
            for command, module in loaded
        ),
    )


def _anchor(name: str) -> str:
    """What the heading of a command is called; signs make no anchor."""
    return {":": "colon", "[": "bracket"}.get(name, name)


def limits_page() -> str:
    """The page about limits."""
    return page(
        "Limits",
        f"""
        {first_line(Limits)} Give them to `Workspace.open(directory, limits=Limits(...))`, or to
        `WorkspaceManager(root, limits=Limits(...))` for all sessions and to `create` for one. What passes
        `disk_bytes` or `entries`, the quota, raises `QuotaError`, and what passes another one `LimitError`;
        the message says the limit and what was asked.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Limits)]),
        "## Budget of a search",
        """
        A search that reaches the end of its budget is no error: its result says `truncated`, and `reason`
        says which part of the budget it was. Give another one to `Workspace.search(query,
        budget=SearchBudget(...))`; it is in `carrel.workspace.search`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(SearchBudget)]),
        "## Budget of a command line",
        """
        A command line that reaches the end of its budget is stopped; its result has status 124 or 4, and
        `error_code` says which part it was. Give another one to `Shell(workspace, budget=Budget(...))`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Budget)]),
        "## Limits of an extraction",
        """
        What passes one of them raises `LimitError` before anything is made. Give others to
        `Workspace.extract(source, limits=ExtractLimits(...))`; it is in `carrel.workspace.extract_limits`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(ExtractLimits)]),
        "## Fixed limits",
        table(
            ("what", "limit"),
            [
                ("path", f"{PATH_BYTES - 1} bytes"),
                ("one name in a path", f"{NAME_BYTES} bytes"),
                ("session id", f"{ID_CHARACTERS} characters"),
                ("glob", f"{PATTERN_CHARACTERS} characters"),
                ("search query", f"{QUERY_CHARACTERS} characters"),
                ("command line", f"{COMMAND_CHARACTERS} characters"),
                ("links followed in one path", "40"),
            ],
        ),
    )


def settings_page() -> str:
    """The page about settings."""
    return page(
        "Settings",
        f"""
        A variable of the environment goes before the file, and the file before the default. An argument or an
        option goes before all of them: `workspace_root=` in Python, `--sessions-dir` on the command line.
        `carrel doctor --settings` prints what is in force and where each value came from.

        The file is TOML. It is the one that `{CONFIG_VARIABLE}` names, else
        `$XDG_CONFIG_HOME/{FILE_NAME}`, else `~/.config/{FILE_NAME}`. That there is none is fine, unless
        `{CONFIG_VARIABLE}` names it.
        """,
        table(
            ("setting", "variable", "alias", "default", "must be", "meaning"),
            [setting_row(key) for key in KEYS],
        ),
        f"""
        - A variable that is empty counts as not set. Where a variable and its alias are both set, the
          variable is used. An alias like `{TIMEOUT_MS.file_alias}` is another name in the file.
        - A switch is `true` or `false` in the file; a variable may also say `1`, `0`, `yes`, `no`, `on` or
          `off`.
        - MB are MiB (2**20 bytes), KB and GB accordingly. `"{NONE}"` is no ceiling.
        - `~` in a path is the directory that `HOME` names.
        - A mode may also be spelt `readonly`, `read-only`, `readwrite` or `read-write`; a path without a mode
          is read-only.
        """,
        "## Roles",
        table(
            ("role", "tools"),
            [
                (f"`{name}`", ", ".join(f"`{tool}`" for tool in tools))
                for name, tools in DEFAULT_ROLES.items()
            ],
        ),
        "## Example",
        f"```toml\n{textwrap.dedent(EXAMPLE_FILE).strip()}\n```",
        "## Errors",
        """
        What cannot be used is an error that names the file, the line and the setting, or the variable; its
        code is `config.invalid`. That holds for a file that cannot be read or is not TOML, for keys that
        nobody knows, and for values of another type or out of range.

        The command line then does nothing, and a service does not start. The operator's shell, once there is
        one, starts in any case: it warns, and goes on without the file or, if a variable is wrong, with the
        defaults alone, which are the strictest.
        """,
        "## The sessions directory",
        """
        The directory is made with mode 0700 if it is missing. It is refused if it is a link, belongs to
        another user, or may be written by others. What carrel itself keeps is in `.carrel` inside it: the
        registry of sessions, removed trees, and for each session its count, its journal and unfinished files.
        No session can have that name.
        """,
    )


EXAMPLE_FILE = """
    [session]
    directory = "~/sessions"
    max_workspace_mb = 500
    ttl_seconds = 3600

    [files]
    max_file_size = "20MB"

    [roles.reader]
    tools = ["file_read", "file_list"]

    [workspace]
    mode = "rw"

    [[workspace.allow]]
    path = "~/projects"
    mode = "rw"

    [[workspace.allow]]
    path = "/usr/share/dict"
"""


def setting_row(key: Key[object]) -> tuple[str, ...]:
    """A row for one setting."""
    default = "not set" if key.default is None else f"`{json.dumps(key.default)}`"
    return (
        f"`{key.name}`",
        f"`{key.variable}`" if key.variable else "",
        ", ".join(f"`{name}`" for name in (key.alias, key.file_alias) if name),
        "as below" if key.name == ROLE_TOOLS.name else default,
        key.kind.says,
        key.meaning if key.is_used else f"{key.meaning} **Not used yet.**",
    )


def tools_page() -> str:
    """The page about the tools."""
    return page(
        "Tools",
        """
        What `Toolbox.call` and `carrel tool` offer; [use the tools](../how-to/use-the-tools.md) tells how. A
        role has the tools that the [configuration](settings.md#roles) gives to it by name, and those that
        come with them; [roles](../explanation/roles.md) says what that means. `carrel tools` lists them.
        """,
        "## The answer",
        table(
            ("key", "holds"),
            [
                ("`success`", "Whether it did what it was asked."),
                ("`output` or `data`", "What it gives; `data` in the profile `files`."),
                ("`error`", "If it failed: what is wrong, and what to do next."),
                ("`metadata`", "What else is to be known, as below. Each tool has more of its own."),
            ],
        ),
        table(
            ("metadata", "holds"),
            [
                ("`code`", "If it failed, the stable [code](errors.md) of the error."),
                ("`next`", "If it failed, what to do next."),
                (
                    "`path`",
                    "The file or directory, as those inside call it: `/workspace/...`. If it failed, as it"
                    " was asked for.",
                ),
                ("`version`", "Which version of the file this is; `if_match` takes it."),
                (
                    "`changes`",
                    "What the call changed, each `action` (`created`, `changed`, `deleted`, `moved`,"
                    " `touched`), `path` and sizes.",
                ),
                ("`changes_left_out`", "How many more there were than the 100 that `changes` tells."),
                ("`diff`", "How the text of a file changed, cut if it is long; none if the file is large."),
                ("`truncated`", "That the answer was cut."),
                ("`next_cursor`", "What to give as `cursor` to go on."),
            ],
        ),
        """
        Arguments are read strictly: one that a tool does not know, or of another type, is refused by its name
        with `tool.arguments`, and nothing is done. `null` stands for an argument that is not given. No answer
        holds a path of the host.
        """,
        *(part for profile in Profile for part in profile_parts(profile)),
        "## Options of a toolbox",
        """
        `Toolbox(workspace, role, profile=..., **options)` takes these instead of what is configured:
        """,
        table(("option", "meaning"), [(f"`{name}`", text) for name, text in option_rows()]),
        f"An answer is cut at {ANSWER_BYTES // 1024} KiB unless `answer_bytes` says otherwise.",
    )


def profile_parts(profile: Profile) -> Iterator[str]:
    """The tools of one profile."""
    says = {name: text for name, _, text in documented(Profile)}[profile.name]
    yield f"## Profile {profile}"
    yield says
    tools = TOOLS[profile].values()
    yield table(
        ("tool", "does", "effect", "comes with"),
        [
            (
                f"[`{tool.name}`](#{profile}-{tool.name})",
                tool.summary,
                str(tool.effect),
                f"`{tool.along_with}`",
            )
            for tool in tools
        ],
    )
    for tool in tools:
        yield from tool_parts(tool)


def tool_parts(tool: Tool) -> Iterator[str]:
    """One tool and its arguments."""
    loaded = tool.load()
    schema = loaded.parameters.schema()
    yield f"### {tool.profile} {tool.name}"
    yield plain(loaded.description)
    contained = tool.load(Where.CONTAINER).description
    if contained != loaded.description:
        yield f"In a [container](../how-to/use-containers.md#for-the-tools-of-agents): {plain(contained)}"
    rows = list(argument_rows(schema))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."


def argument_rows(schema: Schema, within: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each argument, and for each field of what is in a list."""
    for name, about in schema["properties"].items():
        default = f"`{json.dumps(about['default'])}`" if "default" in about else ""
        is_needed = name in schema["required"]
        says = plain(about["description"])
        yield f"`{within}{name}`", type_of(about), "needed" if is_needed else default, says
        if "properties" in about.get("items", {}):
            yield from argument_rows(about["items"], f"{name}[].")


def plain(text: str) -> str:
    """A text in which an asterisk is one, as in a pattern."""
    return text.replace("*", "\\*")


def type_of(about: Schema) -> str:
    """The type and the bounds of an argument, in words."""
    if "enum" in about:
        return ", ".join(f"`{each}`" for each in about["enum"])
    if about["type"] == "array":
        items = about["items"]
        text = f"list of {'objects' if items['type'] == 'object' else type_of(items) + 's'}"
        return text + bounds_of(about, "minItems", "maxItems", " items")
    unit = " characters" if about["type"] == "string" else ""
    keys = ("minLength", "maxLength") if unit else ("minimum", "maximum")
    return f"{about['type']}{bounds_of(about, *keys, unit)}"


def bounds_of(about: Schema, least: str, most: str, unit: str) -> str:
    """The bounds of a number or of a length."""
    low, high = about.get(least), about.get(most)
    if low is None and high is None:
        return ""
    if low == high:
        return f", {low}{unit}"
    if low == 1 and high is None and unit:
        return ", not empty"
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    return f", at least {low}{unit}" if high is None else f", at most {high}{unit}"


def option_rows() -> Iterator[tuple[str, str]]:
    """Name and words of each option of a toolbox."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(ToolOptions))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # for the type checker
    for node, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, _words(below)


def grpc_page() -> str:
    """The page about gRPC."""
    text = PROTO.read_text()
    head, _, _ = text.partition("syntax =")
    services = [block for block in proto_blocks(text) if block.kind == "service"]
    messages = [block for block in proto_blocks(text) if block.kind == "message"]
    return page(
        "gRPC",
        """
        What `carrel serve` offers over gRPC, beside health (`grpc.health.v1`) and reflection.
        [Serve](../how-to/serve.md) tells how to start it. The package is `carrel.v1`; its file is
        `carrel/remote/proto/carrel_v1.proto` in the installed package.
        """,
        # The first paragraph is about the file itself.
        "\n\n".join(wrapped(each) for each in proto_comment(head.splitlines()).split("\n\n")[1:]),
        "The statuses of errors are in the [table of errors](errors.md).",
        *(part for block in services for part in rpc_parts(block)),
        "## Messages",
        *(part for block in messages for part in message_parts(block)),
    )


PROTO = Path(carrel.remote.proto.__path__[0]) / "carrel_v1.proto"
_RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
_FIELD = re.compile(r"((?:optional |repeated )?)([\w.]+(?:<[^>]+>)?) (\w+) = \d+;")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtoBlock:
    """A service or a message of the file."""

    kind: str
    name: str
    comment: str
    lines: list[str]


def proto_blocks(text: str) -> Iterator[ProtoBlock]:
    """The services and messages, in their order."""
    for match in re.finditer(
        r"(?P<comment>(?:^//[^\n]*\n)*)"
        r"^(?P<kind>service|message) (?P<name>\w+) \{(?P<body>\}|[^\n]*\n.*?^\})",
        text,
        re.MULTILINE | re.DOTALL,
    ):
        yield ProtoBlock(
            kind=match["kind"],
            name=match["name"],
            comment=paragraph(proto_comment(match["comment"].splitlines())),
            lines=[line.strip() for line in match["body"].splitlines()],
        )


def proto_comment(lines: Iterable[str]) -> str:
    """The words of comments."""
    return "\n".join(
        line.strip().removeprefix("//").strip() for line in lines if line.strip().startswith("//")
    )


def paragraph(text: str) -> str:
    """The same on one line."""
    return re.sub(r"\s+", " ", text).strip()


def wrapped(text: str) -> str:
    """The same on lines of a readable length."""
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def bullets(*texts: str) -> str:
    """A list of paragraphs."""
    return "\n".join(
        textwrap.fill(
            f"- {text}", 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for text in texts
    )


def commented(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line that says something, with the comment above it."""
    comment: list[str] = []
    for line in lines:
        if line.startswith("//"):
            comment.append(line)
        elif line:
            yield line, paragraph(proto_comment(comment))
            comment = []


def rpc_parts(block: ProtoBlock) -> Iterator[str]:
    """One service and its calls."""
    yield f"## {block.name}"
    yield block.comment
    rows = []
    for line, comment in commented(block.lines):
        if match := _RPC.match(line):
            name, many, takes, streams, gives = match.groups()
            rows.append((f"`{name}`", f"{many or ''}{link(takes)}", f"{streams or ''}{link(gives)}", comment))
    yield table(("call", "takes", "gives", "meaning"), rows)


def message_parts(block: ProtoBlock) -> Iterator[str]:
    """One message and its fields."""
    yield f"### {block.name}"
    if block.comment:
        yield block.comment
    rows, group = [], ""
    for line, comment in commented(block.lines):
        if line.startswith("oneof "):
            group = f"One of `{line.split()[1]}`. "
        elif line == "}":
            group = ""
        elif match := _FIELD.match(line):
            label, kind, name = match.groups()
            shown = link(kind) if kind[0].isupper() else f"`{kind}`"
            rows.append((f"`{name}`", f"{label}{shown}", f"{group}{comment}".strip()))
    yield table(("field", "type", "meaning"), rows) if rows else "It has no fields."


def link(message: str) -> str:
    """A message of this page."""
    return f"[`{message}`](#{message.lower()})"


def http_page() -> str:
    """The page about HTTP."""
    from carrel.fronts.http.openapi import CALLER_ERRORS, COMMON_ERRORS, SESSION_ERRORS, describe
    from carrel.fronts.http.table import ROUTES

    document = describe(ROUTES, "")
    rows = list(http_rows(document))
    parts = document["components"]["schemas"]
    return page(
        "HTTP",
        """
        What `carrel serve` offers over HTTP; [serve](../how-to/serve.md) tells how to start it.
        `/openapi.json` says the same in OpenAPI 3.1. MCP is at `/mcp`, on [a page of its own](mcp.md).
        """,
        bullets(
            "A caller shows its key as `Authorization: Bearer KEY`, and may choose a role of its key by"
            " the header `Carrel-Role`.",
            "A path in a URL is decoded once. What is still encoded then is part of a name.",
            'An error is `{"error": {"code", "message", "path", "retry"}}` with the status of the'
            " [table of errors](errors.md), and with `Retry-After` if waiting may help.",
            f"Every route may answer with {codes(COMMON_ERRORS)}; one that needs a caller also with"
            f" {codes(CALLER_ERRORS)}; one about a session also with {codes(SESSION_ERRORS)}."
            " What else is likely is told with the route.",
            "Every answer has `X-Request-Id`: that of the request, or a fresh one.",
        ),
        table(
            ("request", "does"),
            [(f"[`{row.method} {row.path}`](#{row.anchor})", row.says["summary"]) for row in rows],
        ),
        *(part for row in rows for part in http_parts(row, {route.name: route for route in ROUTES}, parts)),
        "## Values",
        "What is not required may be missing; an answer holds all of it.",
        *(
            part
            for name, schema in sorted(parts.items())
            if not name.endswith(("Query", "Arguments", "Body"))
            for part in value_parts(name, schema)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRow:
    """One route, and what the description says about it."""

    method: str
    path: str
    says: Schema

    @property
    def anchor(self) -> str:
        """What its heading is called."""
        return str(self.says["operationId"])


def http_rows(document: Schema) -> Iterator[HttpRow]:
    """The routes in the order of the description."""
    for path, item in document["paths"].items():
        found = {**item, **item.get("x-methods", {})}
        for method, says in found.items():
            if not method.startswith("x-"):
                yield HttpRow(method=method.upper(), path=path, says=says)


def http_parts(row: HttpRow, routes: dict[str, Route], parts: Schema) -> Iterator[str]:
    """One route: what it takes and gives."""
    yield f"## {row.anchor}"
    yield f"`{row.method} {row.path}`"
    yield f"{row.says['summary'].rstrip('.')}."
    route = routes.get(row.anchor, routes["operation"])
    words = field_words(route.query)
    fields: list[tuple[str, ...]] = [
        (
            f"`{each['name']}`",
            each["in"],
            schema_type(each["schema"]),
            "needed" if each["required"] else default_of(each["schema"]),
            each.get("description", "") or words.get(each["name"], ""),
        )
        for each in row.says["parameters"]
        if each["name"] not in ("session_id", "Carrel-Role")
    ]
    body = row.says.get("requestBody")
    for kind, content in body["content"].items() if body else ():
        schema = content.get("schema", {})
        schema = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        fields += list(body_rows(schema, field_words(route.body and route.body.schema))) or [
            ("", "body", f"`{kind}`", "needed", "")
        ]
    if fields:
        yield table(("name", "in", "type", "default", "meaning"), fields)
    yield table(
        ("answer", "meaning", "body"),
        [
            (status, says["description"].partition(". Not ")[0], bodies_of(says))
            for status, says in row.says["responses"].items()
            if int(status) < 400
        ],
    )
    if route.errors:
        yield f"Errors: {codes(sorted(route.errors))}."


def body_rows(schema: Schema, words: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """The fields of a body in JSON."""
    for name, part in schema.get("properties", {}).items():
        is_needed = name in schema.get("required", ())
        says = part.get("description", "") or words.get(name, "")
        yield f"`{name}`", "body", schema_type(part), "needed" if is_needed else default_of(part), says


def value_parts(name: str, schema: Schema) -> Iterator[str]:
    """A value that stands in requests and answers."""
    yield f"### {name}"
    if "description" in schema:
        yield wrapped(paragraph(schema["description"].partition("\n\n")[0]))
    if "enum" in schema:
        yield f"One of {schema_type(schema)}."
        return
    words = field_words(kinds_of_values().get(name))
    yield table(("field", "type", "meaning"), list(value_rows(schema, words)))


def value_rows(schema: Schema, words: dict[str, str], within: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each field, and for those of an object that has no name of its own."""
    for name, part in schema.get("properties", {}).items():
        yield f"`{within}{name}`", schema_type(part), part.get("description", "") or words.get(name, "")
        yield from value_rows(part, {}, f"{within}{name}.")


def kinds_of_values() -> dict[str, type]:
    """The classes of what is in answers, by name."""
    from carrel.fronts.http import changes, executions, files, status

    modules = (
        carrel.audit.event,
        carrel.service.session_info,
        carrel.values,
        carrel.workspace.extract,
        changes,
        executions,
        files,
        status,
    )
    return {name: kind for module in modules for name, kind in inspect.getmembers(module, inspect.isclass)}


def field_words(kind: object) -> dict[str, str]:
    """The words below each field of a class; none if it is not written as one."""
    if not isinstance(kind, type) or (
        not dataclasses.is_dataclass(kind) and not hasattr(kind, "__struct_fields__")
    ):
        return {}
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except OSError:
        return {}
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # for the type checker
    return {
        node.target.id: _words(below)
        for node, below in zip(tree.body, [*tree.body[1:], None], strict=True)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def bodies_of(says: Schema) -> str:
    """What an answer may hold."""
    shown = []
    for kind, content in says.get("content", {}).items():
        schema = content.get("schema", {})
        is_json = kind == "application/json" and schema
        shown.append(schema_type(schema) if is_json else f"`{kind}`")
    return " or ".join(shown)


def default_of(schema: Schema) -> str:
    """The default, if it says anything."""
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default)}`"


def schema_type(schema: Schema) -> str:
    """A type of JSON Schema, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(schema_type(each) for each in schema[key]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {schema_type(schema.get('items') or {})}"
    if kind == "object" and schema.get("additionalProperties"):
        return f"object of {schema_type(schema['additionalProperties'])}"
    return str(kind)


def codes(names: Iterable[str]) -> str:
    """Codes of errors."""
    return ", ".join(f"`{name}`" for name in names)


def mcp_page() -> str:
    """The page about MCP."""
    from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About

    return page(
        "MCP",
        """
        What `carrel mcp` and the path `/mcp` of `carrel serve` offer to clients of the Model Context
        Protocol; [use it over MCP](../how-to/use-mcp.md) tells how. There are the [tools](tools.md) of the
        chosen profiles, `agent` unless others are named, and those about sessions, below. A caller is offered
        those that its role has.

        Unless the caller is bound to a session, each tool that is about one takes its id as `session`.
        Tools that work on files or run something make it when it is first named.
        """,
        "## Answers",
        """
        The structured content is the [answer](tools.md#the-answer) of the tool, the content the same as text.
        If the call failed, `isError` is set. A tool that is not there, or not for the caller's role, is an
        error of the protocol. The tools of the profile `mcp` give `content` instead of `output`, as the
        reference server does.
        """,
        "## Resources",
        """
        `carrel://SESSION/PATH` is a file, `carrel:///PATH` one of the session that the caller is bound to.
        The path is percent-encoded, once. A text is given as text and anything else as bytes in base64. A
        directory is a list of `name`, `uri`, `kind` and `size_bytes` in JSON. Who is bound to a session lists
        its files; who is not lists the sessions.
        """,
        "## Tools about sessions",
        table(
            ("tool", "does", "needs", "hints"),
            [
                (
                    f"[`{tool.name}`](#{tool.name})",
                    tool.summary,
                    f"`{tool.needs}`" if tool.needs else "",
                    ", ".join(hints_of(tool)),
                )
                for tool in SESSION_TOOLS.values()
            ],
        ),
        """
        A role has such a tool if it has the one that the tool needs. Those that make or list sessions are not
        offered to a caller who is bound to one.
        """,
        *(
            part
            for tool in SESSION_TOOLS.values()
            for part in session_tool_parts(tool, takes_session=tool.about is About.ONE)
        ),
    )


def hints_of(tool: SessionTool) -> Iterator[str]:
    """What a client is told about the effect of a tool."""
    if tool.reads:
        yield "read-only"
    if tool.destructive:
        yield "destructive"
    if tool.idempotent:
        yield "idempotent"


def session_tool_parts(tool: SessionTool, *, takes_session: bool) -> Iterator[str]:
    """One tool and its arguments."""
    yield f"### {tool.name}"
    yield plain(tool.render()["description"])
    rows = list(argument_rows(tool.parameters.schema()))
    if takes_session:
        rows.insert(0, ("`session`", "string", "needed", "The session, unless the caller is bound to one"))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."


PAGES: dict[str, Callable[[], str]] = {
    "reference/errors.md": errors_page,
    "reference/grpc.md": grpc_page,
    "reference/http.md": http_page,
    "reference/cli.md": cli_page,
    "reference/commands.md": commands_page,
    "reference/limits.md": limits_page,
    "reference/mcp.md": mcp_page,
    "reference/settings.md": settings_page,
    "reference/tools.md": tools_page,
}


# Markdown


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", NOTICE, *(textwrap.dedent(part).strip() for part in parts)]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; a bar in a cell does not end it."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# What the code says


def coded() -> Iterator[tuple[str, type[CarrelError]]]:
    """Every row of the table with its class of error."""
    found = kinds()
    for code in TABLE:
        yield code, found.get(code) or found[f"{code.partition('.')[0]}.*"]


def kinds() -> dict[str, type[CarrelError]]:
    """Every class of error by its code, or by its area where it has a code per case."""
    areas = {
        ContainerError: "container.*",
        EditError: "edit.*",
        EngineError: "engine.*",
        LimitError: "limit.*",
        QuotaError: "quota.*",
        ToolError: "tool.*",
    }
    found = [kind for _, kind in inspect.getmembers(carrel.errors, inspect.isclass)]
    return {areas.get(kind, kind.code): kind for kind in found if issubclass(kind, CarrelError)}


def builtins_of(kind: type[CarrelError]) -> list[str]:
    """The builtin errors that catch *kind*, without those that only stand above another one."""
    found = [each for each in kind.__mro__ if each.__module__ == "builtins"]
    return [
        each.__name__
        for each in found
        if not any(other is not each and issubclass(other, each) for other in found)
    ]


def container_cases() -> list[str]:
    """What the sources give to `ContainerError` as the problem."""
    return sorted({case for text in sources() for case in first_arguments(text, ContainerError.__name__)})


def engine_cases() -> list[str]:
    """What the sources give to `EngineError` as the problem."""
    return sorted({case for text in sources() for case in first_arguments(text, EngineError.__name__)})


def sources() -> Iterator[str]:
    """Everything that is written by hand."""
    for folder in carrel.__path__:
        for file in sorted(Path(folder).rglob("*.py")):
            yield file.read_text()


def edit_cases() -> list[str]:
    """What the sources give to `EditError` as the problem."""
    return cases(carrel.workspace.edit, EditError.__name__)


def limit_cases() -> list[str]:
    """The ceilings of a workspace that are not its quota."""
    quota = {field.name for field in fields(Quota)}
    return [field.name for field in fields(Limits) if field.name not in quota]


def registry_cases() -> list[str]:
    """The ceilings of all sessions together."""
    return cases(carrel.workspace._registry_rules, LimitError.__name__)


def quota_cases() -> list[str]:
    """What the sources give to `QuotaError` as what there is too much of."""
    return cases(carrel.workspace.quota, QuotaError.__name__)


def archive_cases() -> list[str]:
    """The ceilings of an extraction."""
    name = carrel.workspace.extract_limits.require.__name__
    found = (carrel.workspace.extract_limits, carrel.workspace._archive_spool)
    return sorted({case for module in found for case in cases(module, name)})


def tool_cases() -> list[str]:
    """What the sources of the tools give to `ToolError` as the problem, and codes of that area elsewhere."""
    given = {case for text in tool_sources() for case in first_arguments(text, ToolError.__name__)}
    return sorted(given | set(codes_of_tools("tool")))


def run_cases() -> list[str]:
    """The limits of commands and code."""
    return [case for case in codes_of_tools("limit") if case not in limit_cases()]


def codes_of_tools(area: str) -> list[str]:
    """The cases of *area* that the sources of the tools name."""
    found = {case for text in tool_sources() for case in re.findall(rf'"{area}\.(\w+)"', text)}
    return sorted(found)


def tool_sources() -> Iterator[str]:
    """The sources of all tools, and of what they share."""
    for folder in carrel.tools.__path__:
        for file in sorted(Path(folder).rglob("*.py")):
            yield file.read_text()


def cases(module: ModuleType, function: str) -> list[str]:
    """What the sources give to *function* as its first argument."""
    return first_arguments(inspect.getsource(module), function)


def first_arguments(source: str, function: str) -> list[str]:
    """What *source* gives to *function* as its first argument, where that is written out."""
    return sorted(
        str(node.args[0].value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
        and isinstance(node.args[0], ast.Constant)
    )


def statuses() -> Iterator[tuple[ExitStatus, str]]:
    """The exit statuses of errors, with what is written below them."""
    for name, _, text in documented(ExitStatus):
        if text:
            yield ExitStatus[name], text


def documented(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, value and the words below each field of *kind*."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # for the type checker
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            name, value = node.target.id, node.value
        else:
            continue
        yield name, ast.unparse(value), _words(below)


def _words(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return re.sub(r"\s+", " ", node.value.value)
    return ""


def limit_row(field: tuple[str, str, str]) -> tuple[str, str, str]:
    """A row for a number with its default."""
    name, default, text = field
    shown = f"{int(default):,}" if default.isdecimal() else default.replace(" * MIB", " MiB")
    return f"`{name}`", shown, text


def first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


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


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
