"""`carrel doctor`: print the findings, each with what to do, and set the exit status."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.output import Colours, Tone, display, print_json, stdout_colours

if TYPE_CHECKING:
    from carrel.fronts.cli.doctor.facts import Facts

VALUE_CHARACTERS = 28
"""The width of the column of values; a longer one moves what is after it."""
STATE_CHARACTERS = 7
SUBJECT_CHARACTERS = 17
TONES = {"ok": Tone.GOOD, "off": Tone.FAINT, "note": Tone.CARE, "problem": Tone.BAD}


@click.command()
@click.option(
    "--settings", "with_settings", is_flag=True, help="Also show the settings that are as by default."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def doctor(place: CliContext, with_settings: bool, as_json: bool) -> int:
    """Look at all that carrel needs here, and say what to do about what is not fine.

    A line begins with ok, off (nobody needs it unless they want to), note (it works, but not as it could) or
    problem. Nothing is made or changed. The exit status is 0 if there is no problem, 2 if the configuration
    cannot be used, and 5 if the sessions directory or something else that is needed cannot.
    """
    from carrel.config.load import load, operator_settings
    from carrel.errors import ConfigError
    from carrel.fs.host.platform import require_platform
    from carrel.service.error_status import ExitStatus

    require_platform()
    from carrel.fronts.cli.doctor.facts import collect_facts

    try:
        document = collect_facts(load(os.environ), place.given)
    except ConfigError as error:
        # The rest is looked at all the same.
        document = collect_facts(operator_settings(os.environ, lambda text: None), place.given, error)
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
        yield from ("", colours.paint(area, Tone.HEAD))
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
        words = f"{_words(each['value']):<{VALUE_CHARACTERS}}"
        unused = "" if each["is_used"] else "; not used yet"
        yield f"{each['key']:<27} {words}  {_origin_words(each['origin'])}{unused}"


def _words(value: Any) -> str:  # Any: whatever JSON can say
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(_words(each) for each in value) or "none"
    return display(str(value))


def _origin_words(origin: Facts) -> str:
    words = {"file": f"line {origin['line']} of the file"}.get(origin["source"])
    return (words or origin["name"] or origin["source"]) + (" (alias)" if origin["is_alias"] else "")


def _summary(document: Facts, colours: Colours) -> Iterator[str]:
    """What matters most, where it is read last."""
    from carrel.audit.logger import printable

    problems = document["problems"]
    if not problems:
        yield colours.paint("All that is needed is there.", Tone.GOOD)
        return
    yield colours.paint("Problems", Tone.BAD)
    for each in problems:
        yield f"  {printable(each['problem'])}"
        yield f"  -> {printable(each['remedy'])}"
