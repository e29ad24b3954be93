"""Write the reference pages that follow from the code: `python docs/generate.py`.

A test fails when a page is not what this makes of it.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import click

import carrel.errors
import carrel.tools
import carrel.workspace._archive_spool
import carrel.workspace._registry_rules
import carrel.workspace.edit
import carrel.workspace.extract_limits
import carrel.workspace.quota
from carrel.config.file import NAME as FILE_NAME
from carrel.config.kind import NONE
from carrel.config.table import CONFIG_VARIABLE, DEFAULT_ROLES, KEYS, ROLE_TOOLS, TIMEOUT_MS, Key
from carrel.errors import CarrelError, EditError, LimitError, QuotaError, ToolError
from carrel.fronts.cli.main import BROKEN_PIPE, INTERRUPTED, cli
from carrel.fronts.cli.report import LOCAL, USAGE
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
from carrel.tools.spec import Profile, Tool
from carrel.tools.table import TOOLS
from carrel.values import Limits
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.quota import Quota
from carrel.workspace.search import QUERY_CHARACTERS, SearchBudget

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

        "Exit" is the exit status of the command line; "retry" says that the same call may work later.
        """,
        table(("code", "class", "also a", "exit", "retry", "meaning"), rows),
        "## Codes with several cases",
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
                (str(INTERRUPTED), "Ended by Ctrl-C."),
                (str(BROKEN_PIPE), "The reader of the output went away."),
            ],
        ),
        f"The command line has two codes of its own: `{USAGE}` (exit status 2) for words that make no sense"
        f" together, and `{LOCAL}` (exit status 1) for a local file or stream that cannot be used.",
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
                    ' [{"session_id", "problem"}], "reclaimed_bytes"}`',
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
                ("`files rm`", '`{"path", "removed"}`; false if there was nothing and `--force` is on'),
                (
                    "`policy explain`",
                    '`{"session_id", "path", "decisions": [{"access", "allowed", "reason", "rule"}]}`;'
                    ' a rule is `{"index", "root", "mode"}` or null',
                ),
                (
                    "`doctor`",
                    '`{"carrel", "python", "platform", "config": {"file", "is_there"}, "settings":'
                    ' [{"key", "value", "origin", "is_used"}], "sessions", "quota", "confinement", "parts",'
                    ' "notes", "problems": [{"problem", "remedy"}]}`;'
                    ' an origin is `{"source", "name", "line", "is_alias"}`',
                ),
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
        `carrel doctor` prints what is in force and where each value came from.

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


PAGES: dict[str, Callable[[], str]] = {
    "reference/errors.md": errors_page,
    "reference/cli.md": cli_page,
    "reference/commands.md": commands_page,
    "reference/limits.md": limits_page,
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
    areas = {LimitError: "limit.*", EditError: "edit.*", QuotaError: "quota.*", ToolError: "tool.*"}
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
