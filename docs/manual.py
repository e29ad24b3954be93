"""Write the manual pages that follow from the help of the command line: `python -m docs.manual`.

One page for the program and one for each of its commands; those of a group share a page. A test fails when a
page is not what this makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from carrel.config.debug import DEBUG_VARIABLE
from carrel.config.file import NAME as FILE_NAME
from carrel.config.table import CONFIG_VARIABLE, DIRECTORY, PYTHON_CACHE
from carrel.fronts.cli.help import RootGroup, examples_of, first_line
from carrel.fronts.cli.main import cli

DOCS = Path(__file__).parent
PAGES = DOCS / "man"
NOTICE = '.\\" Made by docs/manual.py; do not edit.'
WIDTH = 1_000
"""So wide that nothing is broken into lines here; the reader's terminal does that."""
VARIABLES = (
    (CONFIG_VARIABLE, "The configuration file."),
    (str(DIRECTORY.variable), DIRECTORY.meaning),
    (str(PYTHON_CACHE.variable), PYTHON_CACHE.meaning),
    (DEBUG_VARIABLE, "If it is 1, an error is told with its traceback."),
    ("NO_COLOR", "If it is not empty, nothing is coloured."),
)
FILES = (
    (f"~/.config/{FILE_NAME}", "The configuration, if there is any."),
    ("./workspace", "All sessions, unless another directory is named."),
    ("~/.cache/carrel", "The compiled guest that runs Python in sessions."),
)
SIGNS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
"""What would be another sign, or an order, if it were written as it is."""

_STATUS = re.compile(r"^\| (\d+) \| (.+) \|$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


def pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    top = _context(cli, "carrel")
    made = {"carrel.1": _program_page(top)}
    for name in cli.list_shown():
        made[f"carrel-{name}.1"] = _command_page(name, _context(cli.commands[name], name, top))
    return made


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **cli.context_settings,
    )


# Pages


def _program_page(context: click.Context) -> str:
    return _page(
        "carrel",
        first_line(cli),
        ".SH SYNOPSIS",
        *_usage(context),
        ".SH DESCRIPTION",
        *_paragraphs(cli.help or ""),
        ".SH OPTIONS",
        *_options(context),
        ".SH COMMANDS",
        *_overview(cli),
        ".SH EXIT STATUS",
        *(line for status, text in _statuses() for line in _item(bold(status), plain(text))),
        ".SH ENVIRONMENT",
        *(line for name, text in VARIABLES for line in _item(bold(name), plain(text))),
        *_paragraphs("`carrel doctor --settings` lists all settings, and where each value came from."),
        ".SH FILES",
        *(line for name, text in FILES for line in _item(italic(name), plain(text))),
        *_examples(""),
        ".SH SEE ALSO",
        ",\n".join(f".BR carrel\\-{name} (1)" for name in cli.list_shown()).replace(",\n", " ,\n"),
    )


def _overview(program: RootGroup) -> Iterator[str]:
    for title, rows in program.rows_by_section():
        yield f".SS {title}"
        for name, text in rows:
            yield from _item(bold(name), plain(f"{text}."))


def _command_page(name: str, context: click.Context) -> str:
    command = context.command
    return _page(
        f"carrel-{name}",
        first_line(command),
        *(_group_parts(name, command, context) if isinstance(command, click.Group) else _parts(context)),
        *_examples(name),
        ".SH SEE ALSO",
        ".BR carrel (1)",
    )


def _parts(context: click.Context) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    yield from _usage(context)
    yield ".SH DESCRIPTION"
    yield from _paragraphs(context.command.help or "")
    yield ".SH OPTIONS"
    yield from _options(context)


def _group_parts(name: str, group: click.Group, context: click.Context) -> Iterator[str]:
    below = [_context(command, word, context) for word, command in group.commands.items()]
    yield ".SH SYNOPSIS"
    for number, each in enumerate(below):
        yield from (*([".br"] if number else []), *_usage(each))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(group.help or "")
    yield ".SH COMMANDS"
    for each in below:
        yield f".SS {plain(f'{name} {each.info_name}')}"
        yield from _paragraphs(each.command.help or "")
        yield from _options(each)


def _page(name: str, summary: str, *lines: str) -> str:
    head = [
        NOTICE,
        f'.TH {plain(name.upper())} 1 "" carrel "Manual of carrel"',
        # Neither hyphens in names nor wide gaps.
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{plain(name)} \\- {plain(summary[:1].lower() + summary[1:])}",
    ]
    return "\n".join([*head, *lines]) + "\n"


# Parts of a page


def _usage(context: click.Context) -> Iterator[str]:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    yield f"{bold(context.command_path)} {plain(pieces)}"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in cleandoc(text).split("\n\n"):
        yield ".PP"
        yield plain(" ".join(paragraph.split()))


def _options(context: click.Context) -> Iterator[str]:
    for param in context.command.get_params(context):
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            names, text = record
            yield from _item(_option(names), plain(" ".join(text.split())))


def _option(names: str) -> str:
    """What is typed as it is in bold, what stands for something else in italics."""
    words = re.split(r"([ ,/]+)", names)
    return "".join(_option_word(word) for word in words)


def _option_word(word: str) -> str:
    if word.startswith("-"):
        return bold(word)
    return plain(word) if not word.strip(" ,/") else italic(word)


def _item(title: str, text: str) -> tuple[str, str, str]:
    return ".TP", title, text


def _examples(name: str) -> Iterator[str]:
    yield ".SH EXAMPLES"
    yield ".nf"
    yield from (plain(line) for line in examples_of(name))
    yield ".fi"


def _statuses() -> list[tuple[str, str]]:
    """The exit statuses, from the reference."""
    page = (DOCS / "reference" / "errors.md").read_text()
    return _STATUS.findall(page.partition("\n## Exit statuses\n")[2])


# Text


def plain(text: str) -> str:
    """*text* as it is, but what is between backquotes in bold."""
    parts = _CODE.split(text)
    shown = "".join(bold(part) if number % 2 else _escaped(part) for number, part in enumerate(parts))
    # A line that begins so would be an order.
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown


def bold(text: str) -> str:
    """*text* in bold letters."""
    return f"\\fB{_escaped(text)}\\fR"


def italic(text: str) -> str:
    """*text* in italics."""
    return f"\\fI{_escaped(text)}\\fR"


def _escaped(text: str) -> str:
    return "".join(SIGNS.get(sign, sign) for sign in text)


def main() -> None:
    """Write every page, and remove those of commands that are gone."""
    made = pages()
    PAGES.mkdir(exist_ok=True)
    for stale in PAGES.glob("*.1"):
        if stale.name not in made:
            stale.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
