"""`carrel doctor`: print the findings with their remedies, and set the exit status."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.output import Colours, Tone, display, print_json, stdout_colours

if TYPE_CHECKING:
    from carrel.fronts.cli.doctor.findings import Facts

VALUE_CHARACTERS = 28
"""Minimum width of the column of values."""
STATE_CHARACTERS = 7
SUBJECT_CHARACTERS = 17
TONES = {"ok": Tone.SUCCESS, "off": Tone.DIM, "note": Tone.WARNING, "problem": Tone.ERROR}


@click.command()
@click.option("--settings", "with_settings", is_flag=True, help="Also show settings at their default value.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def doctor(context: CliContext, with_settings: bool, as_json: bool) -> int:
    """Check everything that carrel needs on this machine, and suggest remedies.

    Each line begins with ok, off (optional and not in use), note (works with restrictions) or problem.
    Nothing is created or changed. The exit status is 0 without problems, 2 if the configuration is invalid,
    and 5 if the sessions directory or another requirement is unusable.
    """
    from carrel.config.load import load, operator_settings
    from carrel.errors import ConfigError
    from carrel.fs.host.platform import require_platform
    from carrel.service.error_status import ExitStatus

    require_platform()
    from carrel.fronts.cli.doctor.facts import collect_facts

    try:
        document = collect_facts(load(os.environ), context.sessions_dir_option)
    except ConfigError as error:
        # Everything else is checked nevertheless.
        document = collect_facts(
            operator_settings(os.environ, lambda text: None), context.sessions_dir_option, error
        )
    if as_json:
        print_json(document)
    else:
        click.echo("\n".join(_report(document, stdout_colours(), with_settings=with_settings)))
    if document["config"]["problem"] is not None:
        return ExitStatus.INVALID
    return ExitStatus.UNAVAILABLE if document["problems"] else ExitStatus.DONE


def _report(document: Facts, colours: Colours, *, with_settings: bool = False) -> Iterator[str]:
    yield f"carrel {document['carrel']}, Python {document['python']}, {document['platform']}"
    settings = [
        each for each in document["settings"] if with_settings or each["origin"]["source"] != "default"
    ]
    for area, findings in groupby(document["findings"], key=lambda each: each["area"]):
        yield from ("", colours.paint(area, Tone.HEADING))
        for each in findings:
            yield from _finding_lines(each, colours)
            if each["subject"] == "settings":
                yield from (f"{'':<{STATE_CHARACTERS + 4}}{line}" for line in _setting_lines(settings))
    yield ""
    yield from _summary(document, colours)


def _finding_lines(finding: Facts, colours: Colours) -> Iterator[str]:
    from carrel.audit.logger import printable

    state = finding["state"]
    mark = colours.paint(f"{state:<{STATE_CHARACTERS}}", TONES[state])
    yield f"  {mark}  {finding['subject']:<{SUBJECT_CHARACTERS}} {printable(finding['found'])}"
    if finding["remedy"] is not None:
        yield f"{'':<{STATE_CHARACTERS + SUBJECT_CHARACTERS + 5}}-> {printable(finding['remedy'])}"


def _setting_lines(settings: list[Facts]) -> Iterator[str]:
    for each in settings:
        value = f"{_render_value(each['value']):<{VALUE_CHARACTERS}}"
        unused = "" if each["is_used"] else "; not used yet"
        yield f"{each['key']:<27} {value}  {_render_origin(each['origin'])}{unused}"


def _render_value(value: Any) -> str:  # Any: any JSON value
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_render_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(_render_value(each) for each in value) or "none"
    return display(str(value))


def _render_origin(origin: Facts) -> str:
    line = {"file": f"line {origin['line']} of the file"}.get(origin["source"])
    return (line or origin["name"] or origin["source"]) + (" (alias)" if origin["is_alias"] else "")


def _summary(document: Facts, colours: Colours) -> Iterator[str]:
    """Repeat the problems at the end, where they are seen first."""
    from carrel.audit.logger import printable

    problems = document["problems"]
    if not problems:
        yield colours.paint("All requirements are met.", Tone.SUCCESS)
        return
    yield colours.paint("Problems", Tone.ERROR)
    for each in problems:
        yield f"  {printable(each['problem'])}"
        yield f"  -> {printable(each['remedy'])}"
